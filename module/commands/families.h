// The commands of each family, one row each.
#pragma once

#include <span>
#include <vector>

#include "module/host/command.h"

namespace semel::module {

std::span<const host::Command> tally_commands();
std::span<const host::Command> sift_commands();
std::span<const host::Command> bloom_commands();
std::span<const host::Command> cuckoo_commands();

// Returns all families, as the settings rename them.
std::vector<host::Family> families();

}  // namespace semel::module
