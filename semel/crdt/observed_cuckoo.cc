#include "semel/crdt/observed_cuckoo.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "semel/bits/internal/elias_fano.h"
#include "semel/bits/internal/packed_array.h"
#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/entries_in_order.h"
#include "semel/crdt/internal/entry_codec.h"
#include "semel/crdt/internal/entry_store.h"
#include "semel/crdt/internal/lives.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/partial_order.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

namespace crdt_internal {

// The content of a delta.
struct ObservedChanges {
  struct Change {
    std::uint64_t pair;
    std::uint64_t fingerprint;
    bool removed;
    bool operator==(const Change&) const = default;
  };

  // REQUIRES: the run ends with the dot.
  void record(std::uint64_t dot, const Change& change, const LifeRun& run);
  // Returns a dot that has two different entries, or nullptr.
  const std::uint64_t* dot_of_two(const ObservedChanges& other) const;
  bool operator==(const ObservedChanges&) const = default;

  std::map<std::uint64_t, Change> changes;  // by packed dot
  Lives lives;                              // of these dots
};

// The content of a filter.
struct ObservedState {
  explicit ObservedState(const CuckooShape& shape) : entries(shape) {}

  bool at_most(const ObservedState& other) const;
  std::vector<std::uint64_t> entries_of_sites() const;
  // REQUIRES: equal shapes.
  bool operator==(const ObservedState&) const = default;

  EntryStore entries;  // payloads are packed dots, all in the context
  VersionVector context;
  Lives lives;  // of all dots of the context
};

}  // namespace crdt_internal

using crdt_internal::ByDot;
using crdt_internal::CuckooEntry;
using crdt_internal::CuckooPlaces;
using crdt_internal::CuckooSpot;
using crdt_internal::decode_places;
using crdt_internal::encode_places;
using crdt_internal::EntriesInOrder;
using crdt_internal::EntryStore;
using crdt_internal::forked;
using crdt_internal::LifeRun;
using crdt_internal::Lives;
using crdt_internal::ObservedPart;
using crdt_internal::ObservedState;
using crdt_internal::order_of;
using crdt_internal::places_size;
using crdt_internal::PlacesWriter;
using crdt_internal::read_shape;

namespace {

// docs/formats/observed_cuckoo_v1.md and observed_delta_v1.md.
//
//    OFFSET     SIZE  FIELD OF THE BODY OF A STATE
//         0       20  shape, as in cuckoo_v1
//        20   4+8*S  version vector of S sites
//             8+16*L  lives, L runs of dots
//                8*S  number of entries of each site
//                  E  for each site the counters of its entries, minus 1, Elias-Fano
//                  P  pairs and fingerprints of all entries, in the order of the dots
//
//    OFFSET     SIZE  FIELD OF THE BODY OF A DELTA
//         0       20  shape
//        20        4  sites S
//             8+32*L  lives, L runs of dots
//               24*S  for each site the first dot, the distance of the last from it, the number of
//                     changes
//                  E  for each site the distances of the dots from its first one, Elias-Fano
//                  F  a bit for each change: 1 if removed
//                  P  pairs and fingerprints of all changes, in the order of the dots
constexpr Format kFormat{"SOC", 1, "observed-remove cuckoo filter"};
constexpr Format kDeltaFormat{"SOD", 1, "delta of an observed-remove cuckoo filter"};
constexpr std::size_t kMostSites = 65'536;

// A version vector with constant-time lookups: a merge asks it twice for each entry.
class Seen {
 public:
  explicit Seen(const VersionVector& context)
      : counters_(context.sites().empty() ? 0 : std::size_t{context.sites().back().site} + 1) {
    for (const VersionVector::Site& site : context.sites()) counters_[site.site] = site.counter;
  }
  bool operator()(std::uint64_t packed_dot) const {
    const Dot dot = Dot::unpacked(packed_dot);
    return dot.site < counters_.size() && dot.counter <= counters_[dot.site];
  }

