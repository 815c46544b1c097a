// semel sift with windows, layouts and threads.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "semel/core/clock.h"
#include "semel/core/random.h"
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

// Duplicates within the window never pass; nothing else is dropped when exact, but for what the window
// keeps a little longer than it must.
RC_GTEST_PROP(SiftWindow, KeepsItsPromiseWithEventTimes, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Random random(seed);
  constexpr TimeMs kWindow = 1000;
  std::string input;
  TimeMs now = 1'700'000'000'000;
  std::vector<std::pair<std::string, TimeMs>> events;
  for (int i = 0; i < 300; ++i) {
    now += static_cast<TimeMs>(random.below(60));
    const TimeMs at = now - static_cast<TimeMs>(random.below(kWindow / 2));
    events.emplace_back(std::to_string(random.below(40)), at);
    input += events.back().first + ',' + std::to_string(at) + '\n';
  }
  const bool exact = random.below(2) == 0;
  Words options = {"-f", "csv", "-k", "1", "-w", "1s", "-T", "2", "-t", "3"};
  if (exact) options.emplace_back("-x");
  const Outcome outcome = sift_quietly(options, input);
  RC_ASSERT(outcome.status == 0);
  std::map<std::string, TimeMs> kept;
  TimeMs latest = 0;
  const std::vector<std::string> lines = lines_of(outcome.out);
  std::size_t next = 0;
  for (const auto& [key, at] : events) {
    latest = std::max(latest, at);
    const bool passes = next < lines.size() && lines[next] == key + ',' + std::to_string(at) + '\n';
    next += passes;
    const auto before = kept.find(key);
    if (before != kept.end() && latest - before->second <= kWindow) {
      RC_ASSERT(!passes);
    } else if (before == kept.end() || latest - before->second > 2 * kWindow + 1) {
      RC_ASSERT(passes);
    }
    if (passes) kept[key] = at;
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
