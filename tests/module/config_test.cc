// Settings, load arguments, and what the server reports about the module and its commands.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "tests/cli/process.h"
#include "tests/cli/temporary_directory.h"
#include "tests/cli/wildcard.h"
#include "tests/module/module_server.h"
#include "tests/module/samples.h"

namespace semel {
namespace {

struct Setting {
  const char* name;
  const char* value;  // the default
  const char* other;
  const char* bad;
  const char* allowed;
};

constexpr const char* kDuration = "allowed: milliseconds, 1 or more, or 30s, 10m, 2h, 7d";
constexpr const char* kRate = "allowed: 1e-12 or more, below 1";
constexpr const char* kIds = "allowed: 1 to 274877906944";
constexpr std::array kSettings = {
    Setting{"tally-window", "600000", "2h", "0", kDuration},
    Setting{"tally-error", "1e-6", "0.5", "1", kRate},
    Setting{"tally-capacity", "65536", "100", "0", kIds},
    Setting{"sift-window", "600000", "30s", "-1", kDuration},
    Setting{"sift-error", "1e-6", "0.25", "0", kRate},
    Setting{"sift-capacity", "65536", "100", "274877906945", kIds},
    Setting{"bf-error-rate", "0.01", "0.001", "nan", kRate},
    Setting{"bf-initial-size", "100", "7", "x", kIds},
    Setting{"bf-expansion-factor", "2", "0", "32769", "allowed: 0 (does not scale) to 32768"},
    Setting{"cf-initial-size", "1024", "64", "1", "allowed: 2 to 274877906944"},
    Setting{"cf-bucket-size", "2", "4", "256", "allowed: 1 to 255"},
    Setting{"cf-max-iterations", "20", "10", "65536", "allowed: 1 to 65535"},
    Setting{"cf-expansion-factor", "1", "2", "-1", "allowed: 0 (does not scale) to 32768"},
    Setting{"cf-error", "0.001", "0.01", "1e400", kRate},
    Setting{"max-value-bytes", "auto", "1000000", "-1",
            "allowed: auto, 0 (no limit), or bytes such as 1000000 or 64mb"},
    Setting{"max-arguments", "131072", "1000", "x",
            "allowed: 0 (no limit) or a number of arguments"},
};

std::string shown(const char* name, const char* value) {
  return std::string("[\"semel.").append(name).append("\", \"").append(value).append("\"]");
}

TEST(Config, IsShownAndChanged) {
  const RedisServer server(with_module());
  Talk talk(server);
  for (const Setting& setting : kSettings) {
    const std::string name = std::string("semel.").append(setting.name);
    EXPECT_EQ(talk("CONFIG GET " + name), shown(setting.name, setting.value));
    EXPECT_EQ(talk.call({"CONFIG", "SET", name, setting.other}).shown(), "+OK");
    EXPECT_EQ(talk("CONFIG GET " + name), shown(setting.name, setting.other));
    for (const char* const bad : {setting.bad, "", "one"}) {
      EXPECT_TRUE(matches_wildcard("-ERR CONFIG SET failed (possibly related to argument '" + name +
                                       "') - [...]" + setting.allowed,
                                   talk.call({"CONFIG", "SET", name, bad}).shown()))
          << name << ' ' << bad << ' ' << talk.call({"CONFIG", "SET", name, bad}).shown();
    }
    EXPECT_EQ(talk("CONFIG GET " + name), shown(setting.name, setting.other));
  }
}

TEST(Config, IsWhatNewKeysAreMadeWith) {
  const RedisServer server(with_module());
  Talk talk(server);
  talk("CONFIG SET semel.tally-window 5s semel.tally-error 0.125 semel.tally-capacity 9");
  talk("CONFIG SET semel.sift-window 6s semel.sift-error 0.25 semel.sift-capacity 8");
  talk("CONFIG SET semel.bf-error-rate 0.5 semel.bf-initial-size 7 semel.bf-expansion-factor 3");
  talk(
      "CONFIG SET semel.cf-initial-size 64 semel.cf-bucket-size 4 semel.cf-expansion-factor 5 "
      "semel.cf-max-iterations 6 semel.cf-error 0.0625");
  talk("TALLY.INCRBY t a 1");
  talk("SIFT.ADD s a");
  talk("BF.ADD b a");
  talk("CF.ADD c a");
  const auto expect = [&](const char* command, std::string_view pattern) {
    const std::string answer = talk(command);
    EXPECT_TRUE(matches_wildcard(pattern, answer)) << answer;
  };
  expect("TALLY.INFO t",
         "[[...]+Window, 5000, [...]+Error rate, \"0.125\", [...]"
         "+Capacity, 9, [...]]");
  expect("SIFT.INFO s",
         "[[...]+Window, 6000, +Error rate, \"0.25\", [...]"
         "+Capacity, 8, [...]]");
  expect("BF.INFO b ALL", "[+Capacity, 7, [...]+Expansion rate, 3, +Error rate, \"0.5\", [...]]");
  expect("CF.INFO c ALL",
         "[[...]+Bucket size, 4, +Expansion rate, 5, +Max iterations, 6, +Capacity, 64, "
         "+Error rate, \"0.0625\", [...]]");
}

// Returns the bytes of huge pages that a process has.
std::int64_t huge_page_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string word; file >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "AnonHugePages:" && file >> kilobytes) return 1024 * kilobytes;
  }
  ADD_FAILURE() << "the system does not tell";
  return -1;
}