 private:
  std::vector<std::uint64_t> counters_;
};

// Returns the counters of consecutive entries of one site, relative to `from`.
std::vector<std::uint64_t> distances(std::span<const CuckooEntry> entries, std::uint64_t from) {
  std::vector<std::uint64_t> all;
  all.reserve(entries.size());
  for (const CuckooEntry& entry : entries)
    all.push_back(Dot::unpacked(entry.payload).counter - from);
  return all;
}

// The inverse of distances(). Appends entries with their dots.
Result<void> read_dots(Reader& in, Dot from, std::uint64_t last, std::uint64_t count,
                       std::vector<CuckooEntry>& entries) {
  const std::vector<std::uint64_t> all = SEMEL_TRY(elias_fano::decode(in, count, last));
  if (std::ranges::adjacent_find(all) != all.end()) return Error{Errc::corrupt, "a dot twice"};
  for (const std::uint64_t distance : all) {
    entries.push_back({0, 0, Dot{from.site, from.counter + distance}.packed()});
  }
  return {};
}

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

bool by_number(const CuckooEntry& a, const CuckooEntry& b) { return a.payload < b.payload; }

// Returns the runs, given with numbers instead of dots, that have dots after `from` up to `to`.
std::vector<LifeRun> between(std::span<const LifeRun> runs, std::uint64_t from, std::uint64_t to) {
  std::vector<LifeRun> some;
  for (LifeRun run : runs) {
    run.last = std::min(run.last, to);
    if (run.last > from && run.first <= to) some.push_back(run);
  }
  return some;
}

// Does the same with the runs of a site.
std::vector<LifeRun> numbered(std::span<const LifeRun> runs, std::uint64_t from, std::uint64_t to) {
  std::vector<LifeRun> all(runs.begin(), runs.end());
  for (LifeRun& run : all) {
    run.first = Dot::unpacked(run.first).counter;
    run.last = Dot::unpacked(run.last).counter;
  }
  return between(all, from, to);
}

// Returns the entry with its number instead of its dot.
CuckooEntry numbered(CuckooEntry entry, std::uint64_t number) {
  entry.payload = number;
  return entry;
}

// Calls visit(place, number) for the entries of a site with a number after `from` up to `last`.
// Reads the dots alone, one after another: that takes a nanosecond for each slot. `last` may shrink
// meanwhile. A free slot has the number 0 of site 0, or wraps around.
template <class Visit>
void for_each_number(const EntryStore& entries, SiteId site, std::uint64_t from,
                     const std::uint64_t& last, Visit visit) {
  const std::uint64_t none = Dot{site, 0}.packed();
  entries.for_each_place([&](std::uint64_t place, std::uint64_t dot) {
    const std::uint64_t number = dot - none;
    if (number - from - 1 < last - from) visit(place, number);
  });
}

// Returns true if these runs, with numbers instead of dots, are those of the dots after `from` up
// to `to`.
bool are_lives_between(std::span<const LifeRun> runs, std::uint64_t from, std::uint64_t to) {
  if (runs.empty() || runs.front().first > from + 1 || runs.back().last != to) return false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LifeRun& run = runs[i];
    if (run.first == 0 || run.last <= from || run.first > run.last) return false;
    if (run.first == 1 ? run.before != 0 : run.before == run.life) return false;
    const bool follows =
        i == 0 || (runs[i - 1].last + 1 == run.first && runs[i - 1].life == run.before);
    if (!follows) return false;
  }
  return true;
}

