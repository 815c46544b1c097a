#include "semel/crdt/grow_bloom.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "semel/bits/internal/elias_fano.h"
#include "semel/bits/internal/line_array.h"
#include "semel/core/assert.h"
#include "semel/filter/bloom_math.h"
#include "semel/hash/internal/sealed.h"

namespace semel {
namespace {

// docs/formats/bloom_delta_v1.md.
//
//    OFFSET     SIZE  FIELD OF THE BODY
//         0       20  shape, as in bloom_v1
//        20        8  number of bits
//        28           the bits, ascending: bits/internal/elias_fano.h
constexpr Format kDeltaFormat{"SBD", 1, "delta of a Bloom filter"};

const Error kOtherShape{Errc::mismatch, "Bloom filters of different shapes"};

}  // namespace

BloomDelta::BloomDelta(const BloomShape& shape) : shape_(shape) { SEMEL_ASSERT(shape.valid()); }

// Sorts the bits when their number has doubled, so that each bit is moved only a few times in all.
void BloomDelta::add(std::uint64_t bit) {
  constexpr std::size_t kFewest = 64;
  bits_.push_back(bit);
  if (bits_.size() - settled_ > std::max(settled_, kFewest)) settle();
}

void BloomDelta::settle() {
  if (settled_ == bits_.size()) return;
  const auto fresh = bits_.begin() + static_cast<std::ptrdiff_t>(settled_);
  std::sort(fresh, bits_.end());
  std::inplace_merge(bits_.begin(), fresh, bits_.end());
  bits_.erase(std::unique(bits_.begin(), bits_.end()), bits_.end());
  settled_ = bits_.size();
}

std::vector<std::uint64_t> BloomDelta::bits_in_order() const {
  BloomDelta copy = *this;
  copy.settle();
  return std::move(copy.bits_);
}

Result<void> BloomDelta::merge(const BloomDelta& other) {
  if (shape_ != other.shape_) return kOtherShape;
  if (this == &other) return {};
  bits_.insert(bits_.end(), other.bits_.begin(), other.bits_.end());
  settle();
  return {};
}

void BloomDelta::encode(Sink out) const {
  const std::vector<std::uint64_t> bits = bits_in_order();
  seal(out, kDeltaFormat, [&](Writer& w) {
    shape_.encode(w.sink());
    w.u64(bits.size());
    elias_fano::encode(w.sink(), bits, shape_.bits - 1);
  });
}

Result<BloomDelta> BloomDelta::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kDeltaFormat));
  const Result<BloomShape> shape = BloomShape::decode(r);
  if (!shape) return shape.error().about(kDeltaFormat.what);
  const std::uint64_t bits = r.u64();
  const std::uint64_t last = shape->bits - 1;
  if (!r.ok() || bits > shape->bits || r.rest() != elias_fano::byte_size(bits, last)) {
    return corrupt(kDeltaFormat, "size");
  }
  BloomDelta delta(*shape);
  Result<std::vector<std::uint64_t>> ascending = elias_fano::decode(r, bits, last);
  if (!ascending) return corrupt(kDeltaFormat, "bits");
  delta.bits_ = *std::move(ascending);
  if (std::ranges::adjacent_find(delta.bits_) != delta.bits_.end()) {
    return corrupt(kDeltaFormat, "bits");
  }
  delta.settled_ = bits;
  return delta;
}

bool BloomDelta::operator==(const BloomDelta& other) const {
  return shape_ == other.shape_ && bits_in_order() == other.bits_in_order();
}

Result<GrowBloom::Shape> GrowBloom::shape_for(std::uint64_t keys, double fpr, HashId hash) {
  const bool possible = fpr > 0 && fpr < 1;  // otherwise for_goal returns the error
  const BloomLayout layout = possible ? BloomShape::blocked_for(fpr) : BloomLayout::plain;
  return BloomShape::for_goal({keys, fpr, layout, hash});
}

bool GrowBloom::add(Digest key, Delta* delta) {
  bool added = false;
  if (delta == nullptr) {
    added = filter_.add(key);
  } else {
    SEMEL_ASSERT(delta->shape_ == shape());
    BloomFilter::KeyBits room;
    for (const std::uint64_t bit : filter_.bits_of(key, room)) {
      if (!filter_.set(bit)) continue;
      delta->add(bit);
      added = true;
    }
  }
  keys_ += added;
  return added;
}

