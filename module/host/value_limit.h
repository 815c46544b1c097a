// The most memory that one value may take when a client asks for it.
//
// Contract  semel.max-value-bytes sets it. The default is half of maxmemory, or half of the memory
//           of the machine or its container if that is less or the server has no maxmemory. It
//           follows CONFIG SET maxmemory.
//           The limit is checked before anything is allocated when a client makes, grows or
//           restores a value. It is not checked for a value from a file or a primary.
// Threads   The thread that runs commands.
#pragma once

#include <cstdint>
#include <optional>

#include "module/host/handles.h"

namespace semel::host {

inline constexpr std::uint64_t kLeastValueLimit = std::uint64_t{1} << 20;  // of the default

// Returns the limit in bytes, or 0 if there is none.
std::uint64_t value_limit();

// Sets the limit of the configuration; nullopt: the default.
void set_value_limit(std::optional<std::uint64_t> bytes);

// Returns true if the server may evict any key to stay below its maxmemory, but only once each time
// its settings begin to allow that.
bool eviction_is_news();

// Follows the settings of the server. Called when the module is loaded. Returns false if the server
// does not report its events.
bool watch_memory(api::Ctx* ctx);

}  // namespace semel::host
