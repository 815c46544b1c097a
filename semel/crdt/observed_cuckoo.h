// ObservedCuckoo: a cuckoo filter to which every site adds, and from which it removes what it has
// observed, without coordination. All sites agree.
//
// Contract  Every add makes an entry with its own dot. A removal takes out one entry that it has
//           observed, for good, at every site that it reaches. An add that the removal had not seen
//           stays. If several entries may belong to the key, the one with the least dot goes, so
//           that sites that remove the same key concurrently remove the same entry.
//           A key that was added is found until it is removed, if every removal is causally safe
//           (crdt/causality.h) or names the dot of an add of that very key. Such a removal cannot
//           take another key's entry, however fingerprints collide.
//           An add names the site and its life (crdt/internal/lives.h). A state, delta or part in which a
//           site has reused its dots is refused with Errc::forked, which names that site. renamed()
//           gives the dots of one of the two histories to another site, so that both merge
//           (docs/replicas.md).
// Merge     A join. It keeps the entries that both states have, in whatever slots, and the entries
//           of one that the other has not seen. compare() is its order: less if everything seen
//           here was seen there and everything removed here is removed there. A merge never fails
//           for lack of room.
//           An update yields a delta: the entry or the removal, with its dot. Deltas merge with
//           deltas in any order. A state takes a delta only if it has seen what came before.
//           Otherwise it answers Errc::gap, and the sender must send its state. Removals and adds
//           that arrive out of order can hide a key that collides with another until all have
//           arrived. A DeltaLog keeps the order.
// Cost      As CuckooFilter, and a removal reads the dots. Merging a state: two lookups for each
//           entry. Merging a delta: its entries and removals.
// Memory    As CuckooFilter with 64 bits for each dot, from an eighth full on; less before.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/observed_cuckoo_v2.md and observed_delta_v2.md.
// Source    Specification 4 of the thesis (docs/papers.md), with its faults corrected.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/internal/entry_store.h"
#include "semel/crdt/internal/lives.h"
#include "semel/crdt/version_vector.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

// What happened to entries, by dot: each was added, or added and removed.
class ObservedDelta {
 public:
  // Makes an empty delta. REQUIRES: shape.valid() and shape.payload_bits == Dot::kBits.
  explicit ObservedDelta(const CuckooShape& shape);

  // Errc::mismatch if the shapes differ. Errc::forked if a dot has different lives or entries here
  // and there. Nothing changes then.
  Result<void> merge(const ObservedDelta& other);

  const CuckooShape& shape() const { return shape_; }
  bool empty() const { return changes_.empty(); }
  std::vector<SiteId> sites() const;  // the sites of its dots, ascending
  std::uint64_t bytes() const {       // with the nodes of the map
    return changes_.size() * (sizeof(Change) + 48) + lives_.runs().size() * sizeof(LifeRun);
  }

  void encode(Sink out) const;                       // equal deltas give equal bytes
  static Result<ObservedDelta> decode(ByteView in);  // `in` is untrusted

  bool operator==(const ObservedDelta&) const = default;

 private:
  friend class ObservedCuckoo;

  struct Change {
    std::uint64_t pair;
    std::uint64_t fingerprint;
    bool removed;
    bool operator==(const Change&) const = default;
  };

  // REQUIRES: the run ends with the dot.
  void record(std::uint64_t dot, const Change& change, const LifeRun& run);
  // Returns a dot that has two different entries, or nullptr.
  const std::uint64_t* dot_of_two(const ObservedDelta& other) const;

  CuckooShape shape_;
  std::map<std::uint64_t, Change> changes_;  // by packed dot
  Lives lives_;                              // of these dots
};

// What became of some consecutive dots of one site: those after number `first` up to number `last`.
// `entries` holds the entries that still exist, ascending by number (their payload). All other dots
// were removed.
struct ObservedPart {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::vector<CuckooEntry> entries;
  std::vector<LifeRun> lives;  // of these dots, by number; the first run may begin earlier

  bool sound(const CuckooShape& shape) const;
  // Returns the same dots as the first dots of another site. REQUIRES: the part is sound.
  ObservedPart from_one() const;
  bool operator==(const ObservedPart&) const = default;
};

class ObservedCuckoo {
 public:
  using Shape = CuckooShape;
  using Delta = ObservedDelta;
  static constexpr bool kRemoves = true;

  // Fails like CuckooShape::for_goal.
  static Result<Shape> shape_for(std::uint64_t keys, double fpr, HashId hash);

  // REQUIRES: shape.valid() and shape.payload_bits == Dot::kBits.
  explicit ObservedCuckoo(const Shape& shape);

  // Adds the key once more, as an event of this site, and returns its dot. Errc::full, and no
  // change, if there is no room. Errc::limit if the site has used up its numbers. Adds the change
  // to `delta`. REQUIRES for every key: the digest was made by shape().hash. REQUIRES for every
  // delta: it has the shape of the filter. REQUIRES: a life adds to one object only, never to a
  // copy or a decoded one.
  Result<Dot> add(Digest key, SiteLife site);
  Result<Dot> add(Digest key, SiteLife site, Delta& delta);
  // Adds many keys, in order, up to the first that fails. Returns the number of keys before that
  // one. Their dots are consecutive.
  std::size_t add(std::span<const Digest> keys, SiteLife site);
  std::size_t add(std::span<const Digest> keys, SiteLife site, Delta& delta);

