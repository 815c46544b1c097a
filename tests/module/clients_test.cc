// Unmodified clients: each runs the same script of all families, and its own functions for filters.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/process.h"
#include "tests/module/module_server.h"

namespace semel {
namespace {

class Clients : public ::testing::Test {
 protected:
  void expect_script(Words command, const Words& more = {}) {
    command.push_back(std::to_string(server_.port()));
    command.push_back(kScripts / "script.json");
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = run({.command = command, .environment = environment_});
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("commands"), std::string::npos);
  }

  const std::filesystem::path kScripts = "tests/module/clients";
  const RedisServer server_{with_module()};
  std::vector<std::pair<std::string, std::string>> environment_;
};

TEST_F(Clients, RedisCli) { expect_script({"/usr/bin/python3", kScripts / "run_cli.py"}); }

TEST_F(Clients, Python) {
  if (run({.command = {"/usr/bin/python3", "-c", "import redis"}}).status != 0) {
    GTEST_SKIP() << "no python3-redis (tools/packages/test)";
  }
  expect_script({"/usr/bin/python3", kScripts / "run_redis_py.py"}, {"redis", "2"});
}

// Clients that `make clients` fetches: newer versions, and clients that Debian's stable release
// does not have.
class FetchedClients : public Clients {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFetched / "version")) GTEST_SKIP() << "`make clients` gets them";
  }

  const std::filesystem::path kFetched = std::filesystem::absolute("build/clients");
};

TEST_F(FetchedClients, Python) {
  environment_ = {{"PYTHONPATH", kFetched / "python"}};
  Talk talk(server_);
  for (const char* const library : {"redis", "valkey"}) {
    for (const char* const protocol : {"2", "3"}) {
      SCOPED_TRACE(std::string(library) + " RESP" + protocol);
      talk("FLUSHALL");
      expect_script({"/usr/bin/python3", kScripts / "run_redis_py.py"}, {library, protocol});
    }
  }
}

TEST_F(FetchedClients, Go) {
  Talk talk(server_);
  const Outcome outcome =
      run({.command = {kFetched / "bin/go", "run", kScripts / "run_go_redis.go",
                       std::to_string(server_.port()), is_valkey(talk) ? "true" : "false"}});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("commands"), std::string::npos);
}

// Installs node-redis from the registry of npm, once for a build folder.
TEST_F(Clients, Node) {
  if (run({.command = {"sh", "-c", "command -v node npm"}}).status != 0) {
    GTEST_SKIP() << "no node and npm (tools/packages/test)";
  }
  const std::filesystem::path folder = SEMEL_NODE_FOLDER;
  if (!std::filesystem::exists(folder / "node_modules" / "redis")) {
    std::filesystem::create_directories(folder);
    const Outcome installed = run(
        {.command = {"npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "redis@5"},
         .merge = true});
    if (installed.status != 0) GTEST_SKIP() << "npm cannot install node-redis\n" << installed.out;
  }
  environment_ = {{"NODE_PATH", folder / "node_modules"}};
  expect_script({"node", kScripts / "run_node_redis.js"});
}

}  // namespace
}  // namespace semel
