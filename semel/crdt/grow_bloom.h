// GrowBloom: a Bloom filter to which every site adds on its own, and which all sites agree on.
//
// Contract  What BloomFilter promises, and: states and deltas merge in any order, any number of
//           times, and sites that have merged the same are equal. A key added anywhere is found
//           wherever its addition has arrived.
// Merge     Union of bits: a join. compare() is its order: less when every bit here is set there.
// Deltas    An add yields the bits that it set, and not those that were set before: a key is found
//           where all deltas up to its own have arrived. A delta merges into deltas and into
//           states, and states that merged the deltas are equal to those that merged the states.
// Cost      As BloomFilter. merge of a state: one pass at memory speed; of a delta: its bits.
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

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/filter/bloom_filter.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

// Bits that were set.
class BloomDelta {
 public:
  // Nothing yet. REQUIRES: shape.valid().
  explicit BloomDelta(const BloomShape& shape);

  // Errc::mismatch, and no change, if the shapes differ.
  Result<void> merge(const BloomDelta& other);

  const BloomShape& shape() const { return shape_; }
  bool empty() const { return bits_.empty(); }
  std::uint64_t bytes() const { return bits_.size() * sizeof(std::uint64_t); }

  // Equal deltas give equal bytes.
  void encode(Sink out) const;
  // Reads one delta that fills `in` exactly. `in` may come from an enemy.
  static Result<BloomDelta> decode(ByteView in);

  bool operator==(const BloomDelta& other) const;

 private:
  friend class GrowBloom;

  void add(std::uint64_t bit);
  void settle();                                     // puts all bits in order
  std::vector<std::uint64_t> bits_in_order() const;  // ascending, each once

  BloomShape shape_;
  // The first settled_ ascend, each once. Those behind came since, in any order, perhaps again.
  std::vector<std::uint64_t> bits_;
  std::size_t settled_ = 0;
};

class GrowBloom {
 public:
  using Shape = BloomShape;
  using Delta = BloomDelta;
  static constexpr bool kRemoves = false;

  // The shape for so many keys at this error in the layout of BloomShape::blocked_for: few cache
  // misses for a tenth more bits. Errors as those of BloomShape::for_goal.
  static Result<Shape> shape_for(std::uint64_t keys, double fpr, HashId hash);

  // REQUIRES: shape.valid().
  explicit GrowBloom(const Shape& shape) : filter_(shape) {}

  // True if the key was certainly not there before; false, and no change, if it was or seemed to
  // be. What changed joins `delta`. REQUIRES, of all that take a key: the digest was made by
  // shape().hash; of all that take a delta: it has the shape of the filter.
  bool add(Digest key);
  bool add(Digest key, Delta& delta);
  // The same for many keys, in order. REQUIRES: the spans are of equal size.
  void add(std::span<const Digest> keys, std::span<bool> added);
  void add(std::span<const Digest> keys, std::span<bool> added, Delta& delta);

  bool contains(Digest key) const { return filter_.contains(key); }
  // Brings the line that contains(key) will need first.
  [[gnu::always_inline]] void prefetch(Digest key) const { filter_.prefetch(key); }
  void contains(std::span<const Digest> keys, std::span<bool> found) const {
    filter_.contains(keys, found);
  }

  // True if it changed anything. Errc::mismatch, and no change, if the shapes differ.
  Result<bool> merge(const GrowBloom& other);
  Result<bool> merge(const Delta& delta);
  // Whether merge(delta) would succeed.
  Result<void> admits(const Delta& delta) const;

  // A part of a state: words from number `first` on. True if it changed anything.
  // REQUIRES: first + words.size() <= words().size().
  bool merge(std::uint64_t first, std::span<const std::uint64_t> words);
  std::span<const std::uint64_t> words() const { return filter_.words(); }

  // Errc::mismatch if the shapes differ.
  Result<std::partial_ordering> compare(const GrowBloom& other) const;

  const Shape& shape() const { return filter_.shape(); }
  double cardinality() const { return filter_.cardinality(); }  // an estimate of the distinct keys
  std::uint64_t capacity() const;  // keys at which, in the mean, half of the bits are set
  double live_fpr() const { return filter_.live_fpr(); }  // of a key never added, now
  std::uint64_t bytes() const { return filter_.bytes(); }

  // How many keys are inside, in constant time as a rule: those added here since the last count, on
  // top of an estimate of what was there then. Counts again after a merge that changed something.
  std::uint64_t keys();
  // For whoever has kept the number beside the bytes, or knows better: keys() counts on from here.
  void set_keys(std::uint64_t keys) {
    keys_ = keys;
    counted_ = true;
  }

  // Depends on the state alone; a keyed hasher makes it unforgeable.
  Digest digest(const Hasher& hasher) const;

  void encode(Sink out) const { filter_.encode(out); }  // equal states give equal bytes
  static Result<GrowBloom> decode(ByteView in);         // `in` may come from an enemy

  bool operator==(const GrowBloom& other) const { return filter_ == other.filter_; }

 private:
  explicit GrowBloom(BloomFilter filter) : filter_(std::move(filter)), counted_(false) {}

  BloomFilter filter_;
  std::uint64_t keys_ = 0;
  bool counted_ = true;  // whether keys_ holds
};

}  // namespace semel
