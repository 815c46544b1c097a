// INFO semel: its sums over all keys agree with what the INFO command of each key says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/cli/process.h"
#include "tests/module/module_server.h"
#include "tests/module/replicas.h"
#include "tests/module/workload.h"

namespace semel {
namespace {

// The numbers of INFO semel by their names, without "semel_".
std::map<std::string, double> told(Talk& talk) {
  std::map<std::string, double> numbers;
  const std::string text = talk.call({"INFO", "semel"}).text;
  for (std::size_t at = text.find("semel_"); at != std::string::npos;
       at = text.find("semel_", at + 1)) {
    const std::size_t colon = text.find_first_of(":\n", at);
    if (colon == std::string::npos || text[colon] != ':') continue;
    numbers[text.substr(at + 6, colon - at - 6)] = std::stod(text.substr(colon + 1));
  }
  return numbers;
}

double number_of(const Answer& answer) {
  return answer.type == ':' ? static_cast<double>(answer.integer()) : std::stod(answer.text);
}

// Adds up what the INFO commands say of all keys in all databases.
std::map<std::string, double> scanned(Talk& talk) {
  struct Family {
    std::string type, name;
    Words info;
    std::map<std::string, std::string> sums;  // our field and that of the command
  };
  static const std::vector<Family> kFamilies = {
      {"SMLbloom-",
       "bf",
       {"BF.INFO", "", "ALL"},
       {{"bytes", "Size"}, {"items", "Number of items inserted"}, {"capacity", "Capacity"}}},
      {"SMLcuckoo",
       "cf",
       {"CF.INFO", "", "ALL"},
       {{"bytes", "Size"}, {"items", "Number of items inserted"}, {"capacity", "Capacity"}}},
      {"SMLsift--",
       "sift",
       {"SIFT.INFO", ""},
       {{"bytes", "Size"}, {"items", "Ids"}, {"capacity", "Capacity"}, {"claims", "Claims"}}},
      {"SMLtally-",
       "tally",
       {"TALLY.INFO", ""},
       {{"bytes", "Size"}, {"items", "Counters"}, {"capacity", "Capacity"}}}};
  std::map<std::string, double> sums;
  for (const Family& family : kFamilies) {
    for (const auto& [ours, theirs] : family.sums) sums[family.name + "_" + ours] = 0;
    sums[family.name + "_keys"] = 0;
    sums[family.name + "_error_worst"] = 0;
    sums[family.name + "_error_ratio_worst"] = 0;
  }
  for (int database = 0; database < 3; ++database) {
    talk("SELECT " + std::to_string(database));
    for (const Answer& key : talk.call({"KEYS", "*"}).parts) {
      const std::string type = talk.call({"TYPE", key.text}).text;
      const auto family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                       [&](const Family& one) { return one.type == type; });
      if (family == kFamilies.end()) continue;
      Words words = family->info;
      words[1] = key.text;
      const Answer answer = talk.call(words);
      std::map<std::string, Answer> fields;
      for (std::size_t i = 0; i + 1 < answer.parts.size(); i += 2) {
        fields[answer.parts[i].text] = answer.parts[i + 1];
      }
      const std::string prefix = family->name + "_";
      ++sums[prefix + "keys"];
      for (const auto& [ours, theirs] : family->sums) {
        sums[prefix + ours] += number_of(fields.at(theirs));
      }
      const double now = number_of(fields.at("Error rate now"));
      const double goal = number_of(fields.at("Error rate"));
      const auto raise = [](double& to, double by) { to = std::max(to, by); };
      raise(sums[prefix + "error_worst"], now);
      if (goal > 0) raise(sums[prefix + "error_ratio_worst"], now / goal);
    }
  }
  talk("SELECT 0");
  return sums;
}

// Returns what differs; empty if nothing does. A worst error is rounded up by a thirty-second.
std::string differences(Talk& talk) {
  std::string out;
  const std::map<std::string, double> expected = scanned(talk), found = told(talk);
  for (const auto& [name, number] : expected) {
    const auto told = found.find(name);
    const double value = told == found.end() ? -1 : told->second;
    const bool worst = name.ends_with("_worst");
    const bool same =
        worst ? value >= number * (1 - 1e-9) && value <= number * 1.04 + 0x1p-54 : value == number;
    if (!same) {
      out += name + ": INFO " + std::to_string(value) + ", scan " + std::to_string(number) + "\n";
    }
  }
  return out;
}

// Another thread frees what was unlinked, and worst errors follow soon.
void expect_the_sums(Talk& talk) {
  std::string last;
  EXPECT_TRUE(eventually([&] {
    last = differences(talk);
    return last.empty();
  })) << last;
}

// A workload without windows that pass while the test looks at them.
class LastingWorkload {
 public:
  explicit LastingWorkload(std::uint64_t seed) : workload_(seed), random_(seed) {}