// Adds 200 ids to a table of some 200 MB: each touches a few random lines.
std::int64_t huge_pages_of_a_sparse_sift(const Words& load) {
  const RedisServer server(with_module({}, load));
  Talk talk(server);
  EXPECT_EQ(talk("SIFT.RESERVE s CAPACITY 30000000"), "+OK");
  for (int i = 0; i < 200; ++i) EXPECT_EQ(talk("SIFT.ADD s " + std::to_string(i)), "1");
  return huge_page_bytes(server.pid());
}

TEST(Config, HugePagesAreUsedOnlyIfAskedFor) {
  EXPECT_EQ(huge_pages_of_a_sparse_sift({}), 0);
  EXPECT_EQ(huge_pages_of_a_sparse_sift({"huge-pages", "no"}), 0);
  if (huge_pages_of_a_sparse_sift({"huge-pages", "YES"}) == 0) {
    GTEST_SKIP() << "this system has no huge pages to give";
  }
}

// Keys with the least, a middle and the greatest allowed error rate can be made, saved and loaded.
TEST(Config, ErrorRatesAreThoseThatKeysCanBeMadeWith) {
  RedisServer server(with_module({"--appendonly", "yes", "--aof-use-rdb-preamble", "no"}));
  struct Case {
    const char* setting;
    std::string make, ask, answer;
  };
  const std::array cases = {
      Case{"semel.tally-error", "TALLY.INCRBY % a 1 ID x", "TALLY.GET % a", "1"},
      Case{"semel.sift-error", "SIFT.ADD % a", "SIFT.TEST % a", "1"},
      Case{"semel.bf-error-rate", "BF.ADD % a", "BF.EXISTS % a", "1"},
      Case{"semel.cf-error", "CF.ADD % a", "CF.EXISTS % a", "1"},
  };
  const std::array<std::string, 3> rates = {"1e-12", "0.5", "0.9999999999999999"};
  {
    Talk talk(server);
    for (const Case& one : cases) {
      for (const char* const bad :
           {"5e-324", "9.9e-13", "1e-300", "0", "-0", "-1e-6", "1", "1e400"}) {
        EXPECT_TRUE(talk.call({"CONFIG", "SET", one.setting, bad}).is_error()) << bad;
      }
      for (const std::string& rate : rates) {
        ASSERT_EQ(talk.call({"CONFIG", "SET", one.setting, rate}).shown(), "+OK");
        ASSERT_FALSE(talk(filled(one.make, one.setting + rate)).starts_with('-')) << server.log();
      }
    }
    EXPECT_EQ(talk("DEBUG RELOAD"), "+OK") << server.log();
    ASSERT_NO_FATAL_FAILURE(rewrite_aof(talk));
  }
  server.stop();
  server.start();
  Talk talk(server);
  for (const Case& one : cases) {
    for (const std::string& rate : rates) {
      EXPECT_EQ(talk(filled(one.ask, one.setting + rate)), one.answer) << server.log();
    }
  }
}

