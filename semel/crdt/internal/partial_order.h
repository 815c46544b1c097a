// Makes a partial order from its two halves.
#pragma once

#include <compare>

namespace semel::crdt_internal {

// Returns the answer of compare(), given whether a <= b and whether b <= a.
constexpr std::partial_ordering order_of(bool at_most, bool at_least) {
  if (at_most && at_least) return std::partial_ordering::equivalent;
  if (at_most) return std::partial_ordering::less;
  if (at_least) return std::partial_ordering::greater;
  return std::partial_ordering::unordered;
}

}  // namespace semel::crdt_internal