  Words next() {
    if (random_.below(40) == 0) return around();
    Words words = workload_.next();
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "WINDOW") words[i + 1] = "1h";
    }
    return words;
  }

 private:
  // Returns a command of the server for keys of any type.
  Words around() {
    const std::string key = std::array{"tally", "sift", "bloom", "cuckoo"}[random_.below(4)] +
                            std::to_string(random_.below(3));
    const std::string database = std::to_string(random_.below(3));
    switch (random_.below(9)) {
      case 0:
        return {"SWAPDB", "0", database};
      case 1:
        return {"MOVE", key, database};
      case 2:
        return {"COPY", key, key, "DB", database, "REPLACE"};
      case 3:
        return {"SET", key, "a string"};
      case 4:
        return {"SELECT", database};
      case 5:
        return random_.below(4) == 0 ? Words{"FLUSHDB", "ASYNC"} : Words{"PING"};
      case 6:
        return random_.below(4) == 0 ? Words{"FLUSHDB", "SYNC"} : Words{"PING"};
      case 7:
        return {"PEXPIRE", key, "1"};
      default:
        return {"RENAME", key, "other:" + key};
    }
  }

  Workload workload_;
  Random random_;
};

void go_on(Talk& talk, LastingWorkload& workload, int commands) {
  for (int i = 0; i < commands; ++i) ASSERT_FALSE(talk.call(workload.next()).lost());
}

class Watch : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Watch, ::testing::Values(1, 2));

TEST_P(Watch, SumsAreThoseOfAScan) {
  LastingWorkload workload(GetParam());
  const RedisServer primary(
      with_module({"--enable-debug-command", "yes", "--appendonly", "yes", "--aof-use-rdb-preamble",
                   "no", "--repl-diskless-sync-delay", "0"}));
  const RedisServer replica(with_module({"--repl-diskless-load", "swapdb"}));
  Talk talk(primary), there(replica);
  talk("SET string x");
  for (int round = 0; round < 5; ++round) {
    go_on(talk, workload, 800);
    expect_the_sums(talk);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  // Values that come from elsewhere: files, payloads, a primary.
  talk("SELECT 0");
  for (const Answer& key : talk.call({"KEYS", "*"}).parts) {
    const Answer payload = talk.call({"DUMP", key.text});
    EXPECT_EQ(talk.call({"RESTORE", "again:" + key.text, "0", payload.text}).shown(), "+OK");
    talk.call({"RESTORE", key.text, "0", "damaged" + payload.text});
  }
  expect_the_sums(talk);
  there("SIFT.ADD mine a");
  follow(replica, primary);
  expect_in_step(primary, replica);
  expect_the_sums(there);
  go_on(talk, workload, 800);
  expect_in_step(primary, replica);
  expect_the_sums(there);
  ASSERT_EQ(talk("DEBUG RELOAD"), "+OK");
  expect_the_sums(talk);
  ASSERT_EQ(talk("DEBUG LOADAOF"), "+OK");
  expect_the_sums(talk);
  EXPECT_EQ(talk("FLUSHALL ASYNC"), "+OK");
  expect_the_sums(talk);
  EXPECT_EQ(told(talk)["sift_bytes"], 0);
}

// More keys than the list of changes holds, each written often.
TEST(WatchInfo, SumsAreThoseOfAScanWithManyKeys) {
  const RedisServer server(with_module());
  Talk talk(server);
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = std::to_string(random.below(2000));
    talk.call(random.below(10) == 0 ? Words{"UNLINK", key}
                                    : Words{"BF.MADD", key, std::to_string(i), std::to_string(-i)});
  }
  EXPECT_GT(told(talk)["bf_keys"], 1500);
  expect_the_sums(talk);
}

