// Disks that are full or broken: each call that the command makes for its files fails once, or from
// then on. The command exits with 0 only if all is done; otherwise it says which file it was, and
// what was there before is still there.
//
// Some of the calls here, each of them with `make damage`.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "tests/cli/command.h"
#include "tests/cli/lines.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/setting.h"

namespace semel {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct Fault {
  const char* call;
  int error;  // 0: a short write
  bool stays;
};
const std::vector<Fault> kFaults = {
    {"open", ENOSPC, false}, {"open", EACCES, true},   {"write", ENOSPC, true},
    {"write", EIO, false},   {"write", EINTR, false},  {"write", 0, true},
    {"sync", EIO, false},    {"sync", EIO, true},      {"sync", EINTR, false},
    {"rename", EIO, false},  {"rename", ENOSPC, true}, {"truncate", EIO, false},
    {"close", EIO, false}};

class Faults : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_.path() / name; }

  // Runs a shell line, in which $SEMEL is the command with the n-th call failing, over and over
  // with a larger n, in a fresh copy of the folder `pristine`. Calls `check` after each.
  void fail_each_call(const std::string& line, const std::function<void(const Outcome&)>& check) {
    const std::uint64_t step = setting("SEMEL_FAULT_STEP", 25);
    for (const Fault& fault : kFaults) {
      std::uint64_t failed = 0;
      for (std::uint64_t at = 1;; at += failed < 3 ? 1 : step) {  // the first few in any case
        fs::remove_all(path("used"));
        fs::copy(path("pristine"), path("used"), fs::copy_options::recursive);
        fs::remove(path("mark"));
        const Outcome outcome = run_faulty(line, fault, at);
        SCOPED_TRACE(std::string(fault.call) + " " + std::to_string(at) + ": " +
                     std::strerror(fault.error) + (fault.stays ? ", and so on" : "") + ": exit " +
                     std::to_string(outcome.status) + ": " + outcome.err);
        EXPECT_EQ(outcome.signal, 0);
        EXPECT_FALSE(outcome.timed_out);
        EXPECT_LT(outcome.status, 128) << "a signal, to the shell";
        if (outcome.status != 0) {
          EXPECT_NE(outcome.err.find(path("used").string()), std::string::npos)
              << "the error names no file";
        }
        check(outcome);
        for (const auto& entry : fs::recursive_directory_iterator(path("used"))) {
          EXPECT_EQ(entry.path().string().find(".semel-"), std::string::npos) << entry.path();
        }
        if (!fs::exists(path("mark"))) {
          EXPECT_EQ(outcome.status, 0) << "nothing has failed";
          break;
        }
        ++failed;
        if (HasFailure() && step > 1) return;
      }
      faults_[fault.call] += failed;
    }
  }

  // How many calls of a kind have failed.
  std::uint64_t failed(const std::string& call) { return faults_[call]; }

  Outcome run_faulty(const std::string& line, const Fault& fault, std::uint64_t at) const {
    const std::string preload = "env LD_PRELOAD=" SEMEL_FAULTY_FILES
                                " ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 "
                                "SEMEL_FAULT_UNDER=" +
                                path("used").string() + " SEMEL_FAULT_CALL=" + fault.call +
                                " SEMEL_FAULT_AT=" + std::to_string(at) +
                                " SEMEL_FAULT_ERRNO=" + std::to_string(fault.error) +
                                (fault.stays ? " SEMEL_FAULT_ON=1" : "") +
                                " SEMEL_FAULT_MARK=" + path("mark").string() + " " SEMEL_COMMAND;
    return run({.command = {"bash", "-c", line},
                .directory = path("used"),
                .environment = {{"SEMEL", preload}, {"LC_ALL", "C"}, {"HERE", path("used")}}});
  }

  static std::string records(int from, int to) {
    std::string lines;
    for (int i = from; i < to; ++i) lines += "key-" + std::to_string(1000 + i) + "\tvalue\n";
    return lines;
  }
  std::string dump(const std::string& name) const {
    const Outcome outcome = run_semel({"dump", path(name)});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }
  std::string sum(const std::string& name) const {
    const Outcome outcome = run_semel({"tally", "sum", path(name)});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::size_t tab = outcome.out.find('\t');
    return outcome.out.substr(tab + 1, outcome.out.find('\n') - tab - 1);
  }
  static bool has_all(const std::string& lines, const std::string& of) {
    const std::vector<std::string> there = lines_of(lines);
    const std::set<std::string> all(there.begin(), there.end());
    for (const std::string& line : lines_of(of)) {
      if (!all.contains(line)) return false;
    }
    return true;
  }

  TemporaryDirectory directory_;
  std::map<std::string, std::uint64_t> faults_;
};

