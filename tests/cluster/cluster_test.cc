// Three primaries with a replica each are killed, cut off, stopped and restarted while clients
// count and sift. Nothing that was acknowledged is lost, and nothing is taken twice.
//
// SEMEL_CLUSTER_ROUNDS is the number of primaries that are killed in each test; half as many are
// stopped, and restarted. `make cluster` sets 20. SEMEL_CLUSTER_SEED chooses them.
// SEMEL_CLUSTER_PLANT gives the clients a fault of their own that these tests must find: no-wait or
// new-ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "semel/core/assert.h"
#include "tests/cluster/faults.h"
#include "tests/cluster/sift_producers.h"
#include "tests/cluster/tally_writers.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

using client::Taking;

constexpr std::size_t kPrimaries = 3;

std::uint64_t kills() { return setting("SEMEL_CLUSTER_ROUNDS", 2); }
std::uint64_t half() { return (kills() + 1) / 2; }

Planted planted() {
  const char* const value = std::getenv("SEMEL_CLUSTER_PLANT");
  if (value == nullptr) return Planted::none;
  if (value == std::string_view("no-wait")) return Planted::no_wait;
  SEMEL_ASSERT(value == std::string_view("new-ids"));
  return Planted::new_ids;
}

std::vector<std::string> with_module(std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.end(), {"--loadmodule", SEMEL_MODULE});
  return arguments;
}

// Returns DEBUG DIGEST-VALUE of all keys.
std::string digests_of(const RedisServer& server) {
  client::Connection connection = server.connection();
  const auto readonly = connection.call({"READONLY"});
  const auto keys = connection.call({"KEYS", "*"});
  SEMEL_ASSERT(readonly && keys);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < keys->size(); ++i) names.emplace_back(keys->at(i).text());
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string& name : names) {
    const auto digest = connection.call({"DEBUG", "DIGEST-VALUE", name});
    SEMEL_ASSERT(digest && digest->size() == 1);
    all.append(name).append(" ").append(digest->at(0).text()).append("\n");
  }
  return all;
}

class ClusterFaults {
 public:
  explicit ClusterFaults(std::uint64_t rounds = kills(), std::vector<std::string> arguments = {})
      : rounds_(rounds),
        servers_(kPrimaries, with_module(std::move(arguments))),
        faults_(servers_, seed_) {}

  client::Url url() const { return *client::parse_url(servers_.url()); }
  std::uint64_t seed() const { return seed_; }
  std::uint64_t rounds() const { return rounds_; }

  // Strikes with the faults of the list in turn.
  void strike(std::span<const Fault> list) {
    for (std::uint64_t i = 0; i < rounds_; ++i) faults_.strike(list[i % list.size()]);
  }

  // Replicas have followed every step: effects changed them as they had changed their primary.
  void expect_equal_copies() const {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const RedisServer& node = servers_.node(i);
      EXPECT_EQ(info_of(node, "everything", "semel_effects_failed"), "0") << node.log();
      const std::string of = info_of(node, "replication", "master_port");
      if (of.empty()) continue;
      for (std::size_t p = 0; p < servers_.size(); ++p) {
        const RedisServer& primary = servers_.node(p);
        if (std::to_string(primary.port()) != of) continue;
        // The last commands may be on their way.
        EXPECT_TRUE(eventually([&] { return digests_of(node) == digests_of(primary); }))
            << digests_of(node) << "\nprimary\n"
            << digests_of(primary);
      }
    }
  }

 private:
  const std::uint64_t seed_ = setting("SEMEL_CLUSTER_SEED", 1);
  const std::uint64_t rounds_;
  RedisCluster servers_;
  Faults faults_;
};

unsigned long long shown(std::uint64_t number) { return number; }

void expect_each_counted_once(ClusterFaults& cluster, std::span<const Fault> faults) {
  TallyWriters writers(cluster.url(), cluster.seed(), planted());
  cluster.strike(faults);
  const TallyWriters::Report report = writers.finish();
  const TallyWriters::Sums found = sums_of(cluster.url());
  std::int64_t missing = 0;
  std::int64_t surplus = 0;
  for (const auto& [table, counters] : report.expected) {
    for (const auto& [counter, sum] : counters) {
      const std::int64_t value =
          found.at(table).contains(counter) ? found.at(table).at(counter) : 0;
      (value < sum ? missing : surplus) += value < sum ? sum - value : value - sum;
    }
  }
  std::printf(
      "%llu rounds: %llu operations, %llu in doubt, %llu repeated after they were "
      "acknowledged; %lld lost, %lld counted twice\n",
      shown(cluster.rounds()), shown(report.acknowledged), shown(report.in_doubt),
      shown(report.recognised + report.counted_again), static_cast<long long>(missing),
      static_cast<long long>(surplus));
  for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
  EXPECT_EQ(found, report.expected) << "seed " << cluster.seed();
  EXPECT_EQ(report.counted_again, 0u);
  EXPECT_GT(report.recognised, 0u);
  EXPECT_GT(report.in_doubt, 0u);  // otherwise nothing was tried
  cluster.expect_equal_copies();
}

TEST(TallyCluster, CountsEachOperationOnceThoughPrimariesAreKilled) {
  ClusterFaults cluster;
  expect_each_counted_once(cluster, std::array{Fault::kill, Fault::cut_off});
}

TEST(TallyCluster, CountsEachOperationOnceThoughPrimariesStandStill) {
  ClusterFaults cluster(half());
  expect_each_counted_once(cluster, std::array{Fault::stand_still});
}

TEST(TallyCluster, CountsEachOperationOnceThoughPrimariesAreRestarted) {
  ClusterFaults cluster(half(), {"--appendonly", "yes", "--appendfsync", "always"});
  expect_each_counted_once(cluster, std::array{Fault::restart});
}

class SiftClusterFaults : public ::testing::TestWithParam<Taking> {};

INSTANTIATE_TEST_SUITE_P(Takings, SiftClusterFaults,
                         ::testing::Values(Taking::claimed, Taking::added), [](const auto& tested) {
                           return tested.param == Taking::claimed ? "Claimed" : "Added";
                         });

TEST_P(SiftClusterFaults, LetsNoDuplicateThroughThoughPrimariesAreKilled) {
  ClusterFaults cluster;
  const std::uint32_t replicas = planted() == Planted::no_wait ? 0 : 1;
  SiftProducers producers(cluster.url(), GetParam(), cluster.seed(), replicas);
  cluster.strike(std::array{Fault::kill, Fault::cut_off});
  const SiftProducers::Report report = producers.finish();
  std::printf(
      "%llu rounds: %llu ids, %llu duplicates, %llu answers in doubt; %llu lost, %llu let "
      "through twice, %llu let through afterwards\n",
      shown(cluster.rounds()), shown(report.ids), shown(report.duplicates), shown(report.in_doubt),
      shown(report.lost), shown(report.twice), shown(report.fresh_late));
  for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
  EXPECT_EQ(report.twice, 0u) << "seed " << cluster.seed();
  EXPECT_EQ(report.fresh_late, 0u) << "seed " << cluster.seed();
  if (GetParam() == Taking::claimed) {
    EXPECT_EQ(report.lost, 0u) << "seed " << cluster.seed();
  }
  EXPECT_GT(report.duplicates, 0u);
  EXPECT_GT(report.in_doubt, 0u);  // otherwise nothing was tried
  cluster.expect_equal_copies();
}

}  // namespace
}  // namespace semel
