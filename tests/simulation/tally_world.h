// A simulation of a table at several sites, and of clients that retry. It runs in one thread and in
// simulated time, so a run depends only on its plan.
//
//   client    sends an operation to a site, and again to that or another one until it is answered;
//             at times also after that
//   site      a TallyStore on a store that loses unsynced writes (tally_site.h), with a clock that
//             is wrong; killed and started at any time
//   network   loses, doubles, delays and reorders requests, answers and entries; cuts sites off,
//             also one way. Some runs sync (sync_network.h) instead of sending entries
//   members   in some runs a site is admitted, or one is retired that is gone, or only thought so
//
// At every moment this must hold at every site that is not retired:
//
//   * every value counts each operation that the site holds once (tally_truth.h), and lies between
//     the acknowledged and the attempted operations
//   * a site that answers 'duplicate' holds the operation, one that answers 'applied' did not
//   * a site still holds all that it had synced, or told others, after any crash
//
// At the end, when all faults have stopped, all sites hold the same operations, have folded them,
// and keep no log. An acknowledged operation counts once, unless the only site that took it lost it
// in a crash before its sync, or was retired. An operation that enough sites held counts in any
// case.
//
// Plain shards run beside it: each site recognises the operations that it took itself, and the
// values of the sites are summed.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>

#include "tests/simulation/tally_faults.h"
#include "tests/simulation/tally_site.h"
#include "tests/simulation/tally_weather.h"

namespace semel::simulation {

struct TallyCounts {
  std::uint64_t operations = 0;  // that clients wanted
  std::uint64_t retries = 0;     // requests beyond the first
  std::uint64_t messages = 0;    // between sites
  std::uint64_t syncs = 0;
  std::uint64_t crashes = 0;
  std::uint64_t admitted = 0, retired = 0;
  std::uint64_t repeated = 0;                         // taken by a second site, new to it
  std::uint64_t plain_taken = 0, plain_distinct = 0;  // by plain shards
  std::uint64_t batches = 0;                          // with an operation that appears twice
  std::uint64_t standbys = 0;                         // that take over
  std::uint64_t late = 0;            // requests that came after the window and were not sent
  std::uint64_t full = 0;            // operations refused because there was no room
  std::uint64_t stale = 0;           // operations refused because they are too old to judge
  std::uint64_t overflows = 0;       // operations refused because they would leave 64 bits
  std::uint64_t io_errors = 0;       // of a disk
  std::uint64_t retired_copies = 0;  // of members that were retired

  std::uint64_t restored = 0, twins = 0, strangers = 0;  // of tally_twins.h
  std::uint64_t found_out = 0;                           // runs of it in which somebody was told

  void add(const TallyCounts& other);
};

struct TallyOutcome {
  std::optional<Violation> violation;
  TallyCounts counts;
};

// `trace`, if any, receives a report of all that happens.
TallyOutcome simulate(const TallyPlan& plan, std::ostream* trace = nullptr);

}  // namespace semel::simulation