// The inverse of numbered().
Lives lives_of(SiteId site, std::span<const LifeRun> runs) {
  Lives lives;
  for (LifeRun run : runs) {
    run.first = Dot{site, run.first}.packed();
    run.last = Dot{site, run.last}.packed();
    lives.insert(run);
  }
  return lives;
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
const std::uint64_t* crdt_internal::ObservedChanges::dot_of_two(
    const ObservedChanges& other) const {
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
void crdt_internal::ObservedChanges::record(std::uint64_t dot, const Change& change,
                                            const LifeRun& run) {
  lives.make_room(1);
  const auto [here, fresh] = changes.try_emplace(dot, change);
  if (!fresh) here->second.removed |= change.removed;
  lives.insert(run);
}

Result<void> ObservedDelta::merge(const ObservedDelta& other) {
  if (shape_ != other.shape_) return Error{Errc::mismatch, "deltas of different shapes"};
  const crdt_internal::ObservedChanges& theirs = *other.body_;
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
  return body_->changes.size() * (sizeof(crdt_internal::ObservedChanges::Change) + 48) +
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

  seal(out, kDeltaFormat, [&](Writer& w) {
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
  Reader r = SEMEL_TRY(open_sealed(in, kDeltaFormat));
  const Result<CuckooShape> shape = read_shape(r, Dot::kBits);
  if (!shape) return shape.error().about(kDeltaFormat.what);
  const std::uint32_t count = r.u32();
  if (count > kMostSites) return Error{Errc::limit, kDeltaFormat.what, "too many sites"};
  Lives lives = SEMEL_TRY(Lives::decode_all(r));
  if (!r.ok() || r.rest() / 24 < count) return corrupt(kDeltaFormat, "size");
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
      return corrupt(kDeltaFormat, "a site that cannot be");
    }
    if (site.changes / 8 > body) return corrupt(kDeltaFormat, "size");
    changes += site.changes;
    dots_size += elias_fano::byte_size(site.changes, site.last);
  }
  if (changes / 8 > body ||
      dots_size + divide_up(changes, 8) + places_size(*shape, changes) != body) {
    return corrupt(kDeltaFormat, "size");
  }
  std::vector<CuckooEntry> entries;
  entries.reserve(changes);
  for (const Site& site : sites) {
    const std::size_t begin = entries.size();
    if (!read_dots(r, site.first, site.last, site.changes, entries) ||
        entries[begin].payload != site.first.packed() ||
        entries.back().payload != site.first.packed() + site.last) {
      return corrupt(kDeltaFormat, "dots");
    }
  }
  const Result<PackedArray> removed = PackedArray::decode(r, changes, 1);
  if (!removed || !decode_places(r, *shape, entries)) return corrupt(kDeltaFormat, "entries");
  if (!are_lives_of(lives, entries)) return corrupt(kDeltaFormat, "lives");
  ObservedDelta delta(*shape);
  delta.body_->lives = std::move(lives);
  auto& by_dot = delta.body_->changes;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    by_dot.emplace_hint(by_dot.end(), entries[i].payload,
                        crdt_internal::ObservedChanges::Change{
                            entries[i].pair, entries[i].fingerprint, removed->get(i) != 0});
  }
  return delta;
}

// Buckets of 8 need longer fingerprints, but that is cheap beside 64 bits of dot, and the dots of a
// bucket fill one cache line. Inserts near capacity search several times less than with buckets of
// 4.
Result<CuckooShape> ObservedCuckoo::shape_for(std::uint64_t keys, double fpr, HashId hash) {
  return CuckooShape::for_goal(
      {.keys = keys, .fpr = fpr, .bucket_size = 8, .payload_bits = Dot::kBits, .hash = hash});
}

ObservedCuckoo::ObservedCuckoo(const Shape& shape) : state_(std::in_place, shape) {
  SEMEL_ASSERT(shape.payload_bits == Dot::kBits);
}

void ObservedCuckoo::reserve() { state_->entries.reserve(); }
bool ObservedCuckoo::contains(Digest key) const { return state_->entries.contains(key); }
void ObservedCuckoo::prefetch(Digest key) const { state_->entries.prefetch(key); }
std::uint64_t ObservedCuckoo::count(Digest key) const {
  return state_->entries.count(state_->entries.shape().spot_of(key));
}
const CuckooShape& ObservedCuckoo::shape() const { return state_->entries.shape(); }
const VersionVector& ObservedCuckoo::context() const { return state_->context; }
const Lives& ObservedCuckoo::lives() const { return state_->lives; }
std::uint64_t ObservedCuckoo::cardinality() const { return state_->entries.size(); }
std::uint64_t ObservedCuckoo::overflow() const { return state_->entries.overflow(); }
std::uint64_t ObservedCuckoo::bytes() const { return state_->entries.bytes(); }

Result<Dot> ObservedCuckoo::add(Digest key, SiteLife site, Delta* delta) {
  SEMEL_ASSERT(delta == nullptr || delta->shape_ == shape());
  const CuckooSpot spot = state_->entries.shape().spot_of(key);
  state_->entries.prefetch(spot);  // both buckets and their dots at once
  const Result<Dot> dot = state_->context.next(site.site);
  if (!dot) return dot.error();
  // The entry and its dot must be added together, so allocate first.
  if (dot->counter == 1) state_->context.make_room(1);
  state_->lives.make_room(1);
  if (!state_->entries.add(spot, dot->packed())) {
    return Error{Errc::full, "the observed-remove cuckoo filter has no room for this key"};
  }
  state_->context.advance(*dot);
  state_->lives.advance(*dot, site.life);
  if (delta != nullptr) {
    delta->body_->record(dot->packed(),
                         {state_->entries.shape().pair_of(spot), spot.fingerprint, false},
                         state_->lives.upto(dot->packed()));
  }
  return dot;
}

std::size_t ObservedCuckoo::add(std::span<const Digest> keys, SiteLife site, Delta* delta) {
  std::size_t done = 0;
  for_each_ahead(
      keys.size(),
      [&](std::size_t i) { state_->entries.prefetch(state_->entries.shape().spot_of(keys[i])); },
      [&](std::size_t i) {
        if (done == i) done += add(keys[i], site, delta).has_value();
      });
  return done;
}

void ObservedCuckoo::contains(std::span<const Digest> keys, std::span<bool> found) const {
  state_->entries.contains(keys, found);
}

std::vector<Dot> ObservedCuckoo::dots(Digest key) const {
  std::vector<Dot> all;
  for (const std::uint64_t dot : state_->entries.payloads(state_->entries.shape().spot_of(key))) {
    all.push_back(Dot::unpacked(dot));
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<Dot> ObservedCuckoo::least_dot(Digest key) const {
  std::optional<std::uint64_t> least;
  state_->entries.for_each_payload(state_->entries.shape().spot_of(key), [&](std::uint64_t dot) {
    if (!least || dot < *least) least = dot;
  });
  if (!least) return std::nullopt;
  return Dot::unpacked(*least);
}

std::optional<Dot> ObservedCuckoo::remove(Digest key, Delta* delta) {
  const std::optional<Dot> least = least_dot(key);
  if (!least) return std::nullopt;
  const Result<bool> removed = remove(key, *least, delta);
  SEMEL_ASSERT(removed && *removed);
  return least;
}

Result<bool> ObservedCuckoo::remove(Digest key, Dot dot, Delta* delta) {
  SEMEL_ASSERT(delta == nullptr || delta->shape_ == shape());
  if (dot.counter == 0 || dot.counter > Dot::kLastCounter) {
    return Error{Errc::invalid, "a dot has a number from 1 to 2^48 - 1"};
  }
  if (!state_->context.contains(dot)) {
    return Error{Errc::gap, "a dot that has not been seen here cannot be removed"};
  }
  const CuckooSpot spot = state_->entries.shape().spot_of(key);
  if (!state_->entries.remove(spot, dot.packed())) return false;
  if (delta != nullptr) {
    delta->body_->record(dot.packed(),
                         {state_->entries.shape().pair_of(spot), spot.fingerprint, true},
                         state_->lives.upto(dot.packed()));
  }
  return true;
}

void ObservedCuckoo::remove(std::span<const Digest> keys, std::span<bool> removed, Delta* delta) {
  SEMEL_ASSERT(keys.size() == removed.size());
  for_each_ahead(
      keys.size(),
      [&](std::size_t i) { state_->entries.prefetch(state_->entries.shape().spot_of(keys[i])); },
      [&](std::size_t i) { removed[i] = remove(keys[i], delta).has_value(); });
}

// The four cases of specification 4: an entry that both have stays, in whatever slots (1 and 4). An
// entry that one has stays if the other has not seen it (2 and 3).
Result<bool> ObservedCuckoo::merge(const ObservedCuckoo& other) {
  if (shape() != other.shape()) {
    return Error{Errc::mismatch, "observed-remove cuckoo filters of different shapes"};
  }
  if (this == &other) return false;
  if (const std::optional<SiteId> site = state_->lives.clash(other.state_->lives))
    return forked(*site);
  const Seen here(state_->context);
  const Seen there(other.state_->context);
  state_->context.make_room(other.state_->context.sites().size());
  state_->lives.make_room(other.state_->lives.runs().size());
  const std::uint64_t removed = state_->entries.remove_unless_held(other.state_->entries, there);
  const auto unseen = [&](std::uint64_t dot) { return !here(dot); };
  std::uint64_t taken = 0;
  try {
    taken = state_->entries.take(other.state_->entries, unseen);
  } catch (const std::bad_alloc&) {
    // These came without their context, and would be taken again.
    state_->entries.remove_if(unseen);
    throw;
  }
  state_->lives.merge(other.state_->lives);
  return state_->context.merge(other.state_->context) || removed != 0 || taken != 0;
}

// Dots ascend, so the new dots of a site must count on from the last one seen.
Result<void> ObservedCuckoo::admits(const Delta& delta) const {
  if (shape() != delta.shape_) {
    return Error{Errc::mismatch, "a delta of another shape than the observed-remove filter"};
  }
  if (const std::optional<SiteId> site = state_->lives.clash(delta.body_->lives))
    return forked(*site);
  Dot last{};
  for (const auto& change : delta.body_->changes) {
    const Dot dot = Dot::unpacked(change.first);
    if (last.counter == 0 || dot.site != last.site) last = {dot.site, state_->context.at(dot.site)};
    if (dot.counter > last.counter + 1) {
      return Error{Errc::gap, "the delta follows on updates that are missing here"};
    }
    last.counter = std::max(last.counter, dot.counter);
  }
  return {};
}

Result<bool> ObservedCuckoo::merge(const Delta& delta) {
  SEMEL_TRY(admits(delta));
  state_->lives.make_room(delta.body_->lives.runs().size());
  std::uint64_t quota = EntryStore::quota_for(delta.body_->changes.size());
  bool changed = false;
  for (const auto& [packed, change] : delta.body_->changes) {
    const Dot dot = Dot::unpacked(packed);
    const CuckooSpot spot = state_->entries.shape().spot_of(change.pair, change.fingerprint);
    if (state_->context.contains(dot)) {
      if (change.removed && state_->entries.remove(spot, packed)) changed = true;
    } else {
      if (dot.counter == 1) state_->context.make_room(1);
      if (!change.removed) state_->entries.put(spot, packed, quota);
      state_->context.advance(dot);
      state_->lives.advance(dot, delta.body_->lives.upto(packed).life);
      changed = true;
    }
  }
  return changed;
}

bool crdt_internal::ObservedPart::sound(const CuckooPlaces& shape) const {
  if (first >= last || last > Dot::kLastCounter) return false;
  std::uint64_t before = first;
  for (const CuckooEntry& entry : entries) {
    if (entry.payload <= before || entry.payload > last) return false;
    if (entry.fingerprint == 0 || entry.fingerprint >> shape.fingerprint_bits != 0) return false;
    if (!shape.is_pair(entry.pair, entry.fingerprint)) return false;
    before = entry.payload;
  }
  return are_lives_between(lives, first, last);
}

ObservedPart ObservedCuckoo::part_between(SiteId site, std::uint64_t from, std::uint64_t to) const {
  SEMEL_ASSERT(from < to && to <= state_->context.at(site));
  ObservedPart part{from, to, {}, {}};
  for_each_number(state_->entries, site, from, to, [&](std::uint64_t place, std::uint64_t number) {
    part.entries.push_back(numbered(state_->entries.entry_at(place), number));
  });
  std::sort(part.entries.begin(), part.entries.end(), by_number);
  part.lives = numbered(state_->lives.runs(site), from, to);
  return part;
}

ObservedPart ObservedCuckoo::part(SiteId site, std::uint64_t from, std::uint64_t most) const {
  SEMEL_ASSERT(most >= kPartStep && from <= state_->context.at(site));
  const std::uint64_t end = state_->context.at(site);
  ObservedPart part{from, end, {}, {}};
  // Keeps the least numbers: at most twice as many entries as wanted.
  const auto collect = [&] {
    for_each_number(
        state_->entries, site, from, part.last, [&](std::uint64_t place, std::uint64_t number) {
          part.entries.push_back(numbered(state_->entries.entry_at(place), number));
          if (part.entries.size() < 2 * most) return;
          const auto last = part.entries.begin() + static_cast<std::ptrdiff_t>(most);
          std::nth_element(part.entries.begin(), last, part.entries.end(), by_number);
          part.last = last->payload / kPartStep * kPartStep;
          std::erase_if(part.entries, [&](const CuckooEntry& e) { return e.payload > part.last; });
        });
  };
  // Looks at the next numbers first. If most of these were removed, it looks at all.
  if (end - from > 2 * most) {
    part.last = (from + 2 * most) / kPartStep * kPartStep;
    collect();
    if (part.entries.size() < most / 2) {
      part.entries.clear();
      part.last = end;
    }
  }
  if (part.last == end) collect();
  std::sort(part.entries.begin(), part.entries.end(), by_number);
  if (part.entries.size() > most) {
    part.last = part.entries[most].payload / kPartStep * kPartStep;
    std::erase_if(part.entries, [&](const CuckooEntry& e) { return e.payload > part.last; });
  }
  part.lives = numbered(state_->lives.runs(site), from, part.last);
  return part;
}

Result<bool> ObservedCuckoo::merge(SiteId site, const ObservedPart& part) {
  SEMEL_ASSERT(part.sound(shape()));
  const std::uint64_t seen = state_->context.at(site);
  if (part.first > seen)
    return Error{Errc::gap, "a part of a state before the one that precedes it"};
  const Lives lives = lives_of(site, part.lives);
  if (state_->lives.clash(lives)) return forked(site);
  const auto find = [&](std::uint64_t number) -> const CuckooEntry* {
    const auto at =
        std::partition_point(part.entries.begin(), part.entries.end(),
                             [&](const CuckooEntry& entry) { return entry.payload < number; });
    return at != part.entries.end() && at->payload == number ? &*at : nullptr;
  };
  const std::uint64_t before = state_->entries.size();
  if (part.first < seen) {
    bool sound = true;
    std::vector<CuckooEntry> doomed;  // those that were removed there
    for_each_number(state_->entries, site, part.first, part.last,
                    [&](std::uint64_t place, std::uint64_t number) {
                      const CuckooEntry entry = state_->entries.entry_at(place);
                      const CuckooEntry* const there = find(number);
                      if (there == nullptr) return doomed.push_back(entry);
                      sound = sound && there->fingerprint == entry.fingerprint &&
                              there->pair == entry.pair;
                    });
    if (!sound) return forked(site);
    for (const CuckooEntry& entry : doomed) {
      const CuckooPlaces& places = state_->entries.shape();
      state_->entries.remove(places.spot_of(entry.pair, entry.fingerprint), entry.payload);
    }
  }
  bool changed = state_->entries.size() != before;
  if (part.last <= seen) return changed;
  state_->context.make_room(1);
  state_->lives.make_room(lives.runs().size());
  state_->entries.expect(part.expected);
  const auto fresh =
      std::partition_point(part.entries.begin(), part.entries.end(),
                           [&](const CuckooEntry& entry) { return entry.payload <= seen; });
  std::uint64_t quota =
      EntryStore::quota_for(static_cast<std::uint64_t>(part.entries.end() - fresh));
  auto run = lives.runs().begin();
  const auto see = [&](Dot dot) {  // in order, so that this is always a valid state
    state_->context.advance(dot);
    for (; run->last < dot.packed(); ++run) state_->lives.insert(*run);
    state_->lives.insert({run->first, dot.packed(), run->life, run->before});
  };
  const std::span<const CuckooEntry> added(fresh, part.entries.end());
  const CuckooPlaces& places = state_->entries.shape();
  const auto spot_of = [&](std::size_t i) {
    return places.spot_of(added[i].pair, added[i].fingerprint);
  };
  for_each_ahead(
      added.size(), [&](std::size_t i) { state_->entries.prefetch(spot_of(i)); },
      [&](std::size_t i) {
        const Dot dot{site, added[i].payload};
        state_->entries.put(spot_of(i), dot.packed(), quota);
        see(dot);
      });
  see({site, part.last});
  return true;
}

std::optional<std::uint64_t> ObservedCuckoo::fork_from(const ObservedCuckoo& trunk,
                                                       SiteId site) const {
  SEMEL_ASSERT(shape() == trunk.shape());
  const std::uint64_t common = state_->lives.common(trunk.state_->lives, site);
  if (common == std::min(state_->context.at(site), trunk.state_->context.at(site)))
    return std::nullopt;
  return common;
}

Result<ObservedCuckoo> ObservedCuckoo::renamed(const ObservedCuckoo& trunk, SiteId from,
                                               SiteId to) const {
  if (shape() != trunk.shape()) {
    return Error{Errc::mismatch, "observed-remove cuckoo filters of different shapes"};
  }
  if (from == to || state_->context.at(to) != 0) {
    return Error{Errc::invalid, "dots are renamed to a site that has none yet"};
  }
  const std::optional<std::uint64_t> fork = fork_from(trunk, from);
  if (!fork) return *this;
  ObservedCuckoo split(shape());
  const auto take = [&](SiteId site, const ObservedPart& part) {
    const Result<bool> taken = split.merge(site, part);
    SEMEL_ASSERT(taken);
  };
  for (const auto& [site, last] : state_->context.sites()) {
    if (site != from) take(site, part_between(site, 0, last));
  }
  if (*fork > 0) take(from, part_between(from, 0, *fork));
  take(to, part_between(from, *fork, state_->context.at(from)).from_one());
  return split;
}

ObservedPart crdt_internal::ObservedPart::cut(std::size_t most) {
  if (entries.size() <= most) {
    const std::uint64_t end = last;
    return std::exchange(*this, {end, end, {}, {}});
  }
  const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(most);
  const std::uint64_t to = std::prev(middle)->payload;
  ObservedPart front{first, to, {entries.begin(), middle}, between(lives, first, to), expected};
  lives = between(lives, to, last);
  entries.erase(entries.begin(), middle);
  first = to;
  return front;
}

ObservedPart crdt_internal::ObservedPart::from_one() const {
  ObservedPart part = *this;
  part.first = 0;
  part.last -= first;
  for (CuckooEntry& entry : part.entries) entry.payload -= first;
  for (LifeRun& run : part.lives) {
    run.first = std::max(run.first, first + 1) - first;
    run.last -= first;
  }
  part.lives.front().before = 0;
  return part;
}

// Returns true if everything seen here was seen there and everything removed here is not there.
bool ObservedState::at_most(const ObservedState& other) const {
  const std::partial_ordering order = context.compare(other.context);
  if (order != std::partial_ordering::less && order != std::partial_ordering::equivalent) {
    return false;
  }
  const Seen here(context);
  bool holds = true;
  other.entries.for_each([&](const CuckooSpot& spot, std::uint64_t dot) {
    holds = holds && (!here(dot) || entries.holds(spot, dot));
  });
  return holds;
}

// Returns how many entries each site of the context has.
std::vector<std::uint64_t> ObservedState::entries_of_sites() const {
  const std::span<const VersionVector::Site> sites = context.sites();
  if (sites.size() == 1) return {entries.size()};
  std::vector<std::uint64_t> counts(sites.size());
  entries.for_each([&](const CuckooSpot&, std::uint64_t dot) {
    const auto at = std::partition_point(
        sites.begin(), sites.end(),
        [site = Dot::unpacked(dot).site](const VersionVector::Site& s) { return s.site < site; });
    ++counts[static_cast<std::size_t>(at - sites.begin())];
  });
  return counts;
}

Result<std::partial_ordering> ObservedCuckoo::compare(const ObservedCuckoo& other) const {
  if (shape() != other.shape()) {
    return Error{Errc::mismatch, "observed-remove cuckoo filters of different shapes"};
  }
  if (const std::optional<SiteId> site = state_->lives.clash(other.state_->lives))
    return forked(*site);
  return order_of(state_->at_most(*other.state_), other.state_->at_most(*state_));
}

double ObservedCuckoo::load() const {
  return static_cast<double>(state_->entries.size()) / static_cast<double>(shape().slots());
}

// A site of the context contributes two numbers and a run of a life four, so that they cannot be
// mistaken for an entry.
Digest ObservedCuckoo::digest(const Hasher& hasher) const {
  Digest sum = state_->entries.digest(hasher);
  for (const VersionVector::Site& site : state_->context.sites()) {
    sum ^= hasher.of_numbers(site.site, site.counter);
  }
  for (const LifeRun& run : state_->lives.runs()) {
    sum ^= hasher.of_numbers(run.first, run.last, run.life, run.before);
  }
  return sum;
}

void ObservedCuckoo::encode(Sink out) const {
  const std::vector<std::uint64_t> counts = state_->entries_of_sites();
  const std::span<const VersionVector::Site> sites = state_->context.sites();
  EntriesInOrder<ByDot> ordered(state_->entries);
  seal(out, kFormat, [&](Writer& w) {
    const Sink body = w.sink();
    shape().encode(body);
    state_->context.encode(body);
    state_->lives.encode(body);
    w.words(counts);
    for (std::size_t i = 0; i < sites.size(); ++i) {
      const SiteId site = sites[i].site;
      const std::uint64_t counter = sites[i].counter;
      elias_fano::encode(body, counts[i], counter - 1, [&](auto visit) {
        ordered.for_each({Dot{site, 0}.packed(), 0}, {Dot{site, counter}.packed(), 0},
                         [&](const auto& item) { visit(Dot::unpacked(item.dot).counter - 1); });
      });
    }
    if (body.only_measures(places_size(shape(), state_->entries.size()))) return;
    PlacesWriter places_out(body, shape());
    ordered.for_each({0, 0}, {~std::uint64_t{0}, 0},
                     [&](const auto& item) { places_out.put(ordered.entry(item)); });
    places_out.finish();
  });
}

Result<ObservedCuckoo> ObservedCuckoo::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Result<CuckooShape> shape = read_shape(r, Dot::kBits);
  if (!shape) return shape.error().about(kFormat.what);
  VersionVector context = SEMEL_TRY(VersionVector::decode(r, kMostSites));
  Lives lives = SEMEL_TRY(Lives::decode(r, context));
  const std::span<const VersionVector::Site> sites = context.sites();
  if (r.rest() / 8 < sites.size()) return corrupt(kFormat, "size");
  const std::uint64_t body = r.rest() - 8 * sites.size();

  std::vector<std::uint64_t> counts;
  std::uint64_t count = 0;
  std::uint64_t dots_size = 0;
  for (const VersionVector::Site& site : sites) {
    counts.push_back(r.u64());
    if (counts.back() / 8 > body) return corrupt(kFormat, "size");
    count += counts.back();
    dots_size += elias_fano::byte_size(counts.back(), site.counter - 1);
  }
  if (count / 8 > body || dots_size + places_size(*shape, count) != body) {
    return corrupt(kFormat, "size");
  }
  std::vector<CuckooEntry> entries;
  entries.reserve(count);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (!read_dots(r, {sites[i].site, 1}, sites[i].counter - 1, counts[i], entries)) {
      return corrupt(kFormat, "dots");
    }
  }
  if (!decode_places(r, *shape, entries)) return corrupt(kFormat, "entries");
  ObservedCuckoo filter(*shape);
  filter.state_->context = std::move(context);
  filter.state_->lives = std::move(lives);
  filter.state_->entries.fill(entries);
  return filter;
}

bool ObservedCuckoo::operator==(const ObservedCuckoo& other) const {
  return shape() == other.shape() && state_ == other.state_;
}

}  // namespace semel
