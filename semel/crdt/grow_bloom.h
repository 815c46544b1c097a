// GrowBloom: a Bloom filter to which every site adds independently, and on which all sites agree.
//
// Contract  Everything that BloomFilter promises. In addition, states and deltas merge in any
//           order, any number of times, and sites that have merged the same changes are equal. A
//           key added anywhere is found wherever its addition has arrived.
// Merge     Union of bits: a join. compare() is its order: less if every bit here is set there.
//           An add yields a delta: the bits that it set, without those that were set before. So a
//           key is found where all deltas up to its own have arrived. A delta merges into deltas
//           and into states. States that merged the deltas equal those that merged the states.
// Cost      As BloomFilter. Merging a state: one pass at memory speed. Merging a delta: its bits.
//           compare, digest: one pass.
// Memory    bits / 8 bytes. A delta: 8 bytes for each bit, up to twice that while single keys are
//           added.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    A state: docs/formats/bloom_v1.md. A delta: docs/formats/bloom_delta_v1.md.
// Source    Specification 2 of the thesis (docs/papers.md).
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/filter/bloom_filter.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

// The bits that were set.
class SEMEL_API BloomDelta {
 public:
  // Makes an empty delta. REQUIRES: shape.valid().
  explicit BloomDelta(const BloomShape& shape);

  // Errc::mismatch, and no change, if the shapes differ.
  Result<void> merge(const BloomDelta& other);

  const BloomShape& shape() const { return shape_; }
  bool empty() const { return bits_.empty(); }
  std::uint64_t bytes() const { return bits_.size() * sizeof(std::uint64_t); }

  void encode(Sink out) const;  // equal deltas give equal bytes
  static Result<BloomDelta> decode(ByteView in);

  bool operator==(const BloomDelta& other) const;

 private:
  friend class GrowBloom;

  void add(std::uint64_t bit);
  void settle();                                     // puts all bits in order
  std::vector<std::uint64_t> bits_in_order() const;  // ascending, each once

  BloomShape shape_;
  // The first settled_ bits ascend without repeats. Later bits follow in any order, perhaps
  // repeated.
  std::vector<std::uint64_t> bits_;
  std::size_t settled_ = 0;
};

// A part of the state of a filter: some of its words, and the number of keys in the whole filter
// (0: unknown).
struct BloomPart {
  std::uint64_t first = 0;  // the number of the first word
  std::span<const std::uint64_t> words;
  std::uint64_t keys = 0;
};

class SEMEL_API GrowBloom {
 public:
  using Shape = BloomShape;
  using Delta = BloomDelta;
  static constexpr bool kRemoves = false;

  // Returns the shape for so many keys at this error, in the layout of BloomShape::blocked_for: few
  // cache misses for a tenth more bits. Fails like BloomShape::for_goal.
  static Result<Shape> shape_for(std::uint64_t keys, double fpr, HashId hash);

  // REQUIRES: shape.valid().
  explicit GrowBloom(const Shape& shape) : filter_(shape) {}

  // Returns true if the key was certainly absent. Returns false, and changes nothing, if it was
  // present or seemed to be. Adds the change to `delta`, if given. REQUIRES for every key: the
  // digest was made by shape().hash. REQUIRES for every delta: it has the shape of the filter.
  bool add(Digest key, Delta* delta = nullptr);
  // Adds many keys, in order. Returns their number. REQUIRES: the spans are of equal size.
  std::size_t add(std::span<const Digest> keys, std::span<bool> added, Delta* delta = nullptr);

  bool contains(Digest key) const { return filter_.contains(key); }
  // Prefetches the line that contains(key) will need first.
  [[gnu::always_inline]] void prefetch(Digest key) const { filter_.prefetch(key); }
  void contains(std::span<const Digest> keys, std::span<bool> found) const {
    filter_.contains(keys, found);
  }

  // Returns true if anything changed. Errc::mismatch, and no change, if the shapes differ.
  Result<bool> merge(const GrowBloom& other);
  Result<bool> merge(const Delta& delta);
  // Returns an error if merge(delta) would fail.
  Result<void> admits(const Delta& delta) const;

  // Merges a part of a state. keys() is then at least part.keys. Returns true if a bit or keys()
  // changed. REQUIRES: part.first + part.words.size() <= words().size(), and set_keys(part.keys)
  // would not fail.
  bool merge(const BloomPart& part);
  std::span<const std::uint64_t> words() const { return filter_.words(); }

  // Errc::mismatch if the shapes differ.
  Result<std::partial_ordering> compare(const GrowBloom& other) const;

  const Shape& shape() const { return filter_.shape(); }
  double cardinality() const { return filter_.cardinality(); }  // an estimate of the distinct keys
  std::uint64_t capacity() const;  // keys that set half of the bits, on average
  double live_fpr() const { return filter_.live_fpr(); }        // for a key never added
  double sampled_fpr() const { return filter_.sampled_fpr(); }  // an estimate of it
  std::uint64_t bytes() const { return filter_.bytes(); }

  // Returns the number of keys inside, usually in constant time: the keys added here since the last
  // count, plus an estimate of the keys inside at that time. A merge that changes anything makes it
  // count again.
  std::uint64_t keys();
  // Sets the number from which keys() counts on, for a caller who stored it beside the bytes.
  // Returns false, and changes nothing, if no such filter can have so many keys.
  bool set_keys(std::uint64_t keys);
  static bool can_have(const Shape& shape, std::uint64_t keys) { return keys / 64 <= shape.bits; }

  // The digest depends on the state alone. A keyed hasher makes it unforgeable.
  Digest digest(const Hasher& hasher) const;

  void encode(Sink out) const { filter_.encode(out); }  // equal states give equal bytes
  static Result<GrowBloom> decode(ByteView in);

  bool operator==(const GrowBloom& other) const { return filter_ == other.filter_; }

 private:
  explicit GrowBloom(BloomFilter filter) : filter_(std::move(filter)), counted_(false) {}

  BloomFilter filter_;
  std::uint64_t keys_ = 0;
  bool counted_ = true;  // keys_ is valid
};

}  // namespace semel
