// semel generate: what its options promise about the stream.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <map>
#include <sstream>

#include "semel/hash/digest.h"
#include "tests/cli/command.h"
#include "tests/support/rate.h"

namespace semel {
namespace {

std::vector<std::string> generated(const std::vector<std::string>& options) {
  std::vector<std::string> arguments = options;
  arguments.insert(arguments.begin(), "generate");
  const Outcome outcome = run_semel(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  std::istringstream stream(outcome.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::map<std::string, std::uint64_t> count(const std::vector<std::string>& lines) {
  std::map<std::string, std::uint64_t> counts;
  for (const std::string& line : lines) ++counts[line];
  return counts;
}

TEST(Generate, GivesTheSameBytesForTheSameSeedForEver) {
  const std::string bytes = run_semel({"generate", "-n", "10000", "-b", "51", "-s", "7"}).out;
  EXPECT_EQ(bytes, run_semel({"generate", "-n", "10000", "-b", "51", "-s", "7"}).out);
  EXPECT_NE(bytes, run_semel({"generate", "-n", "10000", "-b", "51", "-s", "8"}).out);
  EXPECT_EQ(digest(bytes, 0).lo, 13079700988438017963u);
}

TEST(Generate, WritesLinesOfTheLengthAsked) {
  for (const char* length : {"17", "18", "32", "33", "80", "1000"}) {
    const Outcome outcome = run_semel({"generate", "-n", "100", "-b", length});
    const auto bytes = static_cast<std::size_t>(std::stoi(length));
    ASSERT_EQ(outcome.out.size(), 100 * bytes);
    for (std::size_t i = 0; i < outcome.out.size(); ++i) {
      const bool newline = i % bytes == bytes - 1;
      ASSERT_EQ(outcome.out[i] == '\n', newline);
      ASSERT_TRUE(newline || std::isxdigit(static_cast<unsigned char>(outcome.out[i])));
    }
  }
}

TEST(Generate, RepeatsExactlyTheShareAsked) {
  for (const auto& [share, distinct] :
       {std::pair{"0", 10'000u}, {"0.5", 5'000u}, {"0.123", 8'770u}, {"0.99", 100u}, {"1", 1u}}) {
    const auto lines = generated({"--lines", "10k", "--duplicates", share});
    EXPECT_EQ(lines.size(), 10'000u);
    EXPECT_EQ(count(lines).size(), distinct) << share;
  }
  EXPECT_EQ(generated({"-n", "0"}).size(), 0u);
  EXPECT_EQ(generated({"-n", "1", "-d", "1"}).size(), 1u);
}

TEST(Generate, SpreadsRepetitionsOverTheStream) {
  const auto lines = generated({"-n", "20000", "-d", "0.3"});
  const std::vector<std::string> half(lines.begin(), lines.begin() + 10'000);
  const double repetitions = 10'000.0 - static_cast<double>(count(half).size());
  EXPECT_NEAR(repetitions, 3000, five_deviations(10'000, 0.3));
}

TEST(Generate, RepeatsTheDifferentLinesUniformly) {
  const auto lines = generated({"-n", "100000", "-d", "0.999"});
  const auto counts = count(lines);
  ASSERT_EQ(counts.size(), 100u);
  // The first line is there from the start. After i lines there are about 1 + i / 1000 different
  // ones, and each is equally likely to be repeated.
  double expected = 1;
  for (int i = 0; i < 100'000; ++i) expected += 1 / (1 + i / 1000.0);
  EXPECT_NEAR(static_cast<double>(counts.at(lines.front())), expected, 0.5 * expected);
}

TEST(Generate, FollowsALongLineBeyondItsBuffer) {
  const Outcome outcome = run_semel({"generate", "-n", "2", "-d", "0", "-b", "1M"});
  EXPECT_EQ(outcome.out.size(), std::size_t{2} << 20);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2);
}

TEST(Generate, EndsQuietlyWhenItsReaderHasEnough) {
  const Outcome outcome =
      run_shell("$SEMEL generate -n 1G | head -1 | wc -l; echo ${PIPESTATUS[0]}");
  EXPECT_EQ(outcome.out, "1\n" + std::to_string(128 + SIGPIPE) + "\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Generate, ReportsAFullDisk) {
  const Outcome outcome = run_shell("$SEMEL generate >/dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "semel generate: cannot write standard output: No space left on device\n");
}

TEST(Generate, RefusesBadValues) {
  expect_usage_error(run_semel({"generate", "--bytes", "16"}),
                     {"semel generate: --bytes cannot be '16'", "from 17 to"});
  expect_usage_error(run_semel({"generate", "--lines", "many"}), {"--lines cannot be 'many'"});
  expect_usage_error(run_semel({"generate", "--duplicates", "1.1"}),
                     {"--duplicates cannot be '1.1'", "from 0 to 1"});
  expect_usage_error(run_semel({"generate", "--seed", "-1"}), {"--seed cannot be '-1'"});
  expect_usage_error(run_semel({"generate", "file"}), {"unexpected 'file'"});
}

}  // namespace
}  // namespace semel
