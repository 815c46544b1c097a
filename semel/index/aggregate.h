// Aggregate: what a node of Nye's trie knows about the records below it.
#pragma once

#include <cstdint>
#include <string_view>

#include "semel/core/int128.h"
#include "semel/hash/digest.h"

namespace semel {

// Returns a number for a record, such as the value of a counter. The owner of the records chooses
// the function, and the number must depend on the record alone. nullptr: records have no measure.
using RecordMeasure = int128 (*)(std::string_view key, std::string_view value);

struct Aggregate {
  std::uint64_t count = 0;
  std::uint64_t volume = 0;  // total bytes of keys and values
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
