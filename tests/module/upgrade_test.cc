// Servers of different versions, each with the module, take over from each other.
//
// Each pair of the servers in SEMEL_SERVERS is tried in both directions: programs with their paths,
// with ':' between them. `make test-servers` sets it. Without it, the pair is the server of the
// other tests and itself. Not every server reads what another has written. What a pair can do is
// found out with strings and without the module; then values of our types must do it too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/module/module_server.h"
#include "tests/module/replicas.h"
#include "tests/module/samples.h"
#include "tests/module/workload.h"

namespace semel {
namespace {

struct Pair {
  std::string from, to;  // programs
  std::string name;
};

std::ostream& operator<<(std::ostream& out, const Pair& pair) { return out << pair.name; }

std::vector<std::filesystem::path> given_servers() {
  std::vector<std::filesystem::path> servers;
  const char* const programs = std::getenv("SEMEL_SERVERS");
  std::istringstream list(programs == nullptr ? "" : programs);
  for (std::string program; std::getline(list, program, ':');) servers.emplace_back(program);
  return servers;
}

// Returns redis_8_0_2 for .../redis-8.0.2/bin/redis-server, and installed_redis_server for one that
// is in no such folder: names of tests have no other signs.
std::string test_name(const std::filesystem::path& program) {
  std::string name = program.parent_path().parent_path().filename().string();
  if (name.find('-') == std::string::npos) name = "installed_" + program.filename().string();
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

std::vector<Pair> pairs() {
  const auto servers = given_servers();
  if (servers.empty()) return {{server_program(), server_program(), "itself"}};
  std::vector<Pair> all;
  for (const auto& from : servers) {
    for (const auto& to : servers) {
      if (from != to) {
        all.push_back({from, to, test_name(from).append("_to_").append(test_name(to))});
      }
    }
  }
  return all;
}

// Files of a save stay until the next start; nothing is saved on its own.
const Words kSaving = {"--save", "3600 1000000"};
const Words kAppending = {"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"};

// A primary does not wait for further replicas before it saves for one.
const Words kReplicating = {"--repl-diskless-sync-delay", "0"};

class Upgrade : public ::testing::TestWithParam<Pair> {
 protected:
  // The samples under keys of their names, and a string.
  static void make_all(Talk& talk) {
    ASSERT_EQ(talk("SET string value"), "+OK");
    for (const Sample& sample : samples()) {
      ASSERT_TRUE(make_sample(talk, sample, sample.name)) << sample.name;
    }
  }
  static void change_all(Talk& talk, int number) {
    ASSERT_EQ(talk("SET string " + std::to_string(number)), "+OK");
    for (const Sample& sample : samples()) {
      const std::string answer = talk(filled(sample.change, sample.name, number));
      ASSERT_FALSE(answer.starts_with('-')) << sample.name << answer;
    }
  }
  // What was counted, accepted or added before is known now: repeating it changes nothing.
  static void expect_nothing_forgotten(Talk& talk) {
    const Digests before = digests(talk);
    ASSERT_EQ(before.size(), samples().size() + 1);
    for (const Sample& sample : samples()) {
      const std::string answer = talk(filled(sample.no_change, sample.name));
      EXPECT_FALSE(answer.starts_with('-')) << sample.name << answer;
    }
    expect_equal(digests(talk), before);
  }
  static void expect_same(const RedisServer& primary, const RedisServer& replica) {
    ASSERT_NO_FATAL_FAILURE(expect_in_step(primary, replica));
    Talk from(primary), to(replica);
    expect_equal(digests(to), digests(from));
    EXPECT_EQ(info(to, "semel", "semel_effects_failed"), 0);
  }

  const std::string& from() const { return GetParam().from; }
  const std::string& to() const { return GetParam().to; }
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Upgrade);
INSTANTIATE_TEST_SUITE_P(Servers, Upgrade, ::testing::ValuesIn(pairs()),
                         [](const auto& instance) { return instance.param.name; });

// Returns true if a replica `to` takes the strings of a primary `from`.
bool replicates_strings(const std::string& from, const std::string& to) {
  const RedisServer primary(kReplicating, from), replica({}, to);
  Talk source(primary), copy(replica);
  source("SET string value");
  follow(replica, primary);
  bool taken = false;
  const bool decided = eventually([&] {
    taken = copy("GET string") == "\"value\"";
    // It tries again and again.
    return taken || replica.log().find("Can't handle RDB format version") != std::string::npos ||
           replica.log().find("Failed trying to load the PRIMARY synchronization DB") !=
               std::string::npos ||
           replica.log().find("Failed trying to load the MASTER synchronization DB") !=
               std::string::npos;
  });
  EXPECT_TRUE(decided) << replica.log();
  return taken;
}

// Returns true if `to` starts with the files of `from`, which ran with these arguments.
bool reads_strings(const std::string& from, const std::string& to, const Words& arguments) {
  RedisServer server(arguments, from);
  EXPECT_EQ(Talk(server)("SET string value"), "+OK");
  server.stop();
  if (!server.try_start_as(to)) return false;
  return Talk(server)("GET string") == "\"value\"";
}

// The usual order: a replica of the new version, which becomes the primary; then the old primary is
// replaced, and follows it.
TEST_P(Upgrade, RollsOverReplicas) {
  if (!replicates_strings(from(), to())) {
    GTEST_SKIP() << "the servers do not replicate strings in this direction";
  }
  RedisServer first(with_module(kReplicating), from());
  const RedisServer second(with_module(kReplicating), to());
  Talk old(first), upgraded(second);
  ASSERT_NO_FATAL_FAILURE(make_all(old));
  ASSERT_NO_FATAL_FAILURE(follow(second, first));
  ASSERT_NO_FATAL_FAILURE(expect_same(first, second));
  // Now by effects: of keys that are there, and of new ones.
  ASSERT_NO_FATAL_FAILURE(change_all(old, 1));
  for (const Sample& sample : samples()) {
    ASSERT_TRUE(make_sample(old, sample, std::string("later").append(sample.name)));
  }
  ASSERT_NO_FATAL_FAILURE(expect_same(first, second));
  for (const Sample& sample : samples()) {
    ASSERT_EQ(old("DEL " + std::string("later").append(sample.name)), "1");
  }
  ASSERT_NO_FATAL_FAILURE(expect_same(first, second));

  first.stop();
  ASSERT_EQ(upgraded("REPLICAOF NO ONE"), "+OK");
  ASSERT_NO_FATAL_FAILURE(expect_nothing_forgotten(upgraded));
  ASSERT_NO_FATAL_FAILURE(change_all(upgraded, 2));
  first.start_as(to());
  ASSERT_NO_FATAL_FAILURE(follow(first, second));
  ASSERT_NO_FATAL_FAILURE(expect_same(second, first));
  ASSERT_NO_FATAL_FAILURE(change_all(upgraded, 3));
  ASSERT_NO_FATAL_FAILURE(expect_same(second, first));
}

// A primary with a replica of the other version, and one of its own version behind that, if that
// one can follow.
TEST_P(Upgrade, AgreesUnderRandomCommands) {
  if (!replicates_strings(from(), to())) {
    GTEST_SKIP() << "the servers do not replicate strings in this direction";
  }
  const RedisServer first(with_module(kReplicating), from());
  const RedisServer second(with_module(kReplicating), to());
  std::unique_ptr<RedisServer> third;
  if (replicates_strings(to(), from())) {
    third = std::make_unique<RedisServer>(with_module(kReplicating), from());
  }
  Talk talk(first);
  Workload workload(5);
  ASSERT_NO_FATAL_FAILURE(run(talk, workload, 2000));
  ASSERT_NO_FATAL_FAILURE(follow(second, first));
  if (third) {
    ASSERT_NO_FATAL_FAILURE(follow(*third, second));
  }
  ASSERT_NO_FATAL_FAILURE(run(talk, workload, 3000));
  let_expire(talk);
  ASSERT_NO_FATAL_FAILURE(expect_same(first, second));
  if (third) {
    ASSERT_NO_FATAL_FAILURE(expect_same(second, *third));
  }
  EXPECT_GE(digests(talk).size(), 10u);
}

TEST_P(Upgrade, ReadsTheRdbFile) {
  if (!reads_strings(from(), to(), kSaving)) {
    GTEST_SKIP() << "the server does not read the other's RDB file of strings";
  }
  RedisServer server(with_module(kSaving), from());
  Digests before;
  {
    Talk talk(server);
    ASSERT_NO_FATAL_FAILURE(make_all(talk));
    before = digests(talk);
  }
  server.stop();
  server.start_as(to());
  Talk talk(server);
  expect_equal(digests(talk), before);
  ASSERT_NO_FATAL_FAILURE(expect_nothing_forgotten(talk));
  ASSERT_NO_FATAL_FAILURE(change_all(talk, 1));
}

// Files of effects; rewritten ones, of commands; and rewritten ones that begin like an RDB file.
TEST_P(Upgrade, ReadsTheAofFiles) {
  struct Kind {
    const char* preamble;
    bool rewritten;
  };
  int read = 0;
  for (const Kind& kind : {Kind{"no", false}, Kind{"no", true}, Kind{"yes", true}}) {
    SCOPED_TRACE(std::string("preamble ") + kind.preamble + (kind.rewritten ? ", rewritten" : ""));
    Words arguments = kAppending;
    arguments.insert(arguments.end(), {"--aof-use-rdb-preamble", kind.preamble});
    if (!reads_strings(from(), to(), arguments)) continue;
    ++read;
    RedisServer server(with_module(arguments), from());
    Digests before;
    {
      Talk talk(server);
      ASSERT_NO_FATAL_FAILURE(make_all(talk));
      if (kind.rewritten) {
        ASSERT_NO_FATAL_FAILURE(rewrite_aof(talk));
      }
      ASSERT_NO_FATAL_FAILURE(change_all(talk, 1));
      before = digests(talk);
    }
    server.stop();
    server.start_as(to());
    Talk talk(server);
    expect_equal(digests(talk), before);
    EXPECT_EQ(info(talk, "semel", "semel_effects_failed"), 0);
    ASSERT_NO_FATAL_FAILURE(expect_nothing_forgotten(talk));
  }
  if (read == 0) GTEST_SKIP() << "the server does not read the other's AOF files of strings";
}

TEST_P(Upgrade, RestoresDumpsAndTakesMigratedKeys) {
  const RedisServer source(with_module(), from()), target(with_module(), to());
  Talk talk(source), there(target);
  ASSERT_NO_FATAL_FAILURE(make_all(talk));
  const Answer string = talk.call({"DUMP", "string"});
  if (there.call({"RESTORE", "string", "0", string.text}).is_error()) {
    GTEST_SKIP() << "the server does not restore the other's dump of a string";
  }
  for (const Sample& sample : samples()) {
    const std::string key(sample.name);
    const Answer dump = talk.call({"DUMP", key});
    ASSERT_EQ(there.call({"RESTORE", key, "0", dump.text}).shown(), "+OK") << key;
  }
  const Digests before = digests(talk);
  expect_equal(digests(there), before);
  ASSERT_EQ(there("FLUSHALL"), "+OK");
  for (const auto& [key, digest] : before) {
    ASSERT_EQ(talk("MIGRATE 127.0.0.1 " + std::to_string(target.port()) + ' ' + key + " 0 60000"),
              "+OK")
        << key;
  }
  expect_equal(digests(there), before);
  ASSERT_NO_FATAL_FAILURE(expect_nothing_forgotten(there));
}

}  // namespace
}  // namespace semel
