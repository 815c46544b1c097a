#include "semel/crdt/observed_cuckoo.h"

#include <algorithm>
#include <new>
#include <utility>

#include "semel/bits/elias_fano.h"
#include "semel/bits/packed_array.h"
#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/crdt/entry_codec.h"
#include "semel/crdt/internal/entries_in_order.h"
#include "semel/crdt/internal/partial_order.h"
#include "semel/hash/seal.h"

namespace semel {
namespace {

// docs/formats/observed_cuckoo_v2.md and observed_delta_v2.md. All integers are little-endian.
//
//    OFFSET     SIZE  FIELD OF A STATE
//         0        4  magic, the bytes "SOC2"; a new layout takes a new magic
//         4       20  shape (crdt/entry_codec.h)
//        24   4+8*S  version vector of S sites
//             8+16*L  lives, L runs of dots
//                8*S  number of entries of each site
//                  E  for each site the counters of its entries, minus 1, Elias-Fano
//                  P  pairs and fingerprints of all entries, in the order of the dots
//   end - 8        8  checksum of all the bytes before it
//
//    OFFSET     SIZE  FIELD OF A DELTA
//         0        4  magic, the bytes "SOD2"
//         4       20  shape
//        24        4  sites S
//             8+32*L  lives, L runs of dots
//               24*S  for each site the first dot, the distance of the last from it, the number of
//                     changes
//                  E  for each site the distances of the dots from its first one, Elias-Fano
//                  F  a bit for each change: 1 if removed
//                  P  pairs and fingerprints of all changes, in the order of the dots
//   end - 8        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x32434f53;
constexpr std::uint32_t kDeltaMagic = 0x32444f53;
constexpr std::size_t kMostSites = 65'536;

bool checksum_holds(ByteView in) {
  const std::size_t body = in.size() - entry_codec::kTrailerSize;
  return checksum(in.first(body)) == load_u64(in.data() + body);
}

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

// The inverse of distances(). Appends entries with their dots. Returns false unless the distances
// are sound and distinct.
bool read_dots(Reader& in, Dot from, std::uint64_t last, std::uint64_t count,
               std::vector<CuckooEntry>& entries) {
  std::vector<std::uint64_t> all;
  if (!elias_fano::decode(in, count, last, all)) return false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && all[i] == all[i - 1]) return false;
    entries.push_back({0, 0, Dot{from.site, from.counter + all[i]}.packed()});
  }
  return true;
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

// Returns the runs of a site that have dots after number `from` up to number `to`, with numbers
// instead of dots.
std::vector<LifeRun> numbered(std::span<const LifeRun> runs, std::uint64_t from, std::uint64_t to) {
  std::vector<LifeRun> some;
  for (LifeRun run : runs) {
    run.first = Dot::unpacked(run.first).counter;
    run.last = std::min(Dot::unpacked(run.last).counter, to);
    if (run.last > from && run.first <= to) some.push_back(run);
  }
  return some;
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

ObservedDelta::ObservedDelta(const CuckooShape& shape) : shape_(shape) {
  SEMEL_ASSERT(shape.valid() && shape.payload_bits == Dot::kBits);
}

// Lives drawn at random detect every reused dot. This also checks, where it costs nothing, that a
// dot has one entry, in case one life was given to two.
const std::uint64_t* ObservedDelta::dot_of_two(const ObservedDelta& other) const {
  for (const auto& [dot, change] : other.changes_) {
    const auto here = changes_.find(dot);
    if (here != changes_.end() &&
        (here->second.pair != change.pair || here->second.fingerprint != change.fingerprint)) {
      return &here->first;
    }
  }
  return nullptr;
}

Result<void> ObservedDelta::merge(const ObservedDelta& other) {
  if (shape_ != other.shape_) return Error{Errc::mismatch, "deltas of different shapes"};
  if (const std::optional<SiteId> site = lives_.clash(other.lives_)) return forked(*site);
  if (const std::uint64_t* dot = dot_of_two(other)) return forked(Dot::unpacked(*dot).site);
  for (const auto& [dot, change] : other.changes_) record(dot, change, other.lives_.upto(dot));
  return {};
}

// A dot that is removed in either delta is removed in the result.
void ObservedDelta::record(std::uint64_t dot, const Change& change, const LifeRun& run) {
  lives_.make_room(1);
  const auto [here, fresh] = changes_.try_emplace(dot, change);
  if (!fresh) here->second.removed |= change.removed;
  lives_.insert(run);
}

std::vector<SiteId> ObservedDelta::sites() const {
  std::vector<SiteId> all;
  for (auto change = changes_.begin(); change != changes_.end();) {
    all.push_back(Dot::unpacked(change->first).site);
    change = changes_.upper_bound(Dot{all.back(), Dot::kLastCounter}.packed());
  }
  return all;
}

void ObservedDelta::encode(Sink out) const {
  Seal seal(out);
  std::vector<CuckooEntry> entries;
  PackedArray removed(changes_.size(), 1);
  for (const auto& [dot, change] : changes_) {
    removed.set(entries.size(), change.removed ? 1 : 0);
    entries.push_back({change.pair, change.fingerprint, dot});
  }
  std::vector<std::span<const CuckooEntry>> sites;
  for (std::span<const CuckooEntry> rest = entries; !rest.empty();) {
    sites.push_back(rest.first(of_first_site(rest)));
    rest = rest.subspan(sites.back().size());
  }

  Writer w(out);
  w.u32(kDeltaMagic);
  entry_codec::write_shape(w, shape_);
  w.u32(static_cast<std::uint32_t>(sites.size()));
  lives_.encode_all(out);
  for (const auto& site : sites) {
    w.u64(site.front().payload);
    w.u64(site.back().payload - site.front().payload);
    w.u64(site.size());
  }
  for (const auto& site : sites) {
    const std::uint64_t first = Dot::unpacked(site.front().payload).counter;
    elias_fano::encode(out, distances(site, first), site.back().payload - site.front().payload);
  }
  removed.encode(out);
  entry_codec::encode_places(out, shape_, entries);
  seal.close();
}

Result<ObservedDelta> ObservedDelta::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  const CuckooShape shape = entry_codec::read_shape(r, Dot::kBits);
  const std::uint32_t count = r.u32();
  if (!r.ok() || r.rest() < entry_codec::kTrailerSize) {
    return Error{Errc::truncated, "observed delta: header"};
  }
  if (magic != kDeltaMagic) return Error{Errc::unsupported, "observed delta: magic"};
  if (!shape.valid()) return Error{Errc::corrupt, "observed delta: shape"};
  if (!checksum_holds(in)) return Error{Errc::corrupt, "observed delta: checksum"};
  if (count > kMostSites) return Error{Errc::limit, "observed delta: too many sites"};
  Result<Lives> lives = Lives::decode_all(r);
  if (!lives) return lives.error();
  if (r.rest() < entry_codec::kTrailerSize) return Error{Errc::corrupt, "observed delta: size"};
  std::uint64_t body = r.rest() - entry_codec::kTrailerSize;
  if (body / 24 < count) return Error{Errc::corrupt, "observed delta: size"};
  body -= std::uint64_t{24} * count;

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
      return Error{Errc::corrupt, "observed delta: a site that cannot be"};
    }
    if (site.changes / 8 > body) return Error{Errc::corrupt, "observed delta: size"};
    changes += site.changes;
    dots_size += elias_fano::byte_size(site.changes, site.last);
  }
  if (changes / 8 > body ||
      dots_size + divide_up(changes, 8) + entry_codec::places_size(shape, changes) != body) {
    return Error{Errc::corrupt, "observed delta: size"};
  }
  std::vector<CuckooEntry> entries;
  entries.reserve(changes);
  for (const Site& site : sites) {
    const std::size_t begin = entries.size();
    if (!read_dots(r, site.first, site.last, site.changes, entries) ||
        entries[begin].payload != site.first.packed() ||
        entries.back().payload != site.first.packed() + site.last) {
      return Error{Errc::corrupt, "observed delta: dots"};
    }
  }
  PackedArray removed(changes, 1);
  if (!removed.decode(r) || !entry_codec::decode_places(r, shape, entries)) {
    return Error{Errc::corrupt, "observed delta: entries"};
  }
  if (!are_lives_of(*lives, entries)) return Error{Errc::corrupt, "observed delta: lives"};
  ObservedDelta delta(shape);
  delta.lives_ = *std::move(lives);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    delta.changes_.emplace_hint(
        delta.changes_.end(), entries[i].payload,
        Change{entries[i].pair, entries[i].fingerprint, removed.get(i) != 0});
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

