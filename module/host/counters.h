// Counts since the module was loaded, for INFO semel. A module registers counts of its own in its
// ModuleSpec.
// Threads  The thread that runs commands.
#pragma once

#include <cstdint>

namespace semel::host {

// A number in the section `statistics` of INFO semel.
struct Counter {
  const char* name;
  const std::uint64_t* value;  // lives as long as the process
};

struct HostCounters {
  std::uint64_t refused_limit = 0;    // semel.max-value-bytes would have been exceeded
  std::uint64_t refused_oom = 0;      // answers OOM of the module, not those of the server
  std::uint64_t jobs_started = 0;     // commands that ran in steps
  std::uint64_t effects_applied = 0;  // from a primary, or from an AOF file
  std::uint64_t effects_failed = 0;   // that changed something else here than at their origin
};
inline HostCounters counters;

}  // namespace semel::host
