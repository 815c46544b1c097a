// The server saves, loads, copies, moves, expires, frees and reports values of our types as it does
// with its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "tests/module/module_server.h"
#include "tests/module/samples.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

class Values : public ::testing::TestWithParam<Sample> {
 protected:
  static void SetUpTestSuite() {
    held() = std::make_unique<RedisServer>(with_module({"--save", "3600", "1000000"}));
  }
  static void TearDownTestSuite() { held().reset(); }
  void SetUp() override {
    ASSERT_EQ(talk_("FLUSHALL"), "+OK");
    ASSERT_TRUE(make_sample(talk_, GetParam(), "k"));
    ASSERT_EQ(read("k"), GetParam().answer);
  }

  static const RedisServer& server() { return *held(); }
  std::string read(std::string_view key) { return read(talk_, key); }
  static std::string read(Talk& talk, std::string_view key) {
    return talk(filled(GetParam().read, key));
  }
  std::string digest(std::string_view key) {
    return talk_.call({"DEBUG", "DIGEST-VALUE", std::string(key)}).shown();
  }
  // The value answers as before, and has not forgotten anything.
  void expect_same(Talk& talk, std::string_view key) {
    EXPECT_EQ(read(talk, key), GetParam().answer);
    const std::string before = talk.call({"DEBUG", "DIGEST-VALUE", std::string(key)}).shown();
    talk(filled(GetParam().no_change, key));
    EXPECT_EQ(talk.call({"DEBUG", "DIGEST-VALUE", std::string(key)}).shown(), before);
  }

 private:
  static std::unique_ptr<RedisServer>& held() {
    static std::unique_ptr<RedisServer> server;
    return server;
  }

