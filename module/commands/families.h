// The commands of each family, one row each.
#pragma once

#include <span>
#include <vector>

#include "module/host/command.h"

namespace semel::module {

std::span<const host::CommandRow> tally_commands();
std::span<const host::CommandRow> sift_commands();
std::span<const host::CommandRow> bloom_commands();
std::span<const host::CommandRow> cuckoo_commands();

// Returns all families, as the settings rename them.
std::vector<host::Family> families();

}  // namespace semel::module
