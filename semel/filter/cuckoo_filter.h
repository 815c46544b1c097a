// CuckooFilter: a bag of keys that can be removed again, each with a payload if wanted.
//
// Contract  After insert(x), contains(x) holds until remove(x) has been called as often.
//           For a key y that is not inside, contains(y) is true at a rate near live_fpr(). That is
//           an estimate, and a close one because fingerprints are uniform (docs/math/cuckoo.md).
//           A key inserted twice is inside twice. A key has two buckets, so at most 2 * bucket_size
//           entries with equal fingerprint and buckets fit. insert() fails with Errc::full before
//           anything has moved.
// Cost      That of its table (filter/cuckoo_table.h): a lookup takes two cache misses at once. An
//           insert that finds both buckets full searches for a free slot.
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

  // REQUIRES for every key: the digest was made by shape().hash. REQUIRES for every payload: it is
  // below 2^payload_bits.

  // Errc::full, and no change, if the search finds no chain of moves that makes room.
  Result<void> insert(Digest key, std::uint64_t payload = 0);
  // Inserts the keys in order, with payload 0, up to the first that does not fit. Returns the
  // number inserted.
  std::size_t insert(std::span<const Digest> keys);

  bool contains(Digest key) const { return table_.contains(key); }
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

  const CuckooShape& shape() const { return table_.shape(); }
  std::uint64_t size() const { return table_.size(); }  // entries inside
  double load() const { return static_cast<double>(size()) / static_cast<double>(shape().slots()); }
  double live_fpr() const { return shape().expected_fpr(size()); }
  std::uint64_t bytes() const { return table_.bytes(); }

  // Appends the encoding to `out`: the slots as they are. Equal filters may give different bytes.
  void encode(Sink out) const;

  // Reads one filter that fills `in` exactly. `in` is untrusted: nothing is allocated before its
  // length is known to match, and the filter returned keeps every promise above.
  static Result<CuckooFilter> decode(ByteView in);

  // Returns true if the shapes and the bags of entries are equal, whatever slots the entries lie
  // in. O(n log n).
  bool operator==(const CuckooFilter& other) const;

 private:
  std::vector<CuckooEntry> sorted_entries() const;

  CuckooTable table_;
};

}  // namespace semel
