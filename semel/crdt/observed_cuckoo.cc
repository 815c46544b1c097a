#include "semel/crdt/observed_cuckoo.h"

#include <algorithm>
#include <new>
#include <utility>

#include "semel/bits/internal/elias_fano.h"
#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/dot_codec.h"
#include "semel/crdt/internal/entries_in_order.h"
#include "semel/crdt/internal/entry_codec.h"
#include "semel/crdt/internal/entry_store.h"
#include "semel/crdt/internal/lives.h"
#include "semel/crdt/internal/observed_state.h"
#include "semel/crdt/internal/partial_order.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

using crdt_internal::ByDot;
using crdt_internal::CuckooEntry;
using crdt_internal::CuckooSpot;
using crdt_internal::decode_places;
using crdt_internal::EntriesInOrder;
using crdt_internal::EntryStore;
using crdt_internal::forked;
using crdt_internal::kMostSites;
using crdt_internal::LifeRun;
using crdt_internal::Lives;
using crdt_internal::ObservedState;
using crdt_internal::order_of;
using crdt_internal::places_size;
using crdt_internal::PlacesWriter;
using crdt_internal::read_dots;
using crdt_internal::read_shape;

namespace {

// docs/formats/observed_cuckoo_v1.md.
//
//    OFFSET     SIZE  FIELD OF THE BODY
//         0       20  shape, as in cuckoo_v1
//        20   4+8*S  version vector of S sites
//             8+16*L  lives, L runs of dots
//                8*S  number of entries of each site
//                  E  for each site the counters of its entries, minus 1, Elias-Fano
//                  P  pairs and fingerprints of all entries, in the order of the dots
constexpr Format kFormat{"SOC", 1, "observed-remove cuckoo filter"};

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

}  // namespace

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
