// What windows without an end have in common: endless_filter.h and endless_set.h.
#pragma once

#include <limits>

#include "semel/window/window.h"

namespace semel {

inline constexpr TimeMs kFirstTime = std::numeric_limits<TimeMs>::min();

// Longer than any two times can be apart that a caller may mean: nothing is ever too old.
inline constexpr Promise kEndless = {.window_ms = std::numeric_limits<TimeMs>::max(),
                                     .kept_from_ms = kFirstTime,
                                     .forgotten_before_ms = kFirstTime};

}  // namespace semel
