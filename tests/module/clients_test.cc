// Unmodified clients: each runs the same script of all families, and its own functions for filters.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/cli/process.h"
#include "tests/module/module_server.h"

namespace semel {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

class Clients : public ::testing::Test {
 protected:
  // Runs a client, which prints its name, its version and the number of commands.
  void run_client(const Words& command) {
    const Outcome outcome = run({.command = command, .environment = environment_});
    static const std::regex kDone(R"((\S+ \d\S*): [1-9]\d* commands\n)");
    std::smatch done;
    if (outcome.status == 0 && std::regex_match(outcome.out, done, kDone)) {
      RecordProperty("client", done[1]);  // for tools/test-servers
      return;
    }
    const std::string said = outcome.out + outcome.err;
    if (!new_version_.empty()) {
      GTEST_SKIP() << "it is new and does not pass: " << new_version_ << '\n' << said;
    }
    ADD_FAILURE() << said;
  }

  void run_script(Words command, const Words& more = {}) {
    command.push_back(std::to_string(server_.port()));
    command.push_back(kScripts / "script.json");
    command.insert(command.end(), more.begin(), more.end());
    run_client(command);
  }

  const std::filesystem::path kScripts = "tests/module/clients";
  const RedisServer server_{with_module()};
  std::vector<std::pair<std::string, std::string>> environment_;
  std::string new_version_;  // not empty: its failures are reported, and fail nothing
};

TEST_F(Clients, RedisCli) { run_script({kPython, kScripts / "run_cli.py"}); }

TEST_F(Clients, Python) {
  if (run({.command = {kPython, "-c", "import redis"}}).status != 0) {
    GTEST_SKIP() << "no python3-redis (tools/packages/test)";
  }
  run_script({kPython, kScripts / "run_redis_py.py"}, {"redis", "2"});
}

// Clients that `make clients` fetches: newer versions, and clients that Debian 12 does not have.
class FetchedClients : public Clients {
 protected:
  // Skips the test if there is no such file. A package of the moving suite that has not passed
  // before cannot fail it: see tools/fetch-clients.
  void need(const std::filesystem::path& file, const std::string& package) {
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "`make clients` gets it";
    if (file.string().find("/moving/") == std::string::npos) return;
    std::ifstream in(kFetched / "moving/new");
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with(package)) new_version_ = line;
    }
  }

  const std::filesystem::path kFetched = std::filesystem::absolute("build/clients");
};

struct PythonClient {
  const char* suite;
  const char* library;
};

class FetchedPython : public FetchedClients, public ::testing::WithParamInterface<PythonClient> {};

INSTANTIATE_TEST_SUITE_P(Clients, FetchedPython,
                         ::testing::Values(PythonClient{"stable", "redis"},
                                           PythonClient{"moving", "redis"},
                                           PythonClient{"moving", "valkey"}),
                         [](const auto& test) {
                           return std::string(test.param.suite) + "_" + test.param.library;
                         });

TEST_P(FetchedPython, RunsInBothProtocols) {
  const auto& [suite, library] = GetParam();
  const std::filesystem::path folder = kFetched / suite / "python";
  need(folder / library, std::string("python3-") + library + "=");
  environment_ = {{"PYTHONPATH", folder}};
  Talk talk(server_);
  for (const char* const protocol : {"2", "3"}) {
    if (IsSkipped()) return;
    SCOPED_TRACE(std::string("RESP") + protocol);
    talk("FLUSHALL");
    run_script({kPython, kScripts / "run_redis_py.py"}, {library, protocol});
  }
}

TEST_F(FetchedClients, Go) {
  need(kFetched / "moving/root/usr/share/gocode/src/github.com/redis/go-redis", "golang-");
  if (IsSkipped()) return;
  need(kFetched / "stable/root/usr/lib", "");
  if (IsSkipped()) return;
  Talk talk(server_);
  run_client({kFetched / "bin/go", "run", kScripts / "run_go_redis.go",
              std::to_string(server_.port()), is_valkey(talk) ? "true" : "false"});
}

// Installs node-redis from the registry of npm, once for a build folder. A version there never
// changes.
TEST_F(Clients, Node) {
  if (run({.command = {"sh", "-c", "command -v node npm"}}).status != 0) {
    GTEST_SKIP() << "no node and npm (tools/packages/test)";
  }
  const std::string version = "5.12.1";
  const std::filesystem::path folder = SEMEL_NODE_FOLDER "-" + version;
  if (!std::filesystem::exists(folder)) {
    // Several servers may be tested at once.
    const std::filesystem::path own = folder.string() + "." + std::to_string(::getpid());
    std::filesystem::create_directories(own);
    const Outcome installed = run({.command = {"npm", "install", "--no-audit", "--no-fund",
                                               "--prefix", own, "redis@" + version},
                                   .merge = true,
                                   .timeout = std::chrono::minutes(2)});
    std::error_code another_was_first;
    if (installed.status == 0) std::filesystem::rename(own, folder, another_was_first);
    std::filesystem::remove_all(own);
    if (installed.status != 0) GTEST_SKIP() << "npm cannot install node-redis\n" << installed.out;
  }
  environment_ = {{"NODE_PATH", folder / "node_modules"}};
  run_script({"node", kScripts / "run_node_redis.js"});
}

}  // namespace
}  // namespace semel
