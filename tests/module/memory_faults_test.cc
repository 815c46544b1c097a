// The replica and the AOF file have exactly what happened at the primary, whatever clients send and
// wherever memory runs out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/core/limits.h"
#include "tests/module/command_lines.h"
#include "tests/module/module_server.h"
#include "tests/module/replicas.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

Words faulty(Words arguments) {
  arguments.insert(arguments.end(), {"--repl-diskless-sync-delay", "0", "--loadmodule",
                                     SEMEL_FAULTY_MODULE, "max-value-bytes", "0"});
  return arguments;
}

// Returns a command with the items from `first` to `last`.
Words with_items(std::string_view line, int count, const std::string& prefix,
                 std::string_view before_each = "", std::string_view after_each = "") {
  Words words = words_of(line);
  for (int i = 0; i < count; ++i) {
    for (const std::string& word : words_of(before_each)) words.push_back(word);
    words.push_back(prefix + std::to_string(i));
    for (const std::string& word : words_of(after_each)) words.push_back(word);
  }
  return words;
}

struct Load {
  const char* make;
  // The words of a batch: its begin, and the words before and after the name of each item.
  const char *batch, *before, *after;
  const char* one;  // % stands for a name
};

const std::vector<Load>& loads() {
  static const std::vector<Load> all = {
      {"BF.RESERVE k 0.01 20000 EXPANSION 4", "BF.MADD k", "", "", "BF.ADD k %"},
      {"BF.RESERVE k 1e-9 20000", "BF.INSERT k ITEMS", "", "", "BF.ADD k %"},
      {"CF.RESERVE k 20000", "CF.INSERT k ITEMS", "", "", "CF.ADD k %"},
      {"CF.RESERVE k 20000", "CF.INSERTNX k ITEMS", "", "", "CF.ADDNX k %"},
      {"SIFT.RESERVE k CAPACITY 1000", "SIFT.MADD k", "", "", "SIFT.ADD k %"},
      {"SIFT.RESERVE k CAPACITY 1000 EXACT", "SIFT.MADD k", "", "", "SIFT.ADD k %"},
      {"SIFT.RESERVE k CAPACITY 2500 TIMERS", "SIFT.MADD k", "", "", "SIFT.ADD k %"},
      {"SIFT.RESERVE k CAPACITY 1000", "SIFT.INSERT k RENEW ITEMS", "", "", "SIFT.CLAIM k % o 1h"},
      {"SIFT.RESERVE k CAPACITY 1000", "SIFT.MCLAIM k o 1h", "", "", "SIFT.COMMIT k % o"},
      {"SIFT.RESERVE k CAPACITY 1000 EXACT", "SIFT.MCOMMIT k o", "", "", "SIFT.MCLAIM k o 1h %"},
      {"TALLY.RESERVE k CAPACITY 1000", "TALLY.MINCRBY k IDS", "counter 1", "",
       "TALLY.INCRBY k c:% 1 ID %"},
      {"TALLY.RESERVE k CAPACITY 1000", "TALLY.MINCRBY k NOID", "", "1", "TALLY.INCRBY k % 1"},
      {"TALLY.RESERVE k CAPACITY 1000 EXACT", "TALLY.MINCRBY k IDS", "counter 1", "",
       "TALLY.INCRBY k c:% 1 ID %"},
      {"TALLY.RESERVE k CAPACITY 1000", "TALLY.MINCRBY k IDS", "counter 1", "",
       "TALLY.INCRBY k c 1 OP % 7"},
  };
  return all;
}

std::string filled_with(std::string text, const std::string& name) {
  for (std::size_t at = 0; (at = text.find('%', at)) != std::string::npos; at += name.size()) {
    text.replace(at, 1, name);
  }
  return text;
}

class MemoryFaults : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Loads, MemoryFaults, ::testing::Range<std::size_t>(0, loads().size()));

// Large blocks fail one after the other, in batches and in single commands, while the value grows.
TEST_P(MemoryFaults, LeaveWhatHappenedEverywhere) {
  const Load& load = loads()[GetParam()];
  const RedisServer primary(faulty({"--appendonly", "yes", "--aof-use-rdb-preamble", "no"}));
  const RedisServer replica(faulty({}));
  follow(replica, primary);
  expect_in_step(primary, replica);
  Talk talk(primary), there(replica);
  ASSERT_EQ(talk(load.make), "+OK");
  const std::uint64_t rounds = setting("SEMEL_FAULTS", 12);
  std::int64_t failed = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    SCOPED_TRACE(std::string(load.make) + ", round " + std::to_string(round));
    // In one round small blocks fail too: the reserve is for them.
    const bool small = round % 4 == 3;
    const std::string good = std::to_string(round % 3);
    const std::string least = small ? "1" : "131073";
    const std::string name = "r" + std::to_string(round) + ":";
    talk("FAULT.ALLOCATION " + good + " " + least);
    const Answer batch = talk.call(with_items(load.batch, 3000, name, load.before, load.after));
    failed += talk.call({"FAULT.ALLOCATION"}).integer();
    ASSERT_FALSE(batch.lost()) << primary.log();
    for (int i = 0; i < 20; ++i) {
      talk("FAULT.ALLOCATION 0 " + least);
      ASSERT_NE(talk(filled_with(load.one, name + "one" + std::to_string(i))), "lost")
          << primary.log();
      failed += talk.call({"FAULT.ALLOCATION"}).integer();
    }
    expect_in_step(primary, replica);
    expect_equal(digests(there), digests(talk));
    if (::testing::Test::HasFailure()) return;
    // With memory, the same command succeeds.
    ASSERT_FALSE(talk.call(with_items(load.batch, 3000, name, load.before, load.after)).is_error());
  }
  EXPECT_GT(failed, 0);
  expect_in_step(primary, replica);
  const Digests expected = digests(talk);
  expect_equal(digests(there), expected);
  EXPECT_EQ(info(there, "semel", "semel_effects_failed"), 0) << replica.log();
  ASSERT_EQ(talk("DEBUG LOADAOF"), "+OK");
  expect_equal(digests(talk), expected);
}