std::size_t GrowBloom::add(std::span<const Digest> keys, std::span<bool> added, Delta* delta) {
  SEMEL_ASSERT(keys.size() == added.size());
  if (delta == nullptr) {
    filter_.add(keys, added);
    keys_ += static_cast<std::uint64_t>(std::count(added.begin(), added.end(), true));
  } else {
    for (std::size_t i = 0; i < keys.size(); ++i) added[i] = add(keys[i], delta);
  }
  return keys.size();
}

Result<bool> GrowBloom::merge(const GrowBloom& other) {
  const Result<bool> changed = filter_.merge(other.filter_);
  if (changed && *changed) counted_ = false;
  return changed;
}

Result<bool> GrowBloom::merge(const Delta& delta) {
  SEMEL_TRY(admits(delta));
  bool changed = false;
  for (const std::uint64_t bit : delta.bits_) changed |= filter_.set(bit);
  if (changed) counted_ = false;
  return changed;
}

bool GrowBloom::merge(const BloomPart& part) {
  SEMEL_ASSERT(can_have(shape(), part.keys));
  const std::uint64_t before = keys();
  const bool changed = filter_.unite(part.first, part.words);
  if (!changed && before == 0) return false;  // still empty
  if (part.keys > before) {
    keys_ = part.keys;
  } else if (changed && part.keys == 0) {
    counted_ = false;
  }
  return changed || part.keys > before;
}

Result<void> GrowBloom::admits(const Delta& delta) const {
  if (delta.shape_ != shape()) return kOtherShape;
  return {};
}

Result<std::partial_ordering> GrowBloom::compare(const GrowBloom& other) const {
  if (shape() != other.shape()) return kOtherShape;
  constexpr std::size_t kWordsAtOnce = 512;  // no branch between them
  const std::span<const std::uint64_t> here = filter_.words(), there = other.filter_.words();
  std::uint64_t only_here = 0, only_there = 0;
  for (std::size_t start = 0; start < here.size(); start += kWordsAtOnce) {
    const std::size_t end = std::min(here.size(), start + kWordsAtOnce);
    for (std::size_t i = start; i < end; ++i) {
      only_here |= here[i] & ~there[i];
      only_there |= there[i] & ~here[i];
    }
    if (only_here != 0 && only_there != 0) return std::partial_ordering::unordered;
  }
  if (only_here != 0) return std::partial_ordering::greater;
  if (only_there != 0) return std::partial_ordering::less;
  return std::partial_ordering::equivalent;
}

std::uint64_t GrowBloom::capacity() const {
  const BloomShape& s = shape();
  const double half = static_cast<double>(s.bits) / 2;
  const double keys = s.layout == BloomLayout::plain
                          ? bloom_math::plain_cardinality(s.bits, s.probes, half)
                          : bloom_math::blocked_cardinality(s.bits / s.lines(),
                                                            s.probes / s.lines(), half / s.lines());
  return static_cast<std::uint64_t>(keys);
}

std::uint64_t GrowBloom::keys() {
  if (!counted_) keys_ = static_cast<std::uint64_t>(std::llround(cardinality()));
  counted_ = true;
  return keys_;
}

// Each key set a bit at least, but an estimate of the keys may be larger than the number of bits.
bool GrowBloom::set_keys(std::uint64_t keys) {
  if (!can_have(shape(), keys)) return false;
  keys_ = keys;
  counted_ = true;
  return true;
}

// XORs the digest of the shape with those of the blocks that hold something, each with its number.
Digest GrowBloom::digest(const Hasher& hasher) const {
  Bytes encoded_shape;
  shape().encode(encoded_shape);
  Digest sum = hasher(text_of(encoded_shape));

  constexpr std::size_t kBlockWords = kLineBytes / 8;
  std::array<std::uint8_t, 8 + kLineBytes> numbered{};
  const std::span<const std::uint64_t> words = filter_.words();
  for (std::size_t start = 0; start < words.size(); start += kBlockWords) {
    const auto block = words.subspan(start, std::min(kBlockWords, words.size() - start));
    if (std::all_of(block.begin(), block.end(), [](std::uint64_t word) { return word == 0; })) {
      continue;
    }
    numbered.fill(0);  // for a short last block
    store_u64(numbered.data(), start / kBlockWords);
    for (std::size_t i = 0; i < block.size(); ++i) store_u64(&numbered[8 + 8 * i], block[i]);
    sum ^= hasher(text_of(numbered));
  }
  return sum;
}

Result<GrowBloom> GrowBloom::decode(ByteView in) {
  return GrowBloom(SEMEL_TRY(BloomFilter::decode(in)));
}

}  // namespace semel
