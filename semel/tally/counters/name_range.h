// NameRange: a range of the counters of a table, in the order of the bytes of their names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "semel/core/int128.h"

namespace semel::tally {

// The names from `first` to before `end`; up to the last name if there is no `end`.
struct NameRange {
  std::string_view first = {};
  std::optional<std::string_view> end = {};
};

struct RangeSum {
  std::uint64_t count = 0;
  int128 sum = 0;
  bool operator==(const RangeSum&) const = default;
};

// Visits the counters of a range in order, until it returns false.
using VisitCounter = std::function<bool(std::string_view counter, int128 value)>;

}  // namespace semel::tally