TEST(Config, LimitsTheMemoryOfFilters) {
  const RedisServer server(with_module());
  Talk talk(server);
  talk("CONFIG SET semel.max-value-bytes 2000");
  constexpr std::string_view kRefused =
      "-ERR the filter would take more memory than semel.max-value-bytes allows, 2000 bytes";
  EXPECT_EQ(talk("BF.RESERVE b 0.01 1000000"), kRefused);
  EXPECT_EQ(talk("CF.RESERVE c 1000000"), kRefused);
  EXPECT_EQ(talk("DBSIZE"), "0");
  EXPECT_EQ(talk("BF.RESERVE b 0.01 100"), "+OK");
  std::string answer;
  for (int i = 0; i < 100'000 && !answer.starts_with('-'); ++i) {
    answer = talk("BF.ADD b " + std::to_string(i));
  }
  EXPECT_EQ(answer, kRefused);
  EXPECT_EQ(talk("BF.EXISTS b 0"), "1");
}

TEST(Config, ComesWithLoadArguments) {
  Words arguments;
  for (const Setting& setting : kSettings) {
    arguments.insert(arguments.end(), {setting.name, setting.other});
  }
  const RedisServer server(with_module({}, arguments));
  Talk talk(server);
  for (const Setting& setting : kSettings) {
    EXPECT_EQ(talk(std::string("CONFIG GET semel.") + setting.name),
              shown(setting.name, setting.other));
  }
}

// Starts a server that refuses the module, and so does not run. Returns the reason in its log.
std::string refusal(const Words& load, const Words& arguments = {}) {
  const TemporaryDirectory directory;
  Words words = {"env"};
  const Words server = {server_program(), "--port",   std::to_string(free_port()), "--save", "",
                        "--bind",         "127.0.0.1"};
  for (const Words& part :
       {server_variables(directory.path()), server, with_module(arguments, load)}) {
    words.insert(words.end(), part.begin(), part.end());
  }
  const Outcome outcome = run({.command = words, .merge = true});
  EXPECT_NE(outcome.status, 0);
  return outcome.out;
}

TEST(Config, RefusesBadLoadArguments) {
  struct Case {
    Words load;
    std::string_view says;
  };
  for (const Case& step : {
           Case{{"tally-window"}, "load arguments are pairs: name value [name value ...]"},
           Case{{"tally-window", "0"}, "tally-window: allowed: milliseconds, 1 or more"},
           Case{{"sift-error", "5e-324"}, "sift-error: allowed: 1e-12 or more, below 1"},
           Case{{"colour", "red"}, "no setting 'colour'; there are: tally-window, tally-error"},
           Case{{"bf-error-rate", "0.1", "cf-error", "0.1", "bf-error-rate", "0.2"},
                "bf-error-rate is given twice"},
           Case{{"huge-pages", "maybe"}, "huge-pages: allowed: yes or no"},
           Case{{"ERROR_RATE", "2"}, "ERROR_RATE: allowed: 1e-12 or more, below 1"},
           Case{{"error_rate", "0.1", "bf-error-rate", "0.2"}, "bf-error-rate is given twice"},
           // MODULE LIST shows load arguments, so none of them is a secret.
           Case{{"secret", std::string(64, 'a')}, "no setting 'secret'; there are: "},
           Case{{"bf-prefix", "a b"}, "bf-prefix: allowed: auto, off, or up to 32 letters"},
       }) {
    EXPECT_NE(refusal(step.load).find(step.says), std::string::npos) << refusal(step.load);
  }
}

// Valkey finds its own entry point.
TEST(Config, IsNoLegacyModule) {
  const RedisServer server(with_module());
  const std::string log = server.log();
  EXPECT_NE(log.find("Module 'semel' loaded"), std::string::npos) << log;
  EXPECT_EQ(log.find("Legacy"), std::string::npos) << log;
}

