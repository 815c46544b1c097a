// A world of sites that are not what they seem: restored from an older backup of themselves, two with
// one id, or made apart from the table whose sites they call each other.
//
// What a dot means depends on whom one asks here, so that the checker knows no dots: it reads from the
// values how often each operation counts (tally_digits.h). Operations come and are retried, sites
// exchange entries, are killed and restored. At the end all that are up hear each other. Then
//
//   * nobody counts an operation twice, at any time;
//   * unless somebody was told that something is wrong (a site is superseded, members hold two logs of
//     one site, a table refuses another), all agree, and what was acknowledged counts;
//   * what was told is done: such sites are retired, a site that goes on takes over what they took, and
//     again all agree, and what was acknowledged counts. An operation may be missing if it was on a
//     disk alone that was replaced by a backup.
#pragma once

#include <ostream>

#include "tests/simulation/tally_weather.h"
#include "tests/simulation/tally_world.h"

namespace semel::simulation {

TallyOutcome simulate_twins(const TallyPlan& plan, std::ostream* trace);

}  // namespace semel::simulation
