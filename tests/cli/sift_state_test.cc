// semel sift --state: what survives the end of a run, a signal, and kill -9.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "semel/core/internal/random.h"
#include "tests/cli/command.h"
#include "tests/cli/lines.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

class SiftState : public ::testing::Test {
 protected:
  Outcome sift(Words options, const std::string& input) const {
    options.insert(options.begin(), {"sift", "-q", "--state", state_});
    return run_semel(options, input);
  }
  // The state is replaced by each save.
  ino_t saved() const {
    struct stat status {};
    return ::stat(state_.c_str(), &status) == 0 ? status.st_ino : 0;
  }
  void wait_for_save_after(ino_t before) const {
    ASSERT_TRUE(eventually([&] { return saved() != before; }));
  }

  TemporaryDirectory directory_;
  std::string state_ = directory_.path() / "state";
};

std::string numbers(int from, int to) {
  std::string lines;
  for (int i = from; i < to; ++i) lines += std::to_string(i) + '\n';
  return lines;
}

TEST_F(SiftState, GoesOnWhereTheLastRunEnded) {
  for (const Words& mode : {Words{}, Words{"-x"}, Words{"-w", "1h"}, Words{"-w", "1h", "-x"},
                            Words{"-L", "diced"}, Words{"-L", "vertical", "-x"}}) {
    std::filesystem::remove(state_);
    EXPECT_EQ(sift(mode, "a\nb\n").out, "a\nb\n");
    EXPECT_EQ(sift(mode, "b\nc\n").out, "c\n");
    EXPECT_EQ(sift(mode, "").out, "");
    EXPECT_EQ(sift(mode, "a\nb\nc\nd\n").out, "d\n");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
  }
}

// The state of the lines a and b. It was written once, and never again.
TEST_F(SiftState, OfTheFirstVersionIsStillRead) {
  directory_.write("state", read_file("tests/golden/data/sift_state_v1.bin"));
  EXPECT_EQ(sift({"-x", "-n", "2"}, "a\nc\nb\n").out, "c\n");
  std::filesystem::remove(state_);
  EXPECT_EQ(sift({"-x", "-n", "2"}, "a\nb\n").status, 0);
  EXPECT_TRUE(read_file(state_) == read_file("tests/golden/data/sift_state_v1.bin"));
}

TEST_F(SiftState, GoesOnWithEventTimes) {
  const Words options = {"-f", "csv", "-k", "1", "-w", "1m", "-T", "2"};
  EXPECT_EQ(sift(options, "a,1000\nb,1030\n").out, "a,1000\nb,1030\n");
  EXPECT_EQ(sift(options, "a,1050\nc,1050\n").out, "c,1050\n");
  const Outcome late = sift(options, "d,900\n");
  EXPECT_EQ(late.status, 1) << "the time of the last run is known";
  EXPECT_EQ(sift(options, "a,2000\n").out, "a,2000\n");
}

TEST_F(SiftState, GoesOnWithAnotherNumberOfThreads) {
  const std::string input = run_semel({"generate", "-n", "50k"}).out;
  EXPECT_NE(sift({"-t", "1"}, input).out, "");
  EXPECT_EQ(sift({"-t", "4"}, input).out, "");
}

TEST_F(SiftState, RefusesAStateOfOtherOptions) {
  EXPECT_EQ(sift({"-e", "0.01"}, "a\n").status, 0);
  const std::string before = read_file(state_);
  const std::vector<std::pair<Words, std::string>> cases = {
      {{}, "it was made with --error 0.01, and cannot go on with --error 1e-06"},
      {{"-e", "0.01", "-s", "1"}, "it was made with --seed 0, and cannot go on with --seed 1"},
      {{"-x"}, "it was made without --exact, and cannot go on with --exact"},
      {{"-e", "0.01", "-w", "1h"},
       "it was made without --window, and cannot go on with --window 1h"},
      {{"-e", "0.01", "-n", "4"}, "it was made with --slices 16, and cannot go on with --slices 4"},
      {{"-e", "0.01", "-f", "csv", "-k", "1"}, "it was made with --format lines"},
  };
  for (const auto& [options, message] : cases) {
    const Outcome outcome = sift(options, "a\nb\n");
    expect_usage_error(outcome, {"cannot go on from '" + state_ + "': " + message});
    EXPECT_TRUE(read_file(state_) == before);
  }
}

