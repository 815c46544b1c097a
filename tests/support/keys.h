// Numbered keys: the same digest for the same number, in every test.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "semel/hash/digest.h"

namespace semel {

inline constexpr std::uint64_t kTestSeed = 7;
inline constexpr HashId kTestHash = {HashKind::fast, kTestSeed};

inline Digest key(std::uint64_t number, std::uint64_t seed = kTestSeed) {
  return digest("key " + std::to_string(number), seed);
}

inline std::vector<Digest> keys(std::uint64_t first, std::uint64_t last,
                                std::uint64_t seed = kTestSeed) {
  std::vector<Digest> all;
  all.reserve(last - first);
  for (std::uint64_t number = first; number < last; ++number) all.push_back(key(number, seed));
  return all;
}

// Answers: like a vector<bool>, but not packed, so that it can give a span.
class Answers {
 public:
  explicit Answers(std::size_t size) : bytes_(size) { static_assert(sizeof(bool) == 1); }
  std::span<bool> span() { return {reinterpret_cast<bool*>(bytes_.data()), bytes_.size()}; }
  bool operator[](std::size_t i) const { return bytes_[i] != 0; }
  std::uint64_t count() const {
    std::uint64_t sum = 0;
    for (const std::uint8_t byte : bytes_) sum += byte;
    return sum;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Returns how many of `keys` the structure claims to hold, by its batch form.
template <class Structure>
std::uint64_t count_found(const Structure& structure, std::span<const Digest> keys) {
  Answers found(keys.size());
  structure.contains(keys, found.span());
  return found.count();
}

}  // namespace semel