TEST(Config, IsLoadedOnce) {
  const RedisServer server(with_module({"--enable-module-command", "yes"}));
  Talk talk(server);
  EXPECT_TRUE(talk(std::string("MODULE LOAD ") + SEMEL_MODULE).starts_with("-ERR"));
  EXPECT_EQ(talk("TALLY.INCRBY t a 1"), "[1, \"applied\"]");
  // Its types may be in use.
  EXPECT_TRUE(talk("MODULE UNLOAD semel").starts_with("-ERR"));
  EXPECT_EQ(talk("TALLY.INCRBY t a 1"), "[2, \"applied\"]");
}

TEST(Config, TakesTheLoadArgumentsOfOtherModules) {
  struct Case {
    const char* name;  // of RedisBloom or valkey-bloom
    const char* setting;
    const char* value;
  };
  for (const Case& step : {
           Case{"ERROR_RATE", "bf-error-rate", "0.25"},
           Case{"Initial_Size", "bf-initial-size", "7"},
           Case{"bf-expansion-factor", "bf-expansion-factor", "3"},
           Case{"cf-bucket-size", "cf-bucket-size", "4"},
           Case{"bloom-capacity", "bf-initial-size", "9"},
           Case{"bloom-expansion", "bf-expansion-factor", "4"},
           Case{"bloom-fp-rate", "bf-error-rate", "0.125"},
           Case{"bloom-memory-usage-limit", "max-value-bytes", "128000000"},
       }) {
    SCOPED_TRACE(step.name);
    const RedisServer server(with_module({}, {step.name, step.value}));
    EXPECT_EQ(Talk(server)(std::string("CONFIG GET semel.") + step.setting),
              shown(step.setting, step.value));
  }
}

// Each of them gets a line in the log.
TEST(Config, TakesNoteOfArgumentsWithoutEffect) {
  const Words names = {"CF_MAX_EXPANSIONS", "bloom-tightening-ratio", "bloom-use-random-seed",
                       "bloom-defrag-enabled"};
  Words arguments;
  for (const std::string& name : names) arguments.insert(arguments.end(), {name, "1"});
  const RedisServer server(with_module({}, arguments));
  for (const std::string& name : names) {
    EXPECT_NE(server.log().find(name + " has no effect here: "), std::string::npos) << server.log();
  }
}

// Redis 8 has settings of modules without a prefix, and refuses a file with unknown ones.
TEST(Config, TakesTheNamesInAFileForRedis8) {
  {
    const RedisServer server(with_module());
    if (Talk(server)("CONFIG GET bf-error-rate") == "[]") {
      GTEST_SKIP() << "the server has no settings of modules without a prefix";
    }
  }
  RedisServer server(
      with_module({"--bf-error-rate", "0.25", "--cf-expansion-factor", "4", "--cf-max-expansions",
                   "16", "--bf-hash-seed", "0123456789abcdef", "--semel.bf-initial-size", "7",
                   "--semel.cf-bucket-size", "4", "--cf-bucket-size", "4"}));
  Talk talk(server);
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"bf-error-rate", "0.25"}, {"cf-expansion-factor", "4"}, {"bf-initial-size", "7"}}) {
    EXPECT_EQ(talk("CONFIG GET semel." + name), shown(name.c_str(), value.c_str()));
    EXPECT_EQ(talk("CONFIG GET " + name), "[\"" + name + "\", \"" + value + "\"]");
  }
  EXPECT_EQ(talk("CONFIG GET cf-max-expansions"), "[\"cf-max-expansions\", \"16\"]");
  EXPECT_EQ(talk("CONFIG SET bf-error-rate 0.5"), "+OK");
  EXPECT_EQ(talk("CONFIG GET semel.bf-error-rate"), shown("bf-error-rate", "0.5"));
  EXPECT_TRUE(talk("CONFIG SET bf-error-rate 2").starts_with("-ERR CONFIG SET failed"));
  const std::string why = refusal({}, {"--bf-error-rate", "0.25", "--semel.bf-error-rate", "0.5"});
  EXPECT_NE(why.find("bf-error-rate and semel.bf-error-rate differ"), std::string::npos) << why;
}

