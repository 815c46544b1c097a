// Digits: makes deltas such that the value of a counter shows how often each operation counted.
//
// The k-th operation of a counter adds or subtracts 1000^k, so the digits of the value to the base
// 1000 are the counts. A lost operation and a doubled one never cancel out. Six operations fit a
// counter. A counter may also have two large operations, 9 * 10^18 and 4 * 10^18: each of them
// alone fits 64 bits, both together do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/random.h"

namespace semel::simulation {

class Digits {
 public:
  struct Place {
    std::string counter;
    std::int64_t delta;
  };
  // Returns the counter and the delta of one more operation. Two `large` ones do not fit 64 bits
  // together.
  Place next(std::size_t operation, bool negative, bool large);
  // Returns a counter that has operations, or will have them. Resets use it.
  std::string any(Random& random) const;

  // Returns how often each operation counted, derived from the value of its counter; nullopt if no
  // counts give that value.
  std::optional<std::map<std::size_t, int>> counts(const std::string& counter, int128 value) const;
  std::vector<std::string> counters() const;

 private:
  static constexpr std::size_t kPlaces = 6;
  static constexpr int kBase = 1000;

  struct Counter {
    std::vector<std::pair<std::size_t, int>> operations;  // with the sign of each
    std::vector<std::size_t> large;
  };
  static std::string name(std::size_t counter) { return "counter-" + std::to_string(counter); }

  std::vector<Counter> counters_;
};

}  // namespace semel::simulation
