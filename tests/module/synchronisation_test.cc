// Full synchronisations that serve clients meanwhile: a replica that loads a dataset beside the one
// that it serves (repl-diskless-load swapdb), and a stream beside the dataset (dual channel).
#include <gtest/gtest.h>

#include <string>

#include "tests/module/module_server.h"
#include "tests/module/replicas.h"
#include "tests/module/samples.h"
#include "tests/module/workload.h"

namespace semel {
namespace {

// The delay makes a synchronisation of some hundred keys take seconds.
Words slow_primary(Words more = {}) {
  more.insert(more.end(), {"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
                           "--repl-backlog-size", "16384"});
  return with_module(std::move(more));
}

class Swapping : public ::testing::Test {
 protected:
  static constexpr int kFilters = 300, kMore = 200;

  void SetUp() override {
    Talk talk(primary_);
    for (const Sample& sample : samples()) {
      ASSERT_TRUE(make_sample(talk, sample, sample.name)) << sample.name;
    }
    add(0, kFilters);
    ASSERT_NO_FATAL_FAILURE(follow(replica_, primary_));
    expect_in_step(primary_, replica_);
  }

  // Makes filters with numbers from `first` on.
  void add(int first, int count) {
    Talk talk(primary_);
    for (int i = first; i < first + count; ++i) {
      ASSERT_EQ(talk("BF.ADD filter:" + std::to_string(i) + " item"), "1");
    }
  }

