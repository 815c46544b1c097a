// Commands through a cluster whose slots move and whose primaries go away.
#include "client/cluster.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/support/redis_cluster.h"

namespace semel::client {
namespace {

Command set(const std::string& key, std::string_view value) { return {"SET", key, value}; }

std::string get(Cluster& cluster, const std::string& key) {
  const auto reply = cluster.call(key, {"GET", key}, Repeat::safe);
  return reply ? std::string(reply->text()) : reply.error().message();
}

Time soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(200); }

// Patient enough for a machine that is busy.
ClusterOptions patient(std::uint32_t replicas = 0) {
  return {.connection = {.connect_timeout_ms = 60'000, .timeout_ms = 60'000},
          .deadline_ms = 600'000,
          .replicas = replicas};
}

// A key of this slot.
std::string key_in(std::uint32_t slot) {
  for (std::uint64_t number = 0;; ++number) {
    if (slot_of(std::to_string(number)) == slot) return std::to_string(number);
  }
}

// Starting six servers takes two seconds: one cluster serves all tests that leave it as it was.
class ClusterTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { servers_ = std::make_unique<RedisCluster>(3); }
  static void TearDownTestSuite() { servers_.reset(); }
  void SetUp() override { servers().wait_until_ok(); }

  static RedisCluster& servers() { return *servers_; }
  // Knows one node only, and asks it for the others.
  static Url url() { return *parse_url(servers().node(0).url()); }

 private:
  static std::unique_ptr<RedisCluster> servers_;
};
std::unique_ptr<RedisCluster> ClusterTest::servers_;

TEST_F(ClusterTest, FindsTheNodeOfEveryKey) {
  Cluster cluster(url());
  ASSERT_TRUE(cluster.connect());
  EXPECT_TRUE(cluster.clustered());
  EXPECT_EQ(cluster.primaries(), 3u);
  std::vector<Cluster::Ticket> tickets;
  constexpr int kKeys = 2000;
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "key" + std::to_string(i);
    tickets.push_back(cluster.start(slot_of(key), set(key, std::to_string(i)), Repeat::safe));
  }
  for (const auto ticket : tickets) {
    const auto reply = cluster.finish(ticket);
    ASSERT_TRUE(reply) << reply.error().message();
    ASSERT_EQ(reply->text(), "OK");
  }
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_EQ(get(cluster, "key" + std::to_string(i)), std::to_string(i));
  }
  EXPECT_EQ(cluster.counts().moved, 0u);
}

TEST_F(ClusterTest, FinishesInAnyOrder) {
  Cluster cluster(url());
  ASSERT_TRUE(cluster.connect());
  std::vector<Cluster::Ticket> tickets;
  for (int i = 0; i < 100; ++i) {
    tickets.push_back(cluster.start(slot_of(std::to_string(i)),
                                    set(std::to_string(i), std::to_string(i)), Repeat::safe));
    tickets.push_back(
        cluster.start(slot_of(std::to_string(i)), {"GET", std::to_string(i)}, Repeat::safe));
  }
  for (std::size_t i = tickets.size(); i-- > 0;) {
    const auto reply = cluster.finish(tickets[i]);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->text(), i % 2 == 0 ? "OK" : std::to_string(i / 2));
  }
}

TEST_F(ClusterTest, FollowsASlotThatMoved) {
  Cluster cluster(url());
  ASSERT_TRUE(cluster.connect());
  const std::uint32_t slot = 42;
  const std::string key = key_in(slot);
  ASSERT_EQ(get(cluster, key), "");
  const std::size_t from = servers().primary_of(slot);
  const std::size_t to = servers().primary_of(RedisCluster::kSlots - 1);
  servers().move(slot, to);
  EXPECT_TRUE(cluster.call(key, set(key, "there"), Repeat::never));
  EXPECT_EQ(cluster.counts().moved, 1u);
  EXPECT_EQ(cluster.address_of(slot), servers().node(to).address());
  EXPECT_EQ(get(cluster, key), "there");
  EXPECT_EQ(cluster.counts().moved, 1u);  // the client has learnt the new place
  servers().move(slot, from);
}

