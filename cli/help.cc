// semel help: writes what --help of a subcommand says, or the list of subcommands.
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

}  // namespace

Command help_command(std::vector<std::string> words) {
  auto asked = std::make_shared<std::string>();
  Value value{"SUBCOMMAND", "the words of a subcommand", [asked](std::string_view text) {
                asked->append(asked->empty() ? "" : " ").append(text);
                return help_of(*asked).has_value();
              }};
  value.choices = std::move(words);

  Syntax syntax{"semel help", "Explains a subcommand, or lists them", "", {}};
  syntax.operands = {std::move(value), 0, 2};
  syntax.examples = {{"semel help sift", "what 'semel sift --help' prints"},
                     {"semel help tally", "the subcommands of 'semel tally'"}};
  return {"help", std::move(syntax), [asked] {
            return print("semel help", asked->empty() ? program_help() : *help_of(*asked));
          }};
}

}  // namespace semel::cli
