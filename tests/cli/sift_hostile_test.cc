// semel sift --at with a server that turns against it: how it ends, and which records it writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/attacks.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

// A list of equal answers.
ScriptedAnswer answers(const std::string& word, std::size_t count) {
  std::string list = "*" + std::to_string(count) + "\r\n";
  for (std::size_t i = 0; i < count; ++i) list += "+" + word + "\r\n";
  return {list};
}

// Answers as a server with the module does to one producer.
ScriptedAnswer as_it_should(const Words& words) {
  if (words[0] == "CLUSTER") return {"-ERR This instance has cluster support disabled\r\n"};
  if (words[0] == "ROLE") return {"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"};
  if (words[0] == "GET" || words[0] == "SET") return {"$-1\r\n"};
  if (words[0] == "SIFT.INFO") {
    return {
        "*10\r\n+Window\r\n:3600000\r\n+Structure\r\n+forgetful\r\n+Error rate\r\n$4\r\n1e-6\r\n"
        "+Error rate now\r\n$1\r\n0\r\n+Size\r\n:1024\r\n"};
  }
  if (words[0] == "SIFT.MCLAIM") return answers("fresh", words.size() - 4);
  if (words[0] == "SIFT.MCOMMIT") return answers("done", words.size() - 3);
  return {"+OK\r\n"};
}

