#include "tests/cli/process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

using std::chrono::milliseconds;

Outcome shell(const std::string& line, std::string input = "") {
  return run({.command = {"bash", "-c", line}, .input = std::move(input)});
}

TEST(Process, TellsOutputErrorAndStatus) {
  const Outcome outcome = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.signal, 0);
}

TEST(Process, TellsTheSignalThatEndedIt) {
  const Outcome outcome = shell("kill -TERM $$");
  EXPECT_EQ(outcome.status, -1);
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_FALSE(outcome.timed_out);
}

TEST(Process, MovesMoreThanAPipeHoldsBothWaysAtOnce) {
  const std::string input(8'000'000, 'x');
  const Outcome outcome = shell("tee /dev/stderr", input);
  EXPECT_TRUE(outcome.out == input);
  EXPECT_TRUE(outcome.err == input);
}

TEST(Process, SurvivesAProgramThatDoesNotReadItsInput) {
  EXPECT_EQ(shell("exec <&-; echo done", std::string(8'000'000, 'x')).out, "done\n");
}

TEST(Process, StartsWithSigpipeAtItsDefault) { EXPECT_EQ(shell("kill -PIPE $$").signal, SIGPIPE); }

TEST(Process, KillsAllThatRunsBeyondTheDeadline) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run({.command = {"bash", "-c", "echo begun; sleep 100 | sleep 100"},
                               .timeout = milliseconds(300)});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_EQ(outcome.out, "begun\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50));
}

TEST(Process, KillsWhatIsLeftBehind) {
  const Outcome outcome =
      run({.command = {"bash", "-c", "sleep 100 & echo $!"}, .timeout = milliseconds(300)});
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.status, 0);
  for (int wait = 0; wait < 1000 && ::kill(std::stoi(outcome.out), 0) == 0; ++wait) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(::kill(std::stoi(outcome.out), 0), -1);
}

TEST(Process, MergesErrorIntoOutputInOrder) {
  const Outcome outcome =
      run({.command = {"bash", "-c", "echo 1; echo 2 >&2; echo 3"}, .merge = true});
  EXPECT_EQ(outcome.out, "1\n2\n3\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Process, RunsWhereAndWithWhatItIsTold) {
  const TemporaryDirectory directory;
  const Outcome outcome = run({.command = {"bash", "-c", "pwd -P; echo $HOME $NEW ${PATH%%:*}"},
                               .directory = directory.path(),
                               .environment = {{"HOME", "here"}, {"NEW", "too"}},
                               .commands = "/first"});
  EXPECT_EQ(outcome.out,
            std::filesystem::canonical(directory.path()).string() + "\nhere too /first\n");
}

TEST(Process, TalksBackAndForth) {
  Process process({.command = {"cat"}});
  process.write("one\n");
  EXPECT_EQ(process.read(4), "one\n");
  process.write("two\n");
  EXPECT_EQ(process.read(4), "two\n");
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.status, 0);
}

TEST(Process, GivesUpReadingAtTheDeadline) {
  Process process({.command = {"cat"}, .timeout = milliseconds(100)});
  EXPECT_EQ(process.read(1), "");
  EXPECT_TRUE(process.finish().timed_out);
}

}  // namespace
}  // namespace semel
