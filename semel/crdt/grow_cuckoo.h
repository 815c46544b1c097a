// GrowCuckoo: a cuckoo filter to which every site adds independently, and on which all sites agree.
//
// Contract  A key added anywhere is found wherever its addition has arrived. For a key y that was
//           never added, contains(y) is true at a rate near live_fpr(), an estimate as in
//           CuckooFilter. States and deltas merge in any order, any number of times, and sites that
//           have merged the same changes are equal, whatever slots their entries lie in.
// Merge     Union of entries: a join. An entry is a fingerprint and its pair of buckets. compare()
//           is its order: less if every entry here is there.
//           A merge never fails for lack of room: entries that do not fit are kept beside the table
//           (overflow()). An add that finds no room fails. When an add makes the table, some
//           entries may stay outside it.
//           An add yields its entry as a delta. A delta merges into deltas and into states.
// Cost      As CuckooFilter. Merging a state: its entries, in the order of the buckets. Merging a
//           delta: its entries.
// Memory    As CuckooFilter from an eighth full on, less before. A delta: 56 bytes for each entry.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/grow_cuckoo_v1.md, for states and deltas alike.
// Source    Specification 3 and algorithm 1 of the thesis (docs/papers.md).
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <span>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/hidden.h"
#include "semel/core/result.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

namespace crdt_internal {
class EntryStore;
}  // namespace crdt_internal

// The entries that were added.
class SEMEL_API CuckooDelta {
 public:
  // Makes an empty delta. REQUIRES: shape.valid() and shape.payload_bits == 0.
  explicit CuckooDelta(const CuckooShape& shape);

  // Errc::mismatch, and no change, if the shapes differ.
  Result<void> merge(const CuckooDelta& other);

  const CuckooShape& shape() const { return shape_; }
  bool empty() const { return entries_.empty(); }
  // Counts 32 bytes for the node of each entry.
  std::uint64_t bytes() const {
    return entries_.size() * (sizeof(filter_internal::CuckooEntry) + 32);
  }

  void encode(Sink out) const;  // equal deltas give equal bytes
  static Result<CuckooDelta> decode(ByteView in);

  bool operator==(const CuckooDelta&) const = default;

 private:
  friend class GrowCuckoo;

  CuckooShape shape_;
  std::set<filter_internal::CuckooEntry> entries_;
};

class SEMEL_API GrowCuckoo {
 public:
  using Shape = CuckooShape;
  using Delta = CuckooDelta;
  static constexpr bool kRemoves = false;

  // Fails like CuckooShape::for_goal.
  static Result<Shape> shape_for(std::uint64_t keys, double fpr, HashId hash);

  // REQUIRES: shape.valid() and shape.payload_bits == 0.
  explicit GrowCuckoo(const Shape& shape);

  // Returns true if the key was certainly absent. Returns false, and changes nothing, if it was
  // present or seemed to be. Errc::full, and no change, if there is no room. Adds the change to
  // `delta`, if given. REQUIRES for every key: the digest was made by shape().hash. REQUIRES for
  // every delta: it has the shape of the filter.
  Result<bool> add(Digest key, Delta* delta = nullptr);
  // Adds many keys, in order, up to the first for which there is no room. Returns the number of
  // keys before that one. REQUIRES: the spans are of equal size.
  std::size_t add(std::span<const Digest> keys, std::span<bool> added, Delta* delta = nullptr);

  // Allocates the memory of a full filter now, and keeps it. The state stays the same.
  void reserve();
  bool contains(Digest key) const;
  // Prefetches the lines that contains(key) will need first.
  void prefetch(Digest key) const;
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // Returns true if anything changed. Errc::mismatch, and no change, if the shapes differ.
  Result<bool> merge(const GrowCuckoo& other);
  Result<bool> merge(const Delta& delta);
  // Returns an error if merge(delta) would fail.
  Result<void> admits(const Delta& delta) const;

  // Errc::mismatch if the shapes differ.
  Result<std::partial_ordering> compare(const GrowCuckoo& other) const;

  const Shape& shape() const;
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
  static Result<GrowCuckoo> decode(ByteView in);

  bool operator==(const GrowCuckoo& other) const;

 private:
  Hidden<crdt_internal::EntryStore> entries_;
};

}  // namespace semel
