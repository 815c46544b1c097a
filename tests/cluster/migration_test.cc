// Slots that move from one primary to another, with values of every type, while clients use them.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "client/cluster.h"
#include "client/slot.h"
#include "tests/cluster/tally_writers.h"
#include "tests/module/module_server.h"
#include "tests/module/samples.h"
#include "tests/support/redis_cluster.h"

namespace semel {
namespace {

class Migration : public ::testing::Test {
 protected:
  // Moves a slot to the next primary, key by key. Meanwhile each of the two has some of the keys.
  void move(std::uint32_t slot) {
    const std::vector<std::size_t> primaries = servers_.primaries();
    const std::size_t from = servers_.primary_of(slot);
    std::size_t to = primaries.front();
    for (const std::size_t primary : primaries) {
      if (primary > from) {
        to = primary;
        break;
      }
    }
    servers_.begin_move(slot, to);
    const client::Reply keys =
        servers_.node(from).call({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "1000"});
    for (std::size_t i = 0; i < keys.size(); ++i) {
      servers_.move_key(keys.at(i).text(), to);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    servers_.end_move(slot, to);
  }

  RedisCluster servers_{3, with_module()};
  const client::Url url_ = *client::parse_url(servers_.url());
};

TEST_F(Migration, LeavesValuesOfEveryTypeAsTheyAre) {
  const std::uint32_t slot = client::slot_of("tag");
  const std::size_t from = servers_.primary_of(slot);
  Talk talk(servers_.node(from));
  const auto key_of = [](const Sample& sample) { return "{tag}" + std::string(sample.name); };
  std::map<std::string, std::string> known;  // the answers about ids that are known already
  for (const Sample& sample : samples()) {
    ASSERT_TRUE(make_sample(talk, sample, key_of(sample))) << sample.name;
    known[key_of(sample)] = talk(filled(sample.no_change, key_of(sample)));
  }
  const Digests before = digests(talk);
  ASSERT_EQ(before.size(), samples().size());
  for (int moves = 0; moves < 3; ++moves) move(slot);  // to each, and back
  ASSERT_EQ(servers_.primary_of(slot), from);
  EXPECT_EQ(digests(talk), before);
  for (const Sample& sample : samples()) {
    EXPECT_EQ(talk(filled(sample.read, key_of(sample))), sample.answer) << sample.name;
    EXPECT_EQ(talk(filled(sample.no_change, key_of(sample))), known[key_of(sample)]) << sample.name;
  }
  EXPECT_EQ(digests(talk), before);
}

// A slot on the move has two tables: one is still here, the other has left.
TEST_F(Migration, IsFollowedByClients) {
  client::Cluster cluster(url_, {.replicas = 1});
  ASSERT_TRUE(cluster.connect());
  const std::uint32_t slot = client::slot_of("tag");
  const std::vector<std::string> tables = {"{tag}a", "{tag}b"};
  std::map<std::string, std::int64_t> expected;
  int number = 0;
  const auto increment = [&](const std::string& table, const char* word) {
    const auto reply =
        cluster.call(table, {"TALLY.INCRBY", table, "n", "1", "ID", std::to_string(number)},
                     client::Repeat::safe);
    ASSERT_TRUE(reply) << reply.error().message();
    ASSERT_EQ(reply->size(), 2u) << reply->text();
    EXPECT_EQ(reply->at(1).text(), word);
    if (word == std::string_view("applied")) ++expected[table];
    EXPECT_EQ(reply->at(0).integer(), expected[table]);
  };
  const auto increment_all = [&] {
    ++number;
    for (const std::string& table : tables) increment(table, "applied");
    for (const std::string& table : tables) increment(table, "duplicate");
  };
  increment_all();
  const std::size_t from = servers_.primary_of(slot);
  const std::vector<std::size_t> primaries = servers_.primaries();
  const std::size_t to = from == primaries[0] ? primaries[1] : primaries[0];
  servers_.begin_move(slot, to);
  increment_all();
  EXPECT_EQ(cluster.counts().asked, 0u);
  servers_.move_key(tables[1], to);
  // An id from before the move is a duplicate after it.
  increment(tables[1], "duplicate");
  increment_all();
  EXPECT_GT(cluster.counts().asked, 0u);
  EXPECT_EQ(cluster.counts().moved, 0u);
  servers_.end_move(slot, to);
  increment(tables[0], "duplicate");
  increment_all();
  EXPECT_EQ(cluster.counts().moved, 1u);
  EXPECT_EQ(cluster.address_of(slot), servers_.node(to).address());
}

TEST_F(Migration, CountsEachOperationOnce) {
  TallyWriters writers(url_, 1);
  for (int i = 0; i < 6; ++i) {
    move(client::slot_of(client::spread_keys("tally", 6)[static_cast<std::size_t>(i)]));
  }
  const TallyWriters::Report report = writers.finish();
  for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
  EXPECT_EQ(sums_of(url_), report.expected);
  EXPECT_EQ(report.counted_again, 0u);
  EXPECT_GT(report.recognised, 0u);
}

}  // namespace
}  // namespace semel