TEST(WatchInfo, CountsRefusalsByTheirCause) {
  const RedisServer server(with_module());
  Talk talk(server);
  const auto expect = [&](double full, double stale, double limit, double oom) {
    auto numbers = told(talk);
    EXPECT_EQ(numbers["refused_full"], full);
    EXPECT_EQ(numbers["refused_stale"], stale);
    EXPECT_EQ(numbers["refused_limit"], limit);
    EXPECT_EQ(numbers["refused_oom"], oom);
  };
  talk("BF.RESERVE b 0.01 1 NONSCALING");
  talk("BF.ADD b a");
  expect(0, 0, 0, 0);
  for (int i = 0; i < 10; ++i) talk("BF.ADD b x" + std::to_string(i));
  const double full = told(talk)["refused_full"];
  EXPECT_GE(full, 8);
  expect(full, 0, 0, 0);
  talk("SIFT.ADD s a AT 1");
  talk("SIFT.INSERT s TIMED ITEMS a 1 b 2");
  talk("TALLY.INCRBY t a 1 OP me 1");
  expect(full, 3, 0, 0);
  talk("CONFIG SET semel.max-value-bytes 100000");
  for (const char* const line :
       {"BF.RESERVE new 0.001 300000000", "BF.INSERT new CAPACITY 300000000 ITEMS a",
        "CF.RESERVE new 100000000", "SIFT.RESERVE new CAPACITY 3000000000",
        "SIFT.RESERVE new MAXBYTES 100001", "TALLY.RESERVE new CAPACITY 300000000"}) {
    EXPECT_TRUE(talk(line).starts_with("-ERR")) << line;
  }
  expect(full, 3, 6, 0);
  // No machine has room for these.
  for (const char* const line :
       {"BF.RESERVE new 0.01 10000000000000", "BF.INSERT new CAPACITY 10000000000000 ITEMS a",
        "CF.RESERVE new 1000000000000000", "CF.INSERT new CAPACITY 1000000000000 ITEMS a",
        "BF.INSERT new CAPACITY 10000000000000 VALIDATESCALETO 5 ITEMS a"}) {
    EXPECT_EQ(talk(line),
              "-ERR the filter would take more memory than semel.max-value-bytes allows, "
              "100000 bytes")
        << line;
  }
  expect(full, 3, 11, 0);
  talk("CONFIG SET semel.max-value-bytes 0");
  EXPECT_EQ(talk("BF.RESERVE new 0.01 10000000000000"),
            "-ERR could not create filter: it would need more than 2^46 bits");
  EXPECT_EQ(talk("CF.RESERVE new 1000000000000"),
            "-ERR Insufficient memory to create filter: it would need more than 2^46 bits");
  expect(full, 3, 11, 0);
  // Keys that are there already, and as large as that.
  talk("CONFIG SET semel.max-value-bytes 0");
  talk("BF.RESERVE large 1e-6 200000");
  talk("TALLY.RESERVE table EXACT CAPACITY 10");
  for (int i = 0; i < 1000; ++i) talk("TALLY.INCRBY table a 1 ID " + std::to_string(i));
  const std::string dump = talk.call({"DUMP", "large"}).text;
  const std::string of_table = talk.call({"DUMP", "table"}).text;
  talk("CONFIG SET semel.max-value-bytes 20000");
  EXPECT_TRUE(talk("BF.MERGE merged large").starts_with("-ERR"));
  expect(full, 3, 12, 0);
  EXPECT_TRUE(talk("COPY large copied").starts_with("-ERR"));
  expect(full, 3, 13, 0);
  EXPECT_TRUE(talk.call({"RESTORE", "restored", "0", dump}).shown().starts_with("-ERR"));
  expect(full, 3, 14, 0);
  EXPECT_TRUE(talk.call({"RESTORE", "restored", "0", of_table}).shown().starts_with("-ERR"));
  expect(full, 3, 15, 0);
  EXPECT_EQ(talk("EXISTS merged copied restored"), "0");
  // The server gives no reason. Its log does.
  const std::string log = server.log();
  EXPECT_NE(log.find("a copy of a value of type SMLbloom-: more memory than "), std::string::npos)
      << log;
  EXPECT_NE(log.find(" bytes, and 20000 are allowed"), std::string::npos) << log;
}

