#include "semel/filter/bloom_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "semel/bits/internal/bit_array.h"
#include "semel/bits/internal/line_array.h"
#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/error_rate.h"
#include "semel/core/limits.h"
#include "semel/filter/bloom_math.h"
#include "semel/filter/internal/bloom_block.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

namespace bloom_block = filter_internal::bloom_block;

namespace {

// docs/formats/bloom_v1.md.
//
//    OFFSET     SIZE  FIELD OF THE BODY
//         0        1  layout: 0 plain, 1 to 4 blocked with so many lines for a key
//         1        2  probes
//         3        8  bits
//        11        9  kind and seed of the hash
//        20   bits/8  words, bit i of the filter being bit i % 64 of word i / 64
constexpr Format kFormat{"SBF", 1, "Bloom filter"};

// Calls visit(bit) for the probes of a key in the plain layout, until it returns false. Probe i is
// the point lo + i * hi on a circle of 2^64, scaled to the number of bits.
template <class Visit>
void for_each_plain_probe(const BloomShape& shape, Digest key, Visit visit) {
  for (std::uint32_t i = 0; i < shape.probes; ++i) {
    if (!visit(scale(key.lo + i * key.hi, shape.bits))) return;
  }
}

void plain_touch(const std::uint64_t* words, const BloomShape& shape, Digest key) {
  for_each_plain_probe(shape, key, [&](std::uint64_t bit) {
    prefetch(words + bit / 64);
    return true;
  });
}

// This is not inlined, so that BloomFilter::contains only jumps. Saving registers there would cost
// the blocked layout a tenth of its time.
[[gnu::noinline]] bool plain_contains(const std::uint64_t* words, const BloomShape& shape,
                                      Digest key) {
  std::uint64_t set = 1;
  for_each_plain_probe(shape, key, [&](std::uint64_t bit) {
    set = words[bit / 64] >> (bit % 64) & 1;
    return set != 0;
  });
  return set != 0;
}

[[gnu::noinline]] bool plain_add(std::uint64_t* words, const BloomShape& shape, Digest key) {
  std::uint64_t all = 1;
  for_each_plain_probe(shape, key, [&](std::uint64_t bit) {
    all &= words[bit / 64] >> (bit % 64);
    words[bit / 64] |= std::uint64_t{1} << (bit % 64);
    return true;
  });
  return all == 0;
}

bloom_block::Sections sections_of(const BloomShape& shape) {
  if (shape.layout == BloomLayout::plain) return {};
  return {shape.bits / bloom_math::kBlockBits / shape.lines(), shape.probes / shape.lines(),
          shape.lines()};
}

}  // namespace

filter_internal::Words::Words(std::size_t size)
    : data_(allocate_lines<std::uint64_t>(size)), size_(size) {}
filter_internal::Words::Words(const Words& other) : Words(other.size_) {
  std::copy_n(other.data_, size_, data_);
}
filter_internal::Words::~Words() { release_lines(data_, size_); }
bool filter_internal::Words::operator==(const Words& other) const {
  return std::equal(data_, data_ + size_, other.data_, other.data_ + other.size_);
}

Result<BloomShape> BloomShape::for_goal(const Goal& goal) {
  if (goal.keys == 0) return Error{Errc::invalid, "a Bloom filter needs room for one key"};
  if (!(goal.fpr > 0 && goal.fpr < 1)) return Error{Errc::invalid, "fpr must be within (0, 1)"};

  BloomShape shape{goal.layout, 0, 0, goal.hash};
  if (goal.layout == BloomLayout::plain) {
    const bloom_math::Size size = bloom_math::plain_size(goal.keys, goal.fpr);
    shape.bits = size.bits;
    shape.probes = size.probes;
  } else {
    // The root of a rate just below 1 rounds to 1.
    const double line_fpr = std::min(std::pow(goal.fpr, 1.0 / shape.lines()), kMostErrorRate);
    if (line_fpr < bloom_math::kLeastBlockedFpr) {
      return Error{Errc::limit, "so low an fpr needs more lines, or the plain layout"};
    }
    const bloom_math::Size size = bloom_math::blocked_size(goal.keys, line_fpr);
    shape.bits = size.bits * shape.lines();
    shape.probes = size.probes * shape.lines();
  }
  if (shape.bits == 0 || shape.bits > limits::kFilterBits) {
    return Error{Errc::limit, "the filter would need more than 2^46 bits"};
  }
  SEMEL_ASSERT(shape.valid());
  return shape;
}