ObservedCuckoo::ObservedCuckoo(const Shape& shape) : entries_(shape) {
  SEMEL_ASSERT(shape.payload_bits == Dot::kBits);
}

Result<Dot> ObservedCuckoo::add(Digest key, SiteLife site) { return add_to(key, site, nullptr); }
Result<Dot> ObservedCuckoo::add(Digest key, SiteLife site, Delta& delta) {
  return add_to(key, site, &delta);
}

Result<Dot> ObservedCuckoo::add_to(Digest key, SiteLife site, Delta* delta) {
  SEMEL_ASSERT(delta == nullptr || delta->shape_ == shape());
  const CuckooSpot spot = shape().spot_of(key);
  entries_.prefetch(spot);  // both buckets and their dots at once
  const Result<Dot> dot = context_.next(site.site);
  if (!dot) return dot.error();
  // The entry and its dot must be added together, so allocate first.
  if (dot->counter == 1) context_.make_room(1);
  lives_.make_room(1);
  if (!entries_.add(spot, dot->packed())) {
    return Error{Errc::full, "the observed-remove cuckoo filter has no room for this key"};
  }
  context_.advance(*dot);
  lives_.advance(*dot, site.life);
  if (delta != nullptr) {
    delta->record(dot->packed(), {shape().pair_of(spot), spot.fingerprint, false},
                  lives_.upto(dot->packed()));
  }
  return dot;
}

