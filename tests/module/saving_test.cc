// A server that has memory for a value, but not for its encoding, can still save, compare and
// rewrite it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "tests/module/module_server.h"
#include "tests/support/process_memory.h"

namespace semel {
namespace {

// Far less than any of the values, and less than their encodings would need in one block.
constexpr std::uint64_t kSpare = std::uint64_t{16} << 20;

void limit_address_space(pid_t pid, rlim_t bytes) {
  const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(::prlimit(pid, RLIMIT_AS, &limit, nullptr), 0);
}

// Calls a command many times, with `words` of its own each.
template <class Arguments>
void repeat(Talk& talk, int times, Arguments words) {
  constexpr int kAtOnce = 16;
  for (int first = 0; first < times; first += kAtOnce) {
    const int end = std::min(first + kAtOnce, times);
    for (int i = first; i < end; ++i) talk.send(words(i));
    for (int i = first; i < end; ++i) ASSERT_FALSE(talk.read().is_error());
  }
}

// Returns a command with a thousand items that no other call has.
Words with_items(Words words, int call, const Words& each) {
  constexpr int kItems = 1000;
  for (int i = 0; i < kItems; ++i) {
    for (const std::string& word : each) {
      words.push_back(word == "#" ? std::to_string(call * kItems + i) : word);
    }
  }
  return words;
}

struct Large {
  const char* name;
  std::string_view make;
  int calls;
  Words command;  // begins each call
  Words each;     // follows a thousand times; # stands for a new number
  std::uint64_t least_bytes;
};

std::ostream& operator<<(std::ostream& out, const Large& large) { return out << large.name; }

class LargeValues : public ::testing::TestWithParam<Large> {
 protected:
  void SetUp() override {
#ifdef SEMEL_SANITIZED
    GTEST_SKIP() << "a sanitizer has memory of its own";
#endif
    ASSERT_EQ(talk_(GetParam().make), "+OK");
    repeat(talk_, GetParam().calls,
           [](int call) { return with_items(GetParam().command, call, GetParam().each); });
    ASSERT_GE(talk_.call({"MEMORY", "USAGE", "k"}).integer(), GetParam().least_bytes);
    // Do not encode yet: an allocator keeps the address space of freed blocks.
    limit_address_space(server_.pid(), status_bytes(server_.pid(), "VmSize") + kSpare);
  }

  std::string persistence(const std::string& field) {
    const std::string text = talk_.call({"INFO", "persistence"}).text;
    const std::size_t at = text.find("\n" + field + ":") + field.size() + 2;
    return text.substr(at, text.find('\r', at) - at);
  }
  void wait_for(const std::string& field) {
    while (persistence(field) == "1") std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void rewrite(const char* with_preamble) {
    ASSERT_EQ(talk_.call({"CONFIG", "SET", "aof-use-rdb-preamble", with_preamble}).shown(), "+OK");
    ASSERT_NO_FATAL_FAILURE(rewrite_aof(talk_));
    EXPECT_EQ(persistence("aof_last_bgrewrite_status"), "ok");
  }

  RedisServer server_{with_module({"--appendonly", "yes", "--appendfsync", "no"})};
  Talk talk_{server_};
};

INSTANTIATE_TEST_SUITE_P(
    OfTypes, LargeValues,
    ::testing::Values(
        Large{"Bloom", "BF.RESERVE k 0.0001 30000000", 1, {"BF.MADD", "k"}, {"#"}, 64 << 20},
        Large{"Cuckoo", "CF.RESERVE k 7000000", 1000, {"CF.INSERT", "k", "ITEMS"}, {"#"}, 64 << 20},
        Large{"Sift",
              "SIFT.RESERVE k WINDOW 1h CAPACITY 15000000",
              1,
              {"SIFT.MADD", "k"},
              {"#"},
              64 << 20},
        Large{"SiftTimers",
              "SIFT.RESERVE k TIMERS WINDOW 1h CAPACITY 10000000",
              1,
              {"SIFT.MADD", "k"},
              {"#"},
              64 << 20},
        Large{"SiftExact",
              "SIFT.RESERVE k EXACT WINDOW 1h CAPACITY 8000000",
              1000,
              {"SIFT.MADD", "k"},
              {"#"},
              20 << 20},
        Large{"Tally",
              "TALLY.RESERVE k WINDOW 1h CAPACITY 8000000",
              300,
              {"TALLY.MINCRBY", "k", "IDS"},
              {"#", "1", "#"},
              64 << 20},
        Large{"TallyExact",
              "TALLY.RESERVE k EXACT WINDOW 1h CAPACITY 1000000",
              500,
              {"TALLY.MINCRBY", "k", "IDS"},
              {"#", "1", "#"},
              64 << 20}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(LargeValues, AreComparedAndSavedWithoutRoomForTheirEncodings) {
  const Digests before = digests(talk_);
  ASSERT_EQ(talk_("PING"), "+PONG") << "ended by DEBUG DIGEST-VALUE";
  ASSERT_EQ(talk_("SAVE"), "+OK");
  ASSERT_FALSE(talk_("BGSAVE").starts_with('-'));
  wait_for("rdb_bgsave_in_progress");
  EXPECT_EQ(persistence("rdb_last_bgsave_status"), "ok");
  rewrite("yes");
  rewrite("no");
  EXPECT_EQ(talk_("PING"), "+PONG");

  limit_address_space(server_.pid(), RLIM_INFINITY);
  ASSERT_EQ(talk_("DEBUG RELOAD NOSAVE"), "+OK");
  expect_equal(digests(talk_), before);
  server_.kill();
  server_.start();
  Talk after(server_);
  expect_equal(digests(after), before);
}

}  // namespace
}  // namespace semel
