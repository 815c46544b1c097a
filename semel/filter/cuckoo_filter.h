// CuckooFilter: a bag of keys that can be removed again, each with a payload if wanted.
//
// Contract  After insert(x), contains(x) holds until remove(x) has been called as often. contains(y)
//           for a key y not inside is true at a rate near live_fpr(): an estimate, close because
//           fingerprints are uniform (docs/math/cuckoo.md). A key inserted twice is inside twice; two
//           buckets hold a key, so that at most 2 * bucket_size entries of equal fingerprint and
//           buckets fit. insert fails with Errc::full before anything has moved.
// Layout    A key has a fingerprint f of the digest's high half, 1 to 2^bits - 1, and two buckets:
//           one from the low half, b, and (h(f) - b) mod buckets. From either bucket and f follows
//           the other, so an entry moves without its key; any number of buckets will do, not only
//           powers of two. Fingerprint 0 marks a free slot.
//
//             fingerprints   | f f f f | f f f 0 | ...      bucket_size to a bucket, packed
//             payloads       | p p p p | p p p 0 | ...      apart, so that lookups stay dense
//
// Cost      contains: two cache misses at once. insert: as much while one of the two buckets has a
//           free slot, then a breadth-first search for the shortest chain of moves, which is at most
//           five moves long. A filter fills up at 97 % of load with buckets of 4, 99 % with 8.
// Memory    buckets * bucket_size * (fingerprint_bits + payload_bits) / 8 bytes, fixed. At 95 % load:
//
//             fingerprint_bits      8      12       16       32
//             bits per key        8.4    12.6     16.8     33.7
//             error, bucket 4  2.9e-2  1.9e-3   1.2e-4   1.8e-9
//             error, bucket 8  5.8e-2  3.7e-3   2.3e-4   3.5e-9
//
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/cuckoo_v1.md. Every released version stays readable (tests/golden).
// Source    Fan, Andersen, Kaminsky & Mitzenmacher, CoNEXT 2014; search after Li, Andersen, Kaminsky
//           & Freedman, EuroSys 2014.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "semel/bits/packed_array.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"

namespace semel {

struct CuckooShape {
  struct Goal {
    std::uint64_t keys;
    double fpr;
    std::uint32_t bucket_size = 4;
    std::uint32_t payload_bits = 0;
    HashId hash = {};
  };

  std::uint32_t bucket_size;       // 4 or 8
  std::uint32_t fingerprint_bits;  // 8, 12, 16 or 32
  std::uint32_t payload_bits;      // 0 to 64
  std::uint64_t buckets;
  HashId hash;  // what made the digests

  // The shortest fingerprints and the fewest buckets that hold `keys` at no more than `fpr`; a load
  // of 95 % when keys are many. Errc::invalid unless keys > 0, 0 < fpr < 1 and the other fields are
  // as above; Errc::limit beyond limits::kFilterBits, and where 32 bits of fingerprint are too few.
  static Result<CuckooShape> for_goal(const Goal& goal);

  bool valid() const;
  std::uint64_t slots() const { return buckets * bucket_size; }
  double expected_fpr(std::uint64_t keys) const;  // an estimate
  bool operator==(const CuckooShape&) const = default;
};

class CuckooFilter {
 public:
  // REQUIRES: shape.valid().
  explicit CuckooFilter(const CuckooShape& shape);

  // REQUIRES, of all that take a key: the digest was made by shape().hash; of all that take a
  // payload: it is below 2^payload_bits.

  // Errc::full, and no change, if no chain of moves within the search makes room.
  Result<void> insert(Digest key, std::uint64_t payload = 0);
  // Inserts the keys in order, payload 0, up to the first that does not fit; the number inserted.
  std::size_t insert(std::span<const Digest> keys);

  bool contains(Digest key) const;
  // The same for many keys: several times as fast on a filter larger than the cache.
  // REQUIRES: the spans are of equal size.
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // The payloads of all entries that may be of this key: of its fingerprint, in its buckets.
  std::vector<std::uint64_t> payloads(Digest key) const;

  // Takes out one entry that may be of this key (with this payload); false if there is none.
  // A key that is not inside must not be removed: the entry taken would be another key's.
  bool remove(Digest key);
  bool remove(Digest key, std::uint64_t payload);

  const CuckooShape& shape() const { return shape_; }
  std::uint64_t size() const { return size_; }  // entries inside
  double load() const { return static_cast<double>(size_) / static_cast<double>(shape_.slots()); }
  double live_fpr() const { return shape_.expected_fpr(size_); }
  std::uint64_t bytes() const { return fingerprints_.byte_size() + payloads_.byte_size(); }

  // Appends the encoding to `out`: the slots as they are, so equal filters may give unequal bytes.
  void encode(Bytes& out) const;

  // Reads one filter that fills `in` exactly. `in` may come from an enemy: nothing is allocated
  // before its length is known to match, and what is returned keeps every promise above.
  static Result<CuckooFilter> decode(ByteView in);

  // Equal shapes and the same bag of entries, whatever slots they came to lie in. O(n log n).
  bool operator==(const CuckooFilter& other) const;

 private:
  struct Entry {
    std::uint64_t bucket;  // one of its two
    std::uint64_t fingerprint;
    std::uint64_t payload;
    auto operator<=>(const Entry&) const = default;
  };

  Entry entry_of(Digest key, std::uint64_t payload) const;
  std::uint64_t other_bucket(std::uint64_t bucket, std::uint64_t fingerprint) const;
  std::uint32_t matches(std::uint64_t bucket, std::uint64_t fingerprint) const;
  template <class Accept>
  std::optional<std::uint64_t> find(Digest key, Accept accept) const;
  bool place_in(std::uint64_t bucket, const Entry& entry);
  bool place_by_moves(const Entry& entry);
  void set_slot(std::uint64_t slot, std::uint64_t fingerprint, std::uint64_t payload);
  std::vector<Entry> sorted_entries() const;

  CuckooShape shape_;         // valid(), and never changes
  PackedArray fingerprints_;  // 0: free
  PackedArray payloads_;      // 0 where free
  std::uint64_t size_ = 0;
};

}  // namespace semel
