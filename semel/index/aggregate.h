// Aggregate: what a node of Nye's trie knows of the records below it.
#pragma once

#include <cstdint>

#include "semel/hash/digest.h"

namespace semel {

struct Aggregate {
  std::uint64_t count = 0;
  std::uint64_t volume = 0;  // bytes of keys and values
  Digest digest = {0, 0};    // XOR over the records

  Aggregate& operator+=(const Aggregate& other) {
    count += other.count;
    volume += other.volume;
    digest ^= other.digest;
    return *this;
  }
  // REQUIRES: `other` is part of this.
  Aggregate& operator-=(const Aggregate& other) {
    count -= other.count;
    volume -= other.volume;
    digest ^= other.digest;
    return *this;
  }
  bool operator==(const Aggregate&) const = default;
};

}  // namespace semel
