// semel sift with windows, layouts and threads.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "semel/core/clock.h"
#include "semel/core/internal/random.h"
#include "tests/cli/command.h"
#include "tests/cli/lines.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

TEST(SiftWindow, ForgetsByTheTimeInTheRecords) {
  const std::string input = "a,1000\nb,1010\na,1059\na,1060\na,1200\nb,1201\na,1210\n";
  for (const Words& mode : {Words{}, Words{"--exact"}, Words{"--layout", "vertical"}}) {
    Words options = {"-f", "csv", "-k", "1", "-w", "1m", "-T", "2"};
    options.insert(options.end(), mode.begin(), mode.end());
    EXPECT_EQ(sift_quietly(options, input).out, "a,1000\nb,1010\na,1200\nb,1201\n");
  }
}

// A key is a duplicate up to the window and not a millisecond longer.
TEST(SiftWindow, ForgetsToTheMillisecondWhenExact) {
  const TemporaryDirectory directory;
  const std::string state = directory.path() / "state";
  for (const char* layout : {"horizontal", "vertical", "diced"}) {
    std::filesystem::remove(state);
    const Words options = {"-f", "csv", "-k", "1",    "-w", "1m", "-T",
                           "2",  "-x",  "-L", layout, "-S", state};
    EXPECT_EQ(sift_quietly(options, "a,1700000000.000\nb,1700000000.001\na,1700000060.000\n").out,
              "a,1700000000.000\nb,1700000000.001\n");
    EXPECT_EQ(sift_quietly(options, "a,1700000060.001\nb,1700000060.001\n").out,
              "a,1700000060.001\n")
        << layout;
    EXPECT_EQ(sift_quietly(options, "b,1700000060.002\na,1700000060.002\n").out,
              "b,1700000060.002\n")
        << layout;
  }
}

TEST(SiftWindow, SaysForHowLongAKeyIsRecognised) {
  const TemporaryDirectory directory;
  const std::string sparse =
      directory.write("sparse", "kind sparse\nlevel world\nlevel site key 1\n");
  const std::string dense = directory.write("dense", "kind dense\nlevel world\nlevel site key 1\n");
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"-x"}, "1h, to the millisecond"},
      {{}, "1h at least, 2h at most"},
      {{"-x", "-L", "vertical"}, "1h, to the millisecond"},
      {{"-f", "csv", "-k", "1", "-x", "-r", sparse}, "1h, to the millisecond"},
      {{"-f", "csv", "-k", "1", "-r", sparse}, "1h at least, 2h at most"},
      {{"-f", "csv", "-k", "1", "-x", "-r", dense}, "1h at least, 2h at most"},
      {{"-f", "csv", "-k", "1", "-r", dense}, "1h at least, 4h at most"}};
  for (const auto& [mode, text] : cases) {
    Words options = {"sift", "-w", "1h"};
    options.insert(options.end(), mode.begin(), mode.end());
    const Outcome outcome = run_semel(options, "a\n");
    EXPECT_NE(outcome.err.find("\nwindow           " + text + '\n'), std::string::npos)
        << outcome.err;
  }
  EXPECT_NE(
      run_semel({"sift", "-j", "-w", "1s"}, "").err.find("\"window_ms\":1000,\"longest_ms\":2000,"),
      std::string::npos);
}

TEST(SiftWindow, CannotJudgeWhatIsOlderThanTheWindow) {
  const std::string input = "a,1000\nb,1100\nc,1039\nd,1040\n";
  const Words options = {"-f", "csv", "-k", "1", "-w", "1m", "-T", "2"};
  const Outcome stopped = sift_quietly(options, input);
  EXPECT_EQ(stopped.status, 1);
  EXPECT_EQ(stopped.out, "a,1000\nb,1100\n");
  EXPECT_EQ(stopped.err,
            "semel sift: standard input line 3: its time is older than the window, and cannot be "
            "judged\n");
  Words passing = options;
  passing.insert(passing.end(), {"-E", "pass"});
  EXPECT_EQ(sift_quietly(passing, input).out, input);
}

TEST(SiftWindow, ForgetsByTheClock) {
  Process process({.command = {SEMEL_COMMAND, "sift", "-q", "--window", "300ms"}});
  process.write("a\nb\na\n");
  EXPECT_EQ(process.read(4), "a\nb\n");
  // A window is kept at least, and forgotten within one more.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  process.write("a\n");
  EXPECT_EQ(process.read(2), "a\n");
  EXPECT_EQ(process.finish().out, "");
}

struct Event {
  std::string key;
  TimeMs at_ms;
  std::string line() const { return key + ',' + std::to_string(at_ms) + '\n'; }
};

constexpr TimeMs kWindow = 1000;

// Few keys, so that they come again; late by up to half a window.
std::vector<Event> some_events(Random& random) {
  TimeMs now = 1'700'000'000'000;
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) {
    now += static_cast<TimeMs>(random.below(60));
    const TimeMs at_ms = now - static_cast<TimeMs>(random.below(kWindow / 2));
    events.push_back({std::to_string(random.below(40)), at_ms});
  }
  return events;
}