// The first fault spends the reserve, within a write. The second one then meets what the module
// does for INFO, and what it does ten times a second.
TEST_P(MemoryFaults, LeaveInfoAndTimeToGoOn) {
  const Load& load = loads()[GetParam()];
  const RedisServer server(faulty({}));
  Talk talk(server);
  ASSERT_EQ(talk(load.make), "+OK");
  for (int i = 0; i < 10; ++i) {
    talk("FAULT.ALLOCATION 0 1");
    ASSERT_NE(talk(filled_with(load.one, std::to_string(i))), "lost") << server.log();
    talk("FAULT.ALLOCATION 0 1");
    if (i % 2 == 0) {
      ASSERT_NE(talk("INFO semel"), "lost") << server.log();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
    }
    ASSERT_NE(talk("FAULT.ALLOCATION"), "lost") << server.log();
  }
  talk(filled_with(load.one, "last"));
  const std::string all = talk.call({"INFO", "semel"}).text;
  EXPECT_NE(all.find("_keys:1"), std::string::npos) << all;
}

// A write without deny-oom, and others that make it something to free.
struct Freeing {
  const char* name;
  const char* make;  // adds a long item; % stands for it
  const char* grow;  // adds a short item
  const char* free;  // takes a long item away
  const char* info;
};

std::ostream& operator<<(std::ostream& out, const Freeing& one) { return out << one.name; }

class Frees : public ::testing::TestWithParam<Freeing> {};
INSTANTIATE_TEST_SUITE_P(
    Writes, Frees,
    ::testing::Values(Freeing{"CfDel", "CF.ADD k %", "CF.ADD k %", "CF.DEL k %", "CF.INFO k"},
                      Freeing{"SiftRelease", "SIFT.CLAIM k % o 1h", "SIFT.ADD k %",
                              "SIFT.RELEASE k % o", "SIFT.INFO k"},
                      Freeing{"SiftMrelease", "SIFT.CLAIM k % o 1h", "SIFT.CLAIM k % o 1h",
                              "SIFT.MRELEASE k o % not:there", "SIFT.INFO k"},
                      Freeing{"TallyDel", "TALLY.INCRBY k % 1", "TALLY.INCRBY k % 1 ID %",
                              "TALLY.DEL k % not:there", "TALLY.INFO k"}),
    [](const auto& one) { return one.param.name; });

// Between two additions, at every fill of the blocks of the key. No large block is to be had, and
// the server refuses other writes.
TEST_P(Frees, TakeNoMemory) {
  constexpr int kItems = 6000, kShort = 20'000;
  const Freeing& one = GetParam();
  const RedisServer server(faulty({"--save", ""}));
  Talk talk(server);
  const std::string tail(100, '.');
  // Sends many lines before it reads their answers.
  const auto many = [&](const char* line, int from, int to, const std::string& end) {
    for (int at = from; at < to; at += 500) {
      for (int i = at; i < std::min(to, at + 500); ++i) {
        talk.send(words_of(filled_with(line, std::to_string(i) + end)));
      }
      for (int i = at; i < std::min(to, at + 500); ++i) ASSERT_FALSE(talk.read().is_error());
    }
  };
  many(one.make, 0, kItems, tail);
  many(one.grow, 0, kShort, "");
  const auto size = [&] {
    const Answer answer = talk.call(words_of(one.info));
    for (std::size_t i = 0; i + 1 < answer.parts.size(); i += 2) {
      if (answer.parts[i].text == "Size") return answer.parts[i + 1].integer();
    }
    return std::int64_t{-1};
  };
  const std::string refused = filled_with(one.grow, "refused");
  for (int i = 0; i < kItems - 1; ++i) {
    ASSERT_FALSE(talk(filled_with(one.grow, std::to_string(kShort + i))).starts_with('-'));
    const std::string free = filled_with(one.free, std::to_string(i) + tail);
    ASSERT_EQ(talk("FAULT.ALLOCATION 0 131073"), "+OK");
    const std::string answer = talk(free);
    ASSERT_EQ(talk("FAULT.ALLOCATION"), "0") << i;
    ASSERT_TRUE(answer == "1" || answer == "[1, 0]") << i << ": " << answer;
  }
  const std::int64_t before = size();
  ASSERT_EQ(talk("CONFIG SET maxmemory 1"), "+OK");
  EXPECT_TRUE(talk(refused).starts_with("-OOM")) << talk(refused);
  EXPECT_NE(talk(filled_with(one.free, std::to_string(kItems - 1) + tail)).find('1'),
            std::string::npos);
  EXPECT_LE(size(), before);
}