TEST_F(SiftState, RefusesADamagedStateAndLeavesIt) {
  EXPECT_EQ(sift({}, numbers(0, 100)).status, 0);
  const std::string good = read_file(state_);
  Random random(1);
  for (int i = 0; i < 20; ++i) {
    std::string bad = good;
    if (i % 2 == 0) {
      char& byte = bad[random.below(bad.size())];
      byte = static_cast<char>(byte ^ (1 << random.below(8)));
    } else {
      bad.resize(1 + random.below(bad.size() - 1));
    }
    directory_.write("state", bad);
    const Outcome outcome = sift({}, "a\n");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.rfind("semel sift: cannot go on from ", 0), 0u) << outcome.err;
    EXPECT_TRUE(read_file(state_) == bad);
  }
  directory_.write("state", "#!/bin/sh\necho this is some other file of the user's\n");
  EXPECT_NE(sift({}, "a\n").err.find("it is not a state of this version"), std::string::npos);
}

TEST_F(SiftState, BelongsToOneProcessAtATime) {
  Process first({.command = {SEMEL_COMMAND, "sift", "-q", "-S", state_, "-C", "20ms"}});
  first.write("a\n");
  EXPECT_EQ(first.read(2), "a\n");
  const Outcome second = sift({}, "a\n");
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.err, "semel sift: another process is using '" + state_ + "'\n");
  // The file that was made at the start is empty.
  ASSERT_TRUE(eventually([&] { return std::filesystem::file_size(state_) > 0; }));
  EXPECT_EQ(sift({}, "a\n").status, 1) << "the new file is locked too";
  first.finish();
  EXPECT_EQ(sift({}, "a\n").out, "");
}

TEST_F(SiftState, IsNoFileThatIsAlsoReadOrWritten) {
  directory_.write("in", "a\n");
  for (const char* line : {"$SEMEL sift -S in in", "$SEMEL sift -S in <in",
                           "$SEMEL sift -S out in >out", "$SEMEL sift -S in -d in /dev/null"}) {
    const Outcome outcome = run_shell(line, directory_.path());
    expect_usage_error(outcome, {"--state cannot be"});
    EXPECT_EQ(read_file(directory_.path() / "in"), "a\n");
  }
  EXPECT_EQ(run_semel({"sift", "-S", "/nowhere/state"}).status, 1);
  EXPECT_EQ(run_semel({"sift", "-S", "/dev/null"}).status, 1);
}

TEST_F(SiftState, IsSavedAfterASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::filesystem::remove(state_);
    Process process({.command = {SEMEL_COMMAND, "sift", "-q", "-S", state_}});
    process.write("a\nb\npart");
    EXPECT_EQ(process.read(4), "a\nb\n");
    process.signal(signal);
    EXPECT_EQ(process.read(1), "") << "it ends although its input does not";
    EXPECT_EQ(process.finish().signal, signal) << "as the shell expects";
    EXPECT_EQ(sift({}, "a\nb\npart\n").out, "part\n");
  }
}

// nohup(1) makes a program ignore the end of the terminal.
TEST_F(SiftState, IgnoresAHangUpThatItsParentIgnores) {
  Process process({.command = {"bash", "-c", "trap '' HUP; exec $0 sift -q", SEMEL_COMMAND}});
  process.write("a\n");
  EXPECT_EQ(process.read(2), "a\n");
  process.signal(SIGHUP);
  process.write("b\n");
  EXPECT_EQ(process.read(2), "b\n");
  EXPECT_EQ(process.finish().status, 0);
}