TEST_F(ClusterTest, AsksTheNextNodeWhileASlotMigrates) {
  Cluster cluster(url());
  ASSERT_TRUE(cluster.connect());
  const std::uint32_t slot = 77;
  const std::string here = key_in(slot);
  const std::string gone = std::string("{").append(here).append("}gone");
  ASSERT_TRUE(cluster.call(here, set(here, "1"), Repeat::safe));
  ASSERT_TRUE(cluster.call(gone, set(gone, "2"), Repeat::safe));
  const std::size_t from = servers().primary_of(slot);
  const std::size_t to = servers().primary_of(RedisCluster::kSlots - 1);
  servers().begin_move(slot, to);
  servers().move_key(gone, to);

  EXPECT_EQ(get(cluster, here), "1");
  EXPECT_EQ(cluster.counts().asked, 0u);
  EXPECT_EQ(get(cluster, gone), "2");
  EXPECT_EQ(cluster.counts().asked, 1u);
  EXPECT_EQ(cluster.address_of(slot), servers().node(from).address());  // still
  // A command on both cannot be executed until one node has them: TRYAGAIN.
  std::jthread mover([&] {
    EXPECT_TRUE(eventually([&] {
      const Reply errors = servers().node(from).call({"INFO", "errorstats"});
      return errors.text().find("TRYAGAIN") != std::string_view::npos;
    }));
    servers().end_move(slot, to);
  });
  const auto both = cluster.call(here, {"MGET", here, gone}, Repeat::never);
  mover.join();
  ASSERT_TRUE(both) << both.error().message();
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ(both->at(1).text(), "2");
  EXPECT_GT(cluster.counts().later, 0u);

  servers().move(slot, from);
}

// Without ASKING the next node sends every command back, for ever.
TEST_F(ClusterTest, SaysThatItMayNotFollowASlotThatMigrates) {
  const auto allow = [](std::string_view right) {
    for (std::size_t i = 0; i < servers().size(); ++i) {
      servers().node(i).call(
          {"ACL", "SETUSER", "few", "reset", "on", ">p", "~*", "+get", "+cluster|slots", right});
    }
  };
  const std::uint32_t slot = 78;
  const std::string key = key_in(slot);
  const std::size_t from = servers().primary_of(slot);
  const std::size_t to = servers().primary_of(RedisCluster::kSlots - 1);
  servers().node(from).call({"SET", key, "v"});
  servers().begin_move(slot, to);
  servers().move_key(key, to);
  Url of_few = url();
  of_few.user = "few";
  of_few.password = "p";
  allow("+get");
  Cluster cluster(of_few, patient());
  ASSERT_TRUE(cluster.connect());
  const auto refused = cluster.call(key, {"GET", key}, Repeat::safe);
  ASSERT_FALSE(refused);
  const std::string words = refused.error().message();
  EXPECT_NE(words.find("NOPERM"), std::string::npos) << words;
  EXPECT_NE(words.find("+asking"), std::string::npos) << words;
  allow("+asking");
  EXPECT_EQ(get(cluster, key), "v");
  servers().end_move(slot, to);
  servers().move(slot, from);
}

TEST_F(ClusterTest, FollowsAFailoverByHand) {
  Cluster cluster(url());
  ASSERT_TRUE(cluster.connect());
  const std::string key = key_in(9000);
  const std::size_t primary = servers().primary_of(9000);
  std::atomic<bool> over = false;
  std::jthread hand([&] {
    servers().fail_over(primary);
    over = true;
  });
  std::int64_t counted = 0;
  while (!over || cluster.address_of(9000) == servers().node(primary).address()) {
    const auto reply = cluster.call(key, {"INCR", key}, Repeat::never);
    ASSERT_TRUE(reply) << reply.error().message();
    ASSERT_EQ(reply->integer(), ++counted);  // no command was lost or repeated
  }
  hand.join();
  EXPECT_GT(cluster.counts().moved, 0u);
}

