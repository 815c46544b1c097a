// Memory that runs out at any point of any command: the client hears of it, and what happened at the
// primary, no more and no less, is what its replica and its AOF file have.
#include <gtest/gtest.h>

#include <string>
#include <vector>

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

// name first last: a command with that many items, whose names nobody else has.
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
  // Words of a batch: what it begins with, and what is before and after the name of each item.
  const char *batch, *before, *after;
  const char* one;  // in which % is a name
};

const std::vector<Load>& loads() {
  static const std::vector<Load> all = {
      {"BF.RESERVE k 0.01 20000 EXPANSION 4", "BF.MADD k", "", "", "BF.ADD k %"},
      {"BF.RESERVE k 1e-9 20000", "BF.INSERT k ITEMS", "", "", "BF.ADD k %"},
      {"CF.RESERVE k 20000", "CF.INSERT k ITEMS", "", "", "CF.ADD k %"},
      {"CF.RESERVE k 20000", "CF.INSERTNX k ITEMS", "", "", "CF.ADDNX k %"},
      {"SIFT.RESERVE k CAPACITY 1000", "SIFT.MADD k", "", "", "SIFT.ADD k %"},
      {"SIFT.RESERVE k CAPACITY 1000 STRUCTURE exact", "SIFT.MADD k", "", "", "SIFT.ADD k %"},
      {"SIFT.RESERVE k CAPACITY 1000 STRUCTURE timers", "SIFT.MADD k", "", "", "SIFT.ADD k %"},
      {"SIFT.RESERVE k CAPACITY 1000", "SIFT.INSERT k RENEW ITEMS", "", "", "SIFT.CLAIM k % o 1h"},
      {"TALLY.CREATE k CAPACITY 1000", "TALLY.MINCRBY k IDS", "counter 1", "",
       "TALLY.INCRBY k c:% 1 ID %"},
      {"TALLY.CREATE k CAPACITY 1000", "TALLY.MINCRBY k NOID", "", "1", "TALLY.INCRBY k % 1"},
      {"TALLY.CREATE k CAPACITY 1000 EXACT", "TALLY.MINCRBY k IDS", "counter 1", "",
       "TALLY.INCRBY k c:% 1 ID %"},
      {"TALLY.CREATE k CAPACITY 1000", "TALLY.MINCRBY k IDS", "counter 1", "",
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
    // One round fails small blocks too: for them there is a reserve.
    const bool small = round % 4 == 3;
    const std::string good = std::to_string(round % 3);
    const std::string least = small ? "1" : "131073";
    const std::string name = "r" + std::to_string(round) + ":";
    talk("FAULT.ALLOCATION " + (small ? std::to_string(round) : good) + " " + least);
    const Answer batch = talk.call(with_items(load.batch, 3000, name, load.before, load.after));
    failed += talk.call({"FAULT.ALLOCATION"}).integer();
    ASSERT_FALSE(batch.lost()) << primary.log();
    for (int i = 0; i < 20; ++i) {
      talk("FAULT.ALLOCATION 0 " + least);
      ASSERT_NE(talk(filled_with(load.one, name + "one" + std::to_string(i))), "lost");
      failed += talk.call({"FAULT.ALLOCATION"}).integer();
    }
    expect_in_step(primary, replica);
    expect_equal(digests(there), digests(talk));
    if (::testing::Test::HasFailure()) return;
    // All of it again, with memory.
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

}  // namespace
}  // namespace semel
