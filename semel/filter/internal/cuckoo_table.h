// CuckooTable: slots for entries, each in one of two buckets, and the moves that make room.
//
// Contract  place() finds a slot for an entry in one of its buckets. If needed, it moves other
//           entries to their other bucket. It fails before anything has moved. Nothing else moves
//           an entry.
// Layout    fingerprints   | f f f f | f f f 0 | ...    bucket_size to a bucket, packed; 0: free
//           payloads       | p p p p | p p p 0 | ...    apart, so that lookups stay dense
// Cost      contains: two cache misses at once. place: the same while one of the two buckets has a
//           free slot. Otherwise it searches breadth-first for the shortest chain of moves, at most
//           five moves long. A table is full at 97 % load with buckets of 4, at 99 % with buckets
//           of 8.
// Memory    slots * (fingerprint_bits + payload_bits) / 8 bytes, fixed.
// Threads   const members may run at once; any other call needs the object to itself.
// Source    Fan, Andersen, Kaminsky & Mitzenmacher, CoNEXT 2014; search after Li, Andersen,
//           Kaminsky & Freedman, EuroSys 2014.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "semel/bits/internal/packed_array.h"
#include "semel/bits/internal/prefetch.h"
#include "semel/core/codec.h"
#include "semel/filter/internal/cuckoo_shape.h"
#include "semel/hash/digest.h"

namespace semel::filter_internal {

class CuckooTable {
 public:
  // The number of buckets that a search looks at before it gives up. It reaches five moves deep
  // with buckets of 4, and is enough for a load of 97 %. Beyond that, each further percent costs
  // several times as much as the one before.
  static constexpr std::uint64_t kSearch = 2048;

  // REQUIRES: shape.valid().
  explicit CuckooTable(const CuckooShape& shape);
  // Reads the slots as encode() writes them. Errc::truncated if too few bytes are left, before
  // anything is allocated. REQUIRES: shape.valid().
  static Result<CuckooTable> decode(Reader& in, const CuckooShape& shape);

  // Returns false, and changes nothing, if no chain of moves makes room within min(kSearch, quota)
  // buckets. The search subtracts the buckets that it looks at from `quota`. An entry that needs no
  // search subtracts nothing.
  bool place(const CuckooSpot& spot, std::uint64_t payload, std::uint64_t& quota);
  bool place(const CuckooSpot& spot, std::uint64_t payload) {
    std::uint64_t quota = kSearch;
    return place(spot, payload, quota);
  }

  // Like place(), but prefers the emptier of the two buckets. Evenly filled tables merge with fewer
  // searches.
  bool place_evenly(const CuckooSpot& spot, std::uint64_t payload, std::uint64_t& quota);
  // Places the entry in the bucket of the spot. Returns false, and changes nothing, if that bucket
  // has no free slot.
  bool place_here(const CuckooSpot& spot, std::uint64_t payload);

  bool contains(Digest key) const {
    return cuckoo_bucket::visit(shape_, [&](auto kind) {
      return kind.holds(fingerprints_.data(), kind.place(shape_.buckets, key));
    });
  }
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // Returns one bit for each slot of the bucket, set if the slot holds the fingerprint. Fingerprint
  // 0 finds free slots.
  std::uint32_t matches(const CuckooSpot& spot) const {
    return cuckoo_bucket::visit(shape_, [&](auto kind) {
      return kind.matches(fingerprints_.data(), spot.bucket, spot.fingerprint);
    });
  }

  // Returns the first slot in either bucket that has the fingerprint and for which accept(slot) is
  // true.
  template <class Accept>
  std::optional<std::uint64_t> find(const CuckooSpot& spot, Accept accept) const;

  // REQUIRES for every slot: slot < shape().slots().
  std::uint64_t fingerprint(std::uint64_t slot) const { return fingerprints_.get(slot); }
  std::uint64_t payload(std::uint64_t slot) const { return payloads_.get(slot); }
  // REQUIRES: the slot is not free.
  void clear(std::uint64_t slot);

  // Calls visit(spot, slot) for every entry, bucket by bucket.
  template <class Visit>
  void for_each(Visit visit) const;
  // Calls visit(slot, payload) for every slot. A free slot has the payload 0.
  template <class Visit>
  void for_each_payload(Visit visit) const {
    payloads_.for_each(visit);
  }

  // Prefetches the lines that contains(key) will need.
  [[gnu::always_inline]] void prefetch(Digest key) const {
    const CuckooSpot spot = shape_.spot_of(key);
    prefetch(spot.bucket);
    prefetch(shape_.other(spot).bucket);
  }
  [[gnu::always_inline]] void prefetch(std::uint64_t bucket) const {
    const std::uint64_t bit = bucket * shape_.bucket_size * shape_.fingerprint_bits;
    semel::prefetch(fingerprints_.data() + bit / 8);
  }
  // Prefetches what a search from this full bucket will look at first. REQUIRES: the bucket's line
  // is in the cache.
  void prefetch_moves(std::uint64_t bucket) const;
  [[gnu::always_inline]] void prefetch_payloads(std::uint64_t bucket) const {
    const std::uint64_t bit = bucket * shape_.bucket_size * shape_.payload_bits;
    semel::prefetch(payloads_.data() + bit / 8);
  }

  const CuckooShape& shape() const { return shape_; }
  const CuckooPlaces& places() const { return shape_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t bytes() const { return fingerprints_.byte_size() + payloads_.byte_size(); }

  // Appends the slots as they are, without a header.
  void encode(Sink out) const;

 private:
  void place_in(const CuckooSpot& spot, std::uint32_t free, std::uint64_t payload);
  bool place_by_moves(const CuckooSpot& spot, std::uint64_t payload, std::uint64_t& quota);
  template <class Kind>
  bool search(Kind kind, const CuckooSpot& spot, std::uint64_t payload, std::uint64_t& quota);
  void set(std::uint64_t slot, std::uint64_t fingerprint, std::uint64_t payload);

  CuckooTable(const CuckooShape& shape, PackedArray fingerprints, PackedArray payloads);

  CuckooPlaces shape_;        // valid(), and never changes
  PackedArray fingerprints_;  // 0: free
  PackedArray payloads_;      // 0 where free
  std::uint64_t size_ = 0;
};

template <class Accept>
std::optional<std::uint64_t> CuckooTable::find(const CuckooSpot& spot, Accept accept) const {
  const CuckooSpot other = shape_.other(spot);
  for (const CuckooSpot& at : {spot, other}) {
    for (std::uint32_t left = matches(at); left != 0; left &= left - 1) {
      const std::uint64_t slot =
          at.bucket * shape_.bucket_size + static_cast<std::uint32_t>(std::countr_zero(left));
      if (accept(slot)) return slot;
    }
    if (other.bucket == spot.bucket) break;  // both are one bucket: visit it once
  }
  return std::nullopt;
}

template <class Visit>
void CuckooTable::for_each(Visit visit) const {
  std::uint64_t slot = 0;
  for (std::uint64_t bucket = 0; bucket < shape_.buckets; ++bucket) {
    for (std::uint32_t i = 0; i < shape_.bucket_size; ++i, ++slot) {
      const std::uint64_t f = fingerprints_.get(slot);
      if (f != 0) visit(CuckooSpot{bucket, f}, slot);
    }
  }
}

}  // namespace semel::filter_internal