// Nothing that was written out before the last checkpoint is let through again, and nothing is
// lost.
TEST_F(SiftState, KeepsWhatWasSavedBeforeAKill) {
  for (const char* threads : {"1", "3"}) {
    std::filesystem::remove(state_);
    Process process(
        {.command = {SEMEL_COMMAND, "sift", "-q", "-S", state_, "-C", "30ms", "-t", threads}});
    const std::string early = numbers(0, 1000);
    process.write(early);
    EXPECT_EQ(process.read(early.size()), early);
    const ino_t before = saved();
    process.write("x\n");  // whatever is saved from now on holds all that was read before
    EXPECT_EQ(process.read(2), "x\n");
    wait_for_save_after(before);
    const std::string late = numbers(1000, 1500);
    process.write(late);
    EXPECT_EQ(process.read(late.size()), late);
    process.signal(SIGKILL);
    process.finish();

    const std::string again = sift({}, early + late + "y\n").out;
    EXPECT_TRUE(again == "y\n" || again == late + "y\n") << again.substr(0, 100);
  }
}

// Nobody reads the output. The first piece, all duplicates, is written, and its thread comes to
// save the state. The pieces behind it take no time to judge, and wait to be written.
TEST_F(SiftState, KnowsNothingThatIsNotWritten) {
  std::string input;
  for (int i = 0; i < 1 << 18; ++i) input += "x\n";
  for (int i = 0; i < 2000; ++i) input += std::to_string(i) + std::string(1000, 'y') + '\n';
  const std::string in = directory_.write("in", input);
  Process process(
      {.command = {SEMEL_COMMAND, "sift", "-q", "-x", "-S", state_, "-C", "1ms", "-t", "3", in}});
  process.wait_until_still();
  process.signal(SIGKILL);
  const std::vector<std::string> before = lines_of(process.finish().out);
  const std::vector<std::string> after = lines_of(sift({"-x"}, input).out);
  std::set<std::string> written(before.begin(), before.end());
  written.insert(after.begin(), after.end());
  for (const std::string& each : lines_of(input)) {
    ASSERT_TRUE(written.contains(each)) << each.substr(0, 10);
  }
}

