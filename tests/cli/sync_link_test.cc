// The two ends of `semel sync --via` when one of them is busy, silent, stopped or killed.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

void expect_in(const std::string& text, const Words& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
}

class SyncLink : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_semel({"load", path("a")}, "x\t1\n").status, 0);
    ASSERT_EQ(run_semel({"load", path("b")}, "y\t2\n").status, 0);
    // An end that opens this for its key is busy until somebody writes to it.
    ASSERT_EQ(::mkfifo(path("key").c_str(), 0600), 0);
  }
  void TearDown() override {
    for (const std::string& name : noted_) {
      const pid_t pid = noted(name);
      if (pid > 0 && ::kill(pid, SIGKILL) == 0) ADD_FAILURE() << name << " was left behind";
    }
  }

  std::string path(const std::string& name) const { return directory_.path() / name; }
  std::string serve(const std::string& options = "") const {
    return SEMEL_COMMAND " serve-sync --timeout 2s " + options + ' ' + path("b");
  }
  std::string busy() const { return serve("--key-file " + path("key")); }
  Start sync(const std::string& command) const {
    return {
        .command = {SEMEL_COMMAND, "sync", "-q", "--timeout", "2s", path("a"), "--via", command}};
  }
  // Returns a shell command that notes its process id and becomes `command`. In the end the process
  // must be gone.
  std::string noting(const std::string& name, const std::string& command,
                     const std::string& starter = "sh") {
    noted_.push_back(name);
    directory_.write(name + ".sh", "echo $$ >" + path(name) + ".new; mv " + path(name) + ".new " +
                                       path(name) + "; exec " + command);
    return starter + ' ' + path(name + ".sh");
  }
  pid_t noted(const std::string& name) const {
    pid_t pid = 0;
    std::ifstream(path(name)) >> pid;
    return pid;
  }
  void wait_until_noted(const std::string& name) const {
    ASSERT_TRUE(eventually([&] { return noted(name) > 0; }));
  }
  bool ends(const std::string& name) const {
    return eventually([&] { return ::kill(noted(name), 0) != 0; });
  }
  void give_key() const { std::ofstream(path("key")) << std::string(32, '\0'); }
  void expect_dumps(const std::string& lines) const {
    for (const char* name : {"a", "b"}) EXPECT_EQ(run_semel({"dump", path(name)}).out, lines);
  }

  TemporaryDirectory directory_;
  Words noted_;
};

TEST_F(SyncLink, WaitsForAPeerThatIsBusy) {
  Process process(sync(busy()));
  std::this_thread::sleep_for(std::chrono::seconds(4));  // twice the timeout
  give_key();
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_dumps("x\t1\ny\t2\n");
}

TEST_F(SyncLink, TellsThatThePeerIsSilent) {
  for (const char* word : {"sync", "diff"}) {
    const Outcome outcome =
        run_semel({word, "--timeout", "2s", path("a"), "--via", "exec sleep 1000"});
    EXPECT_EQ(outcome.status, std::string(word) == "diff" ? 2 : 1);
    expect_in(outcome.err, {std::string("semel ") + word + ": the peer has been silent for 2 s\n"});
  }
  EXPECT_EQ(run_semel({"dump", path("a")}).out, "x\t1\n");
}

TEST_F(SyncLink, ServerTellsThatThePeerIsSilent) {
  const Outcome outcome = run_shell("sleep 1000 | (" + serve() + "; echo status $? >&2; kill 0)");
  expect_in(outcome.err, {"semel serve-sync: the peer has been silent for 2 s\n", "status 1\n"});
}

