// cli/semel.1 lists the options that are in the tables, and no others.
#include <gtest/gtest.h>

#include <set>

#include "cli/commands.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

// A dash that is to stay one is written \\- there.
std::string man_page() {
  std::string page = read_file("cli/semel.1");
  for (std::size_t at = 0; (at = page.find("\\-", at)) != std::string::npos;) page.erase(at, 1);
  return page;
}

// Returns the text from the heading of a subcommand to the next heading.
std::string section(const std::string& page, const std::string& heading) {
  const std::size_t start = page.find("\n.SS " + heading + '\n');
  if (start == std::string::npos) return "";
  return page.substr(start, page.find("\n.S", start + 1) - start);
}

// The lines that name an option, each after a .TP of its own.
std::set<std::string> options_in(const std::string& text) {
  std::set<std::string> found;
  for (const std::string_view before : {".TP\n.BR -", ".TP\n.BR \"-"}) {
    for (std::size_t at = 0; (at = text.find(before, at)) != std::string::npos; ++at) {
      const std::size_t start = at + std::string_view(".TP\n").size();
      found.insert(text.substr(start, text.find('\n', start) - start));
    }
  }
  return found;
}

std::set<std::string> options_of(const std::vector<cli::Option>& options) {
  std::set<std::string> lines;
  for (const cli::Option& option : options) {
    std::string line = ".BR ";
    if (option.letter != 0) line.append({'-', option.letter}).append(" \", \" ");
    if (option.is_flag()) {
      line.append("--").append(option.name);
    } else {
      line.append("\"--").append(option.name).append(" \\fI");
      line.append(option.value.placeholder).append("\\fR\"");
    }
    lines.insert(std::move(line));
  }
  return lines;
}

TEST(ManPage, HasEveryOptionOfEverySubcommandAndNoOther) {
  const std::string page = man_page();
  for (const cli::Command& command : cli::all_commands()) {
    const std::string text = section(page, command.word);
    EXPECT_NE(text, "") << command.word;
    EXPECT_EQ(options_in(text), options_of(command.syntax.options)) << command.word;
    EXPECT_NE(page.find("\n.B semel " + command.word + '\n'), std::string::npos) << command.word;
  }
  bool version = false;
  const std::string before = page.substr(0, page.find("\n.SS "));
  EXPECT_EQ(options_in(before), options_of(cli::all_options(cli::program_syntax(version))));
}

TEST(ManPage, IsSoundRoff) {
  if (run_shell("command -v groff").status != 0) GTEST_SKIP() << "groff is not installed";
  const Outcome outcome = run_shell("groff -ww -man -Tutf8 cli/semel.1 >/dev/null");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace semel
