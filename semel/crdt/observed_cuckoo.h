// ObservedCuckoo: a cuckoo filter to which every site adds, and from which it removes what it has
// observed, without coordination. All sites agree.
//
// Contract  Every add makes an entry with its own dot. A removal takes out one entry that it has
//           observed, for good, at every site that it reaches. An add that the removal had not seen
//           stays. If several entries may belong to the key, the one with the least dot goes, so
//           that sites that remove the same key concurrently remove the same entry.
//           A key that was added is found until it is removed, if every removal names the dot of an
//           add of that very key, or is causally safe. A removal is causally safe if it has seen
//           enough adds of its key: one remains for it after every other removal of the key that
//           does not follow it has taken one. Such a removal cannot take another key's entry,
//           however fingerprints collide.
//           An add names the site and its life. A state, delta or part in which a site has reused
//           its dots is refused with Errc::forked, which names that site. renamed() gives the dots
//           of one of the two histories to another site, so that both merge (docs/replicas.md).
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
// Format    docs/formats/observed_cuckoo_v1.md and observed_delta_v1.md.
// Source    Specification 4 of the thesis (docs/papers.md), with its faults corrected.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/hidden.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

namespace crdt_internal {
struct ObservedChanges;
struct ObservedParts;
struct ObservedState;
}  // namespace crdt_internal

// Changes of entries, by dot: each was added, or added and removed.
class SEMEL_API ObservedDelta {
 public:
  // Makes an empty delta. REQUIRES: shape.valid() and shape.payload_bits == Dot::kBits.
  explicit ObservedDelta(const CuckooShape& shape);

  // Errc::mismatch if the shapes differ. Errc::forked if a dot has different lives or entries here
  // and there. Nothing changes then.
  Result<void> merge(const ObservedDelta& other);

  const CuckooShape& shape() const { return shape_; }
  bool empty() const;
  std::vector<SiteId> sites() const;  // the sites of its dots, ascending
  std::uint64_t bytes() const;        // with the nodes of its map

  void encode(Sink out) const;  // equal deltas give equal bytes
  static Result<ObservedDelta> decode(ByteView in);

  bool operator==(const ObservedDelta&) const = default;

 private:
  friend class ObservedCuckoo;

  CuckooShape shape_;
  Hidden<crdt_internal::ObservedChanges> body_;
};

class SEMEL_API ObservedCuckoo {
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
  // to `delta`, if given. REQUIRES for every key: the digest was made by shape().hash. REQUIRES for
  // every delta: it has the shape of the filter. REQUIRES: a life adds to one object only, never to
  // a copy or a decoded one.
  Result<Dot> add(Digest key, SiteLife site, Delta* delta = nullptr);
  // Adds many keys, in order, up to the first that fails. Returns the number of keys before that
  // one. Their dots are consecutive.
  std::size_t add(std::span<const Digest> keys, SiteLife site, Delta* delta = nullptr);

  // Allocates the memory of a full filter now, and keeps it. The state stays the same.
  void reserve();
  bool contains(Digest key) const;
  // Prefetches the lines that contains(key) will need first.
  void prefetch(Digest key) const;
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // dots() returns the dots of all entries that may belong to this key, ascending. count() returns
  // their number and least_dot() the least of them, without allocating.
  std::vector<Dot> dots(Digest key) const;
  std::uint64_t count(Digest key) const;
  std::optional<Dot> least_dot(Digest key) const;

  // Removes the entry with the least dot that may belong to this key. Returns the dot, or nothing
  // if there is no such entry.
  std::optional<Dot> remove(Digest key, Delta* delta = nullptr);
  // Removes the entry of this dot. Returns false, and changes nothing, if it is not an entry of
  // this key or was already removed. Errc::gap if the dot has not been seen here. Errc::invalid if
  // there is no such dot.
  Result<bool> remove(Digest key, Dot dot, Delta* delta = nullptr);
  // Removes one entry for each key, the least dot each time. removed[i] says whether there was one.
  // REQUIRES: the spans are of equal size.
  void remove(std::span<const Digest> keys, std::span<bool> removed, Delta* delta = nullptr);

  // Returns true if anything changed. Errc::mismatch if the shapes differ. Errc::forked if a site
  // has reused its dots. Errc::gap if a delta skips changes. Nothing changes then.
  Result<bool> merge(const ObservedCuckoo& other);
  Result<bool> merge(const Delta& delta);
  // Returns an error if merge(delta) would fail.
  Result<void> admits(const Delta& delta) const;

  // Returns the last number up to which both states have the same events of a site, if they have
  // different events after it. Otherwise returns nothing. REQUIRES: the shapes are equal.
  std::optional<std::uint64_t> fork_from(const ObservedCuckoo& trunk, SiteId site) const;
  // Returns this state, but the dots that `from` made since it left `trunk` become dots of `to`,
  // numbered from 1 on. The result merges with `trunk`. Without such a fork the state is the same.
  // Errc::mismatch if the shapes differ. Errc::invalid if `to` has dots here.
  Result<ObservedCuckoo> renamed(const ObservedCuckoo& trunk, SiteId from, SiteId to) const;

  // Errc::mismatch if the shapes differ. Errc::forked if a site has reused its dots.
  Result<std::partial_ordering> compare(const ObservedCuckoo& other) const;

  const Shape& shape() const;
  const VersionVector& context() const;  // what has been seen
  std::uint64_t cardinality() const;
  std::uint64_t keys() const { return cardinality(); }
  std::uint64_t capacity() const { return shape().capacity(); }
  double live_fpr() const { return shape().expected_fpr(cardinality()); }
  double load() const;             // may exceed 1
  std::uint64_t overflow() const;  // entries outside the table
  std::uint64_t bytes() const;

  // The digest depends on the state alone. A keyed hasher makes it unforgeable.
  Digest digest(const Hasher& hasher) const;

  void encode(Sink out) const;  // equal states give equal bytes
  static Result<ObservedCuckoo> decode(ByteView in);

  bool operator==(const ObservedCuckoo& other) const;

 private:
  friend struct crdt_internal::ObservedParts;

  Hidden<crdt_internal::ObservedState> state_;
};

}  // namespace semel