  // Makes the primary change more than its backlog holds while the replica is away, so that the
  // replica needs the whole dataset of the same history. Returns when it loads it.
  void make_it_load() {
    Talk talk(primary_);
    replica_.pause();
    ASSERT_EQ(talk("CLIENT KILL TYPE replica"), "1");
    add(kFilters, kMore);
    ASSERT_EQ(talk("UNLINK filter:0"), "1");
    ASSERT_EQ(talk.call({"SET", "string", std::string(100'000, 'x')}).shown(), "+OK");
    ASSERT_EQ(talk("CONFIG SET rdb-key-save-delay 5000"), "+OK");
    replica_.resume();
    Talk there(replica_);
    ASSERT_TRUE(eventually([&] { return info(there, "persistence", "async_loading") == 1; }));
    ASSERT_TRUE(eventually([&] {
      return info(there, "semel", "semel_unserved_bytes") > 0 ||
             info(there, "persistence", "async_loading") == 0;
    }));
    ASSERT_GT(info(there, "semel", "semel_unserved_bytes"), 0);
  }

  // The dataset before is what the replica serves.
  void expect_the_old_dataset() {
    Talk there(replica_);
    EXPECT_EQ(there("BF.EXISTS filter:0 item"), "1");
    EXPECT_EQ(there("BF.EXISTS filter:" + std::to_string(kFilters) + " item"), "0");
    for (const Sample& sample : samples()) {
      EXPECT_EQ(there(filled(sample.read, sample.name)), sample.answer) << sample.name;
    }
    EXPECT_EQ(info(there, "semel", "semel_bf_keys"), kFilters + 1);
    EXPECT_EQ(info(there, "semel", "semel_sift_keys"), 3);
    EXPECT_EQ(info(there, "semel", "semel_sift_claims"), 3);
  }

  const RedisServer primary_{slow_primary()};
  // It looks at its clients often while it loads, because the dataset is small.
  const RedisServer replica_{with_module(
      {"--repl-diskless-load", "swapdb", "--loading-process-events-interval-bytes", "1024"})};
};

TEST_F(Swapping, ServesTheOldDatasetUntilItHasTheNewOne) {
  ASSERT_NO_FATAL_FAILURE(make_it_load());
  expect_the_old_dataset();
  Talk talk(primary_), there(replica_);
  EXPECT_EQ(info(there, "persistence", "async_loading"), 1);
  // What changes meanwhile comes as effects afterwards.
  for (const Sample& sample : samples()) {
    ASSERT_FALSE(talk(filled(sample.change, sample.name, 77)).starts_with('-'));
  }
  ASSERT_EQ(talk("CONFIG SET rdb-key-save-delay 0"), "+OK");
  expect_in_step(primary_, replica_);
  const Digests expected = digests(talk);
  expect_equal(digests(there), expected);
  EXPECT_EQ(there("BF.EXISTS filter:0 item"), "0");
  EXPECT_EQ(info(there, "semel", "semel_bf_keys"), kFilters + kMore);
  EXPECT_EQ(info(there, "semel", "semel_effects_failed"), 0);
  ASSERT_TRUE(eventually([&] { return info(there, "semel", "semel_unserved_bytes") == 0; }));
  for (const char* const field : {"bf_keys", "bf_items", "bf_bytes", "cf_keys", "cf_items",
                                  "sift_keys", "sift_items", "sift_claims", "tally_keys"}) {
    const std::string name = std::string("semel_") + field;
    EXPECT_EQ(info(there, "semel", name), info(talk, "semel", name)) << name;
  }
}

TEST_F(Swapping, KeepsTheOldDatasetIfTheNewOneDoesNotArrive) {
  ASSERT_NO_FATAL_FAILURE(make_it_load());
  {
    Talk talk(primary_);
    ASSERT_EQ(talk("CONFIG SET rdb-key-save-delay 0"), "+OK");
    ASSERT_EQ(talk("CONFIG SET repl-diskless-sync-delay 3600"), "+OK");
    ASSERT_NE(talk("CLIENT KILL TYPE replica"), "0");
  }
  Talk there(replica_);
  ASSERT_TRUE(eventually([&] { return info(there, "persistence", "async_loading") == 0; }));
  ASSERT_TRUE(eventually([&] { return info(there, "semel", "semel_unserved_bytes") == 0; }));
  expect_the_old_dataset();
}

// A replica of another history loads beside its dataset too, but serves nobody meanwhile.
TEST_F(Swapping, WorksWithAnotherHistory) {
  const RedisServer other(slow_primary());
  Talk talk(other), there(replica_);
  ASSERT_EQ(talk("BF.ADD other item"), "1");
  ASSERT_EQ(there("REPLICAOF 127.0.0.1 " + std::to_string(other.port())), "+OK");
  expect_in_step(other, replica_);
  expect_equal(digests(there), digests(talk));
  EXPECT_EQ(info(there, "semel", "semel_bf_keys"), 1);
  ASSERT_TRUE(eventually([&] { return info(there, "semel", "semel_unserved_bytes") == 0; }));
}

TEST(DualChannel, EndsInTheSameDigests) {
  const RedisServer primary(slow_primary({"--repl-backlog-size", "1mb"}));
  Talk talk(primary);
  if (talk("CONFIG SET dual-channel-replication-enabled yes") != "+OK") {
    GTEST_SKIP() << "the server has no dual-channel replication";
  }
  const RedisServer replica(with_module({"--dual-channel-replication-enabled", "yes"}));
  Workload workload(5);
  const auto run = [&](int commands) {
    for (int i = 0; i < commands; ++i) ASSERT_FALSE(talk.call(workload.next()).lost());
  };
  ASSERT_NO_FATAL_FAILURE(run(2000));
  // No replica yet, and no effects: the module learns of the replica by the fork.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  ASSERT_EQ(talk("CONFIG SET rdb-key-save-delay 20000"), "+OK");
  ASSERT_NO_FATAL_FAILURE(follow(replica, primary));
  ASSERT_TRUE(eventually([&] { return info(talk, "persistence", "rdb_bgsave_in_progress") == 1; }));
  ASSERT_NO_FATAL_FAILURE(run(2000));
  EXPECT_EQ(info(talk, "persistence", "rdb_bgsave_in_progress"), 1);
  ASSERT_EQ(talk("CONFIG SET rdb-key-save-delay 0"), "+OK");
  for (const Answer& key : talk.call({"KEYS", "*"}).parts) {  // nothing expires from now on
    ASSERT_FALSE(talk.call({"PERSIST", key.text}).is_error());
  }
  ASSERT_NO_FATAL_FAILURE(run(100));
  for (const Answer& key : talk.call({"KEYS", "*"}).parts) {
    ASSERT_FALSE(talk.call({"PERSIST", key.text}).is_error());
  }
  expect_in_step(primary, replica);
  Talk there(replica);
  expect_equal(digests(there), digests(talk));
  EXPECT_EQ(info(there, "semel", "semel_effects_failed"), 0) << replica.log();
  EXPECT_GT(info(there, "semel", "semel_effects_applied"), 0);
  EXPECT_NE(primary.log().find("dual-channel"), std::string::npos) << primary.log();
}

}  // namespace
}  // namespace semel
