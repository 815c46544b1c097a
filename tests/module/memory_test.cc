// The memory of keys: what they take, what they report, and what they are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/cli/wildcard.h"
#include "tests/module/command_lines.h"
#include "tests/module/module_server.h"
#include "tests/module/replicas.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

// Each of these commands would take far more than 50 MiB at once.
constexpr std::array kTooLarge = {
    "BF.RESERVE new 0.001 300000000",
    "BF.INSERT new CAPACITY 300000000 ITEMS a",
    "CF.RESERVE new 100000000",
    "CF.INSERT new CAPACITY 100000000 ITEMS a",
    "SIFT.RESERVE new CAPACITY 3000000000",
    "SIFT.RESERVE new CAPACITY 300000000 WINDOW 1h ERROR 0.01 ONFULL forget",
    "SIFT.RESERVE new TIMERS CAPACITY 300000000",
    "TALLY.RESERVE new CAPACITY 300000000",
};

class Memory : public ::testing::Test {
 protected:
  std::int64_t used() { return info(talk, "memory", "used_memory"); }
  std::int64_t limit() { return info(talk, "semel", "semel_max_value_bytes"); }
  // Returns a field of the INFO of a key.
  std::int64_t told(const std::string& command, const std::string& key, const std::string& field) {
    const Answer answer = talk.call({command, key});
    for (std::size_t i = 0; i + 1 < answer.parts.size(); i += 2) {
      if (answer.parts[i].text == field) return answer.parts[i + 1].integer();
    }
    ADD_FAILURE() << answer.shown();
    return -1;
  }

  const RedisServer server{
      with_module({"--repl-diskless-sync-delay", "0", "--maxmemory", "100mb", "--maxmemory-policy",
                   "allkeys-lru", "--enable-debug-command", "yes"})};
  Talk talk{server};
};

TEST_F(Memory, NothingIsMadeOrEvictedForAKeyThatIsTooLarge) {
  ASSERT_EQ(talk("DEBUG POPULATE 1000 other 20000"), "+OK");
  const std::int64_t before = used();
  for (const char* const line : kTooLarge) {
    const std::string answer = talk(line);
    EXPECT_TRUE(matches_wildcard("-ERR [...]semel.max-value-bytes[...]52428800[...]", answer))
        << line << ": " << answer;
  }
  EXPECT_LT(used() - before, 1 << 20);
  EXPECT_EQ(talk("DBSIZE"), "1000");
  EXPECT_EQ(info(talk, "stats", "evicted_keys"), 0);
}

TEST_F(Memory, KeysThatAWriteMakesAreBoundedToo) {
  talk("CONFIG SET semel.bf-initial-size 3000000000 semel.cf-initial-size 3000000000");
  talk("CONFIG SET semel.sift-capacity 3000000000 semel.tally-capacity 3000000000");
  for (const char* const line :
       {"BF.ADD new a", "BF.MADD new a", "CF.ADD new a", "CF.ADDNX new a", "SIFT.ADD new a",
        "SIFT.MADD new a", "SIFT.CLAIM new a o 10", "SIFT.MCLAIM new o 10 a",
        "TALLY.INCRBY new a 1", "TALLY.MINCRBY new NOID a 1"}) {
    const std::string answer = talk(line);
    EXPECT_TRUE(matches_wildcard("-ERR [...]semel.max-value-bytes[...]52428800[...]", answer))
        << line << ": " << answer;
  }
  EXPECT_EQ(talk("DBSIZE"), "0");
}

TEST_F(Memory, ByDefaultAKeyMayTakeHalfOfIt) {
  EXPECT_EQ(limit(), 50 << 20);
  EXPECT_EQ(talk("CONFIG SET maxmemory 64mb"), "+OK");
  EXPECT_EQ(limit(), 32 << 20);
  EXPECT_EQ(talk("CONFIG SET maxmemory 0"), "+OK");
  EXPECT_GT(limit(), 50 << 20);  // the limit of the machine
  EXPECT_EQ(talk("CONFIG SET semel.max-value-bytes 0"), "+OK");
  EXPECT_EQ(limit(), 0);
  EXPECT_EQ(talk("CONFIG SET semel.max-value-bytes 12345678"), "+OK");
  EXPECT_EQ(limit(), 12'345'678);
  EXPECT_EQ(talk("CONFIG SET semel.max-value-bytes AUTO maxmemory 1mb"), "+OK");
  EXPECT_EQ(limit(), 1 << 20);  // the least limit
}

