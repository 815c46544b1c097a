// Runs some seeds of each kind; `make simulate` runs many more. A failing seed prints the command
// that traces it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>

#include "tests/simulation/tally_digits.h"
#include "tests/simulation/tally_world.h"

namespace semel::simulation {
namespace {

TEST(TallySimulation, CountsEveryOperationOnceWhateverHappens) {
  constexpr std::uint64_t kSeeds = 100;
  TallyCounts all;
  for (const int sites : {2, 3, 5}) {
    TallyCounts counts;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const TallyOutcome outcome = simulate({seed, sites});
      counts.add(outcome.counts);
      if (!outcome.violation) continue;
      ADD_FAILURE() << outcome.violation->text << "\n  tally_simulation --first " << seed
                    << " --seeds 1 --sites " << sites << " --trace";
    }
    // Every fault has happened at least once.
    EXPECT_GT(counts.repeated, 0U);
    EXPECT_GT(counts.crashes, 0U);
    EXPECT_GT(counts.syncs, 0U);
    EXPECT_GT(counts.admitted, 0U);
    EXPECT_GT(counts.retired, 0U);
    EXPECT_GT(counts.plain_taken, counts.plain_distinct);
    all.add(counts);
  }
  EXPECT_GT(all.batches, 0U);
  EXPECT_GT(all.standbys, 0U);
  EXPECT_GT(all.late, 0U);
  EXPECT_GT(all.full, 0U);
  EXPECT_GT(all.stale, 0U);
  EXPECT_GT(all.overflows, 0U);
  EXPECT_GT(all.io_errors, 0U);
  EXPECT_GT(all.retired_copies, 0U);
  EXPECT_GT(all.restored, 0U);
  EXPECT_GT(all.twins, 0U);
  EXPECT_GT(all.strangers, 0U);
  EXPECT_GT(all.found_out, 0U);
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

// A lost and a doubled operation do not cancel out, and large operations do not hide others.
TEST(TallyDigits, TellHowOftenEachOperationCounted) {
  Random random(1);
  for (int run = 0; run < 200; ++run) {
    Digits digits;
    std::map<std::string, int128> values;
    std::map<std::size_t, int> counted;
    for (std::size_t i = 0; i < 20; ++i) {
      const Digits::Place place = digits.next(i, random.below(3) == 0, random.below(6) == 0);
      counted[i] = static_cast<int>(random.below(4));
      values[place.counter] += int128{place.delta} * counted[i];
    }
    std::map<std::size_t, int> read;
    for (const std::string& counter : digits.counters()) {
      const auto counts = digits.counts(counter, values[counter]);
      ASSERT_TRUE(counts);
      read.insert(counts->begin(), counts->end());
    }
    EXPECT_EQ(read, counted);
  }
}

struct Planted {
  TallyFault fault;
  std::optional<Violation::Kind> kind = {};  // the kind that shows the fault; nullopt: any
};
void PrintTo(const Planted& planted, std::ostream* out) {
  *out << kFaultNames[static_cast<std::size_t>(planted.fault)];
}

class TallyFaults : public ::testing::TestWithParam<Planted> {};

TEST_P(TallyFaults, AreFound) {
  constexpr std::uint64_t kMostSeeds = 1000;
  for (std::uint64_t seed = 1; seed <= kMostSeeds; ++seed) {
    const TallyOutcome outcome = simulate({seed, 3, GetParam().fault});
    if (!outcome.violation) continue;
    if (GetParam().kind && outcome.violation->kind != *GetParam().kind) continue;
    std::cout << "seed " << seed << ": " << outcome.violation->text << "\n";
    // The fault is found, not its world.
    const Features worlds = features_for(GetParam().fault);
    Features others = Features::all();
    others.set(Feature::twins, worlds.has(Feature::twins));
    EXPECT_FALSE(simulate({seed, 3, TallyFault::none, others, worlds}).violation);
    return;
  }
  ADD_FAILURE() << "the checker is blind to this fault";
}

constexpr auto kLost = Violation::Kind::lost;
constexpr auto kDoubled = Violation::Kind::doubled;

INSTANTIATE_TEST_SUITE_P(Each, TallyFaults,
                         ::testing::Values(Planted{TallyFault::id_before_effect, kLost},
                                           Planted{TallyFault::no_second_rule},
                                           Planted{TallyFault::short_window, kDoubled},
                                           Planted{TallyFault::half_window, kDoubled},
                                           Planted{TallyFault::journal_dropped},
                                           Planted{TallyFault::acknowledged_while_full},
                                           Planted{TallyFault::folded_not_kept, kDoubled},
                                           Planted{TallyFault::retired_copied},
                                           Planted{TallyFault::arrivals_without_time, kDoubled},
                                           Planted{TallyFault::recall_within_cap, kDoubled},
                                           Planted{TallyFault::out_of_order_forgotten, kDoubled},
                                           Planted{TallyFault::doubles_unnoticed}),
                         [](const auto& planted) {
                           std::string name(
                               kFaultNames[static_cast<std::size_t>(planted.param.fault)]);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace semel::simulation
