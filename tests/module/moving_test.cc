// Moving in from another module: its filters cannot be taken over, and nothing is lost silently.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/cli/process.h"
#include "tests/module/module_server.h"
#include "tests/module/payload.h"

namespace semel {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

bool has_redis_py() { return run({.command = {kPython, "-c", "import redis"}}).status == 0; }

// Runs a script of clients in servers with both modules, from several seeds.
void run_clients(const std::string& script, const std::string& expected) {
  for (const char* const seed : {"1", "2", "3"}) {
    const RedisServer server(with_module({"--loadmodule", SEMEL_OTHER_FILTERS, "BF", "CF"},
                                         {"bf-prefix", "SBF", "cf-prefix", "SCF"}));
    const Outcome outcome = run({.command = {kPython, "tests/module/clients/" + script,
                                             std::to_string(server.port()), seed}});
    EXPECT_EQ(outcome.status, 0) << "seed " << seed << '\n' << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, expected);
  }
}

TEST(Moving, ClientsThatMoveOneByOneHearOfEachItemOnce) {
  if (!has_redis_py()) GTEST_SKIP() << "no python3-redis (tools/packages/test)";
  run_clients("run_moving_in.py", "2500 items\n");
}

TEST(Moving, ClientsOfACuckooFilterAgreeWhileTheyMove) {
  if (!has_redis_py()) GTEST_SKIP() << "no python3-redis (tools/packages/test)";
  run_clients("run_moving_cuckoo.py", "7000 calls\n");
}

// When the other module is gone, the filters have the usual names.
TEST(Moving, TheNewFiltersStayWhenTheOtherModuleIsGone) {
  RedisServer server(with_module({"--appendonly", "yes", "--loadmodule", SEMEL_OTHER_FILTERS, "BF"},
                                 {"bf-prefix", "SBF"}));
  ASSERT_EQ(Talk(server)("SBF.ADD new a"), "1");
  server.stop();
  server.start(with_module({"--appendonly", "yes"}));
  EXPECT_EQ(Talk(server)("BF.EXISTS new a"), "1");
}

// Returns the number that names a type of a module in payloads and RDB files: nine letters of six
// bits and a version of ten, as nine bytes of an RDB length.
std::string type_id(std::string_view name, std::uint64_t version) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::uint64_t id = 0;
  for (const char letter : name) id = id << 6 | kLetters.find(letter);
  return rdb_length(id << 10 | version);
}

// A value of another module: some numbers and a string, then the end.
constexpr char kModuleValue = 7;
std::string foreign_value(std::string_view name, std::uint64_t version) {
  using namespace std::string_literals;
  return type_id(name, version) + "\x02\x01\x02\x05\x03" + "abc" + "\0"s;
}

struct ForeignType {
  const char* name;
  std::uint64_t version;
};
constexpr std::array kForeignTypes = {ForeignType{"MBbloom--", 4}, ForeignType{"MBbloomCF", 4},
                                      ForeignType{"bloomfltr", 1}};

TEST(Moving, PayloadsOfAnotherModuleAreRefused) {
  const RedisServer server(with_module());
  Talk talk(server);
  talk("BF.ADD ours a");
  const std::string dump = talk.call({"DUMP", "ours"}).text;
  ASSERT_TRUE(dump.starts_with(kModuleValue + type_id("SMLbloom-", 1)));
  const std::string version = dump.substr(dump.size() - kFooter, 2);
  for (const ForeignType& type : kForeignTypes) {
    SCOPED_TRACE(type.name);
    const std::string payload =
        sealed_payload(kModuleValue + foreign_value(type.name, type.version), version);
    EXPECT_EQ(talk.call({"RESTORE", "theirs", "0", payload}).shown(), "-ERR Bad data format");
    EXPECT_EQ(talk("EXISTS theirs"), "0");
  }
  // The checksum is right: another one gives another error.
  EXPECT_TRUE(talk.call({"RESTORE", "theirs", "0", dump.substr(0, dump.size() - 1) + "x"})
                  .shown()
                  .starts_with("-ERR DUMP payload version or checksum are wrong"));
}

TEST(Moving, AnRdbFileOfAnotherModuleIsNotLoaded) {
  for (const ForeignType& type : kForeignTypes) {
    SCOPED_TRACE(type.name);
    RedisServer server(with_module());
    server.stop();
    std::ofstream rdb(server.directory() / "dump.rdb", std::ios::binary);
    // A length of one byte, and no checksum.
    rdb << "REDIS0009" << '\xfe' << '\0' << kModuleValue << "\x06theirs"
        << foreign_value(type.name, type.version) << '\xff' << std::string(8, '\0');
    rdb.close();
    EXPECT_FALSE(server.try_start());
    EXPECT_NE(server.log().find(type.name), std::string::npos) << server.log();
  }
}

// The server ignores errors of commands in an AOF file. It must not start without the filters.
TEST(Moving, AnAofFileOfAnotherModuleIsNotLoadedInPart) {
  const std::string seed(32, 's');
  const std::vector<Words> foreign = {
      {"BF.LOADCHUNK", "b", "1", "header"},
      {"CF.LOADCHUNK", "c", "1", "header"},
      {"BF.LOAD", "b", "bytes"},
      {"BF.INSERT", "b", "CAPACITY", "100", "TIGHTENING", "0.5", "ITEMS", "a"},
      {"BF.INSERT", "b", "CAPACITY", "100", "SEED", seed, "ITEMS", "a"},
  };
  for (const Words& command : foreign) {
    SCOPED_TRACE(command[0] + ' ' + command[command.size() - 2]);
    RedisServer server(with_module({"--appendonly", "yes"}));
    ASSERT_EQ(Talk(server)("BF.ADD ours a"), "1");
    server.stop();
    std::ofstream aof(server.directory() / "appendonlydir" / "appendonly.aof.1.incr.aof",
                      std::ios::app | std::ios::binary);
    aof << '*' << command.size() << "\r\n";
    for (const std::string& word : command) {
      aof << '$' << word.size() << "\r\n" << word << "\r\n";
    }
    aof.close();
    EXPECT_FALSE(server.try_start());
    EXPECT_NE(server.log().find("the AOF file cannot be loaded: "), std::string::npos)
        << server.log();
  }
}

// Commands that carry items are the same in other modules, so they are loaded.
TEST(Moving, ItemsInAnAofFileOfAnotherModuleAreAdded) {
  RedisServer server(with_module({"--appendonly", "yes"}));
  server.stop();
  std::ofstream aof(server.directory() / "appendonlydir" / "appendonly.aof.1.incr.aof",
                    std::ios::app | std::ios::binary);
  aof << "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$6\r\nBF.ADD\r\n$1\r\nb\r\n$1\r\na\r\n"
      << "*5\r\n$9\r\nCF.INSERT\r\n$1\r\nc\r\n$5\r\nITEMS\r\n$1\r\na\r\n$1\r\na\r\n";
  aof.close();
  server.start();
  Talk talk(server);
  EXPECT_EQ(talk("BF.EXISTS b a"), "1");
  EXPECT_EQ(talk("CF.COUNT c a"), "2");
}

}  // namespace
}  // namespace semel