TEST_F(Memory, AKeyWithoutMaxBytesHasTheLimitOfItsDay) {
  EXPECT_EQ(talk("SIFT.RESERVE s"), "+OK");
  EXPECT_EQ(talk("TALLY.RESERVE t"), "+OK");
  EXPECT_EQ(talk("CONFIG SET semel.max-value-bytes 9000000"), "+OK");
  talk("SIFT.ADD later a");
  talk("TALLY.INCRBY count a 1");
  EXPECT_EQ(talk("SIFT.RESERVE given MAXBYTES 8000000"), "+OK");
  EXPECT_EQ(talk("SIFT.RESERVE more MAXBYTES 9000001"),
            "-ERR MAXBYTES is more than semel.max-value-bytes, 9000000");
  EXPECT_EQ(talk("TALLY.RESERVE more MAXBYTES 9000001"),
            "-ERR MAXBYTES is more than semel.max-value-bytes, 9000000");
  EXPECT_EQ(talk("CONFIG SET semel.max-value-bytes 0"), "+OK");
  EXPECT_EQ(talk("SIFT.RESERVE free"), "+OK");
  EXPECT_EQ(told("SIFT.INFO", "s", "Max bytes"), 50 << 20);
  EXPECT_EQ(told("TALLY.INFO", "t", "Max bytes"), 50 << 20);
  EXPECT_EQ(told("SIFT.INFO", "later", "Max bytes"), 9'000'000);
  EXPECT_EQ(told("TALLY.INFO", "count", "Max bytes"), 9'000'000);
  EXPECT_EQ(told("SIFT.INFO", "given", "Max bytes"), 8'000'000);
  EXPECT_TRUE(matches_wildcard("[[...]+Max bytes, nil, [...]]", talk("SIFT.INFO free")));
}

TEST_F(Memory, IsTakenWhenAKeyIsMadeAndTold) {
  struct Case {
    const char *make, *info, *key, *add;
  };
  for (const Case& one :
       {Case{"BF.RESERVE b 0.001 3000000", "BF.INFO", "b", "BF.ADD b a"},
        Case{"CF.RESERVE c 500000", "CF.INFO", "c", "CF.ADD c a"},
        Case{"SIFT.RESERVE s CAPACITY 2000000", "SIFT.INFO", "s", "SIFT.ADD s a"},
        Case{"SIFT.RESERVE m TIMERS CAPACITY 100000", "SIFT.INFO", "m", "SIFT.ADD m a"}}) {
    const std::int64_t before = used();
    ASSERT_EQ(talk(one.make), "+OK");
    // Allocators round up by less than a fifth. Clients and logs also take memory.
    const std::int64_t taken = used() - before, slack = taken / 5 + 100'000;
    EXPECT_GT(taken, 1'000'000) << one.make;
    for (const bool reloaded : {false, true}) {
      if (reloaded) {
        ASSERT_EQ(talk("DEBUG RELOAD"), "+OK");
      }
      EXPECT_NEAR(told(one.info, one.key, "Size"), taken, slack) << one.make;
      EXPECT_NEAR(talk.call({"MEMORY", "USAGE", one.key}).integer(), taken, slack) << one.make;
      EXPECT_NEAR(used() - before, taken, slack) << one.make;
    }
    EXPECT_EQ(talk(one.add), "1");
    EXPECT_NEAR(told(one.info, one.key, "Size"), taken, slack) << one.add;
    EXPECT_NEAR(used() - before, taken, slack) << one.add;
    EXPECT_EQ(talk(std::string("DEL ") + one.key), "1");
  }
}

// A key is freed in the background if that takes long: it has many parts, or is large.
TEST_F(Memory, LargeKeysAreUnlinkedInTheBackground) {
  ASSERT_EQ(talk("CONFIG SET maxmemory 0"), "+OK");
  for (const char* const line :
       {"BF.INSERT k CAPACITY 100000000 ITEMS a", "CF.RESERVE k 20000000",
        "SIFT.RESERVE k CAPACITY 100000000", "SIFT.RESERVE k TIMERS CAPACITY 10000000",
        "TALLY.RESERVE k CAPACITY 100000000"}) {
    ASSERT_FALSE(talk(line).starts_with('-')) << line;
    // A table takes the memory for its ids when the first of them comes.
    if (std::string_view(line).starts_with("TALLY")) talk("TALLY.INCRBY k a 1 ID x");
    ASSERT_EQ(talk("CONFIG RESETSTAT"), "+OK");
    ASSERT_EQ(talk("UNLINK k"), "1");
    EXPECT_TRUE(eventually([&] { return info(talk, "memory", "lazyfreed_objects") == 1; })) << line;
  }
}