TEST_F(Faults, OfTheDiskLeaveAStateOrReplaceIt) {
  fs::create_directory(path("pristine"));
  ASSERT_EQ(sift_quietly({"-S", path("pristine/state")}, "a\n").status, 0);
  fail_each_call("printf 'b\\n' | $SEMEL sift -q -S $HERE/state", [&](const Outcome& outcome) {
    const Outcome after = sift_quietly({"-S", path("used/state")}, "a\nb\n");
    EXPECT_EQ(after.status, 0) << after.err;
    EXPECT_TRUE(after.out.empty() || (after.out == "b\n" && outcome.status != 0)) << after.out;
    EXPECT_EQ(std::distance(fs::directory_iterator(path("used")), {}), 1);
  });
  for (const char* call : {"open", "write", "sync", "rename"}) EXPECT_GT(failed(call), 0u) << call;
}

TEST_F(Faults, OfTheDiskAreToldByASiftThatWritesFiles) {
  fs::create_directory(path("pristine"));
  fail_each_call(
      "printf 'a\\nb\\na\\n' | $SEMEL sift -q -d $HERE/again >$HERE/first 2>$HERE/../err; "
      "e=$?; sed \"s#standard output#'$HERE/first'#\" ../err >&2; exit $e",
      [&](const Outcome& outcome) {
        if (outcome.status != 0) return;
        EXPECT_EQ(read_file(path("used/first")), "a\nb\n");
        EXPECT_EQ(read_file(path("used/again")), "a\n");
      });
  for (const char* call : {"open", "write", "close"}) EXPECT_GT(failed(call), 0u) << call;
}

TEST_F(Faults, OfTheDiskLeaveTheRecordsOfADirectory) {
  fs::create_directory(path("pristine"));
  const std::string before = records(0, 100);
  const std::string more = records(100, 200);
  ASSERT_EQ(run_semel({"load", path("pristine/db")}, before).status, 0);
  directory_.write("more", more);
  fail_each_call("$SEMEL load $HERE/db <../more", [&](const Outcome& outcome) {
    const std::string now = dump("used/db");
    EXPECT_TRUE(has_all(now, before));
    EXPECT_TRUE(has_all(now, more) || outcome.status != 0);
  });
  for (const char* call : {"open", "write", "sync", "rename"}) EXPECT_GT(failed(call), 0u) << call;
}

TEST_F(Faults, OfTheDiskLeaveNoHalfOfANewDirectory) {
  fs::create_directory(path("pristine"));
  const std::string lines = records(0, 100);
  directory_.write("more", lines);
  fail_each_call("$SEMEL load $HERE/db <../more", [&](const Outcome& outcome) {
    if (outcome.status == 0) {
      EXPECT_EQ(dump("used/db"), lines);
    } else {  // it can be done again
      const Outcome again = run_semel({"load", path("used/db")}, lines);
      EXPECT_EQ(again.status, 0) << again.err;
      EXPECT_EQ(dump("used/db"), lines);
    }
  });
}

