// CuckooFilter: a bag of keys that can be removed again, each with a payload if wanted.
//
// Contract  After insert(x), contains(x) holds until remove(x) has been called as often.
//           contains(y) for a key y not inside is true at a rate near live_fpr(): an estimate,
//           close because fingerprints are uniform (docs/math/cuckoo.md). A key inserted twice is
//           inside twice; two buckets hold a key, so that at most 2 * bucket_size entries of equal
//           fingerprint and buckets fit. insert fails with Errc::full before anything has moved.
// Cost      That of its table (filter/cuckoo_table.h): two cache misses at once for a lookup, and a
//           search for a free slot when an insert finds both buckets full.
// Memory    buckets * bucket_size * (fingerprint_bits + payload_bits) / 8 bytes, fixed. At 95 %
//           load:
//
//             fingerprint_bits      8      12       16       32
//             bits per key        8.4    12.6     16.8     33.7
//             error, bucket 4  2.9e-2  1.9e-3   1.2e-4   1.8e-9
//             error, bucket 8  5.8e-2  3.7e-3   2.3e-4   3.5e-9
//
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/cuckoo_v1.md. Every released version stays readable (tests/golden).
// Source    Fan, Andersen, Kaminsky & Mitzenmacher, CoNEXT 2014.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/filter/cuckoo_table.h"
#include "semel/hash/digest.h"

namespace semel {

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

  bool contains(Digest key) const { return table_.contains(key); }
  // The same for many keys: several times as fast on a filter larger than the cache.
  // REQUIRES: the spans are of equal size.
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // The payloads of all entries that may be of this key: of its fingerprint, in its buckets.
  std::vector<std::uint64_t> payloads(Digest key) const;

  // Takes out one entry that may be of this key (with this payload); false if there is none.
  // A key that is not inside must not be removed: the entry taken would be another key's.
  bool remove(Digest key);
  bool remove(Digest key, std::uint64_t payload);

  const CuckooShape& shape() const { return table_.shape(); }
  std::uint64_t size() const { return table_.size(); }  // entries inside
  double load() const { return static_cast<double>(size()) / static_cast<double>(shape().slots()); }
  double live_fpr() const { return shape().expected_fpr(size()); }
  std::uint64_t bytes() const { return table_.bytes(); }

  // Appends the encoding to `out`: the slots as they are, so equal filters may give unequal bytes.
  void encode(Sink out) const;

  // Reads one filter that fills `in` exactly. `in` may come from an enemy: nothing is allocated
  // before its length is known to match, and what is returned keeps every promise above.
  static Result<CuckooFilter> decode(ByteView in);

  // Equal shapes and the same bag of entries, whatever slots they came to lie in. O(n log n).
  bool operator==(const CuckooFilter& other) const;

 private:
  std::vector<CuckooEntry> sorted_entries() const;

  CuckooTable table_;
};

}  // namespace semel
