// semel sift --at as a user with few rights. Those of docs/cluster.md are enough. A right that is
// missing is an error that names it, and never taken for an answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>

#include "client/slot.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_server.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

std::vector<std::string> with_module() { return {"--loadmodule", SEMEL_MODULE}; }

// A primary with a replica that follows it.
class SiftRights : public ::testing::Test {
 protected:
  void SetUp() override {
    replica_.call({"REPLICAOF", "127.0.0.1", std::to_string(server_.port())});
    ASSERT_TRUE(eventually([&] { return server_.call({"ROLE"}).at(2).size() == 1; }));
  }

  RedisServer server_{{"--loadmodule", SEMEL_MODULE, "--repl-diskless-sync-delay", "0"}};
  RedisServer replica_{with_module()};
};

// The user has these rights and no others.
void allow(const RedisServer& server, const Words& rights) {
  client::Command command{"ACL", "SETUSER", "sifter", "reset", "on", ">password"};
  for (const std::string& right : rights) command.add(right);
  const client::Reply reply = server.call(command);
  ASSERT_EQ(reply.text(), "OK");
}

std::string url_of(const RedisServer& server) {
  return "redis://sifter:password@" + server.address().text();
}

Outcome sifted(const RedisServer& server, const Words& more = {}, const std::string& input = "a\n",
               const std::string& database = "") {
  Words words = {"--at",     url_of(server) + database,
                 "--stream", "orders",
                 "--window", "1h",
                 "--slices", "3",
                 "--claim",  "20s"};
  words.insert(words.end(), more.begin(), more.end());
  return sift_quietly(words, input);
}

void expect_refusal(const Outcome& outcome, const Words& parts) {
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  for (const std::string& part : parts) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " is not in: " << outcome.err;
  }
}

void expect_first(const Outcome& outcome, const std::string& out) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, out);
}

Words without(Words rights, const std::string& right) {
  std::erase(rights, right);
  return rights;
}
Words with(Words rights, const Words& more) {
  rights.insert(rights.end(), more.begin(), more.end());
  return rights;
}

// Returns the rights that the example of the document gives.
Words rights_of_the_document() {
  std::ifstream in("docs/cluster.md");
  Words rights;
  for (std::string line; std::getline(in, line);) {
    if (line.find("ACL SETUSER sifter") == std::string::npos) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      std::erase(word, '\'');
      if (word[0] == '~' || word[0] == '+') rights.push_back(word);
    }
  }
  return rights;
}

TEST_F(SiftRights, OfTheDocumentAreEnoughAndAllAreNeeded) {
  const Words rights = rights_of_the_document();
  ASSERT_GE(rights.size(), 10u);
  int number = 0;
  for (const std::string delivery : {"at-least-once", "at-most-once"}) {
    const bool claims = delivery == "at-least-once";
    for (const std::string& right : rights) {
      // Only some of the ways to sift need these; tests below show which.
      if (right == "+sift.mrelease" || (right == "+sift.madd") == claims) continue;
      if (!claims && (right == "+sift.mclaim" || right == "+sift.mcommit")) continue;
      allow(server_, without(rights, right));
      Outcome outcome = sifted(server_, {"--delivery", delivery});
      const std::string named = right[0] == '+' ? right.substr(1) : "key";
      // A record is written before it is committed.
      if (right == "+sift.mcommit") {
        EXPECT_EQ(std::exchange(outcome.out, ""), "a\n");
      }
      expect_refusal(outcome, {"NOPERM", named});
      EXPECT_EQ(outcome.err.find("deadline"), std::string::npos) << outcome.err;
    }
    allow(server_, rights);
    const std::string key = "a" + std::to_string(++number);
    expect_first(sifted(server_, {"--delivery", delivery}, key + "\n"), key + "\n");
  }
}

// Without ROLE nobody knows whether there is a replica to wait for.
TEST_F(SiftRights, ToAskForReplicasAreNotTakenForNoReplica) {
  const Words rights = without(rights_of_the_document(), "+role");
  allow(server_, rights);
  expect_refusal(sifted(server_), {"NOPERM", "'role'", "+role", "--replicas"});
  EXPECT_EQ(server_.call({"DBSIZE"}).integer(), 0);
  // If the number is given, nobody needs to ask.
  expect_first(sifted(server_, {"--replicas", "1"}), "a\n");
  expect_first(sifted(server_, {"--replicas", "0"}, "b\n"), "b\n");
  allow(server_, without(rights, "+wait"));
  expect_first(sifted(server_, {"--replicas", "0"}, "c\n"), "c\n");
}