TEST_F(SyncLink, EndsAllThatTheCommandHasStarted) {
  const std::string deaf = "sh -c 'trap \"\" TERM HUP INT; sleep 1000; sleep 1000'";
  const Outcome outcome =
      run(sync(noting("first", "sleep 1000") + " & " + noting("second", "sleep 1000") + " | " +
               noting("third", "sleep 1000") + " & " + noting("deaf", deaf) + " & " +
               noting("group", "sleep 1000", "bash -m -c 'sh $0 & wait'") + "; wait"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_FALSE(outcome.timed_out);
  expect_in(outcome.err, {"semel sync: the peer has been silent for 2 s\n"});
  for (const char* name : {"first", "second", "third", "deaf", "group"})
    EXPECT_NE(noted(name), 0) << name;
}

TEST_F(SyncLink, EndsWhatTheCommandLeavesBehindAfterASuccess) {
  const Outcome outcome = run(sync(noting("left", "sleep 1000") + " >/dev/null & exec " + serve()));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(noted("left"), 0);
  expect_dumps("x\t1\ny\t2\n");
}

TEST_F(SyncLink, LeavesADaemonAlone) {
  const std::string starter = "setsid sh";
  const Outcome outcome = run(sync(noting("daemon", "sleep 1000 >/dev/null 2>&1", starter) +
                                   " </dev/null & while ! [ -e " + path("daemon") +
                                   " ]; do sleep 0.01; done; exec " + serve()));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  noted_.clear();
  EXPECT_EQ(::kill(noted("daemon"), SIGKILL), 0);
}

TEST_F(SyncLink, ACommandThatDoesNotEndIsMadeTo) {
  const Outcome outcome = run(sync(serve() + "; " + noting("rest", "sleep 1000")));
  EXPECT_EQ(outcome.status, 1);
  expect_in(outcome.err, {"' did not end, and was made to\n"});
  expect_dumps("x\t1\ny\t2\n");
}

TEST_F(SyncLink, AStoppedPeerIsSilentAndIsEnded) {
  Process process(sync(noting("peer", busy())));
  wait_until_noted("peer");
  ASSERT_EQ(::kill(noted("peer"), SIGSTOP), 0);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.status, 1);
  expect_in(outcome.err, {"semel sync: the peer has been silent for 2 s\n"});
}

TEST_F(SyncLink, ASignalEndsBothWhileThePeerIsBusy) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Process process(sync(noting("peer", busy())));
    wait_until_noted("peer");
    process.signal(signal);
    const Outcome outcome = process.finish();
    EXPECT_EQ(outcome.signal, signal) << outcome.err;
    EXPECT_TRUE(ends("peer"));
    std::filesystem::remove(path("peer"));
  }
}

// Nobody reads what diff writes, so that it does not come back to the pipe.
TEST_F(SyncLink, ASignalEndsAnAskerThatIsBusy) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "key-" + std::to_string(i) + "\t1\n";
  ASSERT_EQ(run_semel({"load", path("a")}, lines).status, 0);
  Process process({.command = {SEMEL_COMMAND, "diff", "-q", "--timeout", "2s", path("a"), "--via",
                               noting("peer", serve("-r"))}});
  process.wait_until_blocked();
  std::this_thread::sleep_for(std::chrono::seconds(3));  // longer than the timeout
  EXPECT_EQ(::kill(noted("peer"), 0), 0);
  process.signal(SIGTERM);
  EXPECT_TRUE(ends("peer"));
  EXPECT_EQ(process.finish().signal, SIGTERM);
}

TEST_F(SyncLink, ASignalEndsAServerThatIsBusy) {
  Process process(sync(noting("peer", busy())));
  wait_until_noted("peer");
  // The shell has become semel, and semel waits for signals.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ASSERT_EQ(::kill(noted("peer"), SIGTERM), 0);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.status, 1);
  expect_in(outcome.err, {"semel sync: the peer ended before it answered\n"});
}

// On another host nothing but the end of the stream tells that the one that asks was killed.
TEST_F(SyncLink, AServerEndsWhenTheOneThatAsksIsKilled) {
  Process process(sync(noting("peer", busy() + " 2>" + path("words"), "setsid -w sh")));
  wait_until_noted("peer");
  process.signal(SIGKILL);
  EXPECT_EQ(process.finish().signal, SIGKILL);
  EXPECT_TRUE(ends("peer"));
  expect_in(read_file(path("words")), {"semel serve-sync: the peer ended before it said "});
  EXPECT_EQ(run_semel({"dump", path("b")}).out, "y\t2\n");
}

TEST_F(SyncLink, RefusesTimeoutsThatCannotWork) {
  for (const char* timeout : {"1s", "1999ms", "25h", "x", "-5s", ""}) {
    for (const Words& words : {Words{"sync", "--timeout", timeout, path("a"), "--via", "true"},
                               Words{"serve-sync", "--timeout", timeout, path("b")}}) {
      expect_usage_error(run_semel(words), {"--timeout", "allowed: a duration from 2s to 1d"});
    }
  }
}

}  // namespace
}  // namespace semel