// Returns the arguments of a server with another module that has commands of these families.
Words with_other_filters(const Words& families) {
  Words arguments = {"--loadmodule", SEMEL_OTHER_FILTERS};
  arguments.insert(arguments.end(), families.begin(), families.end());
  return arguments;
}

TEST(Config, LeavesOutFamiliesThatTheServerHasAlready) {
  for (const std::string family : {"BF", "CF"}) {
    SCOPED_TRACE(family);
    const std::string other = family == "BF" ? "CF" : "BF";
    const RedisServer server(with_module(with_other_filters({family})));
    Talk talk(server);
    EXPECT_EQ(talk(family + ".ADD theirs a"), "1");
    EXPECT_EQ(talk(other + ".ADD ours a"), "1");
    EXPECT_EQ(talk("TYPE ours"), other == "BF" ? "+SMLbloom-" : "+SMLcuckoo");
    EXPECT_TRUE(talk(family + ".MERGE a b").starts_with("-ERR unknown command"));
    const std::string log = server.log(), line = "the server has commands " + family + ".* already";
    const std::size_t at = log.find(line);
    ASSERT_NE(at, std::string::npos) << log;
    EXPECT_EQ(log.find("the server has commands", at + 1), std::string::npos) << log;
    EXPECT_EQ(log.find("bf-error-rate"), std::string::npos) << log;
  }
}

// The module that comes later finds the names taken. Only ours leaves out its commands then.
TEST(Config, MustComeAfterAModuleWithTheSameCommands) {
  const std::string why = refusal(with_other_filters({"BF"}));
  EXPECT_NE(why.find("Can't load module from " SEMEL_OTHER_FILTERS), std::string::npos) << why;

  const RedisServer server(with_module({"--enable-module-command", "yes"}));
  Talk talk(server);
  EXPECT_EQ(talk("BF.ADD ours a"), "1");
  EXPECT_TRUE(talk("MODULE LOAD " SEMEL_OTHER_FILTERS " BF").starts_with("-ERR"));
  EXPECT_EQ(talk("BF.ADD ours a"), "0");
}

TEST(Config, LoadsAFamilyUnderAnotherNameBesideTheServersOwn) {
  const RedisServer server(with_module(with_other_filters({"BF", "CF"}), {"bf-prefix", "SBF"}));
  Talk talk(server);
  EXPECT_EQ(talk("BF.ADD theirs a"), "1");
  EXPECT_EQ(talk("SBF.ADD ours a"), "1");
  EXPECT_EQ(talk("SBF.EXISTS theirs a"), "0");
  EXPECT_EQ(server.log().find("the server has commands BF"), std::string::npos);
  EXPECT_NE(server.log().find("the server has commands CF"), std::string::npos);
}

TEST(Config, RefusesANameThatTheServerHasAlready) {
  const std::string why = refusal({"bf-prefix", "BF"}, with_other_filters({"BF"}));
  EXPECT_NE(why.find("the command bf.add exists already"), std::string::npos) << why;
}

TEST(Config, RenamesAndOmitsFamilies) {
  const RedisServer primary(
      with_module({"--repl-diskless-sync-delay", "0"}, {"bf-prefix", "my_bf", "cf-prefix", "OFF"}));
  const RedisServer replica(
      with_module({"--replicaof", "127.0.0.1", std::to_string(primary.port())}));
  Talk talk(primary);
  EXPECT_EQ(talk("my_bf.ADD b a"), "1");
  EXPECT_EQ(talk("MY_BF.EXISTS b a"), "1");
  EXPECT_TRUE(talk("BF.ADD b a").starts_with("-ERR unknown command"));
  EXPECT_TRUE(talk("CF.ADD c a").starts_with("-ERR unknown command"));
  EXPECT_EQ(talk("CONFIG GET semel.bf-prefix"), shown("bf-prefix", "my_bf"));
  EXPECT_TRUE(talk("CONFIG SET semel.bf-prefix BF").starts_with("-ERR"));
  // A replica with other names follows.
  talk("WAIT 1 10000");
  talk("my_bf.ADD b c");
  ASSERT_EQ(talk("WAIT 1 10000"), "1");
  Talk there(replica);
  EXPECT_EQ(there("BF.MEXISTS b a c"), "[1, 1]");
}

