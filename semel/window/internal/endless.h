// Constants of the windows that have no end: endless_filter.h and endless_set.h.
#pragma once

#include <limits>

#include "semel/window/window.h"

namespace semel::window_internal {

inline constexpr TimeMs kFirstTime = std::numeric_limits<TimeMs>::min();

// Nothing is ever too old.
inline constexpr WindowPromise kEndless = {
    .window_ms = kForever, .kept_from_ms = kFirstTime, .forgotten_before_ms = kFirstTime};

}  // namespace semel::window_internal
