// Keys: 16 random-looking bytes each, named by a number. All contenders get the same keys.
#pragma once

#include <cstdint>
#include <string_view>

#include "semel/core/internal/arithmetic.h"
#include "semel/hash/digest.h"

namespace semel::bench {

struct Key {
  std::uint64_t first;
  std::uint64_t second;

  std::string_view view() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
  bool operator==(const Key&) const = default;
};

// Different numbers give different keys, because mix() is a bijection.
inline Key key_of(std::uint64_t number) { return {mix(2 * number + 1), mix(2 * number + 2)}; }

inline Digest digest_of(const Key& key) { return digest(key.view(), 0); }

}  // namespace semel::bench
