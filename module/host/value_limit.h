// The most memory that one value may take, where a client asks for it.
//
// Contract  semel.max-value-bytes says what it is. By default it is half of what there is: of
//           maxmemory where the server has one, of the memory of the machine or its container
//           otherwise; it follows CONFIG SET maxmemory.
// Judged    before anything is allocated: what a client makes, lets grow or restores. Not what comes
//           from a file or a primary: that has happened already.
// Threads   The one that runs commands.
#pragma once

#include <cstdint>
#include <optional>

#include "module/host/api.h"

namespace semel::host {

inline constexpr std::uint64_t kLeastValueLimit = std::uint64_t{1} << 20;  // by default

// In bytes; 0: no limit.
std::uint64_t value_limit();

// What the configuration says; nullopt: the default.
void set_value_limit(std::optional<std::uint64_t> bytes);

// Called when the module is loaded. False if the server does not tell its events.
bool watch_memory(api::Ctx* ctx);

}  // namespace semel::host
