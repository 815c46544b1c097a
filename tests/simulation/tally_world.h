// A simulation of a table at several sites, and of clients that retry. One thread, simulated time: a
// run is a function of its plan.
//
//   client    sends an operation to a site, and again to that or another one until it is answered;
//             at times also after that
//   site      a TallyStore on a store that loses what was not synced (tally_site.h), with a clock that
//             is wrong; killed and started at any time
//   network   loses, doubles, delays and reorders requests, answers and entries; cuts sites off, also
//             one way. Some runs sync (sync_network.h) instead of sending entries
//   members   in some runs a site is admitted, or one is retired that is gone, or only thought so
//
// What must hold at every moment, at every site that is not retired:
//
//   * every value is that of the operations which the site holds, each once (tally_truth.h), and
//     between what it acknowledged and what was attempted
//   * a site that answers 'duplicate' holds the operation, one that answers 'applied' did not
//   * what a site had synced, or said to others, it holds after any crash
//
// And at the end, when all faults have stopped: all sites hold the same, have folded it, and kept no
// log; what was acknowledged counts once, unless the one site that took it lost it in a crash before
// its sync, or was retired; what enough sites held counts in any case.
//
// Beside it run plain shards: each site recognises what it took itself, and the sites are summed.
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
  std::uint64_t repeated = 0;                         // taken by a second site before it knew
  std::uint64_t plain_taken = 0, plain_distinct = 0;  // by plain shards
  std::uint64_t batches = 0;                          // with an operation that is in them twice
  std::uint64_t standbys = 0;                         // that take over
  std::uint64_t late = 0;            // requests that came after the window, and were not heard
  std::uint64_t full = 0;            // operations refused for want of room
  std::uint64_t stale = 0;           // and because they are too old to judge
  std::uint64_t overflows = 0;       // and because they would leave 64 bits
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

// `trace`, if any, is told what happens.
TallyOutcome simulate(const TallyPlan& plan, std::ostream* trace = nullptr);

}  // namespace semel::simulation
