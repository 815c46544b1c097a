#include "cli/input_options.h"

#include <algorithm>

#include "cli/commands.h"

namespace semel::cli {

Result<void> InputOptions::check() const {
  if (header && format != Format::csv && format != Format::tsv) {
    return usage_error("--header needs columns; allowed: with --format csv or tsv");
  }
  if (delimiter && format != Format::csv) {
    return usage_error("--delimiter is for CSV; allowed: with --format csv");
  }
  if (delimiter && (delimiter->size() != 1 || delimiter->find_first_of("\"\r\n") == 0)) {
    return usage_error("--delimiter cannot be " + quoted(*delimiter) +
                       "; allowed: one byte, other than a quote and a line end");
  }
  return {};
}

ChunkReader::Plan InputOptions::plan(std::string command) const {
  ChunkReader::Plan plan;
  plan.inputs = files;
  plan.command = std::move(command);
  plan.syntax = {format, delimiter ? delimiter->front() : ','};
  plan.has_header = header;
  return plan;
}

Option format_option(InputOptions& to, const FormatWords& formats) {
  std::string words;
  for (std::size_t i = 0; i < formats.size(); ++i) {
    words += (i == 0 ? "" : i + 1 < formats.size() ? ", " : " or ") + formats[i].first;
  }
  return {"format", 'f', choice_value("FORMAT", to.format, formats),
          "the format of the input: " + words + ", one value a line (default " +
              formats.front().first + ")"};
}

Option header_option(InputOptions& to, const std::string& more) {
  return {"header", 'H', flag_value(to.header),
          "the first record of each file names its columns, the same in all files" + more};
}

Option delimiter_option(InputOptions& to) {
  return {"delimiter", 'D', text_value("C", "one byte", to.delimiter),
          "the byte between the columns of CSV (default ,)"};
}

Result<void> SummaryOptions::check() const {
  if (!quiet || !json) return {};
  return exclusive("--quiet", "--json");
}

std::vector<Option> options_of(SummaryOptions& to) {
  return {{"quiet", 'q', flag_value(to.quiet), "no summary; errors are still reported"},
          {"json", 'j', flag_value(to.json), "the summary as a JSON object on one line"}};
}

}  // namespace semel::cli