TEST_F(Memory, ACopyIsHeldToTheLimitUnlessAPrimaryMadeIt) {
  const RedisServer replica(with_module({"--replicaof", "127.0.0.1", std::to_string(server.port())},
                                        {"max-value-bytes", "1"}));
  ASSERT_EQ(talk("BF.INSERT b CAPACITY 100000 ITEMS a"), "[1]");
  ASSERT_EQ(talk("TALLY.INCRBY t a 1"), "[1, \"applied\"]");
  EXPECT_EQ(talk("COPY b b1"), "1");
  EXPECT_EQ(talk("COPY t t1"), "1");
  ASSERT_NO_FATAL_FAILURE(expect_in_step(server, replica));
  EXPECT_EQ(Talk(replica)("EXISTS b1 t1"), "2");
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 1000"), "+OK");
  EXPECT_TRUE(talk("COPY b b2").starts_with('-'));
  EXPECT_TRUE(talk("COPY t t2").starts_with('-'));
  EXPECT_EQ(talk("EXISTS b2 t2"), "0");
  EXPECT_NE(server.log().find("more memory than semel.max-value-bytes allows"), std::string::npos);
}

TEST_F(Memory, ACallHasAsManyArgumentsAsAllowed) {
  ASSERT_EQ(talk("CONFIG SET semel.max-arguments 5"), "+OK");
  const std::string refusal = "-ERR more arguments than semel.max-arguments allows, 5";
  EXPECT_EQ(talk("SIFT.MADD s 1 2 3"), "[1, 1, 1]");
  EXPECT_EQ(talk("SIFT.MADD s 4 5 6 7"), refusal);
  EXPECT_EQ(talk("SIFT.CARD s"), "3");
  EXPECT_EQ(talk("BF.MADD b 1 2 3 4"), refusal);
  EXPECT_EQ(talk.call({"EVAL", "return redis.call('BF.MADD', 'b', 1, 2, 3, 4)", "0"}).type, '-');
  EXPECT_EQ(talk("EXISTS b"), "0");
  ASSERT_EQ(talk("CONFIG SET semel.max-arguments 0"), "+OK");
  EXPECT_EQ(talk("SIFT.MADD s 4 5 6 7"), "[1, 1, 1, 1]");
}

// Each of these keys is larger than any machine.
TEST_F(Memory, WhatIsNotThereIsRefusedWhenAKeyIsMade) {
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 0"), "+OK");
  for (const char* const line :
       {"BF.RESERVE new 1e-9 200000000000", "CF.RESERVE new 200000000000",
        "SIFT.RESERVE new CAPACITY 200000000000", "SIFT.RESERVE new TIMERS CAPACITY 200000000000",
        "TALLY.RESERVE new CAPACITY 200000000000"}) {
    EXPECT_TRUE(talk(line).starts_with('-')) << line;
    EXPECT_EQ(talk("EXISTS new"), "0") << line;
  }
}

TEST_F(Memory, AUnionTakesThatOfItsPartsAlone) {
  ASSERT_EQ(talk("BF.INSERT from CAPACITY 3000000 ITEMS a"), "[1]");
  const std::int64_t before = used(), size = told("BF.INFO", "from", "Size");
  ASSERT_EQ(talk("BF.MERGE to from"), "+OK");
  EXPECT_NEAR(used() - before, size, size / 5);
  EXPECT_NEAR(told("BF.INFO", "to", "Size"), size, size / 20);
}

// CONFIG SET maxmemory says what is right.
TEST_F(Memory, SizesAreWrittenAsTheServerWritesThem) {
  for (const std::string size : {"9000000", "9000000b", "9000k", "9000kb", "9m", "9mb", "9MB",
                                 "9Mb", "1g", "1gB", "007mb"}) {
    ASSERT_EQ(talk("CONFIG SET maxmemory " + size), "+OK");
    const std::int64_t bytes = info(talk, "memory", "maxmemory");
    ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes " + size), "+OK") << size;
    EXPECT_EQ(limit(), bytes) << size;
    ASSERT_EQ(talk("CONFIG SET maxmemory 0"), "+OK");
    talk("DEL s t");
    ASSERT_EQ(talk("SIFT.RESERVE s CAPACITY 10 MAXBYTES " + size), "+OK") << size;
    EXPECT_EQ(told("SIFT.INFO", "s", "Max bytes"), bytes) << size;
    ASSERT_EQ(talk("TALLY.RESERVE t CAPACITY 10 MAXBYTES " + size), "+OK") << size;
    EXPECT_EQ(told("TALLY.INFO", "t", "Max bytes"), bytes) << size;
  }
  // The server takes the first and the last of these.
  for (const std::string size : {"mb", "9tb", "9 mb", "9mbb", "1.5mb", "-9mb", "99999999999gb"}) {
    const std::string word = '"' + size + '"';
    EXPECT_TRUE(talk("CONFIG SET semel.max-value-bytes " + word).starts_with("-ERR")) << size;
    EXPECT_TRUE(talk("SIFT.RESERVE none MAXBYTES " + word).starts_with("-ERR MAXBYTES")) << size;
  }
}

