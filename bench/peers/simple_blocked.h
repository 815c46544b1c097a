// SimpleBlocked: the reference for 'one cache miss', a blocked Bloom filter in plain C++.
//
// A block is 256 bits, eight words of 32; a key sets one bit in each word, chosen by the upper five
// bits of a product. No intrinsics, no dispatch, and all of it inlined where it is used. Its hash
// is half of our digest.
//
// With kAnswers, add() says whether the key was new, as ours does. That costs a fifth to a third of
// its speed. Without it, add() answers nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "bench/keys.h"
#include "semel/bits/internal/line_array.h"
#include "semel/core/internal/arithmetic.h"

namespace semel::bench {

template <bool kAnswers = false>
class SimpleBlocked {
 public:
  explicit SimpleBlocked(std::uint64_t bits)
      : blocks_(divide_up(bits, kWords * 32)), words_(blocks_ * kWords) {}

  std::conditional_t<kAnswers, bool, void> add(const Key& key) {
    if constexpr (kAnswers) {
      return set(hash(key));
    } else {
      set(hash(key));
    }
  }
  void add(std::span<const Key> keys, std::span<bool> added) {
    ahead(keys, [&](std::size_t i, std::uint64_t hash) {
      const bool is_new = set(hash);
      if constexpr (kAnswers) added[i] = is_new;
    });
  }

  bool contains(const Key& key) const { return test(hash(key)); }
  void contains(std::span<const Key> keys, std::span<bool> found) const {
    ahead(keys, [&](std::size_t i, std::uint64_t hash) { found[i] = test(hash); });
  }
  bool contains(const Digest& digest) const { return test(digest.lo); }

  std::uint64_t bits() const { return words_.size() * 32; }
  void clear() { std::fill(words_.begin(), words_.end(), 0); }

 private:
  static constexpr std::size_t kWords = 8;
  static constexpr std::size_t kDistance = 32;
  static constexpr std::array<std::uint32_t, kWords> kFactors = [] {
    std::array<std::uint32_t, kWords> factors{};
    for (std::size_t i = 0; i < kWords; ++i) {
      factors[i] = static_cast<std::uint32_t>(mix(i + 1)) | 1;
    }
    return factors;
  }();

  static std::uint64_t hash(const Key& key) { return digest_of(key).lo; }
  static std::uint32_t bit_of(std::uint64_t hash, std::size_t i) {
    return 1u << (static_cast<std::uint32_t>(hash) * kFactors[i] >> 27);
  }
  std::size_t block_of(std::uint64_t hash) const { return scale(hash, blocks_) * kWords; }

  // Returns true if the key was new; without kAnswers, always.
  bool set(std::uint64_t hash) {
    std::uint32_t* block = words_.data() + block_of(hash);
    std::uint32_t clear = kAnswers ? 0 : 1;
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint32_t bit = bit_of(hash, i);
      if constexpr (kAnswers) clear |= ~block[i] & bit;
      block[i] |= bit;
    }
    return clear != 0;
  }
  bool test(std::uint64_t hash) const {
    const std::uint32_t* block = words_.data() + block_of(hash);
    std::uint32_t clear = 0;
    for (std::size_t i = 0; i < kWords; ++i) clear |= ~block[i] & bit_of(hash, i);
    return clear == 0;
  }

  // Hashes each key kDistance keys before its turn, and asks for its block.
  template <class Visit>
  void ahead(std::span<const Key> keys, Visit visit) const {
    std::array<std::uint64_t, kDistance> hashes;
    for (std::size_t i = 0; i < keys.size() + kDistance; ++i) {
      std::uint64_t& slot = hashes[i % kDistance];
      if (i >= kDistance) visit(i - kDistance, slot);
      if (i >= keys.size()) continue;
      slot = hash(keys[i]);
      __builtin_prefetch(words_.data() + block_of(slot));
    }
  }

  std::uint64_t blocks_;
  LineArray<std::uint32_t> words_;
};

}  // namespace semel::bench
