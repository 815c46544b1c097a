// A reserve of memory, so that a command that has begun to change something can finish.
//
// Contract  A command asks for blocks larger than limits::kSmallBlock (tables, links of filters)
//           before it changes anything, because such a request may fail. Small requests happen
//           everywhere. Before one of them fails, the reserve is given back to the server, once
//           (module/host/allocator.cc). A command that may take memory does not begin without the
//           reserve.
// Threads   keep_reserve(): the thread that runs commands. spend_reserve(): any.
#pragma once

#include <cstddef>

#include "semel/core/limits.h"

namespace semel::host {

inline constexpr std::size_t kReserve = std::size_t{2} << 20;

// Allocates the reserve if it is missing. Returns true if it is there.
bool keep_reserve();
// Gives the reserve back to the server. Returns true if there was one.
bool spend_reserve();

}  // namespace semel::host
