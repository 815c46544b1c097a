#include <algorithm>
#include <map>
#include <utility>

#include "semel/bits/internal/elias_fano.h"
#include "semel/bits/internal/packed_array.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/dot_codec.h"
#include "semel/crdt/internal/entry_codec.h"
#include "semel/crdt/internal/observed_state.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

using crdt_internal::CuckooEntry;
using crdt_internal::decode_places;
using crdt_internal::distances;
using crdt_internal::encode_places;
using crdt_internal::forked;
using crdt_internal::kMostSites;
using crdt_internal::LifeRun;
using crdt_internal::Lives;
using crdt_internal::ObservedChanges;
using crdt_internal::places_size;
using crdt_internal::read_dots;
using crdt_internal::read_shape;

namespace {

// docs/formats/observed_delta_v1.md.
//
//    OFFSET     SIZE  FIELD OF THE BODY
//         0       20  shape
//        20        4  sites S
//             8+32*L  lives, L runs of dots
//               24*S  for each site the first dot, the distance of the last from it, the number of
//                     changes
//                  E  for each site the distances of the dots from its first one, Elias-Fano
//                  F  a bit for each change: 1 if removed
//                  P  pairs and fingerprints of all changes, in the order of the dots
constexpr Format kFormat{"SOD", 1, "delta of an observed-remove cuckoo filter"};

// Returns true if every dot lies in a run and every run ends with a dot.
bool are_lives_of(const Lives& lives, std::span<const CuckooEntry> entries) {
  auto entry = entries.begin();
  for (const LifeRun& run : lives.runs()) {
    if (entry == entries.end() || entry->payload < run.first || entry->payload > run.last) {
      return false;
    }
    entry = std::partition_point(entry, entries.end(),
                                 [&](const CuckooEntry& e) { return e.payload <= run.last; });
    if (std::prev(entry)->payload != run.last) return false;
  }
  return entry == entries.end();
}

// Returns how many of the entries, which ascend by dot, belong to the same site as the first.
std::size_t of_first_site(std::span<const CuckooEntry> entries) {
  const SiteId site = Dot::unpacked(entries.front().payload).site;
  const std::uint64_t end = Dot{site, Dot::kLastCounter}.packed();
  const auto next = std::partition_point(entries.begin(), entries.end(),
                                         [&](const CuckooEntry& e) { return e.payload <= end; });
  return static_cast<std::size_t>(next - entries.begin());
}

}  // namespace

ObservedDelta::ObservedDelta(const CuckooShape& shape) : shape_(shape), body_(std::in_place) {
  SEMEL_ASSERT(shape.valid() && shape.payload_bits == Dot::kBits);
}

// Lives drawn at random detect every reused dot. This also checks, where it costs nothing, that a
// dot has one entry, in case one life was given to two.
const std::uint64_t* ObservedChanges::dot_of_two(const ObservedChanges& other) const {
  for (const auto& [dot, change] : other.changes) {
    const auto here = changes.find(dot);
    if (here != changes.end() &&
        (here->second.pair != change.pair || here->second.fingerprint != change.fingerprint)) {
      return &here->first;
    }
  }
  return nullptr;
}

// A dot that is removed in either delta is removed in the result.
void ObservedChanges::record(std::uint64_t dot, const Change& change, const LifeRun& run) {
  lives.make_room(1);
  const auto [here, fresh] = changes.try_emplace(dot, change);
  if (!fresh) here->second.removed |= change.removed;
  lives.insert(run);
}

Result<void> ObservedDelta::merge(const ObservedDelta& other) {
  if (shape_ != other.shape_) return Error{Errc::mismatch, "deltas of different shapes"};
  const ObservedChanges& theirs = *other.body_;
  if (const std::optional<SiteId> site = body_->lives.clash(theirs.lives)) return forked(*site);
  if (const std::uint64_t* dot = body_->dot_of_two(theirs)) {
    return forked(Dot::unpacked(*dot).site);
  }
  for (const auto& [dot, change] : theirs.changes) {
    body_->record(dot, change, theirs.lives.upto(dot));
  }
  return {};
}

bool ObservedDelta::empty() const { return body_->changes.empty(); }

std::uint64_t ObservedDelta::bytes() const {
  return body_->changes.size() * (sizeof(ObservedChanges::Change) + 48) +
         body_->lives.runs().size() * sizeof(LifeRun);
}