std::string text_of(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) text += event.line();
  return text;
}

const Words kTimed = {"-f", "csv", "-k", "1", "-w", "1s", "-T", "2", "-t", "3"};

// The naive twin: the time at which each key was written last, and the latest time so far.
RC_GTEST_PROP(SiftWindow, EqualsAMapOfTimesWhenExact, ()) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const std::vector<Event> events = some_events(random);
  std::map<std::string, TimeMs> written;
  TimeMs latest = 0;
  std::string expected;
  for (const Event& event : events) {
    latest = std::max(latest, event.at_ms);
    const auto before = written.find(event.key);
    if (before != written.end() && latest - before->second <= kWindow) continue;
    written[event.key] = event.at_ms;
    expected += event.line();
  }
  const TemporaryDirectory directory;
  const std::string tree = directory.write("tree", "kind sparse\nlevel world\nlevel site key 1\n");
  Words options = *rc::gen::element(Words{"-x"}, Words{"-x", "-L", "vertical"},
                                    Words{"-x", "-L", "diced"}, Words{"-x", "-r", tree});
  options.insert(options.end(), kTimed.begin(), kTimed.end());
  RC_ASSERT(sift_quietly(options, text_of(events)).out == expected);
}

// Duplicates within the window never pass, and what is older than two windows does.
RC_GTEST_PROP(SiftWindow, KeepsItsPromiseWithEventTimes, ()) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const std::vector<Event> events = some_events(random);
  const Outcome outcome = sift_quietly(kTimed, text_of(events));
  RC_ASSERT(outcome.status == 0);
  std::map<std::string, std::pair<TimeMs, TimeMs>> kept;  // its time, and the latest one then
  TimeMs latest = 0;
  const std::vector<std::string> lines = lines_of(outcome.out);
  std::size_t next = 0;
  for (const Event& event : events) {
    latest = std::max(latest, event.at_ms);
    const bool passes = next < lines.size() && lines[next] == event.line();
    next += passes;
    const auto before = kept.find(event.key);
    if (before != kept.end() && latest - before->second.first <= kWindow) {
      RC_ASSERT(!passes);
    } else if (before == kept.end() || latest - before->second.second > 2 * kWindow) {
      RC_ASSERT(passes);
    }
    if (passes) kept[event.key] = {event.at_ms, latest};
  }
  RC_ASSERT(next == lines.size());
}

TEST(SiftLayouts, GiveTheSameAnswersWhenExact) {
  const std::string input = run_semel({"generate", "-n", "100k", "-b", "17"}).out;
  const std::string expected = sift_quietly({"--exact", "-n", "1"}, input).out;
  for (const Words& layout :
       {Words{"-n", "7"}, Words{"-L", "vertical"}, Words{"-L", "vertical", "-n", "3", "-p", "8"},
        Words{"-L", "diced", "-n", "12"}, Words{"-L", "diced-vh", "-p", "2"},
        Words{"-L", "vertical", "-n", "1"}}) {
    for (const char* threads : {"1", "3"}) {
      Words options = {"--exact", "-t", threads};
      options.insert(options.end(), layout.begin(), layout.end());
      EXPECT_TRUE(sift_quietly(options, input).out == expected) << layout[1];
    }
  }
}

TEST(SiftLayouts, KeepTheErrorAndLetNoDuplicateThrough) {
  constexpr int kDifferent = 200'000;
  const std::string input =
      run_semel({"generate", "-n", std::to_string(2 * kDifferent), "-b", "17"}).out;
  for (const char* layout : {"horizontal", "vertical", "diced", "diced-vh"}) {
    const Outcome outcome = sift_quietly({"-L", layout, "-e", "0.001"}, input);
    std::vector<std::string> lines = lines_of(outcome.out);
    EXPECT_GE(lines.size(), static_cast<std::size_t>(kDifferent * 0.999 - 75)) << layout;
    std::sort(lines.begin(), lines.end());
    EXPECT_EQ(std::adjacent_find(lines.begin(), lines.end()), lines.end()) << layout;
  }
}

TEST(SiftLayouts, ReportTheLoad) {
  const std::string input = run_semel({"generate", "-n", "10k"}).out;
  const Outcome outcome = run_semel({"sift", "-L", "vertical"}, input);
  EXPECT_NE(outcome.err.find("load             fairness "), std::string::npos) << outcome.err;
}

TEST(SiftThreads, GiveTheSameBytesOnALongStream) {
  const std::string input = run_semel({"generate", "-n", "1M", "-b", "33"}).out;
  const TemporaryDirectory directory;
  const auto run_with = [&](const char* threads) {
    const std::string dropped = directory.path() / threads;
    const std::string first = sift_quietly({"-e", "0.01", "-t", threads, "-d", dropped}, input).out;
    return std::pair(first, read_file(dropped));
  };
  const auto one = run_with("1");
  for (const char* threads : {"2", "4", "16"}) EXPECT_TRUE(run_with(threads) == one) << threads;
}

}  // namespace
}  // namespace semel
