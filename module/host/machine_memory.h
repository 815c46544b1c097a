// The memory of the machine, or of the container that the process runs in.
#pragma once

#include <cstdint>
#include <string>

namespace semel::host {

// Returns the bytes of memory that the process may use: those of the machine, or fewer if a control
// group (version 1 or 2) limits the process or a group above it. Reads the files of the system
// below `root`, which is another folder in tests.
std::uint64_t machine_memory(const std::string& root = "");

}  // namespace semel::host
