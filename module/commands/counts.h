// Counts of the commands, for INFO semel.
// Threads  The thread that runs commands.
#pragma once

#include <cstdint>
#include <vector>

#include "module/host/counters.h"

namespace semel::module {

struct Counts {
  std::uint64_t tally_applied = 0;
  std::uint64_t tally_duplicates = 0;
  std::uint64_t tally_refused = 0;  // stale, full, conflict, overflow
  std::uint64_t sift_fresh = 0;
  std::uint64_t sift_duplicates = 0;
  std::uint64_t sift_refused = 0;
  // The answers of all families that refused something, by their cause; see HostCounters too.
  std::uint64_t refused_full = 0;   // a key had no room left
  std::uint64_t refused_stale = 0;  // an id was too old to judge
  std::uint64_t filter_added = 0;
  std::uint64_t filter_known = 0;
  std::uint64_t filter_removed = 0;
};
inline Counts counts;

inline std::vector<host::Counter> all_counters() {
  return {
      {"tally_applied", &counts.tally_applied},     {"tally_duplicates", &counts.tally_duplicates},
      {"tally_refused", &counts.tally_refused},     {"sift_fresh", &counts.sift_fresh},
      {"sift_duplicates", &counts.sift_duplicates}, {"sift_refused", &counts.sift_refused},
      {"refused_full", &counts.refused_full},       {"refused_stale", &counts.refused_stale},
      {"filter_added", &counts.filter_added},       {"filter_known", &counts.filter_known},
      {"filter_removed", &counts.filter_removed}};
}

}  // namespace semel::module
