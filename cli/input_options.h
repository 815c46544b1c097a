// InputOptions: the options that say what the inputs of `semel sift` and `semel tally load` are.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/chunk_reader.h"
#include "cli/options.h"
#include "cli/records.h"
#include "semel/core/result.h"

namespace semel::cli {

using FormatWords = std::vector<std::pair<std::string, Format>>;

struct InputOptions {
  Format format;
  std::vector<std::string> files = {};  // none: standard input
  std::optional<std::string> delimiter = {};
  bool header = false;

  // Refuses options that do not fit the format.
  Result<void> check() const;
  // Returns the options of a ChunkReader for `command`, without the questions. REQUIRES: check()
  // succeeded.
  ChunkReader::Plan plan(std::string command) const;
};

Option format_option(InputOptions& to, const FormatWords& formats);
Option header_option(InputOptions& to, const std::string& more = "");
Option delimiter_option(InputOptions& to);

// The options for the summary.
struct SummaryOptions {
  bool quiet = false;
  bool json = false;

  Result<void> check() const;
};
std::vector<Option> options_of(SummaryOptions& to);

}  // namespace semel::cli