TEST(Info, CountsWhatHappened) {
  const RedisServer server(with_module());
  Talk talk(server);
  for (const char* const command :
       {"TALLY.INCRBY t a 1 ID x", "TALLY.INCRBY t a 1 ID x", "TALLY.INCRBY t a 1 ID y",
        "TALLY.INCRBY t a 9223372036854775807", "SIFT.MADD s a b a", "BF.MADD b a b a",
        "CF.ADD c a", "CF.DEL c a"}) {
    talk(command);
  }
  const std::map<std::string, std::int64_t> expected = {
      {"semel_tally_applied", 2},   {"semel_tally_duplicates", 1}, {"semel_tally_refused", 1},
      {"semel_sift_fresh", 2},      {"semel_sift_duplicates", 1},  {"semel_sift_refused", 0},
      {"semel_filter_added", 3},    {"semel_filter_known", 1},     {"semel_filter_removed", 1},
      {"semel_effects_applied", 0}, {"semel_effects_failed", 0},
  };
  for (const auto& [field, value] : expected) EXPECT_EQ(info(talk, "semel", field), value) << field;
}

// Commands as COMMAND INFO and COMMAND DOCS report them.
class Commands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { held() = std::make_unique<RedisServer>(with_module()); }
  static void TearDownTestSuite() { held().reset(); }

  Words names() {
    Words all;
    for (const Answer& name :
         talk_.call({"COMMAND", "LIST", "FILTERBY", "MODULE", "semel"}).parts) {
      all.push_back(name.text);
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  Answer info_of(const std::string& name) { return talk_.call({"COMMAND", "INFO", name}).parts[0]; }
  bool has_flag(const Answer& info, const std::string& flag) const {
    const auto& flags = info.parts[2].parts;
    return std::any_of(flags.begin(), flags.end(), [&](const Answer& f) { return f.text == flag; });
  }

  static const RedisServer& server() { return *held(); }

 private:
  static std::unique_ptr<RedisServer>& held() {
    static std::unique_ptr<RedisServer> server;
    return server;
  }

 protected:
  Talk talk_{server()};
};

TEST_F(Commands, AreAllThere) {
  const Words expected = words_of(
      "bf.add bf.card bf.debug bf.exists bf.info bf.insert bf.like bf.load bf.loadchunk bf.madd "
      "bf.merge bf.mexists bf.reserve bf.scandump cf.add cf.addnx cf.compact cf.count cf.debug "
      "cf.del cf.exists cf.info cf.insert "
      "cf.insertnx cf.like cf.loadchunk cf.merge cf.mexists cf.reserve cf.scandump semel.at "
      "semel.load semel.tick semel.writable "
      "sift.add sift.card sift.claim sift.commit sift.info sift.insert sift.madd sift.mclaim "
      "sift.mcommit sift.mrelease sift.mtest sift.release sift.reserve sift.test tally.count "
      "tally.del tally.get "
      "tally.incrby tally.info tally.mget tally.mincrby tally.range tally.reserve tally.sum");
  EXPECT_EQ(names(), expected);
}

TEST_F(Commands, HaveArityFlagsAndKeys) {
  const std::set<std::string> reads = {
      "bf.card",     "bf.exists",   "bf.info",    "bf.mexists",  "bf.debug",  "cf.compact",
      "cf.debug",    "bf.scandump", "cf.count",   "cf.exists",   "cf.info",   "cf.mexists",
      "cf.scandump", "sift.card",   "sift.info",  "sift.mtest",  "sift.test", "tally.count",
      "tally.get",   "tally.info",  "tally.mget", "tally.range", "tally.sum"};
  const std::set<std::string> free_memory = {"cf.del", "sift.mrelease", "sift.release",
                                             "tally.del"};
  const std::set<std::string> slow = {"bf.scandump",  "bf.loadchunk", "bf.merge",    "cf.scandump",
                                      "cf.loadchunk", "cf.merge",     "tally.range", "semel.load"};
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    const Answer info = info_of(name);
    EXPECT_NE(info.parts[1].integer(), 0);
    EXPECT_EQ(has_flag(info, "fast"), !slow.contains(name));
    const bool internal = name == "semel.at" || name == "semel.tick";
    EXPECT_EQ(has_flag(info, "readonly"), reads.contains(name));
    EXPECT_EQ(has_flag(info, "write"), !reads.contains(name));
    EXPECT_EQ(has_flag(info, "denyoom"),
              !reads.contains(name) && !free_memory.contains(name) && !internal);
    const std::int64_t first = info.parts[3].integer();
    EXPECT_EQ(first, name == "semel.at" ? 4 : 1);
    const std::int64_t last = name.ends_with(".merge") ? -1 : name.ends_with(".like") ? 2 : first;
    EXPECT_EQ(info.parts[4].integer(), last);
  }
}

