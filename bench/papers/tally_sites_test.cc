// Figure 14 in small: tables count each operation once where plain shards do not.
#include <gtest/gtest.h>

#include "bench/papers/tally_cluster.h"

namespace semel::bench {
namespace {

ClusterOutcome small_run(bool kill, std::uint64_t seed) {
  return run_cluster({.operations = 10'000, .counters = 100, .kill = kill, .seed = seed},
                     [](TimeMs, const ClusterSums&) {});
}

void expect_exact(const ClusterOutcome& outcome) {
  EXPECT_EQ(outcome.wrong_values, 0U);
  EXPECT_EQ(outcome.sums.table, static_cast<std::int64_t>(outcome.sums.expected));
}

TEST(TallySites, TablesCountOnceWhereShardsCountRetries) {
  const ClusterOutcome outcome = small_run(false, 1);
  expect_exact(outcome);
  const auto retries = static_cast<std::int64_t>(outcome.retries);
  const auto expected = static_cast<std::int64_t>(outcome.sums.expected);
  EXPECT_GT(retries, 0);
  EXPECT_EQ(outcome.sums.shards, expected + retries);
  EXPECT_EQ(outcome.sums.shards_own, expected + static_cast<std::int64_t>(outcome.elsewhere));
  EXPECT_EQ(outcome.sums.shards_exchanged,
            expected + static_cast<std::int64_t>(outcome.before_heard));
  EXPECT_GT(outcome.before_heard, 0U);
  EXPECT_LT(outcome.before_heard, outcome.elsewhere);
}

TEST(TallySites, ASiteThatDiesAndIsReplacedTakesNothingWithIt) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    const ClusterOutcome outcome = small_run(true, seed);
    expect_exact(outcome);
    EXPECT_GT(outcome.taken_again, 0U);
    EXPECT_LT(outcome.taken_again, outcome.repeated);
  }
}

TEST(TallySites, ASeedNamesARun) {
  const ClusterOutcome once = small_run(true, 7), again = small_run(true, 7);
  EXPECT_EQ(once.before_heard, again.before_heard);
  EXPECT_EQ(once.taken_again, again.taken_again);
  EXPECT_EQ(once.sums.shards_exchanged, again.sums.shards_exchanged);
}

}  // namespace
}  // namespace semel::bench
