// A world of sites with wrong identities: sites restored from an older backup, two sites with one
// id, or sites of separate tables that list each other as members.
//
// A dot may mean different operations at different sites here, so the checker does not use dots: it
// reads from the values how often each operation counts (tally_digits.h). Operations come and are
// retried, sites exchange entries, are killed and restored. At the end all that are up hear each
// other. Then
//
//   * nobody counts an operation twice, at any time;
//   * unless somebody was told that something is wrong (a site is superseded, members hold two logs
//     of one site, a table refuses another), all agree, and what was acknowledged counts;
//   * the remedy works: such sites are retired, a site that goes on takes over what they took, and
//     again all agree, and what was acknowledged counts. An operation may be missing if it was only
//     on a disk that was replaced by a backup.
#pragma once

#include <ostream>

#include "tests/simulation/tally_weather.h"
#include "tests/simulation/tally_world.h"

namespace semel::simulation {

TallyOutcome simulate_twins(const TallyPlan& plan, std::ostream* trace);

}  // namespace semel::simulation
