// KeyTally: how many keys differ, and how, however often each was met.
//
// Contract  A key counts once. It is one of the end that had it, or of both if both had it, with
//           different values, whichever pass saw which side.
// Memory    16 bytes for each time that a key was noted.
// Error     Keys are told apart by 64 bits of a hash: a million keys have a chance of 3e-8 that two
//           of them count as one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "semel/hash/digest.h"
#include "semel/sync/internal/frame.h"

namespace semel {

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
  // Notes a record of one side by what it met on the other. Where it met itself, nothing differed.
  void note_met(std::uint64_t hash, Side side, frame::Met met) {
    if (met != frame::Met::same) note(hash, met == frame::Met::other ? both : side);
  }
  // Counts what was noted, and forgets it.
  Counts take();

 private:
  struct Noted {
    std::uint64_t hash;
    std::uint8_t sides;
  };
  std::vector<Noted> noted_;
};

}  // namespace semel
