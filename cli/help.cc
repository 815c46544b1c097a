// semel help: what --help of a subcommand says, and the list of subcommands.
#include <memory>
#include <optional>

#include "cli/commands.h"

namespace semel::cli {

Command help_command(std::vector<std::string> words) {
  auto chosen = std::make_shared<std::optional<std::size_t>>();
  std::vector<std::pair<std::string, std::size_t>> choices;
  for (std::string& word : words) choices.emplace_back(std::move(word), choices.size());

  Syntax syntax{"semel help", "Explains a subcommand, or lists them", "", {}};
  syntax.operands = {choice_value("SUBCOMMAND", *chosen, std::move(choices)), 0, 1};
  syntax.examples = {{"semel help sift", "what 'semel sift --help' prints"}};
  return {"help", std::move(syntax), [chosen] {
            return print("semel help",
                         *chosen ? help_text(all_commands().at(**chosen).syntax) : program_help());
          }};
}

}  // namespace semel::cli