TEST_F(ClusterTest, ReplacesAPrimaryThatDied) {
  ClusterOptions options = patient(1);
  options.connection = {};  // so that a server that is gone is noticed soon
  Cluster cluster(*parse_url(servers().url()), options);
  ASSERT_TRUE(cluster.connect());
  std::vector<std::string> keys;
  for (std::uint32_t i = 0; i < 64; ++i) keys.push_back("dead" + std::to_string(i));
  for (const std::string& key : keys) ASSERT_TRUE(cluster.call(key, set(key, "1"), Repeat::safe));
  Cluster content(*parse_url(servers().url()), {.deadline_ms = 600'000});
  ASSERT_TRUE(content.connect());
  const std::size_t primary = servers().primary_of(100);
  servers().node(primary).kill();
  std::vector<Cluster::Ticket> tickets;
  for (const std::string& key : keys) {
    tickets.push_back(cluster.start(slot_of(key), set(key, "2"), Repeat::safe));
  }
  servers().wait_until_ok();
  // A client that wants no replica goes on while the old primary is gone: other nodes tell where
  // the slots are.
  for (const std::string& key : keys) ASSERT_TRUE(content.call(key, set(key, "1"), Repeat::safe));
  // At the new primary nothing is confirmed until it has a replica again.
  servers().node(primary).start();
  for (const auto ticket : tickets) {
    const auto reply = cluster.finish(ticket);
    ASSERT_TRUE(reply) << reply.error().message();
  }
  for (const std::string& key : keys) EXPECT_EQ(get(cluster, key), "2");
  EXPECT_GT(cluster.counts().refreshed, 0u);
}

TEST(Cluster, TakesAServerWithoutClusterForOneNode) {
  const RedisServer server;
  Cluster cluster(*parse_url(server.url() + "/5"));
  ASSERT_TRUE(cluster.connect());
  EXPECT_FALSE(cluster.clustered());
  EXPECT_EQ(cluster.primaries(), 1u);
  EXPECT_TRUE(cluster.call("k", set("k", "v"), Repeat::never));
  EXPECT_EQ(get(cluster, "k"), "v");
  EXPECT_TRUE(server.call({"GET", "k"}).is_nil());  // it is in another database
}

TEST(Cluster, SaysWhyItCannotConnect) {
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port());
  Cluster absent(*parse_url("redis://" + nobody));
  const Error not_there = absent.connect().error();
  EXPECT_EQ(not_there.code, Errc::io);
  EXPECT_EQ(not_there.message(), "cannot connect to " + nobody + ": Connection refused");

  const RedisServer locked({"--requirepass", "secret"});
  Cluster stranger(*parse_url(locked.url()));
  const Error refused = stranger.connect().error();
  EXPECT_EQ(refused.code, Errc::mismatch);
  EXPECT_NE(refused.message().find("NOAUTH"), std::string::npos) << refused.message();

  const RedisServer one;
  const RedisServer two;
  Cluster pair(*parse_url(one.url() + ',' + two.address().text()));
  EXPECT_EQ(pair.connect().error().code, Errc::invalid);
}

TEST(Cluster, DoesNotRepeatWhatMayHaveBeenExecuted) {
  RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
  Cluster cluster(*parse_url(server.url()), patient());
  ASSERT_TRUE(cluster.connect());
  ASSERT_TRUE(cluster.call("n", {"INCR", "n"}, Repeat::never));
  server.pause();
  cluster.end_by(soon());
  const auto lost = cluster.call("n", {"INCR", "n"}, Repeat::never);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Errc::io);
  EXPECT_EQ(cluster.counts().lost, 1u);
  server.resume();
  cluster.end_by(kNever);
  // It was executed after all: a repetition would have counted twice.
  EXPECT_EQ(get(cluster, "n"), "2");
}

TEST(Cluster, RepeatsWhatIsSafe) {
  RedisServer server({"--appendonly", "yes"});
  Cluster cluster(*parse_url(server.url()), patient());
  ASSERT_TRUE(cluster.connect());
  server.pause();
  const auto ticket = cluster.start(slot_of("k"), set("k", "v"), Repeat::safe);
  cluster.send();
  server.kill();
  server.start();
  const auto reply = cluster.finish(ticket);
  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_GT(cluster.counts().lost, 0u);
}

TEST(Cluster, GivesUpAtTheDeadline) {
  RedisServer server;
  Cluster cluster(*parse_url(server.url()), patient());
  ASSERT_TRUE(cluster.connect());
  server.kill();
  cluster.end_by(soon());
  const auto reply = cluster.call("k", set("k", "v"), Repeat::safe);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().without_detail(), "no answer by the deadline");
  const std::string words = reply.error().message();
  EXPECT_NE(words.find("refused"), std::string::npos) << words;
  server.start();
  cluster.end_by(kNever);
  EXPECT_TRUE(cluster.call("k", set("k", "v"), Repeat::safe));
}

TEST(Cluster, CountsNoAnswerWithoutItsReplica) {
  const RedisServer server;
  ClusterOptions options = patient(1);
  options.replicas_timeout_ms = 20;
  Cluster cluster(*parse_url(server.url()), options);
  ASSERT_TRUE(cluster.connect());
  const auto once = cluster.call("k", set("k", "v"), Repeat::never);
  ASSERT_FALSE(once);
  EXPECT_EQ(cluster.counts().unconfirmed, 1u);
  const std::string words = once.error().message();
  EXPECT_NE(words.find("only 0 of 1 replicas"), std::string::npos) << words;
  cluster.end_by(soon());
  EXPECT_FALSE(cluster.call("k", set("k", "v"), Repeat::safe));
  cluster.end_by(kNever);
  // It was tried as often as there was time: once, or many times.
  EXPECT_GE(cluster.counts().unconfirmed + cluster.counts().lost, 2u);
  // A refusal of the server needs no replica.
  const auto refused = cluster.call("k", {"INCR", "k"}, Repeat::never);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_error("ERR"));
}

}  // namespace
}  // namespace semel::client