// An exact key takes its memory as ids come. Its capacity is compared with what ids take at least.
TEST_F(Memory, ACapacityThatCannotFitIsRefusedForEveryKind) {
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 9000000"), "+OK");
  for (const char* const kind : {"", " EXACT", " TIMERS", " FILTER"}) {
    for (const std::string family : {"SIFT", "TALLY"}) {
      if ((family == "SIFT" && kind == std::string_view(" FILTER")) ||
          (family == "TALLY" && kind == std::string_view(" TIMERS"))) {
        continue;
      }
      const std::string line = family + ".RESERVE k" + kind + " CAPACITY 3000000";
      const std::string answer = talk(line);
      EXPECT_TRUE(answer.starts_with("-ERR could not create the ")) << line << ": " << answer;
      EXPECT_NE(answer.find("semel.max-value-bytes is 9000000"), std::string::npos) << answer;
      EXPECT_EQ(talk("EXISTS k"), "0");
    }
  }
  EXPECT_EQ(info(talk, "semel", "semel_refused_limit"), 6);
  EXPECT_EQ(talk("SIFT.RESERVE s EXACT CAPACITY 100000"), "+OK");
  EXPECT_EQ(talk("TALLY.RESERVE t EXACT CAPACITY 100000"), "+OK");
  // Without CAPACITY the key has as much as fits.
  EXPECT_EQ(talk("SIFT.RESERVE small EXACT MAXBYTES 40000"), "+OK");
  EXPECT_TRUE(talk("SIFT.RESERVE k EXACT MAXBYTES 40000 CAPACITY 65536").starts_with("-ERR"));
}

// Returns a command with a thousand ids from `first` on.
Words many(Words words, int first) {
  for (int i = 0; i < 1000; ++i) words.push_back(std::to_string(first + i));
  return words;
}

