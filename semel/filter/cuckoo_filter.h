// CuckooFilter: a bag of keys that can be removed again, each with a payload if wanted.
//
// Contract  After insert(x), contains(x) holds until remove(x) has been called as often.
//           For a key y that is not inside, contains(y) is true at a rate near live_fpr(). That is
//           an estimate, and a close one because fingerprints are uniform (docs/math/cuckoo.md).
//           A key inserted twice is inside twice. A key has two buckets, so at most 2 * bucket_size
//           entries with equal fingerprint and buckets fit. insert() fails with Errc::full before
//           anything has moved.
// Cost      A lookup takes two cache misses at once. An insert that finds both buckets full
//           searches for a free slot.
// Memory    buckets * bucket_size * (fingerprint_bits + payload_bits) / 8 bytes, fixed. At 95 %
//           load:
//
//             fingerprint_bits      8      12       16       32
//             bits per key        8.4    12.6     16.8     33.7
//             error, bucket 4  2.9e-2  1.9e-3   1.2e-4   1.8e-9
//             error, bucket 8  5.8e-2  3.7e-3   2.3e-4   3.5e-9
//
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/cuckoo_v1.md.
// Source    Fan, Andersen, Kaminsky & Mitzenmacher, CoNEXT 2014.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/hidden.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"

namespace semel {

namespace filter_internal {
class CuckooTable;

// An entry, whatever slot it lies in.
struct CuckooEntry {
  std::uint64_t pair;
  std::uint64_t fingerprint;
  std::uint64_t payload;
  auto operator<=>(const CuckooEntry&) const = default;
};
}  // namespace filter_internal

// Everything that two cuckoo filters must agree on before they can merge.
struct SEMEL_API CuckooShape {
  struct Goal {
    std::uint64_t keys;
    double fpr;
    std::uint32_t bucket_size = 4;
    std::uint32_t payload_bits = 0;
    HashId hash = {};
  };

  std::uint32_t bucket_size;       // 4 or 8
  std::uint32_t fingerprint_bits;  // 8 to 16, 20, 24, 28, 32, 40, 48 or 56
  std::uint32_t payload_bits;      // 0 to 64
  std::uint64_t buckets;
  HashId hash;  // the hash that made the digests

  // Returns the shape with the shortest fingerprints and the fewest buckets that holds `keys` at an
  // error of at most `fpr`. The load is 95 % if there are many keys. Errc::invalid unless keys > 0,
  // 0 < fpr < 1 and the other fields are as above. Errc::limit beyond limits::kFilterBits, and if
  // fingerprints of 56 bits are too short.
  static Result<CuckooShape> for_goal(const Goal& goal);

  // The fields as bytes. Other formats contain them.
  void encode(Sink out) const;
  static Result<CuckooShape> decode(Reader& in);

  bool valid() const;
  std::uint64_t slots() const { return buckets * bucket_size; }
  std::uint64_t capacity() const;                 // most keys for this number of buckets
  std::uint64_t bytes() const;                    // of all slots
  double expected_fpr(std::uint64_t keys) const;  // an estimate

  bool operator==(const CuckooShape&) const = default;
};

class SEMEL_API CuckooFilter {
 public:
  // REQUIRES: shape.valid().
  explicit CuckooFilter(const CuckooShape& shape);

  // REQUIRES for every key: the digest was made by shape().hash. REQUIRES for every payload: it is
  // below 2^payload_bits.

  // Errc::full, and no change, if the search finds no chain of moves that makes room.
  Result<void> insert(Digest key, std::uint64_t payload = 0);
  // Inserts the keys in order, with payload 0, up to the first that does not fit. Returns the
  // number inserted.
  std::size_t insert(std::span<const Digest> keys);

  bool contains(Digest key) const;
  // Looks up many keys. This is several times as fast on a filter larger than the cache. REQUIRES:
  // the spans are of equal size.
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // Returns the payloads of all entries that may belong to this key: those with its fingerprint in
  // its buckets.
  std::vector<std::uint64_t> payloads(Digest key) const;

  // Removes one entry that may belong to this key (and has this payload). Returns false if there is
  // none. Never remove a key that is not inside: that would remove the entry of another key.
  bool remove(Digest key);
  bool remove(Digest key, std::uint64_t payload);

  const CuckooShape& shape() const;
  std::uint64_t size() const;  // entries inside
  double load() const { return static_cast<double>(size()) / static_cast<double>(shape().slots()); }
  double live_fpr() const { return shape().expected_fpr(size()); }
  std::uint64_t bytes() const { return shape().bytes(); }

  // Appends the encoding to `out`: the slots as they are. Equal filters may give different bytes.
  void encode(Sink out) const;

  static Result<CuckooFilter> decode(ByteView in);

  // Returns true if the shapes and the bags of entries are equal, whatever slots the entries lie
  // in. O(n log n).
  bool operator==(const CuckooFilter& other) const;

 private:
  explicit CuckooFilter(filter_internal::CuckooTable table);
  std::vector<filter_internal::CuckooEntry> sorted_entries() const;

  Hidden<filter_internal::CuckooTable> table_;
};

}  // namespace semel