std::size_t ObservedCuckoo::add(std::span<const Digest> keys, SiteLife site) {
  return add_to(keys, site, nullptr);
}
std::size_t ObservedCuckoo::add(std::span<const Digest> keys, SiteLife site, Delta& delta) {
  return add_to(keys, site, &delta);
}

std::size_t ObservedCuckoo::add_to(std::span<const Digest> keys, SiteLife site, Delta* delta) {
  std::size_t done = 0;
  for_each_ahead(
      keys.size(), [&](std::size_t i) { entries_.prefetch(shape().spot_of(keys[i])); },
      [&](std::size_t i) {
        if (done == i) done += add_to(keys[i], site, delta).has_value();
      });
  return done;
}

void ObservedCuckoo::contains(std::span<const Digest> keys, std::span<bool> found) const {
  entries_.contains(keys, found);
}

std::vector<Dot> ObservedCuckoo::dots(Digest key) const {
  std::vector<Dot> all;
  for (const std::uint64_t dot : entries_.payloads(shape().spot_of(key))) {
    all.push_back(Dot::unpacked(dot));
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<Dot> ObservedCuckoo::remove(Digest key) { return remove_from(key, nullptr); }
std::optional<Dot> ObservedCuckoo::remove(Digest key, Delta& delta) {
  return remove_from(key, &delta);
}

std::optional<Dot> ObservedCuckoo::least_dot(Digest key) const {
  std::optional<std::uint64_t> least;
  entries_.for_each_payload(shape().spot_of(key), [&](std::uint64_t dot) {
    if (!least || dot < *least) least = dot;
  });
  if (!least) return std::nullopt;
  return Dot::unpacked(*least);
}

std::optional<Dot> ObservedCuckoo::remove_from(Digest key, Delta* delta) {
  const std::optional<Dot> least = least_dot(key);
  if (!least) return std::nullopt;
  const Result<bool> removed = remove_from(key, *least, delta);
  SEMEL_ASSERT(removed && *removed);
  return least;
}

Result<bool> ObservedCuckoo::remove(Digest key, Dot dot) { return remove_from(key, dot, nullptr); }
Result<bool> ObservedCuckoo::remove(Digest key, Dot dot, Delta& delta) {
  return remove_from(key, dot, &delta);
}

Result<bool> ObservedCuckoo::remove_from(Digest key, Dot dot, Delta* delta) {
  SEMEL_ASSERT(delta == nullptr || delta->shape_ == shape());
  if (dot.counter == 0 || dot.counter > Dot::kLastCounter) {
    return Error{Errc::invalid, "a dot has a number from 1 to 2^48 - 1"};
  }
  if (!context_.contains(dot)) {
    return Error{Errc::gap, "a dot that has not been seen here cannot be removed"};
  }
  const CuckooSpot spot = shape().spot_of(key);
  if (!entries_.remove(spot, dot.packed())) return false;
  if (delta != nullptr) {
    delta->record(dot.packed(), {shape().pair_of(spot), spot.fingerprint, true},
                  lives_.upto(dot.packed()));
  }
  return true;
}

void ObservedCuckoo::remove(std::span<const Digest> keys, std::span<bool> removed) {
  remove_from(keys, removed, nullptr);
}
void ObservedCuckoo::remove(std::span<const Digest> keys, std::span<bool> removed, Delta& delta) {
  remove_from(keys, removed, &delta);
}

void ObservedCuckoo::remove_from(std::span<const Digest> keys, std::span<bool> removed,
                                 Delta* delta) {
  SEMEL_ASSERT(keys.size() == removed.size());
  for_each_ahead(
      keys.size(), [&](std::size_t i) { entries_.prefetch(shape().spot_of(keys[i])); },
      [&](std::size_t i) { removed[i] = remove_from(keys[i], delta).has_value(); });
}

// The four cases of specification 4: an entry that both have stays, in whatever slots (1 and 4). An
// entry that one has stays if the other has not seen it (2 and 3).
Result<bool> ObservedCuckoo::merge(const ObservedCuckoo& other) {
  if (shape() != other.shape()) {
    return Error{Errc::mismatch, "observed-remove cuckoo filters of different shapes"};
  }
  if (this == &other) return false;
  if (const std::optional<SiteId> site = lives_.clash(other.lives_)) return forked(*site);
  const Seen here(context_);
  const Seen there(other.context_);
  context_.make_room(other.context_.sites().size());
  lives_.make_room(other.lives_.runs().size());
  const std::uint64_t removed = entries_.remove_unless_held(other.entries_, there);
  const auto unseen = [&](std::uint64_t dot) { return !here(dot); };
  std::uint64_t taken = 0;
  try {
    taken = entries_.take(other.entries_, unseen);
  } catch (const std::bad_alloc&) {
    // These came without their context, and would be taken again.
    entries_.remove_if(unseen);
    throw;
  }
  lives_.merge(other.lives_);
  return context_.merge(other.context_) || removed != 0 || taken != 0;
}

// Dots ascend, so the new dots of a site must count on from the last one seen.
Result<void> ObservedCuckoo::admits(const Delta& delta) const {
  if (shape() != delta.shape_) {
    return Error{Errc::mismatch, "a delta of another shape than the observed-remove filter"};
  }
  if (const std::optional<SiteId> site = lives_.clash(delta.lives_)) return forked(*site);
  Dot last{};
  for (const auto& change : delta.changes_) {
    const Dot dot = Dot::unpacked(change.first);
    if (last.counter == 0 || dot.site != last.site) last = {dot.site, context_.at(dot.site)};
    if (dot.counter > last.counter + 1) {
      return Error{Errc::gap, "the delta follows on updates that are missing here"};
    }
    last.counter = std::max(last.counter, dot.counter);
  }
  return {};
}

Result<bool> ObservedCuckoo::merge(const Delta& delta) {
  if (Result<void> sound = admits(delta); !sound) return sound.error();
  lives_.make_room(delta.lives_.runs().size());
  std::uint64_t quota = EntryStore::quota_for(delta.changes_.size());
  bool changed = false;
  for (const auto& [packed, change] : delta.changes_) {
    const Dot dot = Dot::unpacked(packed);
    const CuckooSpot spot = shape().spot_of(change.pair, change.fingerprint);
    if (context_.contains(dot)) {
      if (change.removed && entries_.remove(spot, packed)) changed = true;
    } else {
      if (dot.counter == 1) context_.make_room(1);
      if (!change.removed) entries_.put(spot, packed, quota);
      context_.advance(dot);
      lives_.advance(dot, delta.lives_.upto(packed).life);
      changed = true;
    }
  }
  return changed;
}

bool ObservedPart::sound(const CuckooShape& shape) const {
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
  SEMEL_ASSERT(from < to && to <= context_.at(site));
  ObservedPart part{from, to, {}, {}};
  entries_.for_each([&](const CuckooSpot& spot, std::uint64_t payload) {
    const Dot dot = Dot::unpacked(payload);
    if (dot.site != site || dot.counter <= from || dot.counter > to) return;
    part.entries.push_back({shape().pair_of(spot), spot.fingerprint, dot.counter});
  });
  std::sort(part.entries.begin(), part.entries.end(), by_number);
  part.lives = numbered(lives_.runs(site), from, to);
  return part;
}

ObservedPart ObservedCuckoo::part(SiteId site, std::uint64_t from, std::uint64_t most) const {
  SEMEL_ASSERT(most >= kPartStep && from <= context_.at(site));
  ObservedPart part{from, context_.at(site), {}, {}};
  // Keeps the least numbers: at most twice as many entries as wanted.
  entries_.for_each([&](const CuckooSpot& spot, std::uint64_t payload) {
    const Dot dot = Dot::unpacked(payload);
    if (dot.site != site || dot.counter <= from || dot.counter > part.last) return;
    part.entries.push_back({shape().pair_of(spot), spot.fingerprint, dot.counter});
    if (part.entries.size() < 2 * most) return;
    const auto end = part.entries.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(part.entries.begin(), end, part.entries.end(), by_number);
    part.last = end->payload / kPartStep * kPartStep;
    std::erase_if(part.entries, [&](const CuckooEntry& e) { return e.payload > part.last; });
  });
  std::sort(part.entries.begin(), part.entries.end(), by_number);
  if (part.entries.size() > most) {
    part.last = part.entries[most].payload / kPartStep * kPartStep;
    std::erase_if(part.entries, [&](const CuckooEntry& e) { return e.payload > part.last; });
  }
  part.lives = numbered(lives_.runs(site), from, part.last);
  return part;
}

Result<bool> ObservedCuckoo::merge(SiteId site, const ObservedPart& part) {
  SEMEL_ASSERT(part.sound(shape()));
  const std::uint64_t seen = context_.at(site);
  if (part.first > seen)
    return Error{Errc::gap, "a part of a state before the one that precedes it"};
  const Lives lives = lives_of(site, part.lives);
  if (lives_.clash(lives)) return forked(site);
  const auto within = [&](Dot dot) {
    return dot.site == site && dot.counter > part.first && dot.counter <= part.last;
  };
  const auto find = [&](std::uint64_t number) -> const CuckooEntry* {
    const auto at =
        std::partition_point(part.entries.begin(), part.entries.end(),
                             [&](const CuckooEntry& entry) { return entry.payload < number; });
    return at != part.entries.end() && at->payload == number ? &*at : nullptr;
  };
  const std::uint64_t before = entries_.size();
  if (part.first < seen) {
    bool sound = true;
    entries_.for_each([&](const CuckooSpot& spot, std::uint64_t packed) {
      const Dot dot = Dot::unpacked(packed);
      const CuckooEntry* there = within(dot) ? find(dot.counter) : nullptr;
      if (there == nullptr) return;
      sound =
          sound && there->fingerprint == spot.fingerprint && there->pair == shape().pair_of(spot);
    });
    if (!sound) return forked(site);
    entries_.remove_if([&](std::uint64_t packed) {
      const Dot dot = Dot::unpacked(packed);
      return within(dot) && find(dot.counter) == nullptr;
    });
  }
  bool changed = entries_.size() != before;
  if (part.last <= seen) return changed;
  context_.make_room(1);
  lives_.make_room(lives.runs().size());
  const auto fresh =
      std::partition_point(part.entries.begin(), part.entries.end(),
                           [&](const CuckooEntry& entry) { return entry.payload <= seen; });
  std::uint64_t quota =
      EntryStore::quota_for(static_cast<std::uint64_t>(part.entries.end() - fresh));
  auto run = lives.runs().begin();
  const auto see = [&](Dot dot) {  // in order, so that this is always a valid state
    context_.advance(dot);
    for (; run->last < dot.packed(); ++run) lives_.insert(*run);
    lives_.insert({run->first, dot.packed(), run->life, run->before});
  };
  for (auto entry = fresh; entry != part.entries.end(); ++entry) {
    const Dot dot{site, entry->payload};
    entries_.put(shape().spot_of(entry->pair, entry->fingerprint), dot.packed(), quota);
    see(dot);
  }
  see({site, part.last});
  return true;
}

std::optional<std::uint64_t> ObservedCuckoo::fork_from(const ObservedCuckoo& trunk,
                                                       SiteId site) const {
  SEMEL_ASSERT(shape() == trunk.shape());
  const std::uint64_t common = lives_.common(trunk.lives_, site);
  if (common == std::min(context_.at(site), trunk.context_.at(site))) return std::nullopt;
  return common;
}

Result<ObservedCuckoo> ObservedCuckoo::renamed(const ObservedCuckoo& trunk, SiteId from,
                                               SiteId to) const {
  if (shape() != trunk.shape()) {
    return Error{Errc::mismatch, "observed-remove cuckoo filters of different shapes"};
  }
  if (from == to || context_.at(to) != 0) {
    return Error{Errc::invalid, "dots are renamed to a site that has none yet"};
  }
  const std::optional<std::uint64_t> fork = fork_from(trunk, from);
  if (!fork) return *this;
  ObservedCuckoo split(shape());
  const auto take = [&](SiteId site, const ObservedPart& part) {
    const Result<bool> taken = split.merge(site, part);
    SEMEL_ASSERT(taken);
  };
  for (const auto& [site, last] : context_.sites()) {
    if (site != from) take(site, part_between(site, 0, last));
  }
  if (*fork > 0) take(from, part_between(from, 0, *fork));
  take(to, part_between(from, *fork, context_.at(from)).from_one());
  return split;
}

ObservedPart ObservedPart::from_one() const {
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
bool ObservedCuckoo::at_most(const ObservedCuckoo& other) const {
  const std::partial_ordering order = context_.compare(other.context_);
  if (order != std::partial_ordering::less && order != std::partial_ordering::equivalent) {
    return false;
  }
  const Seen here(context_);
  bool holds = true;
  other.entries_.for_each([&](const CuckooSpot& spot, std::uint64_t dot) {
    holds = holds && (!here(dot) || entries_.holds(spot, dot));
  });
  return holds;
}

Result<std::partial_ordering> ObservedCuckoo::compare(const ObservedCuckoo& other) const {
  if (shape() != other.shape()) {
    return Error{Errc::mismatch, "observed-remove cuckoo filters of different shapes"};
  }
  if (const std::optional<SiteId> site = lives_.clash(other.lives_)) return forked(*site);
  return order_of(at_most(other), other.at_most(*this));
}

double ObservedCuckoo::load() const {
  return static_cast<double>(entries_.size()) / static_cast<double>(shape().slots());
}

// A site of the context contributes two numbers and a run of a life four, so that they cannot be
// mistaken for an entry.
Digest ObservedCuckoo::digest(const Hasher& hasher) const {
  Digest sum = entries_.digest(hasher);
  for (const VersionVector::Site& site : context_.sites()) {
    sum ^= hasher.of_numbers(site.site, site.counter);
  }
  for (const LifeRun& run : lives_.runs()) {
    sum ^= hasher.of_numbers(run.first, run.last, run.life, run.before);
  }
  return sum;
}

// Returns how many entries each site of the context has.
std::vector<std::uint64_t> ObservedCuckoo::entries_of_sites() const {
  const std::span<const VersionVector::Site> sites = context_.sites();
  if (sites.size() == 1) return {entries_.size()};
  std::vector<std::uint64_t> counts(sites.size());
  entries_.for_each([&](const CuckooSpot&, std::uint64_t dot) {
    const auto at = std::partition_point(
        sites.begin(), sites.end(),
        [site = Dot::unpacked(dot).site](const VersionVector::Site& s) { return s.site < site; });
    ++counts[static_cast<std::size_t>(at - sites.begin())];
  });
  return counts;
}

void ObservedCuckoo::encode(Sink out) const {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  entry_codec::write_shape(w, shape());
  context_.encode(out);
  lives_.encode(out);
  const std::vector<std::uint64_t> counts = entries_of_sites();
  w.words(counts);

  const std::span<const VersionVector::Site> sites = context_.sites();
  EntriesInOrder<ByDot> ordered(entries_);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const auto [site, counter] = sites[i];
    elias_fano::encode(out, counts[i], counter - 1, [&](auto visit) {
      ordered.for_each({Dot{site, 0}.packed(), 0}, {Dot{site, counter}.packed(), 0},
                       [&](const auto& item) { visit(Dot::unpacked(item.dot).counter - 1); });
    });
  }
  if (!out.only_measures(entry_codec::places_size(shape(), entries_.size()))) {
    entry_codec::PlacesWriter places(out, shape());
    ordered.for_each({0, 0}, {~std::uint64_t{0}, 0},
                     [&](const auto& item) { places.put(ordered.entry(item)); });
    places.finish();
  }
  seal.close();
}

Result<ObservedCuckoo> ObservedCuckoo::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  const Shape shape = entry_codec::read_shape(r, Dot::kBits);
  if (!r.ok() || r.rest() < 4 + entry_codec::kTrailerSize) {
    return Error{Errc::truncated, "observed-remove filter: header"};
  }
  if (magic != kMagic) return Error{Errc::unsupported, "observed-remove filter: magic"};
  if (!shape.valid()) return Error{Errc::corrupt, "observed-remove filter: shape"};
  if (!checksum_holds(in)) return Error{Errc::corrupt, "observed-remove filter: checksum"};
  Result<VersionVector> context = VersionVector::decode(r, kMostSites);
  if (!context) return context.error();
  Result<Lives> lives = Lives::decode(r, *context);
  if (!lives) return lives.error();
  const std::span<const VersionVector::Site> sites = context->sites();
  if (r.rest() < 8 * sites.size() + entry_codec::kTrailerSize) {
    return Error{Errc::corrupt, "observed-remove filter: size"};
  }
  const std::uint64_t body = r.rest() - 8 * sites.size() - entry_codec::kTrailerSize;

  std::vector<std::uint64_t> counts;
  std::uint64_t count = 0;
  std::uint64_t dots_size = 0;
  for (const VersionVector::Site& site : sites) {
    counts.push_back(r.u64());
    if (counts.back() / 8 > body) return Error{Errc::corrupt, "observed-remove filter: size"};
    count += counts.back();
    dots_size += elias_fano::byte_size(counts.back(), site.counter - 1);
  }
  if (count / 8 > body || dots_size + entry_codec::places_size(shape, count) != body) {
    return Error{Errc::corrupt, "observed-remove filter: size"};
  }
  std::vector<CuckooEntry> entries;
  entries.reserve(count);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (!read_dots(r, {sites[i].site, 1}, sites[i].counter - 1, counts[i], entries)) {
      return Error{Errc::corrupt, "observed-remove filter: dots"};
    }
  }
  if (!entry_codec::decode_places(r, shape, entries)) {
    return Error{Errc::corrupt, "observed-remove filter: entries"};
  }
  ObservedCuckoo filter(shape);
  filter.context_ = *std::move(context);
  filter.lives_ = *std::move(lives);
  filter.entries_.fill(entries);
  return filter;
}

bool ObservedCuckoo::operator==(const ObservedCuckoo& other) const {
  return shape() == other.shape() && context_ == other.context_ && lives_ == other.lives_ &&
         entries_ == other.entries_;
}

}  // namespace semel
