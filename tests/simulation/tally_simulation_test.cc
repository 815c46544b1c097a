// Some seeds of each kind; many more with `make simulate`. A seed that fails names the command that
// tells what happens in it.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "tests/simulation/tally_world.h"

namespace semel::simulation {
namespace {

TEST(TallySimulation, CountsEveryOperationOnceWhateverHappens) {
  constexpr std::uint64_t kSeeds = 100;
  for (const int sites : {2, 3, 5}) {
    TallyCounts counts;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const TallyOutcome outcome = simulate({seed, sites});
      counts.add(outcome.counts);
      if (!outcome.violation) continue;
      ADD_FAILURE() << outcome.violation->text << "\n  tally_simulation --first " << seed
                    << " --seeds 1 --sites " << sites << " --trace";
    }
    // What can go wrong, did come.
    EXPECT_GT(counts.repeated, 0U);
    EXPECT_GT(counts.crashes, 0U);
    EXPECT_GT(counts.syncs, 0U);
    EXPECT_GT(counts.admitted, 0U);
    EXPECT_GT(counts.retired, 0U);
    EXPECT_GT(counts.plain_taken, counts.plain_distinct);
  }
}

TEST(TallySimulation, ASeedNamesARun) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::string told[2];
    for (std::string& each : told) {
      std::ostringstream trace;
      EXPECT_FALSE(simulate({seed, 3}, &trace).violation);
      each = trace.str();
    }
    EXPECT_FALSE(told[0].empty());
    EXPECT_EQ(told[0], told[1]);
  }
}

// The first of 1000 seeds in which the checker finds the fault.
std::optional<std::uint64_t> found(TallyFault fault, std::optional<Violation::Kind> kind) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const TallyOutcome outcome = simulate({seed, 3, fault});
    if (outcome.violation && (!kind || outcome.violation->kind == *kind)) {
      std::cout << "seed " << seed << ": " << outcome.violation->text << "\n";
      return seed;
    }
  }
  return std::nullopt;
}

TEST(TallySimulation, FindsAnIdThatIsDurableBeforeItsEffect) {
  EXPECT_TRUE(found(TallyFault::id_before_effect, Violation::Kind::lost));
}
TEST(TallySimulation, FindsAFoldWithoutTheSecondRule) {
  EXPECT_TRUE(found(TallyFault::no_second_rule, Violation::Kind::doubled));
}
TEST(TallySimulation, FindsAWindowThatIsTooShort) {
  EXPECT_TRUE(found(TallyFault::short_window, Violation::Kind::doubled));
}

}  // namespace
}  // namespace semel::simulation