TEST(WatchInfo, CountsClaimsThatNobodyEnded) {
  const RedisServer server(with_module());
  Talk talk(server);
  talk("SIFT.RESERVE s WINDOW 50");
  talk("SIFT.MCLAIM s me 1 taken added released committed dropped");
  EXPECT_EQ(told(talk)["sift_claims"], 5);
  EXPECT_EQ(talk("SIFT.RELEASE s released me"), "1");
  EXPECT_EQ(talk("SIFT.COMMIT s committed me"), "\"done\"");
  EXPECT_TRUE(eventually([&] { return talk("SIFT.CLAIM s taken you 1h") == "\"fresh\""; }));
  EXPECT_EQ(talk("SIFT.ADD s added"), "1");
  EXPECT_EQ(told(talk)["sift_claims_expired"], 2);
  // The last one is dropped after the window, by a later write.
  EXPECT_TRUE(eventually([&] {
    talk("SIFT.CLAIM s taken you 1h");
    return told(talk)["sift_claims_expired"] == 3;
  }));
  EXPECT_EQ(told(talk)["sift_claims"], 1);
  talk("DEL s");
  EXPECT_EQ(told(talk)["sift_claims_expired"], 3);
  EXPECT_EQ(told(talk)["sift_claims"], 0);
}

TEST(WatchInfo, CountsExpiredKeysOfEachType) {
  const RedisServer server(with_module({"--enable-debug-command", "yes"}));
  Talk talk(server);
  for (const char* const line : {"BF.ADD b a", "BF.ADD b2 a", "CF.ADD c a", "SIFT.ADD s a",
                                 "TALLY.INCRBY t a 1", "SET string x", "BF.ADD deleted a"}) {
    ASSERT_FALSE(talk(line).starts_with('-'));
  }
  // A string that takes the name of a key of ours does not count as ours.
  talk("DEL deleted");
  talk("SET deleted x");
  for (const char* const key : {"b", "b2", "s", "string", "deleted"}) {
    EXPECT_EQ(talk(std::string("PEXPIRE ") + key + " 1"), "1");
  }
  EXPECT_TRUE(eventually([&] { return talk("DBSIZE") == "2"; }));
  auto numbers = told(talk);
  EXPECT_EQ(numbers["bf_expired_keys"], 2);
  EXPECT_EQ(numbers["cf_expired_keys"], 0);
  EXPECT_EQ(numbers["sift_expired_keys"], 1);
  EXPECT_EQ(numbers["tally_expired_keys"], 0);
  EXPECT_EQ(numbers["bf_evicted_keys"], 0);
  // A string expires right after a key of ours was deleted: active expiry is off, so at the GET.
  ASSERT_EQ(talk("DEBUG SET-ACTIVE-EXPIRE 0"), "+OK");
  talk("SET others x PX 1");
  talk("BF.ADD ours a");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  talk.send({"DEL", "ours"});
  talk.send({"GET", "others"});
  EXPECT_EQ(talk.read().shown(), "1");
  EXPECT_EQ(talk.read().shown(), "nil");
  EXPECT_EQ(told(talk)["bf_expired_keys"], 2);
  // One with the name of ours, likewise. The server does nothing else while it sleeps.
  talk("BF.ADD ours a");
  for (const char* const line : {"DEL ours", "SET ours x PX 1", "DEBUG SLEEP 0.01", "GET ours"}) {
    talk.send(words_of(line));
  }
  for (const char* const answer : {"1", "+OK", "+OK", "nil"}) {
    EXPECT_EQ(talk.read().shown(), answer);
  }
  EXPECT_EQ(told(talk)["bf_expired_keys"], 2);
}