TEST_F(Memory, GrowsUpToTheLimitAndNoFurther) {
  talk("CONFIG SET semel.max-value-bytes 1000000");
  struct Case {
    Words add;
    const char* full;
    const char* info;
  };
  for (const Case& one : {
           Case{{"BF.MADD", "b"}, "-ERR the filter would take more memory", "BF.INFO"},
           Case{{"SIFT.MADD", "s"}, "-FULL the sift has no room for another id", "SIFT.INFO"},
       }) {
    std::string last;
    for (int i = 0; i < 2000 && last.find(one.full) == std::string::npos; ++i) {
      last = talk.call(many(one.add, 1000 * i)).shown();
    }
    EXPECT_NE(last.find(one.full), std::string::npos) << one.info;
    const std::int64_t bytes = told(one.info, one.add[1], "Size");
    EXPECT_GT(bytes, 300'000) << one.info;
    EXPECT_LE(bytes, 1'010'000) << one.info;
  }
  std::string last;
  for (int i = 0; i < 2000 && last.find("-1") == std::string::npos; ++i) {
    last = talk.call(many({"CF.INSERT", "c", "ITEMS"}, 1000 * i)).shown();
  }
  EXPECT_NE(last.find("-1"), std::string::npos);
  EXPECT_LE(told("CF.INFO", "c", "Size"), 1'010'000);
}

std::string numbers(std::string line, int count, const std::string& before = "",
                    const std::string& after = "") {
  for (int i = 0; i < count; ++i) line += " " + before + std::to_string(i) + after;
  return line;
}

constexpr const char* kTableTooLarge =
    "-ERR the table would take more memory than semel.max-value-bytes allows, 1000000 bytes";

// Returns a batch that adds 1 to a thousand counters from `first` on. All names need blocks of one
// size.
Words many_counters(const std::string& table, int first) {
  Words words = {"TALLY.MINCRBY", table, "NOID"};
  for (int i = 0; i < 1000; ++i) {
    words.push_back("counter:" + std::to_string(first + i));
    words.emplace_back("1");
  }
  return words;
}

// Adds counters until the limit refuses all of a batch. Returns how many there are.
int fill_table(Talk& talk, const std::string& table) {
  int counters = 0;
  for (int i = 0; i < 30; ++i) {
    const Answer answer = talk.call(many_counters(table, 1000 * i));
    const auto made = std::count_if(answer.parts.begin(), answer.parts.end(),
                                    [](const Answer& one) { return !one.is_error(); });
    if (made == 0) return counters;
    counters += static_cast<int>(made);
  }
  return -1;
}

TEST_F(Memory, ATableAtTheLimitMakesNoCounters) {
  talk("CONFIG SET semel.max-value-bytes 1000000");
  for (const char* const kind : {"", " EXACT", " FILTER"}) {
    SCOPED_TRACE(kind);
    ASSERT_EQ(talk(std::string("TALLY.RESERVE t CAPACITY 100") + kind), "+OK");
    const int counters = fill_table(talk, "t");
    ASSERT_GT(counters, 5000);
    const std::int64_t bytes = told("TALLY.INFO", "t", "Size");
    EXPECT_GT(bytes, 950'000);
    EXPECT_LE(bytes, 1'000'000);
    EXPECT_EQ(told("TALLY.INFO", "t", "Counters"), counters);
    const std::int64_t recogniser = told("TALLY.INFO", "t", "Recogniser size");
    const Digests before = digests(talk);
    const std::int64_t refused = info(talk, "semel", "semel_refused_limit");
    EXPECT_EQ(talk("TALLY.INCRBY t another 1"), kTableTooLarge);
    EXPECT_EQ(talk("TALLY.INCRBY t another 1 ID x"), kTableTooLarge);
    EXPECT_EQ(talk("TALLY.INCRBY t another 1 OP c 7"), kTableTooLarge);
    EXPECT_EQ(talk("TALLY.MINCRBY t NOID another 1 other:one 1"),
              std::string("[") + kTableTooLarge + ", " + kTableTooLarge + "]");
    EXPECT_EQ(info(talk, "semel", "semel_refused_limit"), refused + 5);
    expect_equal(digests(talk), before);

    // The counters that are there go on, and their neighbours in a batch too.
    const std::string between = std::string(", ") + kTableTooLarge + ", ";
    EXPECT_EQ(talk("TALLY.INCRBY t counter:7 1 ID a"), "[2, \"applied\"]");
    EXPECT_EQ(talk("TALLY.MINCRBY t NOID counter:7 1 another 1 counter:7 1"),
              "[[3, \"applied\"]" + between + "[4, \"applied\"]]");
    EXPECT_EQ(talk("TALLY.MINCRBY t IDS counter:7 1 b another 1 x counter:7 1 b"),
              "[[5, \"applied\"]" + between + "[5, \"duplicate\"]]");
    EXPECT_EQ(talk("TALLY.MINCRBY t OP c 6 counter:7 1 another 1 counter:7 1"),
              "[[6, \"applied\"]" + between + "[7, \"applied\"]]");

    // Counters that go make room for others. The ids of refusals are free.
    EXPECT_EQ(talk(numbers("TALLY.DEL t", 100, "counter:")), "100");
    const Answer others = talk.call(many_counters("t", 900'000));
    const auto refusals = std::count_if(others.parts.begin(), others.parts.end(),
                                        [](const Answer& one) { return one.is_error(); });
    EXPECT_NEAR(static_cast<double>(refusals), 900, 5);
    // Ids have a limit of their own.
    const std::int64_t ids = told("TALLY.INFO", "t", "Recogniser size") - recogniser;
    EXPECT_LE(told("TALLY.INFO", "t", "Size"), 1'000'000 + ids);
    talk("CONFIG SET semel.max-value-bytes 0");
    EXPECT_EQ(talk("TALLY.INCRBY t another 1 OP c 7"), "[1, \"applied\"]");
    EXPECT_EQ(talk("TALLY.INCRBY t another 1 OP c 7"), "[1, \"duplicate\"]");
    talk("CONFIG SET semel.max-value-bytes 1000000");
    EXPECT_EQ(talk("DEL t"), "1");
  }
}

TEST_F(Memory, ATableBeyondALoweredLimitMakesNoCounters) {
  ASSERT_EQ(talk("TALLY.INCRBY t a 1"), "[1, \"applied\"]");
  talk("CONFIG SET semel.max-value-bytes 5000");
  const std::string refusal =
      "-ERR the table would take more memory than semel.max-value-bytes allows, 5000 bytes";
  EXPECT_EQ(talk("TALLY.INCRBY t b 1"), refusal);
  EXPECT_EQ(talk("TALLY.INCRBY t a 1"), "[2, \"applied\"]");
  // A table that has no room for its first counter is not made.
  const std::string made = "-ERR could not create the table: [...]semel.max-value-bytes is 5000)";
  for (const char* const line : {"TALLY.RESERVE new", "TALLY.RESERVE new EXACT",
                                 "TALLY.INCRBY new a 1", "TALLY.MINCRBY new NOID a 1"}) {
    const std::string answer = talk(line);
    EXPECT_TRUE(matches_wildcard(made, answer)) << answer;
  }
  EXPECT_EQ(talk("EXISTS new"), "0");
}

// Whatever the limit is, a table that can be made has room for a counter with the longest name.
TEST_F(Memory, ATableThatIsMadeHasRoomForACounter) {
  const std::string name(2048, 'n');
  int made = 0;
  for (int bytes = 10'000; bytes < 60'000; bytes += 500) {
    talk("CONFIG SET semel.max-value-bytes " + std::to_string(bytes));
    for (const char* const kind : {"", " EXACT", " FILTER"}) {
      talk("DEL t");
      if (talk(std::string("TALLY.RESERVE t CAPACITY 10") + kind) != "+OK") continue;
      ++made;
      const std::string answer = talk.call({"TALLY.INCRBY", "t", name, "1"}).shown();
      EXPECT_EQ(answer, "[1, \"applied\"]") << bytes << kind;
    }
  }
  EXPECT_GT(made, 50);
}

TEST_F(Memory, ATableAtTheLimitCanBeCopiedRestoredAndMoved) {
  const RedisServer other(with_module({}, {"max-value-bytes", "1000000"}));
  const RedisServer smaller(with_module({}, {"max-value-bytes", "400000"}));
  talk("CONFIG SET semel.max-value-bytes 1000000");
  ASSERT_EQ(talk("TALLY.RESERVE t CAPACITY 100"), "+OK");
  const int counters = fill_table(talk, "t");
  EXPECT_EQ(talk("COPY t copy"), "1");
  ASSERT_EQ(talk("TALLY.COUNT copy"), std::to_string(counters));
  const Answer dump = talk.call({"DUMP", "t"});
  EXPECT_EQ(talk.call({"RESTORE", "restored", "0", dump.text}).shown(), "+OK") << server.log();
  EXPECT_EQ(talk("TALLY.COUNT restored"), std::to_string(counters));
  const auto migrate = [&](const RedisServer& to) {
    return talk("MIGRATE 127.0.0.1 " + std::to_string(to.port()) + " t 0 10000 COPY");
  };
  EXPECT_EQ(migrate(other), "+OK") << other.log();
  EXPECT_EQ(Talk(other)("TALLY.COUNT t"), std::to_string(counters));

  // Above the limit of the target, all of them are refused, and the table stays where it is.
  EXPECT_TRUE(migrate(smaller).starts_with("-ERR Target instance replied with error"));
  EXPECT_EQ(Talk(smaller)("DBSIZE"), "0");
  EXPECT_NE(smaller.log().find("more memory than semel.max-value-bytes allows"), std::string::npos);
  talk("CONFIG SET semel.max-value-bytes 400000");
  EXPECT_TRUE(talk("COPY t copy2").starts_with('-'));
  EXPECT_TRUE(talk.call({"RESTORE", "again", "0", dump.text}).is_error());
  EXPECT_EQ(talk("EXISTS copy2 again t"), "1");
}

// Keys grow beyond their capacity. Without a limit of memory the number of ids is not limited.
TEST_F(Memory, EveryStructureGrows) {
  int next = 0;
  for (const char* const options :
       {"TIMERS CAPACITY 1", "TIMERS CAPACITY 1000 ERROR 0.01", "TIMERS CAPACITY 1 ERROR 0.9",
        "CAPACITY 1", "EXACT CAPACITY 1"}) {
    const std::string key = std::to_string(next++);
    ASSERT_EQ(talk("SIFT.RESERVE " + key + " WINDOW 1h " + options), "+OK");
    for (int i = 0; i < 30; ++i) {
      const std::string answer = talk.call(many({"SIFT.MADD", key}, 1000 * i)).shown();
      ASSERT_EQ(answer.find("FULL"), std::string::npos) << options << ", after " << 1000 * i;
    }
  }
}

TEST_F(Memory, ARestoreIsHeldToTheLimitAndAReloadIsNot) {
  struct Sample {
    const char* make;
    std::string key;
  };
  const std::array samples = {Sample{"BF.INSERT b CAPACITY 100000 ITEMS a", "b"},
                              Sample{"SIFT.ADD s a", "s"}, Sample{"TALLY.INCRBY t a 1 ID x", "t"}};
  std::vector<std::string> dumps;
  for (const Sample& sample : samples) {
    ASSERT_FALSE(talk(sample.make).starts_with('-'));
    dumps.push_back(talk.call({"DUMP", sample.key}).text);
  }
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 50000"), "+OK");
  const Digests before = digests(talk);
  EXPECT_EQ(talk("DEBUG RELOAD"), "+OK") << server.log();
  expect_equal(digests(talk), before);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_TRUE(talk.call({"RESTORE", "again", "0", dumps[i]}).is_error()) << samples[i].key;
  }
  EXPECT_NE(server.log().find("more memory than semel.max-value-bytes allows"), std::string::npos);
  EXPECT_EQ(talk("EXISTS again"), "0");
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes auto"), "+OK");
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(talk.call({"RESTORE", "again" + std::to_string(i), "0", dumps[i]}).shown(), "+OK");
  }
}

struct SmallKey {
  const char* name;
  std::vector<std::string> make;  // % stands for the key
};

const std::vector<SmallKey>& small_keys() {
  static const std::vector<SmallKey> kAll = {
      {"BloomOfOne", {"BF.ADD % a"}},
      {"BloomReserved", {"BF.RESERVE % 0.001 100"}},
      {"BloomGrown", {"BF.RESERVE % 0.01 10", numbers("BF.MADD %", 60)}},
      {"BloomOfAThousand", {"BF.RESERVE % 0.001 1000", "BF.ADD % a"}},
      {"CuckooOfOne", {"CF.ADD % a"}},
      {"CuckooReserved", {"CF.RESERVE % 1000"}},
      {"CuckooGrown", {"CF.RESERVE % 10", numbers("CF.INSERT % ITEMS", 60)}},
      {"CuckooOfHundreds", {"CF.RESERVE % 1000", numbers("CF.INSERT % ITEMS", 300)}},
      {"Sift", {"SIFT.RESERVE % CAPACITY 10", "SIFT.ADD % a"}},
      {"SiftOfAThousand", {"SIFT.RESERVE % CAPACITY 1000", "SIFT.ADD % a"}},
      {"SiftTimers", {"SIFT.RESERVE % TIMERS CAPACITY 10", "SIFT.ADD % a"}},
      {"SiftExact", {"SIFT.RESERVE % EXACT CAPACITY 10", "SIFT.ADD % a"}},
      {"SiftExactOfHundreds", {"SIFT.RESERVE % EXACT CAPACITY 1000", numbers("SIFT.MADD %", 500)}},
      {"SiftClaims", {"SIFT.RESERVE % CAPACITY 10", numbers("SIFT.MCLAIM % me 1h", 50)}},
      {"SiftOfHundredsOfClaims",
       {"SIFT.RESERVE % CAPACITY 100", numbers("SIFT.MCLAIM % me 1h", 300)}},
      {"Tally", {"TALLY.RESERVE % CAPACITY 10", "TALLY.INCRBY % a 1 ID x"}},
      {"TallyOfClients",
       {"TALLY.RESERVE % CAPACITY 10", "TALLY.INCRBY % a 1 OP x 1", "TALLY.INCRBY % a 1 OP y 1"}},
      {"TallyExact", {"TALLY.RESERVE % EXACT CAPACITY 10", "TALLY.INCRBY % a 1 ID x"}},
      {"TallyOfHundreds",
       {"TALLY.RESERVE % CAPACITY 10", numbers("TALLY.MINCRBY % NOID", 500, "counter:", " 1")}},
  };
  return kAll;
}

class SmallKeys : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Kinds, SmallKeys, ::testing::Range<std::size_t>(0, small_keys().size()),
                         [](const auto& kind) { return small_keys()[kind.param].name; });

// The allocator rounds small blocks up, and the server keeps a few words for each key. MEMORY USAGE
// includes both.
TEST_P(SmallKeys, AreToldToWithinATenth) {
  constexpr int kKeys = 1000;
  const RedisServer server(with_module());
  Talk talk(server);
  const auto used = [&] { return info(talk, "memory", "used_memory"); };
  const auto make = [&](int from) {
    for (int i = from; i < from + kKeys; ++i) {
      for (std::string line : small_keys()[GetParam()].make) {
        line.replace(line.find('%'), 1, "key" + std::to_string(i));
        ASSERT_FALSE(talk(line).starts_with('-')) << line;
      }
    }
  };
  make(10'000);  // for the memory that is taken once
  const std::int64_t before = used();
  make(20'000);
  const double taken = static_cast<double>(used() - before) / kKeys;
  double told = 0;
  for (int i = 20'000; i < 20'000 + kKeys; ++i) {
    const std::string key = "key" + std::to_string(i);
    told += static_cast<double>(talk.call({"MEMORY", "USAGE", key}).integer()) / kKeys;
  }
  EXPECT_NEAR(told, taken, 0.1 * taken);
}

// Numbers in a line may ask for anything. The memory that a line takes stays within the limit,
// whatever the line says, even for a moment.
TEST(Lines, OfAHundredBytesTakeNoMoreThanTheLimit) {
  constexpr std::int64_t kLimit = 8 << 20, kSlack = 512 << 10;
  constexpr std::size_t kBytes = 100;
  const std::uint64_t lines = setting("SEMEL_LINES", 20'000);
  const RedisServer server({"--save", "", "--loadmodule", SEMEL_FAULTY_MODULE, "max-value-bytes",
                            std::to_string(kLimit)});
  Talk talk(server);
  const auto peak = [&] { return talk.call({"FAULT.PEAK"}).integer(); };
  Random random(fresh_seed());
  std::vector<CommandLines> commands;
  for (const char* const family : {"TALLY.*", "SIFT.*", "BF.*", "CF.*", "SEMEL.*"}) {
    for (const Answer& name : talk.call({"COMMAND", "LIST", "FILTERBY", "PATTERN", family}).parts) {
      commands.emplace_back(talk, name.text);
    }
  }
  ASSERT_GT(commands.size(), 44u);

  // The watch sees what is given back at once.
  peak();
  ASSERT_EQ(talk("FAULT.MOMENT 11000000"), "+OK");
  ASSERT_GE(peak(), 11'000'000);
  ASSERT_EQ(peak(), 0);

  const std::int64_t at_first = info(talk, "memory", "used_memory");
  std::int64_t most = 0;
  const auto expect_little = [&](const Words& words) {
    std::size_t bytes = 0;
    for (const std::string& word : words) bytes += word.size() + 1;
    if (bytes > kBytes) return;
    peak();
    ASSERT_FALSE(talk.call(words).lost()) << server.log();
    const std::int64_t taken = peak();
    most = std::max(most, taken);
    // The allocator rounds up by a quarter.
    ASSERT_LE(taken, kLimit * 5 / 4 + kSlack) << testing::PrintToString(words);
    const std::int64_t after = info(talk, "memory", "used_memory");
    if (after - at_first > 4 * kLimit) talk("FLUSHALL SYNC");
  };
  for (std::uint64_t i = 0; i < lines && !HasFatalFailure(); ++i) {
    expect_little(commands[random.below(commands.size())].random(random));
  }
  // Numbers around the limit.
  for (double n = 1; n < 1e19 && !HasFatalFailure(); n *= 1.3) {
    const std::string number = std::to_string(static_cast<std::uint64_t>(n));
    for (const char* const line :
         {"BF.RESERVE k 0.01", "BF.RESERVE k 1e-12", "CF.RESERVE k", "SIFT.RESERVE k CAPACITY",
          "SIFT.RESERVE k EXACT CAPACITY", "SIFT.RESERVE k TIMERS CAPACITY",
          "SIFT.RESERVE k MAXBYTES", "TALLY.RESERVE k CAPACITY", "TALLY.RESERVE k EXACT CAPACITY",
          "TALLY.RESERVE k FILTER CAPACITY", "TALLY.RESERVE k MAXBYTES",
          "CF.RESERVE k 100 EXPANSION", "BF.RESERVE k 0.1 10 EXPANSION"}) {
      talk("DEL k");
      Words words = words_of(line);
      words.push_back(number);
      expect_little(words);
    }
    for (const char* const family : {"BF", "CF"}) {
      talk("DEL k");
      expect_little({std::string(family) + ".INSERT", "k", "CAPACITY", number, "ITEMS", "a", "b"});
    }
  }
  EXPECT_GT(most, kLimit / 2);  // the lines asked for much
}

// Chunks of a dump, and merges.
TEST_F(Memory, WhatIsLoadedInChunksIsHeldToTheLimit) {
  talk("CONFIG SET semel.max-value-bytes 200000");
  for (const std::string family : {"BF", "CF"}) {
    const std::string from = family + "from", to = family + "to";
    for (int i = 0; i < 20; ++i) {
      talk.call(many({family + ".INSERT", from, "ITEMS"}, 1000 * i));
    }
    talk("CONFIG SET semel.max-value-bytes 10000");
    std::string refused, position = "0";
    for (;;) {
      const Answer chunk = talk.call({family + ".SCANDUMP", from, position});
      position = chunk.parts[0].shown();
      if (position == "0") break;
      const Answer answer = talk.call({family + ".LOADCHUNK", to, position, chunk.parts[1].text});
      if (answer.is_error()) refused = answer.shown();
    }
    const std::string text =
        "-ERR the filter would take more memory than semel.max-value-bytes "
        "allows, 10000 bytes";
    EXPECT_EQ(refused, text) << family;
    EXPECT_LT(told(family + ".INFO", to, "Size"), 15'000) << family;
    EXPECT_EQ(talk(family + ".MERGE " + to + " " + from), text);
    talk("CONFIG SET semel.max-value-bytes 200000");
  }
}

}  // namespace
}  // namespace semel