TEST_F(Commands, AreDocumented) {
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    const Answer docs = talk_.call({"COMMAND", "DOCS", name});
    ASSERT_EQ(docs.parts.size(), 2u);
    std::map<std::string, Answer> fields;
    for (std::size_t i = 0; i + 1 < docs.parts[1].parts.size(); i += 2) {
      fields[docs.parts[1].parts[i].text] = docs.parts[1].parts[i + 1];
    }
    EXPECT_FALSE(fields["summary"].text.empty());
    EXPECT_TRUE(fields["complexity"].text.starts_with("O("));
    EXPECT_FALSE(fields["since"].text.empty());
    EXPECT_FALSE(fields["arguments"].parts.empty());
  }
}

TEST_F(Commands, TellTheirKeys) {
  EXPECT_EQ(talk_("COMMAND GETKEYS TALLY.INCRBY t a 1"), "[\"t\"]");
  EXPECT_EQ(talk_("COMMAND GETKEYS SIFT.MADD s a b"), "[\"s\"]");
  EXPECT_EQ(talk_("COMMAND GETKEYS BF.INSERT b ITEMS a"), "[\"b\"]");
  EXPECT_EQ(talk_("COMMAND GETKEYS BF.MERGE a b c"), "[\"a\", \"b\", \"c\"]");
  EXPECT_EQ(talk_("COMMAND GETKEYS CF.MERGE a b"), "[\"a\", \"b\"]");
  EXPECT_EQ(talk_("COMMAND GETKEYS BF.LIKE a b"), "[\"a\", \"b\"]");
  EXPECT_EQ(talk_("COMMAND GETKEYS SEMEL.AT 1 1 TALLY.GET t a"), "[\"t\"]");
}

TEST_F(Commands, ObeyAclRules) {
  ASSERT_EQ(talk_("ACL SETUSER adder on nopass +tally.incrby ~key*"), "+OK");
  Talk adder(server());
  adder("AUTH adder x");
  EXPECT_EQ(adder("TALLY.INCRBY key1 a 1"), "[1, \"applied\"]");
  EXPECT_TRUE(adder("TALLY.INCRBY other a 1").starts_with("-NOPERM"));
  EXPECT_TRUE(adder("TALLY.GET key1 a").starts_with("-NOPERM"));
  ASSERT_EQ(talk_("ACL SETUSER reader on nopass +tally.get +bf.merge %R~source* %RW~key*"), "+OK");
  Talk reader(server());
  reader("AUTH reader x");
  EXPECT_EQ(reader("TALLY.GET key1 a"), "1");
  EXPECT_TRUE(reader("TALLY.INCRBY key1 a 1").starts_with("-NOPERM"));
  EXPECT_TRUE(reader("BF.MERGE source1 key1").starts_with("-NOPERM"));
}

