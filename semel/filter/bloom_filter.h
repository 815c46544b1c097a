// BloomFilter: a set that never forgets a key, and has false positives at a known rate.
//
// Contract  After add(x), contains(x) holds for ever: through copies, merges and the wire.
//           For a key y that was never added, contains(y) is true with the probability live_fpr().
//           The mean of that over random digests is expected_fpr(n) after n distinct keys. It is
//           exact for the blocked layout and an estimate for the plain one (docs/math/bloom.md says
//           how close).
// Merge     Union. Commutative, associative, idempotent (tests/laws). Only equal shapes merge.
// Layouts   plain: probes may lie anywhere. It takes the fewest bits and one cache miss for each
//           probe.
//           blocked: all probes of a key lie in one cache line, or are spread evenly over two,
//           three or four. It takes one miss for each line. It needs more bits, and the lower the
//           error, the more. Bits per key:
//
//             error       1e-1   1e-2   1e-3   1e-4   1e-5   1e-6
//             plain       4.81   9.59  14.38  19.17  23.97  28.76
//             blocked     4.84   9.92  15.55  22.03  29.67  38.82
//             blocked2    4.85   9.67  14.63  19.84  25.27  31.09
//             blocked3    4.81   9.63  14.51  19.46  24.53  29.75
//
// Cost      A lookup or an add costs the misses above. The batch forms prefetch and come close to
//           the limit of the memory. merge, fill, cardinality, live_fpr: O(bits / 64). sampled_fpr:
//           O(1).
// Memory    bits / 8 bytes, fixed at construction. For a set that grows, see crdt/series.h.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/bloom_v1.md.
// Source    Bloom, CACM 13(7), 1970; double hashing after Kirsch & Mitzenmacher, ESA 2006; blocks
//           after Putze, Sanders & Singler, WEA 2007.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/limits.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"

namespace semel {

namespace filter_internal {

// The parts of a filter in the blocked layout.
struct Sections {
  std::uint64_t blocks;  // in each section
  std::uint32_t probes;  // in each block
  std::uint32_t lines;   // the number of sections: 1 or more
  bool operator==(const Sections&) const = default;
};

// Words that begin on a cache line, zero at first.
class Words {
 public:
  explicit Words(std::size_t size);
  Words(const Words& other);
  Words(Words&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Words& operator=(Words other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Words();

  operator std::span<std::uint64_t>() { return {data_, size_}; }              // NOLINT
  operator std::span<const std::uint64_t>() const { return {data_, size_}; }  // NOLINT
  std::uint64_t* data() { return data_; }
  const std::uint64_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool operator==(const Words& other) const;

 private:
  std::uint64_t* data_;
  std::size_t size_;
};

}  // namespace filter_internal

enum class BloomLayout : std::uint8_t {
  plain = 0,
  blocked = 1,  // in one cache line
  blocked2 = 2,
  blocked3 = 3,
  blocked4 = 4,
};

// Everything that two filters must agree on before they can merge.
struct SEMEL_API BloomShape {
  struct Goal {
    std::uint64_t keys;
    double fpr;
    BloomLayout layout = BloomLayout::blocked;
    HashId hash = {};
  };

  BloomLayout layout;
  std::uint32_t probes;  // k: 1 to 32; blocked: 1 to 24 for each line
  std::uint64_t bits;    // m: a positive multiple of 64; blocked: of 512 for each line
  HashId hash;           // the hash that made the digests

  // Returns the probes and bits that bring expected_fpr(keys) to fpr with the least memory.
  // Errc::invalid unless keys > 0 and 0 < fpr < 1. Errc::limit beyond limits::kFilterBits, and for
  // a blocked filter below an error of 1e-10 for each line.
  static Result<BloomShape> for_goal(const Goal& goal);

  // Returns the blocked layout with the fewest lines that takes at most 10 % more bits than the
  // plain one, or four lines if no layout does.
  static BloomLayout blocked_for(double fpr);