// A primary that writes an AOF file of commands, and its replica with another configuration.
class Twins {
 public:
  Twins() {
    follow(replica_, primary_);
    expect_in_step(primary_, replica_);
  }

  Talk& talk() { return talk_; }
  const RedisServer& primary() const { return primary_; }

  void expect_the_same() {
    expect_in_step(primary_, replica_);
    const Digests expected = digests(talk_);
    expect_equal(digests(there_), expected);
    EXPECT_EQ(info(there_, "semel", "semel_effects_failed"), 0) << replica_.log();
    ASSERT_EQ(talk_("DEBUG LOADAOF"), "+OK") << primary_.log();
    expect_equal(digests(talk_), expected);
    EXPECT_EQ(info(talk_, "semel", "semel_effects_failed"), 0) << primary_.log();
  }

  // The AOF file begins here.
  void begin_anew() {
    talk_("FLUSHALL");
    rewrite_aof(talk_);
  }

 private:
  const RedisServer primary_{faulty({"--appendonly", "yes", "--aof-use-rdb-preamble", "no",
                                     "--appendfsync", "no", "--maxmemory", "2gb"})};
  const RedisServer replica_{faulty({})};
  Talk talk_{primary_}, there_{replica_};
};

// The lines of hostile_test.cc. SEMEL_LINES sets how many; `make hostile` takes many, in servers
// with sanitizers. With `faults`, memory runs out at random.
class RandomLines : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, RandomLines, ::testing::Bool(), [](const auto& instance) {
  return std::string(instance.param ? "RunsOut" : "IsThere");
});

TEST_P(RandomLines, EndInTheSameDigests) {
  constexpr std::uint64_t kCompared = 1000;
  const std::uint64_t lines = setting("SEMEL_LINES", 5000);
  Random random(fresh_seed());
  Twins twins;
  Talk& talk = twins.talk();
  std::vector<CommandLines> commands;
  for (const char* const family : {"TALLY.*", "SIFT.*", "BF.*", "CF.*"}) {
    for (const Answer& name : talk.call({"COMMAND", "LIST", "FILTERBY", "PATTERN", family}).parts) {
      commands.emplace_back(talk, name.text);
    }
  }
  const Answer settings = talk.call({"CONFIG", "GET", "semel.*"});
  const auto reset = [&] {
    for (std::size_t at = 0; at + 1 < settings.parts.size(); at += 2) {
      talk.call({"CONFIG", "SET", settings.parts[at].text, settings.parts[at + 1].text});
    }
    // Small values are compared quickly.
    constexpr std::array kLimits = {"20000", "70000", "300000", "4000000"};
    talk.call({"CONFIG", "SET", "semel.max-value-bytes", kLimits[random.below(kLimits.size())]});
  };
  reset();
  for (std::uint64_t i = 1; i <= lines; ++i) {
    if (i % 50 == 0) {
      const std::string name = settings.parts[2 * random.below(settings.parts.size() / 2)].text;
      const bool limit = name == "semel.max-value-bytes";
      if (!limit) talk.call({"CONFIG", "SET", name, any_value(random)});
    }
    const bool faults = GetParam() && random.below(4) == 0;
    if (faults) {
      const std::size_t least = random.below(2) == 0 ? 1 : limits::kSmallBlock + 1;
      talk.call({"FAULT.ALLOCATION", std::to_string(random.below(least == 1 ? 40 : 3)),
                 std::to_string(least)});
    }
    Words words = commands[random.below(commands.size())].random(random);
    // A batch meets a limit in its middle.
    if (random.below(4) == 0 && (words[0].find("MADD") != std::string::npos ||
                                 words[0].find("INSERT") != std::string::npos ||
                                 words[0].find("MINCRBY") != std::string::npos)) {
      for (int n = 0; n < 3000; ++n) words.push_back(std::to_string(random.below(1'000'000)));
    }
    ASSERT_FALSE(talk.call(words).lost()) << words[0] << '\n' << twins.primary().log();
    if (faults) talk.call({"FAULT.ALLOCATION"});
    if (i % 100 == 0) reset();
    if (i % kCompared != 0) continue;
    twins.expect_the_same();
    ASSERT_FALSE(HasFailure()) << "line " << i;
    twins.begin_anew();
  }
}

}  // namespace
}  // namespace semel
