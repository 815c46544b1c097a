#include "tests/cli/process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "tests/cli/temporary_directory.h"
#include "tests/support/eventually.h"

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

std::string read_line(Process& process) {
  std::string line;
  while (!line.ends_with('\n')) {
    const std::string next = process.read(1);
    if (next.empty()) return line;
    line += next;
  }
  line.pop_back();
  return line;
}

// Returns true if the process has ended, even if nobody has waited for it.
bool ended(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string number, name, state;
  return !(file >> number >> name >> state) || state == "Z";
}

TEST(Process, KillsAllThatRunsBeyondTheDeadline) {
  Process process({.command = {"bash", "-c", "sleep 1000000 & echo $!; echo $$; wait"}});
  const std::string child = read_line(process);
  const std::string parent = read_line(process);
  EXPECT_FALSE(ended(parent));
  process.expire();
  const Outcome outcome = process.finish();
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_TRUE(eventually([&] { return ended(parent) && ended(child); }));
}

// The process that is left behind writes its number when the other has ended.
TEST(Process, KillsWhatIsLeftBehind) {
  Process process({.command = {"bash", "-c",
                               "(while read -r _ _ _ parent _ </proc/$BASHPID/stat; "
                               "[ $parent = $$ ]; do sleep 0.01; done; "
                               "echo $BASHPID; exec sleep 1000000) &"}});
  const std::string left = read_line(process);
  process.expire();
  const Outcome outcome = process.finish();
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(eventually([&] { return ended(left); }));
}

TEST(Process, IsStillWhenItWaitsForInput) {
  Process process({.command = {"bash", "-c", "for i in {1..20000}; do :; done; echo; cat"}});
  process.wait_until_still();
  EXPECT_EQ(process.read(1), "\n");
  EXPECT_EQ(process.finish().status, 0);
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
