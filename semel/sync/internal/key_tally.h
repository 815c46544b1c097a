// KeyTally: counts the keys that differ, each once, however often it is met.
//
// Contract  A key counts for the end that had it. It counts as changed if both ends had it with
//           different values, even if two passes saw one side each.
//           Keys are told apart by 64 bits of a hash: two of a million keys count as one with
//           probability 3e-8.
// Memory    16 bytes each time a key is noted.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "semel/hash/digest.h"
#include "semel/sync/internal/frame.h"

namespace semel::sync_internal {

class KeyTally {
 public:
  enum Side : std::uint8_t { here = 1, there = 2, both = 3 };
  struct Counts {
    std::uint64_t only_here = 0;
    std::uint64_t only_there = 0;
    std::uint64_t changed = 0;
  };

  static std::uint64_t hash(std::string_view key) { return digest(key, 0).lo; }

  void note(std::uint64_t hash, Side side) { noted_.push_back({hash, side}); }
  // Notes a record of one side, and what it met on the other side. An equal record is no
  // difference.
  void note_met(std::uint64_t hash, Side side, frame::Met met) {
    if (met != frame::Met::same) note(hash, met == frame::Met::other ? both : side);
  }
  // Returns the counts of the noted keys, and forgets the keys.
  Counts take();

 private:
  struct Noted {
    std::uint64_t hash;
    std::uint8_t sides;
  };
  std::vector<Noted> noted_;
};

}  // namespace semel::sync_internal