TEST(WatchInfo, CountsEvictedKeysOfEachType) {
  const RedisServer server(
      with_module({"--maxmemory", "20mb", "--maxmemory-policy", "allkeys-random"}));
  Talk talk(server);
  const std::string filler(100'000, 'x');
  for (int i = 0; i < 100; ++i) {
    const std::string key = std::to_string(i);
    talk.call({"BF.ADD", "b" + key, "a"});
    talk.call({"TALLY.RESERVE", "t" + key, "CAPACITY", "10"});
  }
  auto numbers = told(talk);
  ASSERT_EQ(numbers["bf_keys"], 100);
  ASSERT_EQ(numbers["tally_keys"], 100);
  for (int i = 0; i < 600; ++i) talk.call({"SET", "string" + std::to_string(i), filler});
  ASSERT_TRUE(eventually([&] {
    numbers = told(talk);
    return numbers["bf_keys"] + numbers["bf_evicted_keys"] == 100 &&
           numbers["tally_keys"] + numbers["tally_evicted_keys"] == 100;
  })) << talk.call({"INFO", "semel"}).text;
  EXPECT_GT(numbers["bf_evicted_keys"], 5);
  EXPECT_GT(numbers["tally_evicted_keys"], 5);
  EXPECT_LT(numbers["bf_evicted_keys"] + numbers["tally_evicted_keys"],
            static_cast<double>(info(talk, "stats", "evicted_keys")));
}

// The dashboard, the alert rules and the script for redis_exporter.
TEST(WatchInfo, HasEveryMetricThatDocsWatchUses) {
  if (run({.command = {"/usr/bin/python3", "-c", "import redis, yaml"}}).status != 0) {
    GTEST_SKIP() << "no python3-redis or python3-yaml (tools/packages/test)";
  }
  const RedisServer server(with_module());
  Talk talk(server);
  talk("BF.ADD b a");
  const Outcome outcome = run({.command = {"/usr/bin/python3", "tests/module/watch/check_watch.py",
                                           std::to_string(server.port()), "docs/watch"}});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
}

// `make clients` gets it.
std::string fetched(const char* program) {
  return std::filesystem::absolute("build/clients/bin") / program;
}

TEST(WatchAlerts, FireWhenTheyShouldAndOnlyThen) {
  const std::string promtool = fetched("promtool");
  if (!std::filesystem::exists(promtool)) GTEST_SKIP() << "`make clients` gets promtool";
  for (const Words& words : {Words{"check", "rules", "docs/watch/alerts.yml"},
                             Words{"test", "rules", "tests/module/watch/alerts_test.yml"}}) {
    Words command = {promtool};
    command.insert(command.end(), words.begin(), words.end());
    const Outcome outcome = run({.command = command});
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  }
}

// Prometheus evaluates the dashboard and the alerts with what redis_exporter tells of a server.
TEST(WatchInfo, ReachesPrometheusThroughRedisExporter) {
  const std::string exporter = fetched("prometheus-redis-exporter"), promtool = fetched("promtool");
  if (!std::filesystem::exists(exporter) || !std::filesystem::exists(promtool)) {
    GTEST_SKIP() << "`make clients` gets redis_exporter and promtool";
  }
  if (run({.command = {"/usr/bin/python3", "-c", "import redis"}}).status != 0) {
    GTEST_SKIP() << "no python3-redis (tools/packages/test)";
  }
  const RedisServer server(with_module());
  Talk talk(server);
  for (const char* const line :
       {"BF.ADD b a", "CF.ADD c a", "SIFT.ADD s a", "TALLY.INCRBY t a 1"}) {
    ASSERT_FALSE(talk(line).starts_with('-'));
  }
  const Outcome outcome =
      run({.command = {"/usr/bin/python3", "tests/module/watch/check_exporter.py",
                       std::to_string(server.port()), "docs/watch", exporter, promtool}});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  RecordProperty("client", outcome.out.substr(0, outcome.out.find(':')));  // for tools/test-servers
}

std::size_t warnings(const RedisServer& server) {
  const std::string log = server.log();
  std::size_t count = 0;
  for (std::size_t at = log.find("may evict any key"); at != std::string::npos;
       at = log.find("may evict any key", at + 1)) {
    ++count;
  }
  return count;
}

TEST(WatchInfo, WarnsOfKeysThatMayBeEvictedOnceForEachSetting) {
  const RedisServer server(with_module({"--maxmemory", "100mb"}));
  Talk talk(server);
  auto make = [&, next = 0]() mutable {
    talk("SIFT.RESERVE s" + std::to_string(++next));
    talk("TALLY.INCRBY t" + std::to_string(next) + " a 1");
  };
  make();
  talk("CONFIG SET maxmemory-policy volatile-lru");
  make();
  EXPECT_EQ(warnings(server), 0u) << server.log();
  talk("CONFIG SET maxmemory-policy allkeys-lfu");
  talk("BF.ADD b a");  // a filter is a cache
  EXPECT_EQ(warnings(server), 0u);
  make();
  make();
  EXPECT_EQ(warnings(server), 1u);
  talk("CONFIG SET hz 20");
  make();
  EXPECT_EQ(warnings(server), 1u);
  talk("CONFIG SET maxmemory-policy noeviction");
  talk("CONFIG SET maxmemory-policy allkeys-random");
  make();
  EXPECT_EQ(warnings(server), 2u);
  talk("CONFIG SET maxmemory 0");
  make();
  EXPECT_EQ(warnings(server), 2u);
}

}  // namespace
}  // namespace semel