std::vector<SiteId> ObservedDelta::sites() const {
  const auto& changes = body_->changes;
  std::vector<SiteId> all;
  for (auto change = changes.begin(); change != changes.end();) {
    all.push_back(Dot::unpacked(change->first).site);
    change = changes.upper_bound(Dot{all.back(), Dot::kLastCounter}.packed());
  }
  return all;
}

void ObservedDelta::encode(Sink out) const {
  std::vector<CuckooEntry> entries;
  PackedArray removed(body_->changes.size(), 1);
  for (const auto& [dot, change] : body_->changes) {
    removed.set(entries.size(), change.removed ? 1 : 0);
    entries.push_back({change.pair, change.fingerprint, dot});
  }
  std::vector<std::span<const CuckooEntry>> sites;
  for (std::span<const CuckooEntry> rest = entries; !rest.empty();) {
    sites.push_back(rest.first(of_first_site(rest)));
    rest = rest.subspan(sites.back().size());
  }

  seal(out, kFormat, [&](Writer& w) {
    shape_.encode(w.sink());
    w.u32(static_cast<std::uint32_t>(sites.size()));
    body_->lives.encode_all(w.sink());
    for (const auto& site : sites) {
      w.u64(site.front().payload);
      w.u64(site.back().payload - site.front().payload);
      w.u64(site.size());
    }
    for (const auto& site : sites) {
      const std::uint64_t first = Dot::unpacked(site.front().payload).counter;
      elias_fano::encode(w.sink(), distances(site, first),
                         site.back().payload - site.front().payload);
    }
    removed.encode(w.sink());
    encode_places(w.sink(), shape_, entries);
  });
}

Result<ObservedDelta> ObservedDelta::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Result<CuckooShape> shape = read_shape(r, Dot::kBits);
  if (!shape) return shape.error().about(kFormat.what);
  const std::uint32_t count = r.u32();
  if (count > kMostSites) return Error{Errc::limit, kFormat.what, "too many sites"};
  Lives lives = SEMEL_TRY(Lives::decode_all(r));
  if (!r.ok() || r.rest() / 24 < count) return corrupt(kFormat, "size");
  const std::uint64_t body = r.rest() - std::uint64_t{24} * count;

  struct Site {
    Dot first;
    std::uint64_t last;  // distance from the first
    std::uint64_t changes;
  };
  std::vector<Site> sites(count);
  std::uint64_t changes = 0;
  std::uint64_t dots_size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sites[i] = {Dot::unpacked(r.u64()), r.u64(), r.u64()};
    const Site& site = sites[i];
    if (site.first.counter == 0 || site.last > Dot::kLastCounter - site.first.counter ||
        site.changes == 0 || (i > 0 && site.first.site <= sites[i - 1].first.site)) {
      return corrupt(kFormat, "a site that cannot be");
    }
    if (site.changes / 8 > body) return corrupt(kFormat, "size");
    changes += site.changes;
    dots_size += elias_fano::byte_size(site.changes, site.last);
  }
  if (changes / 8 > body ||
      dots_size + divide_up(changes, 8) + places_size(*shape, changes) != body) {
    return corrupt(kFormat, "size");
  }
  std::vector<CuckooEntry> entries;
  entries.reserve(changes);
  for (const Site& site : sites) {
    const std::size_t begin = entries.size();
    if (!read_dots(r, site.first, site.last, site.changes, entries) ||
        entries[begin].payload != site.first.packed() ||
        entries.back().payload != site.first.packed() + site.last) {
      return corrupt(kFormat, "dots");
    }
  }
  const Result<PackedArray> removed = PackedArray::decode(r, changes, 1);
  if (!removed || !decode_places(r, *shape, entries)) return corrupt(kFormat, "entries");
  if (!are_lives_of(lives, entries)) return corrupt(kFormat, "lives");
  ObservedDelta delta(*shape);
  delta.body_->lives = std::move(lives);
  auto& by_dot = delta.body_->changes;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    by_dot.emplace_hint(
        by_dot.end(), entries[i].payload,
        ObservedChanges::Change{entries[i].pair, entries[i].fingerprint, removed->get(i) != 0});
  }
  return delta;
}

}  // namespace semel