// Redis before 7.4 has no new categories.
TEST_F(Commands, AreInACategoryOfTheirFamily) {
  if (talk_("ACL CAT tally").starts_with("-ERR"))
    GTEST_SKIP() << "the server takes no new category";
  const std::map<std::string, std::string> categories = {
      {"bf", "bloom"}, {"cf", "cuckoo"}, {"sift", "sift"}, {"tally", "tally"}, {"semel", "semel"}};
  for (const std::string& name : names()) {
    const std::string category = '@' + categories.at(name.substr(0, name.find('.')));
    const std::vector<Answer> all = info_of(name).parts[6].parts;
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Answer& a) {
      return a.text == category;
    })) << name;
  }
  ASSERT_EQ(talk_("ACL SETUSER bloomer on nopass +@bloom ~key*"), "+OK");
  Talk bloomer(server());
  bloomer("AUTH bloomer x");
  EXPECT_EQ(bloomer("BF.EXISTS key a"), "0");
  EXPECT_TRUE(bloomer("CF.EXISTS key a").starts_with("-NOPERM"));
}

// In Redis 7.0 no category but @all contains the commands, and the log says so.
TEST_F(Commands, ThatNoCategoryCoversAreToldOfInTheLog) {
  ASSERT_EQ(talk_("ACL SETUSER idler on nopass +@all -@write ~*"), "+OK");
  Talk idler(server());
  idler("AUTH idler x");
  const bool covered = idler("TALLY.INCRBY key1 a 1").starts_with("-NOPERM");
  EXPECT_EQ(server().log().find("in no ACL category") == std::string::npos, covered);
}

// Sources are only read: a user who may read them and write the destination may merge.
TEST_F(Commands, NeedOnlyReadTheirSources) {
  ASSERT_EQ(talk_("ACL SETUSER merger on nopass +@all %R~from* %RW~to* %W~drop*"), "+OK");
  Talk merger(server());
  merger("AUTH merger x");
  for (const std::string family : {"BF", "CF"}) {
    SCOPED_TRACE(family);
    const std::string shape = family == "BF" ? " 0.01 100" : " 100";
    talk_("FLUSHALL");
    ASSERT_EQ(talk_(family + ".RESERVE from1" + shape), "+OK");
    ASSERT_EQ(talk_(family + ".RESERVE other" + shape), "+OK");
    ASSERT_EQ(talk_("COPY from1 from2"), "1");
    ASSERT_EQ(talk_(family + ".ADD from2 a"), "1");
    EXPECT_EQ(merger(family + ".MERGE to1 from1 from2"), "+OK");
    EXPECT_EQ(merger(family + ".EXISTS to1 a"), "1");
    EXPECT_EQ(merger(family + ".LIKE to2 from1"), "+OK");
    for (const char* const keys : {"from3 from1", "to3 other", "other1 from1", "to3 drop"}) {
      const std::string answer = merger(std::string(family).append(".LIKE ").append(keys));
      EXPECT_TRUE(answer.starts_with("-NOPERM")) << keys << ' ' << answer;
    }
    for (const char* const keys : {"from1 from2", "to1 other", "to1 from1 other", "other from1",
                                   "drop from1", "to1 drop", "to1 from1 to2 drop"}) {
      const std::string answer = merger(family + ".MERGE " + keys);
      EXPECT_TRUE(answer.starts_with("-NOPERM")) << keys << ' ' << answer;
    }
  }
}

// Key permissions apply at every server, also where commands of modules have no categories.
TEST_F(Commands, ThatWriteAreRefusedToWhomMayReadAlone) {
  ASSERT_EQ(talk_("ACL SETUSER looker on nopass +@all %R~*"), "+OK");
  Talk looker(server());
  looker("AUTH looker x");
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    const Answer info = info_of(name);
    Words words(static_cast<std::size_t>(std::abs(info.parts[1].integer())), "1");
    words[0] = name;
    EXPECT_EQ(looker.call(words).shown().starts_with("-NOPERM"), has_flag(info, "write"));
  }
}

TEST_F(Commands, AreRefusedWithoutMemory) {
  const RedisServer server(with_module({"--maxmemory", "1"}));
  Talk talk(server);
  EXPECT_TRUE(talk("TALLY.INCRBY t a 1").starts_with("-OOM"));
  EXPECT_TRUE(talk("BF.ADD b a").starts_with("-OOM"));
  EXPECT_EQ(talk("TALLY.DEL t a"), "0");
  EXPECT_EQ(talk("TALLY.GET t a"), "nil");
}

}  // namespace
}  // namespace semel
