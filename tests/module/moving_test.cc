// Moving in from another module: its filters cannot be taken over, and nothing is lost silently.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/process.h"
#include "tests/module/module_server.h"

namespace semel {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

TEST(Moving, ClientsThatMoveOneByOneHearOfEachItemOnce) {
  if (run({.command = {kPython, "-c", "import redis"}}).status != 0) {
    GTEST_SKIP() << "no python3-redis (tools/packages/test)";
  }
  for (const char* const seed : {"1", "2", "3"}) {
    const RedisServer server(
        with_module({"--loadmodule", SEMEL_OTHER_FILTERS, "BF"}, {"bf-prefix", "SBF"}));
    const Outcome outcome = run({.command = {kPython, "tests/module/clients/run_moving_in.py",
                                             std::to_string(server.port()), seed}});
    EXPECT_EQ(outcome.status, 0) << "seed " << seed << '\n' << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "2500 items\n");
  }
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