 protected:
  Talk talk_{server()};
};
INSTANTIATE_TEST_SUITE_P(Types, Values, ::testing::ValuesIn(samples()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(Values, OutliveDebugReload) {
  const std::string before = digest("k");
  ASSERT_EQ(talk_("DEBUG RELOAD"), "+OK");
  EXPECT_EQ(digest("k"), before);
  expect_same(talk_, "k");
}

// The copy of a filter begins a chain of its own, so its digest differs.
TEST_P(Values, AreCopied) {
  ASSERT_EQ(talk_("COPY k copy"), "1");
  expect_same(talk_, "copy");
  // From then on they are independent.
  const std::string original = digest("k"), copy = digest("copy");
  ASSERT_FALSE(talk_(filled(GetParam().change, "copy")).starts_with('-'));
  EXPECT_NE(digest("copy"), copy);
  EXPECT_EQ(digest("k"), original);
}

TEST_P(Values, AreDumpedAndRestored) {
  const Answer dump = talk_.call({"DUMP", "k"});
  ASSERT_EQ(talk_.call({"RESTORE", "again", "0", dump.text}).shown(), "+OK");
  EXPECT_EQ(digest("again"), digest("k"));
  expect_same(talk_, "again");
  EXPECT_EQ(talk_.call({"RESTORE", "k", "0", dump.text}).shown(),
            "-BUSYKEY Target key name already exists.");
}

TEST_P(Values, MoveToAnotherServer) {
  const std::string before = digest("k");
  const RedisServer other(with_module());
  Talk there(other);
  ASSERT_EQ(talk_("MIGRATE 127.0.0.1 " + std::to_string(other.port()) + " k 0 5000"), "+OK");
  EXPECT_EQ(talk_("EXISTS k"), "0");
  EXPECT_EQ(there("DEBUG DIGEST-VALUE k"), before);
  expect_same(there, "k");
}

TEST_P(Values, Expire) {
  EXPECT_EQ(talk_("PEXPIRE k 1"), "1");
  talk_("DEBUG SLEEP 0.01");
  EXPECT_EQ(talk_("EXISTS k"), "0");
  ASSERT_TRUE(make_sample(talk_, GetParam(), "k"));
  EXPECT_EQ(talk_("TTL k"), "-1");
  talk_("EXPIRE k 1000");
  // Writes leave the time to live as it is.
  talk_(filled(GetParam().change, "k"));
  EXPECT_NE(talk_("TTL k"), "-1");
}

TEST_P(Values, TellOfTheirChanges) {
  ASSERT_EQ(talk_("CONFIG SET notify-keyspace-events KEA"), "+OK");
  Talk listener(server());
  listener.call({"PSUBSCRIBE", "__keyevent@0__:*"});
  talk_(filled(GetParam().read, "k"));
  talk_(filled(GetParam().no_change, "k"));
  talk_(filled(GetParam().change, "k"));
  EXPECT_EQ(listener.read().shown(), "[\"pmessage\", \"__keyevent@0__:*\", \"__keyevent@0__:" +
                                         std::string(GetParam().event) + "\", \"k\"]");
  talk_("CONFIG SET notify-keyspace-events \"\"");
}

TEST_P(Values, AbortTransactionsThatWatchThem) {
  struct Case {
    std::string_view meanwhile;
    bool aborts;
  };
  for (const Case& step : {Case{GetParam().change, true}, Case{GetParam().no_change, false},
                           Case{GetParam().read, false}}) {
    ASSERT_EQ(talk_("WATCH k"), "+OK");
    Talk other(server());
    other(filled(step.meanwhile, "k", 77));
    talk_("MULTI");
    talk_("PING");
    EXPECT_EQ(talk_("EXEC"), step.aborts ? "nil" : "[+PONG]") << step.meanwhile;
  }
}

TEST_P(Values, WorkInTransactionsAndScripts) {
  const std::string before = digest("k");
  talk_("MULTI");
  talk_(filled(GetParam().no_change, "k"));
  talk_(filled(GetParam().read, "k"));
  const Answer both = talk_.call({"EXEC"});
  ASSERT_EQ(both.parts.size(), 2u);
  EXPECT_EQ(both.parts[1].shown(), GetParam().answer);
  EXPECT_EQ(digest("k"), before);

  Words script = {"EVAL", "return redis.call(unpack(ARGV))", "1", "k"};
  for (const std::string& word : words_of(filled(GetParam().read, "k"))) script.push_back(word);
  EXPECT_EQ(talk_.call(script).shown(), GetParam().answer);
  script[1] = "redis.call(unpack(ARGV)) return 1";
  script.resize(4);
  for (const std::string& word : words_of(filled(GetParam().change, "k"))) script.push_back(word);
  EXPECT_EQ(talk_.call(script).shown(), "1");
  EXPECT_NE(digest("k"), before);
}

// A value that is large compared with the memory of the server itself.
TEST_P(Values, SayHowMuchMemoryTheyTakeAndGiveItBack) {
  constexpr int kChanges = 30'000;
  // The first round makes the server allocate what it keeps.
  for (const char* const command : {"FLUSHALL", "DEL k", "UNLINK k", "FLUSHALL ASYNC"}) {
    const bool counts = std::string_view(command) != "FLUSHALL";
    talk_("FLUSHALL");
    const std::int64_t before = info(talk_, "memory", "used_memory");
    {
      // The memory of a connection goes with it.
      Talk other(server());
      ASSERT_TRUE(make_sample(other, GetParam(), "k"));
      for (int i = 0; i < kChanges; ++i) other.send(words_of(filled(GetParam().change, "k", i)));
      for (int i = 0; i < kChanges; ++i) ASSERT_FALSE(other.read().is_error());
    }
    // Other servers end connections and free values a little later: wait for that.
    const auto used = [&] {
      return static_cast<double>(info(talk_, "memory", "used_memory") - before);
    };
    ASSERT_TRUE(eventually([&] { return info(talk_, "clients", "connected_clients") == 1; }));
    const double taken = used();
    const auto told = static_cast<double>(talk_.call({"MEMORY", "USAGE", "k"}).integer());
    if (counts) {
      EXPECT_NEAR(told, taken, GetParam().memory_error * taken);
    }
    talk_(command);
    ASSERT_EQ(talk_("DBSIZE"), "0");
    if (!counts) continue;
    EXPECT_TRUE(eventually([&] { return used() < 0.02 * taken; })) << command << ' ' << used();
  }
}

TEST_P(Values, AreTheSameAfterDefragmentation) {
  if (talk_("CONFIG SET activedefrag yes") != "+OK") {
    GTEST_SKIP() << "this server's allocator cannot defragment";
  }
  talk_("CONFIG SET active-defrag-ignore-bytes 1");
  talk_("CONFIG SET active-defrag-threshold-lower 0");
  const std::string before = digest("k");
  talk_("DEBUG SLEEP 0");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(digest("k"), before);
  expect_same(talk_, "k");
  talk_("CONFIG SET activedefrag no");
}

// Ways to keep data over a restart.
struct Keeping {
  const char* name;
  Words arguments;
  bool rewrites;
  bool saves;
};

class Restarts : public ::testing::TestWithParam<Keeping> {};
INSTANTIATE_TEST_SUITE_P(
    Persistence, Restarts,
    ::testing::Values(
        Keeping{"Rdb", {}, false, true}, Keeping{"Aof", {"--appendonly", "yes"}, false, false},
        Keeping{
            "AofRewritten", {"--appendonly", "yes", "--aof-use-rdb-preamble", "no"}, true, false},
        Keeping{
            "RdbAndAof", {"--appendonly", "yes", "--aof-use-rdb-preamble", "yes"}, true, false}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(Restarts, KeepEveryValue) {
  const Keeping& keeping = GetParam();
  RedisServer server(with_module(keeping.arguments));
  Digests before;
  {
    Talk talk(server);
    for (const Sample& sample : samples()) ASSERT_TRUE(make_sample(talk, sample, sample.name));
    if (keeping.rewrites) {
      ASSERT_NO_FATAL_FAILURE(rewrite_aof(talk));
      // The commands after the rewritten part.
      for (const Sample& sample : samples()) talk(filled(sample.change, sample.name));
    }
    if (keeping.saves) {
      ASSERT_EQ(talk("SAVE"), "+OK");
    }
    before = digests(talk);
  }
  for (int restarts = 0; restarts < 2; ++restarts) {
    keeping.saves ? server.kill() : server.stop();
    server.start();
    Talk talk(server);
    expect_equal(digests(talk), before);
    EXPECT_EQ(info(talk, "semel", "semel_effects_failed"), 0);
    for (const Sample& sample : samples()) {
      talk(filled(sample.no_change, sample.name));
      if (!keeping.rewrites) {
        EXPECT_EQ(talk(filled(sample.read, sample.name)), sample.answer) << sample.name;
      }
    }
    expect_equal(digests(talk), before);
  }
}

// After DEL the server's allocator reuses the freed memory with its old bytes; after FLUSHALL the
// memory would be new. A dump shows the bits.
TEST(Memory, IsOfZerosWhateverWasThereBefore) {
  const RedisServer server(with_module());
  Talk talk(server);
  for (const char* const capacity : {"1000", "1000000", "3000000", "20000000"}) {
    for (int round = 0; round < 3; ++round) {
      talk("DEL b");
      ASSERT_EQ(talk.call({"BF.RESERVE", "b", "0.01", capacity}).shown(), "+OK");
      ASSERT_EQ(talk("BF.ADD b one"), "1");
      std::ptrdiff_t written = 0, pieces = 0;
      for (std::string at = "1"; at != "0";) {
        const Answer chunk = talk.call({"BF.SCANDUMP", "b", at});
        at = chunk.parts.at(0).text;
        const std::string& bytes = chunk.parts.at(1).text;
        written += std::count_if(bytes.begin(), bytes.end(), [](char byte) { return byte != 0; });
        // The bits of one item, and the headers.
        ASSERT_LT(written, 100 * ++pieces) << capacity << ", round " << round;
      }
      ASSERT_GT(written, 0);
      Words words = {"BF.MADD", "b"};
      for (int i = 0; i < 10'000; ++i) words.push_back("id:" + std::to_string(i));
      talk.call(words);
    }
  }
}

// The table is larger than the pages and pieces of any allocator: the memory beyond what MEMORY
// USAGE tells must not grow with it.
TEST(Memory, OfManyCountersIsWhatIsToldOfIt) {
  constexpr int kCommands = 3000, kCounters = 100;
  const RedisServer server(with_module());
  Talk talk(server);
  talk("TALLY.INCRBY t a 1");
  const std::int64_t before = info(talk, "memory", "used_memory");
  for (int command = 0; command < kCommands; ++command) {
    Words words = {"TALLY.MINCRBY", "t", "NOID"};
    for (int i = 0; i < kCounters; ++i) {
      words.push_back("counter:" + std::to_string(command * kCounters + i));
      words.emplace_back("1");
    }
    ASSERT_FALSE(talk.call(words).is_error());
  }
  const auto used = static_cast<double>(info(talk, "memory", "used_memory") - before);
  const auto told = static_cast<double>(talk.call({"MEMORY", "USAGE", "t"}).integer());
  EXPECT_NEAR(used, told, 0.05 * told);
}

}  // namespace
}  // namespace semel