Words at(const ScriptedServer& server, const Words& more = {}) {
  Words words = {"--at", server.url(), "--stream", "s", "--window", "1h", "--slices", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The line on standard error, which is safe to show.
void expect_one_safe_line(const std::string& text) {
  ASSERT_TRUE(text.ends_with('\n')) << text;
  for (const char c : std::string_view(text).substr(0, text.size() - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    EXPECT_TRUE(byte >= 0x20 && byte < 0x7f) << static_cast<int>(byte);
  }
  EXPECT_LT(text.size(), 1000u);
}

TEST(SiftHostile, IsFineWithAServerThatBehaves) {
  const ScriptedServer server(as_it_should);
  const Outcome outcome = sift_quietly(at(server), "a\nb\n");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "a\nb\n");
}

class SiftHostile : public ::testing::TestWithParam<Attack> {};

// One of each kind; tests/client/hostile_server_test.cc has them all.
std::vector<Attack> few_attacks() {
  std::vector<Attack> few = attacks();
  std::erase_if(few, [](const Attack& attack) {
    constexpr std::array<std::string_view, 6> kFew = {"Silence",      "EndsInABulk", "DripsABulk",
                                                      "EndlessError", "HugeArray",   "NoProtocol"};
    return std::find(kFew.begin(), kFew.end(), attack.name) == kFew.end();
  });
  return few;
}

INSTANTIATE_TEST_SUITE_P(Attacks, SiftHostile, ::testing::ValuesIn(few_attacks()),
                         [](const auto& tested) { return tested.param.name; });

// The server turns with this command.
void expect_the_end(const ScriptedAnswer& attack, const std::string& turning_point) {
  bool turned = false;
  const ScriptedServer server([&](const Words& words) {
    turned = turned || words[0] == turning_point;
    return turned ? attack : as_it_should(words);
  });
  const Outcome outcome = sift_quietly(at(server, {"--claim", "2s"}), "a\nb\n");
  EXPECT_FALSE(outcome.timed_out) << turning_point;
  EXPECT_EQ(outcome.status, 1) << turning_point;
  expect_one_safe_line(outcome.err);
  // Only what was claimed is written, if the machine let it come so far in time.
  EXPECT_TRUE(outcome.out.empty() || (outcome.out == "a\nb\n" && turning_point == "SIFT.MCOMMIT"))
      << turning_point << ": " << outcome.out;
}

// Whatever a server does, after any number of good answers, the run ends with one line that says
// so.
TEST_P(SiftHostile, GivesUpWheneverTheServerTurns) {
  std::vector<std::jthread> at_once;
  for (const char* const turning_point : {"CLUSTER", "ROLE", "GET", "SIFT.RESERVE", "SIFT.INFO",
                                          "SET", "SIFT.MCLAIM", "SIFT.MCOMMIT"}) {
    at_once.emplace_back([=] { expect_the_end(GetParam().answer, turning_point); });
  }
}

// A server that is started together with its producers.
TEST(SiftAt, WaitsForAServerThatLoadsItsData) {
  std::atomic<int> asked = 0;
  const ScriptedServer server([&](const Words& words) {
    if (words[0] == "CLUSTER" && ++asked <= 5) {
      return ScriptedAnswer{"-LOADING Redis is loading the dataset in memory\r\n"};
    }
    return as_it_should(words);
  });
  const Outcome outcome =
      sift_quietly({"--at", server.url(), "--stream", "s", "--window", "1h"}, "a\n");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "a\n");
  EXPECT_GT(asked, 5);
}

// A run ends at a signal although another producer holds a key, or seems to.
TEST(SiftAt, EndsWithASignalWhileAKeyIsHeld) {
  const TemporaryDirectory directory;
  std::atomic<int> claims = 0;
  const ScriptedServer server([&](const Words& words) {
    if (words[0] != "SIFT.MCLAIM") return as_it_should(words);
    ++claims;
    return answers("pending", words.size() - 4);
  });
  const std::string tree =
      directory.write("tree", "level a at " + server.url() + "\nlevel b key 1\n");
  for (const Words& words : {Words{"--at", server.url()},
                             Words{"-f", "csv", "-k", "1", "--error", "2e-6", "--tree", tree}}) {
    Words command = {SEMEL_COMMAND, "sift", "-q", "--stream", "s", "--window", "1h"};
    command.insert(command.end(), words.begin(), words.end());
    Process producer({.command = command});
    claims = 0;
    producer.write("a\nb\n");
    ASSERT_TRUE(eventually([&] { return claims >= 6; }));
    producer.signal(SIGTERM);
    const Outcome outcome = producer.finish();
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_NE(outcome.err.find("another producer holds a key"), std::string::npos) << outcome.err;
  }
}

TEST(Terminal, IsNotSteeredByAServer) {
  for (const char* const turning_point : {"CLUSTER", "GET", "SIFT.RESERVE", "SIFT.MCLAIM"}) {
    const ScriptedServer server([&](const Words& words) {
      if (words[0] != turning_point) return as_it_should(words);
      return ScriptedAnswer{
          "-NOPERM \x1b[2J\x1b]0;title\x07 \xc2\x9b"
          "31m \xff\xe2\x80\xae \r\r\n"};
    });
    const Outcome outcome = sift_quietly(at(server), "a\n");
    EXPECT_EQ(outcome.status, 1);
    expect_one_safe_line(outcome.err);
    EXPECT_NE(outcome.err.find(R"(\x1b[2J)"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(R"(\xc2\x9b31m \xff\xe2\x80\xae)"), std::string::npos)
        << outcome.err;
  }
}

TEST(Terminal, IsNotSteeredByNames) {
  const std::string name = "no\x1b[31m\xc2\x9b\nsuch \xc3\xa9";
  const Words attempts[] = {{name},
                            {"--state", "/nowhere/" + name},
                            {"--duplicates-to", "/nowhere/" + name},
                            {"-f", "csv", "-k", "1", "--tree", name},
                            {"--" + name},
                            {"--format", name}};
  for (const Words& words : attempts) {
    const Outcome outcome = sift_quietly(words, "");
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("\xc2\x9b"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("such \xc3\xa9"), std::string::npos) << outcome.err;  // a letter
  }
}

// Refuses every login, and repeats what it was given, as servers do that do not know AUTH.
ScriptedAnswer repeating(const Words& words) {
  if (words[0] != "AUTH") return as_it_should(words);
  std::string text = "-ERR unknown command 'AUTH', with args beginning with:";
  for (std::size_t i = 1; i < words.size(); ++i) text += " '" + words[i] + "'";
  return {text + "\r\n"};
}

TEST(Password, IsInNoMessage) {
  const TemporaryDirectory directory;
  const ScriptedServer server(repeating);
  const std::string host = server.address().text();
  const std::string file = directory.write("password", "hunter2\nmore\n");
  const auto expect_secret = [](const Outcome& outcome, int status) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ((outcome.out + outcome.err).find("hunter2"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err, "");
  };
  const auto words = [](const std::string& url) {
    return Words{"--at", url, "--stream", "s", "--window", "1h"};
  };
  const Words wrong_urls = {"redis://ann:hunter2@" + host + ":x",
                            "redis://ann:hunter2@",
                            "redis://:hunter2",
                            "redis:/:hunter2@" + host,
                            "rediss://:hunter2@" + host,
                            "http://:hunter2@" + host,
                            "ann:hunter2@" + host,
                            "redis://ann:hunter2@" + host + "/x"};
  for (const std::string& wrong : wrong_urls) {
    expect_secret(sift_quietly(words(wrong), ""), 2);
    expect_secret(
        sift_quietly({"-f", "csv", "-k", "1", "-w", "1h", "-N", "t", "-r",
                      directory.write("tree", "level a at " + wrong + "\nlevel b key 2\n")},
                     ""),
        2);
  }
  // In places where no URL is expected.
  const std::string url = "redis://ann:hunter2@" + host;
  const std::string line = directory.write("line", "x\n");
  const Words misplaced[] = {{url},
                             {"--state", url, line},
                             {"--duplicates-to", url, line},
                             {"--format", url},
                             {"--window", url},
                             {"--" + url},
                             {"-f", "csv", "-k", "1", "-r", url}};
  for (const Words& each : misplaced) {
    const Outcome outcome = sift_quietly(each, "");
    expect_secret(outcome, outcome.status);
    EXPECT_NE(outcome.status, 0);
  }
  expect_secret(sift_quietly({"-f", "csv", "-k", "1", "-w", "1h", "-N", "t", "-r",
                              directory.write("tree", "level a " + url + "\nlevel b key 2\n")},
                             ""),
                2);
  expect_secret(run_semel({url}), 2);
  expect_secret(run_semel({"dump", url}), 1);
  expect_secret(sift_quietly(words("redis://ann:hunter2@" + host), ""), 1);
  Words from_file = words("redis://ann@" + host);
  from_file.insert(from_file.end(), {"--password-file", file});
  expect_secret(sift_quietly(from_file, ""), 1);
}

// Lets in whoever has the password, and remembers how they logged in.
class Login : public ::testing::Test {
 protected:
  Outcome sift(const std::string& user, const Words& more,
               std::vector<std::pair<std::string, std::string>> environment = {}) {
    auth_.clear();
    Words command = {SEMEL_COMMAND, "sift", "-q", "--at", "redis://" + user + host(),
                     "--stream",    "s",    "-w", "1h"};
    command.insert(command.end(), more.begin(), more.end());
    return run({.command = command, .input = "a\n", .environment = std::move(environment)});
  }
  std::string host() const { return server_.address().text(); }

  Words auth_;
  ScriptedServer server_{[this](const Words& words) {
    if (words[0] == "AUTH") auth_ = words;
    return words[0] == "AUTH" ? ScriptedAnswer{"+OK\r\n"} : as_it_should(words);
  }};
  TemporaryDirectory directory_;
};

TEST_F(Login, TakesThePasswordFromTheUrlAFileOrTheEnvironmentInThisOrder) {
  const std::string file = directory_.write("password", "from file\r\nsecond line\n");
  const std::pair<std::string, std::string> ours = {"SEMEL_PASSWORD", "ours"};
  const std::pair<std::string, std::string> theirs = {"REDISCLI_AUTH", "theirs"};
  EXPECT_EQ(sift("", {}, {theirs}).status, 0);
  EXPECT_EQ(auth_, (Words{"AUTH", "theirs"}));
  EXPECT_EQ(sift("", {}, {theirs, ours}).status, 0);
  EXPECT_EQ(auth_, (Words{"AUTH", "ours"}));
  EXPECT_EQ(sift("ann@", {"--password-file", file}, {theirs, ours}).status, 0);
  EXPECT_EQ(auth_, (Words{"AUTH", "ann", "from file"}));
  EXPECT_EQ(sift("ann:url@", {"--password-file", file}, {theirs, ours}).status, 0);
  EXPECT_EQ(auth_, (Words{"AUTH", "ann", "url"}));
  EXPECT_EQ(sift("", {}).status, 0);
  EXPECT_EQ(auth_, Words{});
}

TEST_F(Login, RefusesWhatIsNoPassword) {
  expect_usage_error(sift("ann@", {}), {"'ann' needs a password", "SEMEL_PASSWORD"});
  expect_usage_error(sift("", {"--password-file", directory_.write("empty", "\nsecret\n")}),
                     {"--password-file", "first line"});
  EXPECT_EQ(sift("", {"--password-file", directory_.path() / "none"}).status, 1);
  expect_usage_error(sift_quietly({"--password-file", "x"}, ""), {"--password-file", "--at"});
}

// Reads what ps shows while the command waits for its input.
TEST_F(Login, LeavesNoPasswordInTheCommandLine) {
  Process process({.command = {SEMEL_COMMAND, "sift", "-q", "-a", "redis://ann:hunter2@" + host(),
                               "-N", "s", "-w", "1h"}});
  process.write("a\n");
  ASSERT_EQ(process.read(2), "a\n");  // so it runs, and has its arguments behind it
  std::string shown;
  {
    std::ifstream file("/proc/" + std::to_string(process.id()) + "/cmdline");
    shown.assign(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_NE(shown.find("redis://ann:*******@" + host()), std::string::npos) << shown;
  EXPECT_EQ(shown.find("hunter2"), std::string::npos) << shown;
  EXPECT_EQ(process.finish().status, 0);
  EXPECT_EQ(auth_, (Words{"AUTH", "ann", "hunter2"}));
}

}  // namespace
}  // namespace semel
