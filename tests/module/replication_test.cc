// Replicas, and servers after a restart, have the same bytes as the primary.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "semel/core/internal/random.h"
#include "tests/module/module_server.h"
#include "tests/module/replicas.h"
#include "tests/module/samples.h"
#include "tests/module/workload.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_cluster.h"

namespace semel {
namespace {

// A late replica is served at once.
Words serving(Words arguments = {}) {
  arguments.insert(arguments.end(), {"--repl-diskless-sync-delay", "0"});
  return with_module(std::move(arguments));
}

void expect_no_failed_effect(const RedisServer& server) {
  Talk talk(server);
  EXPECT_EQ(info(talk, "semel", "semel_effects_failed"), 0) << server.log();
}

// Their settings differ: effects say everything, and no limit is checked again.
Words other_settings() {
  return with_module({}, {"tally-window",        "1s",  "tally-error",     "0.5",
                          "tally-capacity",      "7",   "sift-window",     "1s",
                          "sift-error",          "0.5", "sift-capacity",   "7",
                          "bf-error-rate",       "0.5", "bf-initial-size", "7",
                          "bf-expansion-factor", "1",   "cf-initial-size", "7",
                          "cf-bucket-size",      "1",   "cf-error",        "0.1",
                          "max-value-bytes",     "1",   "max-arguments",   "2"});
}

// Returns how many calls of a command succeeded: filters without a common secret do not merge.
std::int64_t answered(Talk& talk, const std::string& command) {
  const std::string text = talk.call({"INFO", "commandstats"}).text;
  const auto field = [&](const std::string& name) {
    const std::size_t line = text.find("cmdstat_" + command + ":");
    const std::size_t at = text.find(name, line);
    if (line == std::string::npos || at == std::string::npos) return std::int64_t{0};
    return std::int64_t{std::stoll(text.substr(at + name.size()))};
  };
  return field("calls=") - field("failed_calls=");
}

class Replication : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Replication, ::testing::Values(1, 2));

TEST_P(Replication, EndsInTheSameDigests) {
  constexpr int kCommands = 3000;
  Workload workload(GetParam());
  const RedisServer primary(serving());
  const RedisServer from_the_start(other_settings());
  RedisServer restarted(with_module(
      {"--save", "3600", "1000000", "--replicaof", "127.0.0.1", std::to_string(primary.port())}));
  const RedisServer of_the_middle(other_settings());
  Talk talk(primary);
  follow(from_the_start, primary);
  expect_in_step(primary, from_the_start);
  expect_in_step(primary, restarted);

  run(talk, workload, kCommands);
  follow(of_the_middle, primary);  // a full synchronisation, during writes
  run(talk, workload, kCommands / 2);
  expect_in_step(primary, of_the_middle);
  expect_in_step(primary, restarted);
  restarted.stop();
  run(talk, workload, kCommands / 2);
  restarted.start();  // it asks for a part of the stream, from the backlog
  run(talk, workload, kCommands);

  let_expire(talk);
  const Digests expected = digests(talk);
  EXPECT_GT(expected.size(), 8u);
  for (const RedisServer* const replica :
       std::array<const RedisServer*, 3>{&from_the_start, &of_the_middle, &restarted}) {
    expect_in_step(primary, *replica);
    Talk there(*replica);
    expect_equal(digests(there), expected);
    expect_no_failed_effect(*replica);
  }
  EXPECT_GT(info(talk, "stats", "sync_partial_ok"), 0);
  for (const char* const merge : {"bf.merge", "cf.merge"}) EXPECT_GT(answered(talk, merge), 10);
}

// A command that is refused in part, or a key made with extreme settings, is an effect like others.
// A replica that answers an effect with an error may be configured to end itself.
TEST(Replication, SendsNothingThatAReplicaAnswersWithAnError) {
  const RedisServer primary(serving({"--appendonly", "yes", "--aof-use-rdb-preamble", "no"}));
  const RedisServer replica(with_module({"--propagation-error-behavior", "panic-on-replicas"}));
  follow(replica, primary);
  expect_in_step(primary, replica);
  Talk talk(primary);
  for (const std::string_view line :
       {"BF.RESERVE full 0.01 2 NONSCALING", "BF.MADD full 1 2 3 4",
        "BF.INSERT inserted CAPACITY 2 NONSCALING ITEMS 1 2 3 4", "CF.RESERVE cf 4 EXPANSION 0",
        "CF.INSERT cf ITEMS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
        "TALLY.RESERVE t EXACT", "TALLY.MINCRBY t IDS a 1 x a 2 x b 9223372036854775807 y b 1 z",
        "SIFT.RESERVE s WINDOW 1s", "SIFT.INSERT s TIMED ITEMS old 1 new 9223372036854775807",
        "CONFIG SET semel.cf-initial-size 2", "CF.ADD small a",
        "CONFIG SET semel.cf-initial-size 3", "CF.ADDNX odd a",
        "CONFIG SET semel.cf-bucket-size 255", "CF.INSERT wide ITEMS a",
        "CONFIG SET semel.bf-initial-size 1", "CONFIG SET semel.bf-expansion-factor 0",
        "BF.MADD one a b c"}) {
    ASSERT_NE(talk(line), "lost") << line;
  }
  expect_in_step(primary, replica);
  Talk there(replica);
  expect_equal(digests(there), digests(talk));
  expect_no_failed_effect(replica);
  const Digests before = digests(talk);
  ASSERT_EQ(talk("DEBUG LOADAOF"), "+OK");
  expect_equal(digests(talk), before);
  expect_no_failed_effect(primary);
  EXPECT_EQ(primary.log().find("CRITICAL"), std::string::npos) << primary.log();
}

// Returns a command with `count` items.
Words with_numbers(std::string_view line, int count) {
  Words words = words_of(line);
  for (int i = 0; i < count; ++i) words.push_back(std::to_string(i));
  return words;
}

// If a limit or lack of memory cuts a command off at the primary, the replica cuts it off too.
TEST(Replication, CarriesExactlyWhatHappened) {
  const RedisServer primary(serving({"--appendonly", "yes", "--aof-use-rdb-preamble", "no"}));
  const RedisServer replica(with_module());
  follow(replica, primary);
  expect_in_step(primary, replica);
  Talk talk(primary);
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 30000"), "+OK");
  for (const char* const line :
       {"BF.MADD madd", "BF.INSERT insert CAPACITY 10 ITEMS", "CF.INSERT cf ITEMS",
        "CF.INSERTNX cfnx ITEMS", "BF.INSERT fixed CAPACITY 500 NONSCALING ITEMS"}) {
    const Answer answer = talk.call(with_numbers(line, 20'000));
    ASSERT_FALSE(answer.is_error() || answer.lost()) << answer.shown();
  }
  EXPECT_LT(talk.call({"BF.CARD", "madd"}).integer(), 20'000);
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 0"), "+OK");
  ASSERT_EQ(talk("BF.RESERVE huge 0.01 1000 EXPANSION 1000000000"), "+OK");
  const Answer answer = talk.call(with_numbers("BF.MADD huge", 2000));
  EXPECT_TRUE(answer.parts.back().shown().starts_with("-OOM ")) << answer.parts.back().shown();
  EXPECT_TRUE(talk("BF.ADD huge another").starts_with("-OOM "));
  expect_in_step(primary, replica);
  Talk there(replica);
  const Digests expected = digests(talk);
  expect_equal(digests(there), expected);
  EXPECT_EQ(there("BF.CARD huge"), talk("BF.CARD huge"));
  expect_no_failed_effect(replica);
  ASSERT_EQ(talk("DEBUG LOADAOF"), "+OK");
  expect_equal(digests(talk), expected);
  expect_no_failed_effect(primary);
}

// Items that the limit refuses stand between items that were added.
TEST(Replication, CopiesThatAreRefusedAtTheLimitAreRefusedEverywhere) {
  const RedisServer primary(serving());
  const RedisServer replica(other_settings());
  follow(replica, primary);
  expect_in_step(primary, replica);
  Talk talk(primary);
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 100000"), "+OK");
  Words insert = {"CF.INSERT", "c", "ITEMS"};
  for (int i = 0; i < 3000; ++i) insert.push_back(i % 100 == 99 ? std::to_string(i) : "same");
  const Answer answer = talk.call(insert);
  ASSERT_EQ(answer.parts.size(), 3000u);
  EXPECT_EQ(answer.parts.front().shown(), "1");
  EXPECT_EQ(answer.parts.back().shown(), "-1");
  EXPECT_EQ(talk("CF.ADD c other"), "1");
  expect_in_step(primary, replica);
  Talk there(replica);
  expect_equal(digests(there), digests(talk));
  expect_no_failed_effect(replica);
}

// Batches that the limit refuses in part, in every form. The replica has no limit.
class TablesAtTheLimit : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, TablesAtTheLimit, ::testing::Values("", " EXACT", " FILTER"),
                         [](const auto& kind) {
                           const std::string_view name = kind.param;
                           return name.empty() ? "Clients" : std::string(name.substr(1));
                         });

TEST_P(TablesAtTheLimit, AreTheSameAtReplicasAndInTheFile) {
  const RedisServer primary(serving({"--appendonly", "yes", "--aof-use-rdb-preamble", "no"}));
  const RedisServer replica(other_settings());
  follow(replica, primary);
  expect_in_step(primary, replica);
  Talk talk(primary), there(replica);
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 60000"), "+OK");
  ASSERT_EQ(talk(std::string("TALLY.RESERVE t CAPACITY 100 WINDOW 300ms") + GetParam()), "+OK");
  Random random(1);
  std::uint64_t sequence = 0, refused = 0, mixed = 0;
  const auto counter = [&](int call) {
    return std::to_string(random.below(call < 100 ? 300 : 3000));
  };
  for (int call = 0; call < 500; ++call) {
    Words words = {"TALLY.MINCRBY", "t"};
    const std::uint64_t form = random.below(4);
    if (form == 0) words.emplace_back("NOID");
    if (form == 1) words.emplace_back("IDS");
    if (form >= 2) {
      const std::uint64_t again = random.below(10);  // a part of the batch is a retry
      words.insert(words.end(),
                   {"OP", "client", std::to_string(sequence - std::min(sequence, again))});
    }
    const std::uint64_t additions = 1 + random.below(call % 100 == 0 ? 700 : 10);
    for (std::uint64_t i = 0; i < additions; ++i) {
      words.push_back(counter(call));
      words.push_back(std::to_string(random.below(3)));
      if (form == 1) words.push_back(std::to_string(random.below(2000)));
    }
    if (form >= 2) sequence += additions;
    if (random.below(20) == 0) talk("TALLY.DEL t " + counter(0) + " " + counter(0));
    const Answer answer = talk.call(words);
    ASSERT_EQ(answer.parts.size(), additions) << answer.shown();
    const auto limited = static_cast<std::uint64_t>(
        std::count_if(answer.parts.begin(), answer.parts.end(), [](const Answer& one) {
          return one.shown().find("semel.max-value-bytes") != std::string::npos;
        }));
    refused += limited;
    if (limited > 0 && limited < additions) ++mixed;
    if (call % 100 != 99) continue;
    expect_in_step(primary, replica);
    expect_equal(digests(there), digests(talk));
    ASSERT_FALSE(HasFailure()) << call;
  }
  EXPECT_GT(refused, 500u);
  EXPECT_GT(mixed, 100u);
  expect_no_failed_effect(replica);
  const Digests expected = digests(talk);
  ASSERT_EQ(talk("DEBUG LOADAOF"), "+OK");
  expect_equal(digests(talk), expected);
  expect_no_failed_effect(primary);
}

// A call of refusals alone is not sent.
TEST(Replication, SaysNothingOfRefusalsAtTheLimit) {
  const RedisServer primary(serving());
  const RedisServer replica(other_settings());
  follow(replica, primary);
  Talk talk(primary), there(replica);
  ASSERT_EQ(talk("TALLY.INCRBY t a 1 ID x"), "[1, \"applied\"]");
  ASSERT_EQ(talk("CONFIG SET semel.max-value-bytes 1000"), "+OK");
  expect_in_step(primary, replica);
  const std::int64_t applied = info(there, "semel", "semel_effects_applied");
  for (const char* const line :
       {"TALLY.INCRBY t b 1", "TALLY.INCRBY t b 1 ID y", "TALLY.MINCRBY t NOID b 1 c 1",
        "TALLY.MINCRBY t IDS b 1 y a 1 x", "TALLY.MINCRBY t OP c 1 b 1"}) {
    EXPECT_NE(talk(line).find("semel.max-value-bytes"), std::string::npos) << line;
  }
  expect_in_step(primary, replica);
  EXPECT_EQ(info(there, "semel", "semel_effects_applied"), applied);
  expect_equal(digests(there), digests(talk));
  expect_no_failed_effect(replica);
}

// An effect that does something else than it did at the primary is counted, even if it changes
// something.
TEST(Replication, SeesADivergence) {
  const RedisServer primary(serving());
  const RedisServer replica(with_module({"--replica-read-only", "no"}));
  follow(replica, primary);
  expect_in_step(primary, replica);
  Talk talk(primary), there(replica);
  for (const char* const line :
       {"TALLY.INCRBY t a 1", "BF.ADD b a", "CF.ADD c a", "SIFT.ADD s a"}) {
    talk(line);
  }
  expect_in_step(primary, replica);
  expect_no_failed_effect(replica);
  std::int64_t seen = 0;
  const auto expect_seen = [&](std::string_view stray, std::string_view line) {
    there(stray);
    talk(line);
    expect_in_step(primary, replica);
    EXPECT_EQ(info(there, "semel", "semel_effects_failed"), ++seen) << line;
  };
  expect_seen("TALLY.INCRBY t a 5", "TALLY.INCRBY t a 1");
  expect_seen("BF.ADD b x", "BF.MADD b x y");
  expect_seen("SIFT.ADD s x", "SIFT.MADD s x y");
  expect_seen("CF.ADD c x", "CF.INSERTNX c ITEMS x y");
}

// A replica of a replica, and the AOF file of a replica, get the same effects.
TEST(Replication, GoesOnBehindAReplica) {
  Workload workload(7);
  const RedisServer primary(serving());
  RedisServer middle(serving({"--appendonly", "yes"}));
  const RedisServer last(with_module());
  follow(middle, primary);
  follow(last, middle);
  expect_in_step(primary, middle);
  expect_in_step(middle, last);
  Talk talk(primary);
  run(talk, workload, 2000);
  let_expire(talk);
  const Digests expected = digests(talk);
  expect_in_step(primary, middle);
  expect_in_step(middle, last);
  {
    Talk there(last);
    expect_equal(digests(there), expected);
  }
  {
    // The replica becomes a primary, and keeps its data over a restart.
    Talk there(middle);
    there("REPLICAOF NO ONE");
    expect_equal(digests(there), expected);
  }
  middle.stop();
  middle.start();
  Talk again(middle);
  expect_equal(digests(again), expected);
  expect_no_failed_effect(middle);
}

TEST(Replication, SaysNothingWhenNothingChanged) {
  const RedisServer primary(serving());
  const RedisServer replica(with_module());
  follow(replica, primary);
  expect_in_step(primary, replica);
  Talk talk(primary);
  for (const Sample& sample : samples()) ASSERT_TRUE(make_sample(talk, sample, sample.name));
  Words silent = {"TALLY.GET none a",
                  "TALLY.DEL none a",
                  "TALLY.DEL Tally none",
                  "TALLY.INCRBY Tally a x",
                  "TALLY.RESERVE Tally",
                  "TALLY.RESERVE new WINDOW 0",
                  "SIFT.COMMIT none a b",
                  "SIFT.RELEASE none a b",
                  "SIFT.COMMIT Sift a b",
                  "SIFT.RELEASE Sift d b",
                  "SIFT.MCLAIM Sift other 1h a d",
                  "SIFT.MCOMMIT Sift b a d",
                  "SIFT.MCOMMIT none b a",
                  "SIFT.MRELEASE Sift b d",
                  "SIFT.MRELEASE none b a",
                  "SIFT.RESERVE Sift",
                  "SIFT.ADD Sift d AT x",
                  "BF.RESERVE Bloom 0.1 1",
                  "BF.RESERVE new 2 1",
                  "BF.EXISTS none a",
                  "BF.MADD Bloom a b c",
                  "BF.INSERT new NOCREATE ITEMS a",
                  "BF.MERGE Bloom Bloom",
                  "CF.MERGE Cuckoo Cuckoo",
                  "CF.DEL Cuckoo z",
                  "CF.DEL none a",
                  "CF.INSERTNX Cuckoo ITEMS a t",
                  "CF.RESERVE Cuckoo 100",
                  "CF.INSERT new NOCREATE ITEMS a",
                  "TALLY.INCRBY Bloom a 1",
                  "BF.ADD Tally a",
                  "SIFT.ADD Cuckoo a",
                  "CF.ADD Sift a"};
  for (const Sample& sample : samples()) {
    silent.push_back(filled(sample.no_change, sample.name));
    silent.push_back(filled(sample.read, sample.name));
  }
  const Digests before = digests(talk);
  for (const std::string& command : silent) {
    const std::int64_t offset = info(talk, "replication", "master_repl_offset");
    talk(command);
    const std::int64_t sent = info(talk, "replication", "master_repl_offset") - offset;
    // A PING goes out every ten seconds.
    EXPECT_LT(sent, 15) << command;
  }
  expect_equal(digests(talk), before);
  const std::int64_t offset = info(talk, "replication", "master_repl_offset");
  talk("TALLY.INCRBY Tally a 1");
  EXPECT_GT(info(talk, "replication", "master_repl_offset"), offset + 15);
}

// Filters whose merge takes a hundred steps or more, between which the server serves others.
void make_large_filters(Talk& talk) {
  ASSERT_EQ(talk("BF.RESERVE a 0.001 70000000"), "+OK");
  ASSERT_EQ(talk("BF.LIKE b a"), "+OK");
  for (const std::string key : {"a", "b"}) ASSERT_EQ(talk("BF.ADD " + key + " item:" + key), "1");
}

// Sends a merge of large filters and another command, in this order, while the server stands still:
// so it meets both at once. Returns the answer to the second.
std::string during_merge(const RedisServer& server, const Talk& merging, Talk& talk,
                         std::string_view command) {
  server.pause();
  merging.send(words_of("BF.MERGE d a b"));
  talk.send(words_of(command));
  server.resume();
  return talk.read().shown();
}

TEST(Jobs, EndWhenTheirServerBecomesAReplica) {
  const RedisServer server(serving()), other(serving());
  Talk talk(server), waiting(server);
  ASSERT_NO_FATAL_FAILURE(make_large_filters(talk));
  const std::string follows = "REPLICAOF 127.0.0.1 " + std::to_string(other.port());
  ASSERT_EQ(during_merge(server, waiting, talk, follows), "+OK");
  const Answer answer = waiting.read();
  EXPECT_TRUE(answer.is_error() || answer.lost()) << answer.shown();
  ASSERT_NO_FATAL_FAILURE(expect_in_step(other, server));
  EXPECT_EQ(talk("EXISTS a b d"), "0");  // the primary has none either
  expect_no_failed_effect(server);
}

TEST(Jobs, GoOnWithoutTheirClient) {
  const RedisServer server(serving());
  Talk talk(server);
  ASSERT_NO_FATAL_FAILURE(make_large_filters(talk));
  {
    const Talk leaving(server);
    ASSERT_EQ(during_merge(server, leaving, talk, "PING"), "+PONG");
  }
  EXPECT_TRUE(eventually([&] { return talk("BF.EXISTS d item:b") != "0"; }));
  EXPECT_EQ(talk("BF.MEXISTS d item:a item:b"), "[1, 1]");
}

// A server that hands over to another must not change its data any more, or it would end itself.
TEST(Jobs, WaitWhileWritesArePaused) {
  const RedisServer server(serving()), replica(serving());
  follow(replica, server);
  expect_in_step(server, replica);
  for (const char* const what : {"WRITE", "ALL"}) {
    Talk talk(server), waiting(server);
    talk("FLUSHALL");
    ASSERT_NO_FATAL_FAILURE(make_large_filters(talk));
    const std::string pause = std::string("CLIENT PAUSE 200 ").append(what);
    ASSERT_EQ(during_merge(server, waiting, talk, pause), "+OK");
    EXPECT_EQ(waiting.read().shown(), "+OK");
    expect_in_step(server, replica);
    Talk there(replica);
    EXPECT_EQ(there("BF.MEXISTS d item:a item:b"), "[1, 1]");
    expect_no_failed_effect(replica);
  }
}

TEST(Jobs, EndWithAPlannedFailover) {
  const RedisServer first(serving()), second(serving());
  follow(second, first);
  expect_in_step(first, second);
  Talk talk(first), there(second);
  {
    Talk waiting(first);
    ASSERT_NO_FATAL_FAILURE(make_large_filters(talk));
    ASSERT_EQ(during_merge(first, waiting, talk, "FAILOVER"), "+OK");
    const Answer answer = waiting.read();
    EXPECT_TRUE(answer.is_error() || answer.lost() || answer.shown() == "+OK") << answer.shown();
  }
  ASSERT_TRUE(eventually([&] { return there.call({"ROLE"}).parts.at(0).text == "master"; }))
      << first.log();
  Talk again(first);
  expect_in_step(second, first);
  expect_equal(digests(again), digests(there));
  expect_no_failed_effect(first);
  // Another try merges the rest.
  EXPECT_EQ(there("BF.MERGE d a b"), "+OK");
  EXPECT_EQ(there("BF.MEXISTS d item:a item:b"), "[1, 1]");
}

TEST(Jobs, EndWithAFailoverOfACluster) {
  RedisCluster cluster(3, serving());
  const std::size_t primary = cluster.primary_of(RedisCluster::kSlots - 1);
  // Keys of one slot of this primary.
  std::string tag = "x";
  Talk talk(cluster.node(primary));
  while (talk("SET {" + tag + "} 1") != "+OK") tag += 'x';
  ASSERT_EQ(talk("BF.RESERVE {" + tag + "}a 0.001 70000000"), "+OK");
  ASSERT_EQ(talk("BF.LIKE {" + tag + "}b {" + tag + "}a"), "+OK");
  for (const char* const key : {"a", "b"}) {
    ASSERT_EQ(talk("BF.ADD {" + tag + "}" + key + " item:" + key), "1");
  }
  const Talk waiting(cluster.node(primary));
  std::string merge = "BF.MERGE {" + tag + "}d";
  for (int i = 0; i < 8; ++i) merge += " {" + tag + "}a {" + tag + "}b";  // makes the merge slow
  waiting.send(words_of(merge));
  ASSERT_TRUE(eventually([&] { return info(talk, "semel", "semel_jobs_started") != 0; }));
  cluster.fail_over(primary);
  cluster.wait_until_ok();
  EXPECT_EQ(cluster.node(primary).log().find("ASSERTION"), std::string::npos);
  std::vector<Digests> found;
  for (std::size_t node = 0; node < cluster.size(); ++node) {
    Talk there(cluster.node(node));
    if (Digests some = digests(there); !some.empty()) found.push_back(std::move(some));
  }
  ASSERT_EQ(found.size(), 2u);
  expect_equal(found[0], found[1]);
}

// A merge publishes one event, however many pieces it has, at the primary and at its replica.
TEST(Jobs, TellOneEventForAMerge) {
  const RedisServer server(serving({"--notify-keyspace-events", "Ed"}));
  const RedisServer replica(serving({"--notify-keyspace-events", "Ed"}));
  follow(replica, server);
  expect_in_step(server, replica);
  Talk talk(server);
  ASSERT_NO_FATAL_FAILURE(make_large_filters(talk));
  talk("CF.ADD ca x");
  expect_in_step(server, replica);
  const auto events_of = [](Talk& listener) {  // up to the published end, at both servers
    std::string events;
    while (true) {
      const std::string event = listener.read().parts.at(2).text;
      if (event.ends_with(":end")) return events;
      events += event.substr(event.find(':') + 1) + ' ';
    }
  };
  Talk here(server), there(replica);
  here.call({"PSUBSCRIBE", "__keyevent@0__:*"});
  there.call({"PSUBSCRIBE", "__keyevent@0__:*"});
  struct Case {
    const char *line, *told, *told_there;
  };
  for (const Case& merge :
       {Case{"BF.MERGE d a", "bf.merge ", "bf.reserve "},
        Case{"BF.MERGE d b a", "bf.merge ", "bf.loadchunk "}, Case{"BF.MERGE d b", "", ""},
        Case{"CF.MERGE cd ca", "cf.merge ", "cf.reserve "}}) {
    ASSERT_EQ(talk(merge.line), "+OK");
    talk("PUBLISH __keyevent@0__:end d");
    EXPECT_EQ(events_of(here), merge.told) << merge.line;
    EXPECT_EQ(events_of(there), merge.told_there) << merge.line;
  }
  talk("BF.LIKE e a");
  talk("MULTI");
  talk("BF.MERGE e a b");
  ASSERT_EQ(talk("EXEC"), "[+OK]");
  talk("PUBLISH __keyevent@0__:end d");
  EXPECT_EQ(events_of(here), "bf.like bf.merge ");
}

// A step of a job does not write if the server would not let a client write.
struct Denial {
  const char* name;
  const char* cause;
  const char* end;
  const char* error;
};

class JobsDenied : public ::testing::TestWithParam<Denial> {};
INSTANTIATE_TEST_SUITE_P(
    Jobs, JobsDenied,
    ::testing::Values(Denial{"OutOfMemory", "CONFIG SET maxmemory 1mb", "CONFIG SET maxmemory 0",
                             "-OOM "},
                      Denial{"FewReplicas", "CONFIG SET min-replicas-to-write 1",
                             "CONFIG SET min-replicas-to-write 0", "-NOREPLICAS "},
                      Denial{"DiskErrors", "CONFIG SET stop-writes-on-bgsave-error yes",
                             "CONFIG SET stop-writes-on-bgsave-error no", "-MISCONF "}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(JobsDenied, Stop) {
  const Denial& denial = GetParam();
  const RedisServer server(
      serving({"--save", "3600", "1000000", "--stop-writes-on-bgsave-error", "no"}));
  std::filesystem::create_directories(server.directory() / "dump.rdb" / "in the way");
  Talk talk(server), waiting(server);
  ASSERT_FALSE(talk("BGSAVE").starts_with('-'));
  ASSERT_TRUE(eventually([&] {
    return talk.call({"INFO", "persistence"}).text.find("bgsave_status:err") != std::string::npos;
  }));
  ASSERT_NO_FATAL_FAILURE(make_large_filters(talk));
  std::string answer = "+OK";
  for (int tries = 0; tries < 20 && answer == "+OK"; ++tries) {  // the merge may win the race
    talk("DEL d");
    const std::int64_t jobs = info(talk, "semel", "semel_jobs_started");
    waiting.send(words_of("BF.MERGE d a b"));
    ASSERT_TRUE(eventually([&] { return info(talk, "semel", "semel_jobs_started") != jobs; }));
    ASSERT_EQ(talk(denial.cause), "+OK");
    answer = waiting.read().shown();
    ASSERT_EQ(talk(denial.end), "+OK");
  }
  EXPECT_TRUE(answer.starts_with(denial.error)) << answer;
  EXPECT_EQ(talk("BF.MERGE d a b"), "+OK");
  EXPECT_EQ(talk("BF.MEXISTS d item:a item:b"), "[1, 1]");
}

// The replica has a limit of one byte, which does not apply to what a client of the primary
// restores.
TEST(Replication, LimitsAreThoseOfThePrimary) {
  const RedisServer primary(serving());
  const RedisServer replica(other_settings());
  follow(replica, primary);
  Talk talk(primary);
  for (const char* const line :
       {"BF.RESERVE b 0.01 1000", "CF.RESERVE c 1000", "SIFT.RESERVE s", "TALLY.RESERVE t"}) {
    ASSERT_EQ(talk(line), "+OK");
    const std::string key(1, words_of(line)[1][0]);
    const std::string dump = talk.call({"DUMP", key}).text;
    ASSERT_EQ(talk.call({"RESTORE", key + "again", "0", dump}).shown(), "+OK");
  }
  talk("SIFT.ADD s a");
  talk("TALLY.INCRBY t a 1 ID x");
  expect_in_step(primary, replica);
  Talk there(replica);
  expect_equal(digests(there), digests(talk));
  expect_no_failed_effect(replica);
}

TEST(Replication, IsReadOnlyThere) {
  const RedisServer primary(serving());
  const RedisServer replica(with_module());
  follow(replica, primary);
  Talk talk(primary);
  ASSERT_EQ(talk("TALLY.INCRBY t a 1 ID x"), "[1, \"applied\"]");
  expect_in_step(primary, replica);
  Talk there(replica);
  EXPECT_EQ(there("TALLY.GET t a"), "1");
  EXPECT_EQ(there("TALLY.INCRBY t a 1"), "-READONLY You can't write against a read only replica.");
  // A retry after a failover is recognised.
  there("REPLICAOF NO ONE");
  EXPECT_EQ(there("TALLY.INCRBY t a 1 ID x"), "[1, \"duplicate\"]");
}

// A server may have a family under another name, or not at all. It keeps the keys nevertheless.
const Words kWithoutFilters = {"bf-prefix", "off", "cf-prefix", "off"};
const Words kOtherNames = {"bf-prefix", "MYBF", "cf-prefix", "MYCF"};

TEST(Replication, KeepsFiltersWhereTheirCommandsAreOff) {
  Workload workload(21);
  const RedisServer primary(serving());
  const RedisServer replica(with_module({"--repl-diskless-sync-delay", "0"}, kWithoutFilters));
  const RedisServer renamed(with_module({}, kOtherNames));
  Talk talk(primary), there(replica);
  run(talk, workload, 1000);
  follow(replica, primary);
  follow(renamed, replica);  // passes on effects of commands that it lacks
  expect_in_step(primary, replica);
  expect_in_step(replica, renamed);
  run(talk, workload, 2000);
  let_expire(talk);
  expect_in_step(primary, replica);
  expect_in_step(replica, renamed);
  const Digests expected = digests(talk);
  expect_equal(digests(there), expected);
  Talk last(renamed);
  expect_equal(digests(last), expected);
  expect_no_failed_effect(replica);
  expect_no_failed_effect(renamed);

  // The other way round: the replica becomes the primary.
  ASSERT_EQ(there("REPLICAOF NO ONE"), "+OK");
  ASSERT_NO_FATAL_FAILURE(follow(primary, replica));
  expect_in_step(replica, primary);
  for (const Answer& key : there.call({"KEYS", "*"}).parts) {
    ASSERT_EQ(there.call({"COPY", key.text, "copy:" + key.text}).shown(), "1");
  }
  run(there, workload, 500);  // it has no commands of filters
  let_expire(there);
  expect_in_step(replica, primary);
  expect_equal(digests(talk), digests(there));
  expect_no_failed_effect(primary);
}

struct Keeping {
  const char* name;
  Words arguments;
};

class Reload : public ::testing::TestWithParam<Keeping> {};
INSTANTIATE_TEST_SUITE_P(Persistence, Reload,
                         ::testing::Values(Keeping{"Aof", {"--aof-use-rdb-preamble", "no"}},
                                           Keeping{"RdbAndAof", {"--aof-use-rdb-preamble", "yes"}}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(Reload, EndsInTheSameDigests) {
  Workload workload(11);
  Words arguments = GetParam().arguments;
  arguments.insert(arguments.end(), {"--appendonly", "yes"});
  RedisServer server(with_module(arguments));
  Digests expected;
  {
    Talk talk(server);
    run(talk, workload, 2000);
    ASSERT_FALSE(talk("BGREWRITEAOF").starts_with('-'));
    run(talk, workload, 1000);
    while (info(talk, "persistence", "aof_rewrite_in_progress") > 0) run(talk, workload, 10);
    run(talk, workload, 1000);
    let_expire(talk);
    expected = digests(talk);
  }
  for (int i = 0; i < 2; ++i) {
    server.stop();
    server.start();
    Talk talk(server);
    expect_equal(digests(talk), expected);
    expect_no_failed_effect(server);
  }
}

TEST_P(Reload, KeepsFiltersWhereTheirCommandsAreOff) {
  Workload workload(12);
  Words arguments = GetParam().arguments;
  arguments.insert(arguments.end(), {"--appendonly", "yes"});
  RedisServer server(with_module(arguments));
  Digests expected;
  {
    Talk talk(server);
    run(talk, workload, 1000);
    ASSERT_FALSE(talk("BGREWRITEAOF").starts_with('-'));
    while (info(talk, "persistence", "aof_rewrite_in_progress") > 0) run(talk, workload, 10);
    run(talk, workload, 1000);
    let_expire(talk);
    expected = digests(talk);
  }
  for (const Words& load : {kWithoutFilters, kOtherNames, Words()}) {
    server.stop();
    server.start(with_module(arguments, load));
    Talk talk(server);
    expect_equal(digests(talk), expected);
    expect_no_failed_effect(server);
  }
}

TEST(Rdb, KeepsFiltersWhereTheirCommandsAreOff) {
  Workload workload(13);
  const Words arguments = {"--save", "3600", "1000000"};
  RedisServer server(with_module(arguments));
  Digests expected;
  {
    Talk talk(server);
    run(talk, workload, 1000);
    let_expire(talk);
    expected = digests(talk);
  }
  for (const Words& load : {kWithoutFilters, kOtherNames, Words()}) {
    server.stop();
    server.start(with_module(arguments, load));
    Talk talk(server);
    expect_equal(digests(talk), expected);
  }
}

}  // namespace
}  // namespace semel