  // The fields as bytes. Other formats contain them.
  void encode(Sink out) const;
  static Result<BloomShape> decode(Reader& in);

  bool valid() const;
  std::uint64_t bytes() const { return bits / 8; }
  std::uint32_t lines() const { return static_cast<std::uint32_t>(layout); }  // 0 if plain
  double expected_fpr(std::uint64_t keys) const;
  bool operator==(const BloomShape&) const = default;
};

class SEMEL_API BloomFilter {
 public:
  // REQUIRES: shape.valid().
  explicit BloomFilter(const BloomShape& shape);
  BloomFilter(const BloomFilter& other);
  BloomFilter(BloomFilter&& other) noexcept;
  BloomFilter& operator=(const BloomFilter& other);
  BloomFilter& operator=(BloomFilter&& other) noexcept;
  ~BloomFilter();

  // Keys come hashed (hash/hasher.h), so that one digest serves a whole series or tree of filters.
  // REQUIRES: the digest was made by shape().hash.

  // Returns true if the key was certainly absent. Returns false if it was present or seemed to be.
  bool add(Digest key);
  bool contains(Digest key) const;

  // Prefetches the line that contains(key) will need first.
  [[gnu::always_inline]] void prefetch(Digest key) const {
    const std::uint64_t at =
        plain() ? scaled(key.lo, shape_.bits) / 64 : scaled(key.lo, sections_.blocks) * kBlockWords;
    __builtin_prefetch(words_.data() + at, 0, 2);
  }

  // Adds or looks up many keys, in order. This is faster from about a dozen keys on, and several
  // times as fast on a filter larger than the cache. REQUIRES: the spans are of equal size.
  void add(std::span<const Digest> keys, std::span<bool> added);
  void contains(std::span<const Digest> keys, std::span<bool> found) const;

  // Adds every key of `other`. Returns true if that changed anything. Errc::mismatch, and no
  // change, if the shapes differ.
  Result<bool> merge(const BloomFilter& other);

  // Merges a part of another filter: its words from number `first` on. Returns true if that changed
  // anything. REQUIRES: first + words.size() is at most words().size().
  bool unite(std::uint64_t first, std::span<const std::uint64_t> words);

  // Access to the bits. bits_of() returns the bits that add(key) sets; a bit may occur twice where
  // probes meet. words() returns all bits: bit i is bit i % 64 of word i / 64.
  using KeyBits =
      std::array<std::uint64_t, std::size_t{limits::kBlockedLines} * limits::kBlockedProbes>;
  std::span<const std::uint64_t> bits_of(Digest key, KeyBits& room) const;
  std::span<const std::uint64_t> words() const { return words_; }
  // Sets a bit. Returns true if it was clear. REQUIRES: bit < shape().bits.
  bool set(std::uint64_t bit);

  const BloomShape& shape() const { return shape_; }
  double fill() const;         // the share of bits that are set, in [0, 1]
  double cardinality() const;  // an estimate of the number of distinct keys added
  double live_fpr() const;     // the current chance that a key never added is found
  double sampled_fpr() const;  // an estimate of it from 64 KiB, in microseconds
  std::uint64_t bytes() const { return shape_.bytes(); }

  // Appends the encoding to `out`. Equal filters give equal bytes.
  void encode(Sink out) const;

  static Result<BloomFilter> decode(ByteView in);

  bool operator==(const BloomFilter& other) const;

 private:
  static constexpr std::uint64_t kBlockWords = 8;

  __extension__ using Wide = unsigned __int128;
  // Returns a number below `range`, in proportion to the point.
  static std::uint64_t scaled(std::uint64_t point, std::uint64_t range) {
    return static_cast<std::uint64_t>(Wide{point} * range >> 64);
  }

  bool plain() const { return shape_.layout == BloomLayout::plain; }

  BloomShape shape_;                    // valid(), and never changes
  filter_internal::Sections sections_;  // derived from shape_, for the blocked layout
  filter_internal::Words words_;        // shape_.bits bits
};

}  // namespace semel