TEST_F(SiftRights, ToWaitAreAskedForAtOnce) {
  allow(server_, without(rights_of_the_document(), "+wait"));
  const auto begin = std::chrono::steady_clock::now();
  expect_refusal(sifted(server_, {"--claim", "10m"}), {"NOPERM", "'wait'", "+wait", "--replicas"});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25));
  EXPECT_EQ(server_.call({"DBSIZE"}).integer(), 0);
}

// Of a cluster whose CLUSTER has another name, one node would be taken for all.
TEST_F(SiftRights, ToAskForSlotsAreNotTakenForNoCluster) {
  Words arguments = with_module();
  arguments.insert(arguments.end(), {"--rename-command", "CLUSTER", "HIDDEN"});
  const RedisServer renamed(arguments);
  renamed.call({"ACL", "SETUSER", "sifter", "on", ">password", "~*", "+@all"});
  expect_refusal(sifted(renamed), {"unknown command", "CLUSTER", "--replicas"});
  EXPECT_EQ(renamed.call({"DBSIZE"}).integer(), 0);
  expect_first(sifted(renamed, {"--replicas", "0"}), "a\n");
}

TEST_F(SiftRights, ToReleaseAreNeededWhereProducersMeet) {
  const Words rights = rights_of_the_document();
  std::string input;
  for (char key = 'a'; key <= 'z'; ++key) input += std::string(1, key) + '\n';
  for (const bool enough : {false, true}) {
    allow(server_, enough ? rights : without(rights, "+sift.mrelease"));
    const std::string stream = enough ? "orders:yes" : "orders:no";
    // Makes the keys.
    ASSERT_EQ(sifted(server_, {"--stream", stream, "--slices", "1"}, "0\n").status, 0);
    const std::string key = client::spread_keys(stream, 1).front();
    const char* const lasts = enough ? "1s" : "10m";
    ASSERT_EQ(server_.call({"SIFT.CLAIM", key, "k", "another", lasts}).text(), "fresh");
    const Outcome outcome = sifted(server_, {"--stream", stream, "--slices", "1"}, input);
    if (enough) {
      expect_first(outcome, input);
    } else {
      expect_refusal(outcome, {"NOPERM", "sift.mrelease"});
    }
  }
}

TEST_F(SiftRights, OfTreesAndOfOtherDatabasesAreInTheDocument) {
  const TemporaryDirectory directory;
  const std::string tree = directory.write("tree", "level world slices 2 at " + url_of(server_) +
                                                       "\nlevel region key 2 at " +
                                                       url_of(server_) + "\nlevel site key 3\n");
  const Words rights = rights_of_the_document();
  const auto through_the_tree = [&](const std::string& input) {
    return sift_quietly({"-f", "csv", "-k", "1", "-r", tree, "-w", "1h", "-N", "orders"}, input);
  };
  const Words of_trees = with(rights, {"~orders/*", "+sift.mtest", "+sift.insert"});
  std::string input;
  for (int i = 0; i < 200; ++i) {
    input += std::to_string(i % 70) + ',' + std::to_string(i % 3) + ',' + std::to_string(i % 5);
    input += '\n';
  }
  for (const std::string right : {"~orders/*", "+sift.mtest", "+sift.insert"}) {
    allow(server_, without(of_trees, right));
    expect_refusal(through_the_tree(input), {"NOPERM"});
  }
  allow(server_, of_trees);
  EXPECT_EQ(through_the_tree(input).status, 0);

  allow(server_, rights);
  expect_refusal(sifted(server_, {"--claim", "10s"}, "a\n", "/5"), {"NOPERM", "select"});
  allow(server_, with(rights, {"+select"}));
  expect_first(sifted(server_, {}, "a\n", "/5"), "a\n");
}

TEST(SiftRightsInACluster, OfTheDocumentAreEnoughWithoutRole) {
  const RedisCluster servers(1, with_module());
  const Words rights = without(rights_of_the_document(), "+role");
  for (std::size_t node = 0; node < servers.size(); ++node) allow(servers.node(node), rights);
  expect_first(sifted(servers.node(0)), "a\n");
  for (const std::string right : {"+wait", "+cluster|slots"}) {
    for (std::size_t node = 0; node < servers.size(); ++node) {
      allow(servers.node(node), without(rights, right));
    }
    expect_refusal(sifted(servers.node(0), {}, "b\n"), {"NOPERM", right.substr(1)});
  }
}

}  // namespace
}  // namespace semel
