// kill -9 of a server with the module during writes of all families, with appendfsync always:
// nothing that was answered is lost, a retry counts once, and all copies are the same.
//
// SEMEL_CRASH_ROUNDS sets how many times, SEMEL_CRASH_SEED which moments.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "semel/core/internal/random.h"
#include "tests/module/module_server.h"
#include "tests/support/setting.h"

namespace semel::crash {
namespace {

// Operation n writes once to every family.
constexpr std::uint64_t kCommands = 5;
Words command(std::uint64_t operation, std::uint64_t part) {
  const std::string id = std::to_string(operation);
  switch (part) {
    case 0:
      return {
          "TALLY.INCRBY", "tally", std::string("c").append(std::to_string(operation % 100)), "1",
          "ID",           id};
    case 1:
      return {"TALLY.INCRBY", "tally", "numbered", "1", "OP", "client", id};
    case 2:
      return {"SIFT.ADD", "sift", id};
    case 3:
      return {"BF.ADD", "bloom", id};
    default:
      return {"CF.ADDNX", "cuckoo", id};
  }
}

class ModuleCrash : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPipelined = 4;  // operations

  // Writes until the server is killed. answered_ and sent_ count commands.
  void write_until_killed() {
    std::thread killer([&, delay = random_.below(200'000)] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      server_.kill();
    });
    {
      Talk talk(server_);
      std::uint64_t reading = answered_;
      for (bool there = true; there;) {
        for (std::uint64_t i = 0; i < kPipelined * kCommands; ++i, ++sent_) {
          talk.send(command(sent_ / kCommands, sent_ % kCommands));
        }
        for (; there && reading < sent_; reading += there ? 1 : 0) {
          const Answer answer = talk.read();
          there = !answer.lost();
          EXPECT_FALSE(answer.is_error()) << answer.shown();
        }
      }
      answered_ = reading;
    }
    killer.join();
  }

  void expect_kept(Talk& talk, std::uint64_t number) {
    const std::string id = std::to_string(number / kCommands);
    switch (number % kCommands) {
      case 0:
      case 1:
        EXPECT_EQ(talk.call(command(number / kCommands, number % kCommands)).parts.at(1).text,
                  "duplicate")
            << number;
        break;
      case 2:
        EXPECT_EQ(talk.call({"SIFT.TEST", "sift", id}).shown(), "1") << number;
        break;
      case 3:
        EXPECT_EQ(talk.call({"BF.EXISTS", "bloom", id}).shown(), "1") << number;
        break;
      default:
        EXPECT_EQ(talk.call({"CF.EXISTS", "cuckoo", id}).shown(), "1") << number;
    }
  }

  // Operations without an answer are sent again. Then everything has happened once.
  void retry(Talk& talk) {
    while (sent_ % kCommands != 0) ++sent_;
    for (; answered_ < sent_; ++answered_) {
      EXPECT_FALSE(talk.call(command(answered_ / kCommands, answered_ % kCommands)).is_error());
    }
    EXPECT_EQ(talk("TALLY.SUM tally"), std::to_string(2 * sent_ / kCommands));
  }

  const std::uint64_t seed_ = setting("SEMEL_CRASH_SEED", 1);
  Random random_{seed_};
  RedisServer server_{with_module(
      {"--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"})};
  std::uint64_t answered_ = 0;
  std::uint64_t sent_ = 0;
};

TEST_F(ModuleCrash, LosesNothingAnsweredAndCountsNothingTwice) {
  const std::uint64_t rounds = setting("SEMEL_CRASH_ROUNDS", 3);
  std::printf("SEMEL_CRASH_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  std::uint64_t unanswered = 0;
  for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t before = answered_;
    write_until_killed();
    unanswered += sent_ - answered_;
    server_.start();
    Talk talk(server_);
    const Digests reloaded = digests(talk);
    EXPECT_EQ(info(talk, "semel", "semel_effects_failed"), 0) << server_.log();
    for (std::uint64_t number = before; number < answered_; ++number) expect_kept(talk, number);
    for (int i = 0; i < 100 && before > 0; ++i) expect_kept(talk, random_.below(before));
    // Questions have changed nothing.
    expect_equal(digests(talk), reloaded);

    if (random_.below(2) == 0) {
      // A second reload, of what the first one has left.
      server_.kill();
      server_.start();
      Talk again(server_);
      expect_equal(digests(again), reloaded);
      retry(again);
    } else {
      const RedisServer replica(
          with_module({"--replicaof", "127.0.0.1", std::to_string(server_.port())}));
      retry(talk);
      talk("SET pebble 1");
      ASSERT_EQ(talk("WAIT 1 60000"), "1");
      Talk there(replica);
      expect_equal(digests(there), digests(talk));
    }
    if (random_.below(4) == 0) server_.call({"BGREWRITEAOF"});
  }
  std::printf("%llu rounds, %llu commands answered, %llu sent again\n",
              static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(answered_),
              static_cast<unsigned long long>(unanswered));
  EXPECT_GT(answered_, 0U);
}

}  // namespace
}  // namespace semel::crash
