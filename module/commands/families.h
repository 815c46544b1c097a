// The commands of each family, one row each.
#pragma once

#include <span>

#include "module/host/command.h"

namespace semel::module {

std::span<const host::Command> tally_commands();
std::span<const host::Command> sift_commands();
std::span<const host::Command> bloom_commands();
std::span<const host::Command> cuckoo_commands();

}  // namespace semel::module
