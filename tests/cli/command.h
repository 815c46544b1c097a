// Runs of the built `semel`.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace semel {

inline Outcome run_semel(std::vector<std::string> arguments, std::string input = "") {
  arguments.insert(arguments.begin(), SEMEL_COMMAND);
  return run({.command = std::move(arguments), .input = std::move(input)});
}

inline Outcome sift_quietly(std::vector<std::string> options, std::string input) {
  options.insert(options.begin(), {"sift", "-q"});
  return run_semel(std::move(options), std::move(input));
}

// Runs a shell line in which $SEMEL is the command.
inline Outcome run_shell(std::string line, std::string directory = "") {
  return run({.command = {"bash", "-c", std::move(line)},
              .directory = std::move(directory),
              .environment = {{"SEMEL", SEMEL_COMMAND}, {"LC_ALL", "C"}}});
}

// Expects a refusal: exit status 2, one line that holds each of the `parts`, and no output.
inline void expect_usage_error(const Outcome& outcome, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_TRUE(outcome.err.ends_with('\n')) << outcome.err;
  for (const std::string& part : parts) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " is not in: " << outcome.err;
  }
}

}  // namespace semel