// One line costs 8 % more bits than the plain layout at 1e-3, two lines cost the same at 1e-6, and
// so on.
BloomLayout BloomShape::blocked_for(double fpr) {
  const double lines = std::ceil(-std::log10(fpr) / 3);
  return static_cast<BloomLayout>(std::clamp(lines, 1.0, double{limits::kBlockedLines}));
}

void BloomShape::encode(Sink out) const {
  Writer w(out);
  w.enumeration(layout);
  w.u16(static_cast<std::uint16_t>(probes));
  w.u64(bits);
  write(w, hash);
}

Result<BloomShape> BloomShape::decode(Reader& in) {
  BloomShape shape{};
  shape.layout = in.enumeration(BloomLayout::blocked4);
  shape.probes = in.u16();
  shape.bits = in.u64();
  shape.hash = read_hash_id(in);
  if (!in.ok() || !shape.valid()) return Error{Errc::corrupt, "shape"};
  return shape;
}

bool BloomShape::valid() const {
  if (bits == 0 || bits > limits::kFilterBits || probes == 0 || !hash.valid()) return false;
  if (layout == BloomLayout::plain) return bits % 64 == 0 && probes <= limits::kPlainProbes;
  return lines() <= limits::kBlockedLines && bits % (bloom_math::kBlockBits * lines()) == 0 &&
         probes % lines() == 0 && probes / lines() <= limits::kBlockedProbes;
}

double BloomShape::expected_fpr(std::uint64_t keys) const {
  if (layout == BloomLayout::plain) return bloom_math::plain_expected_fpr(bits, probes, keys);
  const auto [blocks, line_probes, lines] = sections_of(*this);
  return std::pow(bloom_math::blocked_expected_fpr(blocks, line_probes, keys), lines);
}

BloomFilter::BloomFilter(const BloomFilter& other) = default;
BloomFilter::BloomFilter(BloomFilter&& other) noexcept = default;
BloomFilter& BloomFilter::operator=(const BloomFilter& other) = default;
BloomFilter& BloomFilter::operator=(BloomFilter&& other) noexcept = default;
BloomFilter::~BloomFilter() = default;

BloomFilter::BloomFilter(const BloomShape& shape)
    : shape_((SEMEL_ASSERT(shape.valid()), shape)),
      sections_(sections_of(shape)),
      words_(shape.bits / 64) {}

bool BloomFilter::add(Digest key) {
  std::uint64_t* words = words_.data();
  return plain() ? plain_add(words, shape_, key) : bloom_block::add(words, sections_, key);
}

bool BloomFilter::contains(Digest key) const {
  const std::uint64_t* words = words_.data();
  return plain() ? plain_contains(words, shape_, key)
                 : bloom_block::contains(words, sections_, key);
}

void BloomFilter::add(std::span<const Digest> keys, std::span<bool> added) {
  SEMEL_ASSERT(keys.size() == added.size());
  std::uint64_t* words = words_.data();
  if (!plain()) return bloom_block::add(words, sections_, keys, added);
  for_each_ahead(
      keys.size(), [&](std::size_t i) { plain_touch(words, shape_, keys[i]); },
      [&](std::size_t i) { added[i] = plain_add(words, shape_, keys[i]); });
}

void BloomFilter::contains(std::span<const Digest> keys, std::span<bool> found) const {
  SEMEL_ASSERT(keys.size() == found.size());
  const std::uint64_t* words = words_.data();
  if (!plain()) return bloom_block::contains(words, sections_, keys, found);
  for_each_ahead(
      keys.size(), [&](std::size_t i) { plain_touch(words, shape_, keys[i]); },
      [&](std::size_t i) { found[i] = plain_contains(words, shape_, keys[i]); });
}