  // Allocates the memory of a full filter now, and keeps it. The state stays the same.
  void reserve() { entries_.reserve(); }
  bool contains(Digest key) const { return entries_.contains(key); }
  // Prefetches the lines that contains(key) will need first.
  [[gnu::always_inline]] void prefetch(Digest key) const { entries_.prefetch(key); }
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // dots() returns the dots of all entries that may belong to this key, ascending. count() returns
  // their number and least_dot() the least of them, without allocating.
  std::vector<Dot> dots(Digest key) const;
  std::uint64_t count(Digest key) const { return entries_.count(shape().spot_of(key)); }
  std::optional<Dot> least_dot(Digest key) const;

  // Removes the entry with the least dot that may belong to this key. Returns the dot, or nothing
  // if there is no such entry.
  std::optional<Dot> remove(Digest key);
  std::optional<Dot> remove(Digest key, Delta& delta);
  // Removes the entry of this dot. Returns false, and changes nothing, if it is not an entry of
  // this key or was already removed. Errc::gap if the dot has not been seen here. Errc::invalid if
  // there is no such dot.
  Result<bool> remove(Digest key, Dot dot);
  Result<bool> remove(Digest key, Dot dot, Delta& delta);
  // Removes one entry for each key, the least dot each time. removed[i] says whether there was one.
  // REQUIRES: the spans are of equal size.
  void remove(std::span<const Digest> keys, std::span<bool> removed);
  void remove(std::span<const Digest> keys, std::span<bool> removed, Delta& delta);

  // Returns true if anything changed. Errc::mismatch if the shapes differ. Errc::forked if a site
  // has reused its dots. Errc::gap if a delta skips changes. Nothing changes then.
  Result<bool> merge(const ObservedCuckoo& other);
  Result<bool> merge(const Delta& delta);
  // Returns an error if merge(delta) would fail.
  Result<void> admits(const Delta& delta) const;

  // Returns what became of the next dots of a site after number `from`. The part ends at the last
  // dot seen, or earlier so that it has nearly `most` entries; then its last number is a multiple
  // of kPartStep. REQUIRES: most >= kPartStep; from <= context().at(site).
  static constexpr std::uint64_t kPartStep = 1 << 16;
  ObservedPart part(SiteId site, std::uint64_t from, std::uint64_t most) const;
  // Returns what became of the dots after number `from` up to number `to`, however many entries
  // that are. REQUIRES: from < to <= context().at(site).
  ObservedPart part_between(SiteId site, std::uint64_t from, std::uint64_t to) const;
  // Joins a part of a state, as events of this site, which may have another id there. Returns true
  // if anything changed. Errc::gap if what came before the part has not been seen here.
  // Errc::forked if a dot has different lives or entries here and there. Nothing changes then.
  // REQUIRES: part.sound(shape()).
  Result<bool> merge(SiteId site, const ObservedPart& part);

  // Returns the last number of a site up to which both states have the same events, if the two then
  // have different events. Otherwise returns nothing. REQUIRES: the shapes are equal.
  std::optional<std::uint64_t> fork_from(const ObservedCuckoo& trunk, SiteId site) const;
  // Returns this state, but the dots that `from` made since it left `trunk` become dots of `to`,
  // numbered from 1 on. The result merges with `trunk`. Without such a fork the state is the same.
  // Errc::mismatch if the shapes differ. Errc::invalid if `to` has dots here.
  Result<ObservedCuckoo> renamed(const ObservedCuckoo& trunk, SiteId from, SiteId to) const;

  // Errc::mismatch if the shapes differ. Errc::forked if a site has reused its dots.
  Result<std::partial_ordering> compare(const ObservedCuckoo& other) const;

  const Shape& shape() const { return entries_.shape(); }
  const VersionVector& context() const { return context_; }  // what has been seen
  const Lives& lives() const { return lives_; }              // the lives of all dots seen
  std::uint64_t cardinality() const { return entries_.size(); }
  std::uint64_t keys() const { return entries_.size(); }
  std::uint64_t capacity() const { return shape().capacity(); }
  double live_fpr() const { return shape().expected_fpr(entries_.size()); }
  double load() const;                                            // may exceed 1
  std::uint64_t overflow() const { return entries_.overflow(); }  // entries outside the table
  std::uint64_t bytes() const { return entries_.bytes(); }

  // The digest depends on the state alone. A keyed hasher makes it unforgeable.
  Digest digest(const Hasher& hasher) const;

  void encode(Sink out) const;                        // equal states give equal bytes
  static Result<ObservedCuckoo> decode(ByteView in);  // `in` is untrusted

  bool operator==(const ObservedCuckoo& other) const;

 private:
  Result<Dot> add_to(Digest key, SiteLife site, Delta* delta);
  std::size_t add_to(std::span<const Digest> keys, SiteLife site, Delta* delta);
  std::optional<Dot> remove_from(Digest key, Delta* delta);
  Result<bool> remove_from(Digest key, Dot dot, Delta* delta);
  void remove_from(std::span<const Digest> keys, std::span<bool> removed, Delta* delta);
  bool at_most(const ObservedCuckoo& other) const;
  std::vector<std::uint64_t> entries_of_sites() const;

  EntryStore entries_;  // payloads are packed dots, all in the context
  VersionVector context_;
  Lives lives_;  // of all dots of the context
};

}  // namespace semel
