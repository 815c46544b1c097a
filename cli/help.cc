// semel help: writes what --help of a subcommand says, or the list of subcommands.
#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands.h"

namespace semel::cli {

namespace {

// Returns the help for these words of a command line; nullopt if they name no subcommand.
std::optional<std::string> help_of(const std::string& words) {
  const std::vector<Command> commands = all_commands();
  for (const Command& command : commands) {
    if (command.word == words) return help_text(command.syntax);
  }
  if (second_words(commands, words).empty()) return std::nullopt;
  return family_help(words);
}

// Says which word does not fit. REQUIRES: these words name no subcommand.
Error refusal_of(const std::vector<std::string>& asked) {
  const std::vector<Command> commands = all_commands();
  std::vector<std::string> allowed = first_words(commands);
  std::string word = asked[0];
  if (asked.size() > 1 && std::find(allowed.begin(), allowed.end(), word) != allowed.end()) {
    word = asked[1];
    allowed = second_words(commands, asked[0]);
    if (allowed.empty()) {
      return {Errc::invalid,
              "unexpected " + quoted(word) + "; allowed: nothing after " + quoted(asked[0])};
    }
  }
  return {Errc::invalid, "unknown SUBCOMMAND " + quoted(word) + allowed_words(word, allowed)};
}

Result<Exit> explain(const std::vector<std::string>& asked) {
  if (asked.empty()) return print("semel help", program_help());
  const std::string words = asked.size() == 1 ? asked[0] : asked[0] + ' ' + asked[1];
  const std::optional<std::string> help = help_of(words);
  if (!help) return refusal_of(asked);
  return print("semel help", *help);
}

}  // namespace

Command help_command(std::vector<std::string> words) {
  auto asked = std::make_shared<std::vector<std::string>>();
  Value value{"SUBCOMMAND", "the words of a subcommand", [asked](std::string_view text) {
                asked->emplace_back(text);
                return true;
              }};
  value.choices = std::move(words);

  Syntax syntax{"semel help", "Explains a subcommand, or lists them", "", {}};
  syntax.operands = {std::move(value), 0, 2};
  syntax.examples = {{"semel help sift", "what 'semel sift --help' prints"},
                     {"semel help tally", "the subcommands of 'semel tally'"}};
  return {"help", std::move(syntax), [asked] { return explain(*asked); }};
}

}  // namespace semel::cli
