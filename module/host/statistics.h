// What happened since the module was loaded: INFO semel.
#pragma once

#include <cstdint>

namespace semel::host {

struct Statistics {
  std::uint64_t effects_applied = 0;  // of a primary, or of an AOF file
  std::uint64_t effects_failed = 0;   // that did not do here what they did there
  std::uint64_t tally_applied = 0;
  std::uint64_t tally_duplicates = 0;
  std::uint64_t tally_refused = 0;  // stale, full, conflict, overflow
  std::uint64_t sift_fresh = 0;
  std::uint64_t sift_duplicates = 0;
  std::uint64_t sift_refused = 0;
  std::uint64_t filter_added = 0;
  std::uint64_t filter_known = 0;
  std::uint64_t filter_removed = 0;
  std::uint64_t jobs = 0;  // commands that took steps
};

// Of the one thread that runs commands.
inline Statistics statistics;

}  // namespace semel::host
