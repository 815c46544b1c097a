// Aggregate: what a node of Nye's trie knows of the records below it.
#pragma once

#include <cstdint>
#include <string_view>

#include "semel/core/arithmetic.h"
#include "semel/hash/digest.h"

namespace semel {

// A number that the owner of the records gives each of them, such as the value of a counter. It
// depends on the record alone. nullptr: records have none.
using Measure = int128 (*)(std::string_view key, std::string_view value);

struct Aggregate {
  std::uint64_t count = 0;
  std::uint64_t volume = 0;  // bytes of keys and values
  Digest digest = {0, 0};    // XOR over the records
  int128 measure = 0;        // sum over the records, modulo 2^128

  Aggregate& operator+=(const Aggregate& other) {
    count += other.count;
    volume += other.volume;
    digest ^= other.digest;
    measure =
        static_cast<int128>(static_cast<uint128>(measure) + static_cast<uint128>(other.measure));
    return *this;
  }
  // REQUIRES: `other` is part of this.
  Aggregate& operator-=(const Aggregate& other) {
    count -= other.count;
    volume -= other.volume;
    digest ^= other.digest;
    measure =
        static_cast<int128>(static_cast<uint128>(measure) - static_cast<uint128>(other.measure));
    return *this;
  }
  bool operator==(const Aggregate&) const = default;
};

}  // namespace semel
