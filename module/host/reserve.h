// A reserve of memory, so that a command which has begun to change something can end it.
//
// Contract  What a command asks for in blocks larger than limits::kSmallBlock (tables, links of
//           filters) may fail: it is asked for before anything is changed. Small blocks are asked for
//           everywhere, and there the reserve is spent, once, before one fails
//           (module/host/allocator.cc). A command that may take memory does not begin without it.
// Threads   The one that runs commands.
#pragma once

#include <cstddef>

#include "semel/core/limits.h"

namespace semel::host {

inline constexpr std::size_t kReserve = std::size_t{2} << 20;

// Makes it, if it is not there. Returns whether it is.
bool keep_reserve();
// Gives it back to the server. Returns whether there was one.
bool spend_reserve();

}  // namespace semel::host