Result<bool> BloomFilter::merge(const BloomFilter& other) {
  if (shape_ != other.shape_) return Error{Errc::mismatch, "Bloom filters of different shapes"};
  const std::span<std::uint64_t> words = words_;
  return semel::unite(words, other.words_);
}

bool BloomFilter::unite(std::uint64_t first, std::span<const std::uint64_t> words) {
  SEMEL_ASSERT(first <= words_.size() && words.size() <= words_.size() - first);
  std::uint64_t fresh = 0;
  std::uint64_t* const mine = words_.data() + first;
  for (std::size_t i = 0; i < words.size(); ++i) {
    fresh |= words[i] & ~mine[i];
    mine[i] |= words[i];
  }
  return fresh != 0;
}

std::span<const std::uint64_t> BloomFilter::bits_of(Digest key, KeyBits& room) const {
  static_assert(std::tuple_size_v<KeyBits> >= limits::kPlainProbes);
  std::size_t n = 0;
  if (plain()) {
    for_each_plain_probe(shape_, key, [&](std::uint64_t bit) {
      room[n++] = bit;
      return true;
    });
  } else {
    n = bloom_block::bits_of(sections_, key, room);
  }
  return std::span(room).first(n);
}

bool BloomFilter::set(std::uint64_t bit) {
  SEMEL_ASSERT(bit < shape_.bits);
  std::uint64_t& word = words_.data()[bit / 64];
  const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
  const bool clear = (word & mask) == 0;
  word |= mask;
  return clear;
}

double BloomFilter::fill() const {
  return static_cast<double>(count_ones(words_)) / static_cast<double>(shape_.bits);
}

double BloomFilter::cardinality() const {
  const std::uint64_t zeros = shape_.bits - count_ones(words_);
  if (plain()) {
    return bloom_math::plain_cardinality(shape_.bits, shape_.probes, static_cast<double>(zeros));
  }
  // Sections are equally full on average, so one section stands for all.
  return bloom_math::blocked_cardinality(shape_.bits / sections_.lines, sections_.probes,
                                         static_cast<double>(zeros) / sections_.lines);
}

namespace {

// The mean over the blocks of each section, of at most `most_blocks` in each.
double live_fpr_of(std::span<const std::uint64_t> words, const bloom_block::Sections& sections,
                   std::size_t most_blocks) {
  const std::size_t section = words.size() / sections.lines;
  double rate = 1;
  for (std::uint32_t line = 0; line < sections.lines; ++line) {
    rate *= bloom_math::blocked_live_fpr(words.subspan(line * section, section), sections.probes,
                                         most_blocks);
  }
  return rate;
}

}  // namespace

double BloomFilter::live_fpr() const {
  if (plain()) return bloom_math::plain_live_fpr(fill(), shape_.probes);
  return live_fpr_of(words(), sections_, words().size());
}

double BloomFilter::sampled_fpr() const {
  constexpr std::size_t kBlocks = 1024, kWords = kBlocks * bloom_math::kBlockBits / 64;
  if (!plain()) return live_fpr_of(words(), sections_, kBlocks / sections_.lines);
  const std::size_t step = (words().size() - 1) / kWords + 1;
  double ones = 0, bits = 0;
  for (std::size_t at = 0; at < words().size(); at += step) {
    ones += std::popcount(words()[at]);
    bits += 64;
  }
  return bloom_math::plain_live_fpr(ones / bits, shape_.probes);
}

void BloomFilter::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    shape_.encode(w.sink());
    w.words(words_);
  });
}

Result<BloomFilter> BloomFilter::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Result<BloomShape> shape = BloomShape::decode(r);
  if (!shape) return shape.error().about(kFormat.what);
  // Check the length before allocating: `bits` is only a claim until then.
  if (r.rest() != shape->bits / 8) return corrupt(kFormat, "size");
  BloomFilter filter(*shape);
  for (std::uint64_t& word : std::span<std::uint64_t>(filter.words_)) word = r.u64();
  return filter;
}

bool BloomFilter::operator==(const BloomFilter& other) const {
  return shape_ == other.shape_ && words_ == other.words_;
}

}  // namespace semel