// Killed at any moment, over and over: every line comes out, and no line that an earlier run saved
// comes out again.
TEST_F(SiftState, LosesNothingWhenItIsKilledAgainAndAgain) {
  const std::string input = run_semel({"generate", "-n", "300k", "-b", "17", "-d", "0.3"}).out;
  const std::string in = directory_.write("in", input);
  Random random(1);
  std::multiset<std::string> written;
  std::set<std::string> safe;  // what was saved, and must not come again
  for (int run = 0; run < 30; ++run) {
    const std::string out = directory_.path() / "out";
    const std::string line = "exec $0 sift -q -x -S " + state_ + " -C 1ms -t 2 " + in + " >" + out;
    Process process({.command = {"bash", "-c", line, SEMEL_COMMAND}});
    const bool last = run == 29;
    if (!last) {
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(60'000)));
      process.signal(SIGKILL);
    }
    process.finish();
    std::vector<std::string> lines = lines_of(read_file(out));
    if (!lines.empty() && !lines.back().ends_with('\n')) lines.pop_back();  // cut by the kill
    for (const std::string& each : lines) {
      EXPECT_EQ(safe.count(each), 0u) << run << ": " << each;
      written.insert(each);
    }
    // A copy tells what the state knows by now.
    if (run % 5 == 4 && std::filesystem::exists(state_)) {
      std::filesystem::copy_file(state_, directory_.path() / "copy",
                                 std::filesystem::copy_options::overwrite_existing);
      const std::string fresh =
          run_semel({"sift", "-q", "-x", "-S", directory_.path() / "copy", in}).out;
      const std::vector<std::string> unknown = lines_of(fresh);
      const std::set<std::string> not_saved(unknown.begin(), unknown.end());
      for (const std::string& each : lines_of(input)) {
        if (!not_saved.contains(each)) safe.insert(each);
      }
      for (const std::string& each : safe) ASSERT_GE(written.count(each), 1u) << each;
    }
  }
  for (const std::string& each : lines_of(input)) ASSERT_GE(written.count(each), 1u) << each;
}

TEST_F(SiftState, KeepsItsPermissions) {
  using std::filesystem::perms;
  EXPECT_EQ(sift({}, "a\n").status, 0);
  std::filesystem::permissions(state_, perms::owner_read | perms::owner_write);
  EXPECT_EQ(sift({}, "b\n").status, 0);
  EXPECT_EQ(std::filesystem::status(state_).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(SiftState, TellsWhenItCannotBeSaved) {
  const std::filesystem::path folder = directory_.path() / "folder";
  std::filesystem::create_directory(folder);
  Process process({.command = {SEMEL_COMMAND, "sift", "-q", "-S", folder / "state"}});
  process.write("a\n");
  EXPECT_EQ(process.read(2), "a\n");
  std::filesystem::remove_all(folder);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "semel sift: cannot write '" + (folder / "state").string() +
                             "': No such file or directory\n");
}

// Objects that somebody else may put where a file of ours is expected.
struct Trap {
  std::string name;
  std::function<void(const std::filesystem::path& at)> set;
};

class SiftStateTraps : public SiftState {
 protected:
  std::vector<Trap> traps() const {
    const std::filesystem::path victim = victim_;
    const std::filesystem::path nowhere = nowhere_;
    return {{"a symbolic link", [=](const auto& at) { create_symlink(victim, at); }},
            {"a dangling link", [=](const auto& at) { create_symlink(nowhere, at); }},
            {"a hard link", [=](const auto& at) { create_hard_link(victim, at); }},
            {"a FIFO", [](const auto& at) { ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0); }},
            {"a directory", [](const auto& at) { create_directory(at); }}};
  }
  void expect_nobody_hurt() const {
    EXPECT_EQ(read_file(victim_), "precious");
    EXPECT_FALSE(std::filesystem::exists(nowhere_));
  }

  std::string victim_ = directory_.write("victim", "precious");
  std::string nowhere_ = directory_.path() / "nowhere";
};

TEST_F(SiftStateTraps, DoNotCatchASave) {
  for (const char* suffix : {".new", ".tmp", "~", ".semel-XXXXXX"}) {
    for (const char* prefix : {"", "."}) {
      for (const Trap& trap : traps()) {
        SCOPED_TRACE(trap.name + " at " + prefix + "state" + suffix);
        const std::filesystem::path at =
            directory_.path() / (std::string(prefix) + "state" + suffix);
        trap.set(at);
        const Outcome outcome = sift({}, "a\n");
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(sift({}, "a\n").out, "");
        expect_nobody_hurt();
        std::filesystem::remove(at);
        std::filesystem::remove(state_);
      }
    }
  }
}

TEST_F(SiftStateTraps, AreNotTakenForAState) {
  for (const Trap& trap : traps()) {
    SCOPED_TRACE(trap.name);
    trap.set(state_);
    const Outcome outcome = sift({}, "a\n");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("'" + state_ + "'"), std::string::npos) << outcome.err;
    expect_nobody_hurt();
    std::filesystem::remove(state_);
  }
}

// A state of two names is replaced under one of them. The other keeps what it was.
TEST_F(SiftState, OfTwoNamesIsReplacedUnderItsOwn) {
  EXPECT_EQ(sift({}, "a\n").status, 0);
  const std::string other = directory_.path() / "other";
  std::filesystem::create_hard_link(state_, other);
  const std::string before = read_file(other);
  EXPECT_EQ(sift({}, "b\n").status, 0);
  EXPECT_TRUE(read_file(other) == before);
  EXPECT_EQ(sift({}, "a\nb\n").out, "");
}

TEST_F(SiftState, ClearsAwayWhatAKilledRunLeft) {
  const std::string left = directory_.write(".state.semel-a1B2c3", "half of a state");
  EXPECT_EQ(sift({}, "a\n").status, 0);
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(SiftState, IsNotSavedWhenTheOutputFails) {
  EXPECT_EQ(sift({}, "a\n").out, "a\n");
  const std::string before = read_file(state_);
  EXPECT_EQ(run_shell("printf 'b\\n' | $SEMEL sift -q -S " + state_ + " >/dev/full").status, 1);
  EXPECT_TRUE(read_file(state_) == before);
  EXPECT_EQ(sift({}, "a\nb\n").out, "b\n");
}

}  // namespace
}  // namespace semel