TEST_F(Faults, OfTheDiskLeaveTheCountersOfATable) {
  fs::create_directory(path("pristine"));
  ASSERT_EQ(run_semel({"tally", "load", "-q", path("pristine/db")}, "a\t5\tx1\n").status, 0);
  directory_.write("more", "b\t7\tx2\na\t5\tx1\n");
  fail_each_call("$SEMEL tally load -q $HERE/db ../more", [&](const Outcome& outcome) {
    const std::string now = sum("used/db");
    EXPECT_TRUE(now == "12" || (now == "5" && outcome.status != 0)) << now;
  });
  fail_each_call("$SEMEL tally add $HERE/db b 7 --id x2", [&](const Outcome& outcome) {
    const std::string now = sum("used/db");
    EXPECT_TRUE(now == "12" || (now == "5" && outcome.status != 0)) << now;
  });
  for (const char* call : {"open", "write", "sync", "rename"}) EXPECT_GT(failed(call), 0u) << call;
}

TEST_F(Faults, OfTheDiskLeaveTwoDirectoriesThatCanBeSynced) {
  fs::create_directory(path("pristine"));
  ASSERT_EQ(run_semel({"load", path("pristine/a")}, records(0, 60)).status, 0);
  ASSERT_EQ(run_semel({"load", path("pristine/b")}, records(40, 100)).status, 0);
  fail_each_call("$SEMEL sync -q $HERE/a $HERE/b", [&](const Outcome& outcome) {
    if (outcome.status != 0) {
      EXPECT_TRUE(has_all(dump("used/a"), records(0, 60)));
      EXPECT_TRUE(has_all(dump("used/b"), records(40, 100)));
      const Outcome again = run_semel({"sync", "-q", path("used/a"), path("used/b")});
      EXPECT_EQ(again.status, 0) << again.err;
    }
    EXPECT_EQ(dump("used/a"), records(0, 100));
    EXPECT_EQ(dump("used/b"), records(0, 100));
  });
}

// Every command that writes to standard output reports that it is full.
TEST_F(Faults, OfStandardOutputAreToldByEverySubcommand) {
  const std::string db = path("db");
  const std::string other = path("other");
  const std::string table = path("table");
  ASSERT_EQ(run_semel({"load", db}, "a\t1\n").status, 0);
  ASSERT_EQ(run_semel({"load", other}, "b\t1\n").status, 0);
  ASSERT_EQ(run_semel({"tally", "add", table, "a"}).status, 0);
  // Without an entry: load, sync and tally load write nothing there.
  const std::map<std::string, std::string> lines = {
      {"sift", "sift -q <in"},
      {"generate", "generate -n 10"},
      {"size", "size 1000"},
      {"tally add", "tally add " + table + " a"},
      {"tally get", "tally get " + table + " a"},
      {"tally top", "tally top " + table},
      {"tally sum", "tally sum " + table},
      {"tally info", "tally info " + table},
      {"sync", "sync --json " + db + " " + other},
      {"diff", "diff " + db + " " + table},
      {"plan", "plan " + db + " " + other},
      {"serve-sync", "serve-sync -r " + db + " <hello"},
      {"dump", "dump " + db},
      {"completion", "completion"},
      {"help", "help"}};
  directory_.write("in", "a\n");
  directory_.write("hello", "no frame");
  for (const cli::Command& command : cli::all_commands()) {
    const auto line = lines.find(command.word);
    for (const std::string& words :
         {line == lines.end() ? std::string() : line->second, command.word + " --help"}) {
      if (words.empty()) continue;
      const Outcome outcome = run_shell("$SEMEL " + words + " >/dev/full", directory_.path());
      EXPECT_GT(outcome.status, 0) << words;
      EXPECT_LT(outcome.status, 128) << words;
      EXPECT_NE(outcome.err, "") << words;
    }
  }
  EXPECT_EQ(run_shell("$SEMEL --version >/dev/full").status, 1);
  EXPECT_EQ(run_shell("$SEMEL --help >/dev/full").status, 1);
}

}  // namespace
}  // namespace semel
