// semel completion: writes the completion script of a shell from the tables of the subcommands.
#include <memory>

#include "cli/commands.h"

namespace semel::cli {
namespace {

enum class Shell { bash };

std::string offer(const std::string& generator) {
  return "mapfile -t COMPREPLY < <(compgen " + generator + " -- \"$word\")";
}

// Nothing needs quoting: names, letters, choices and subcommands consist of letters, digits and
// dashes.
std::string offer_words(const std::string& words) { return offer("-W '" + words + "'"); }

std::string offer_values(const Value& value) {
  if (value.path) return "compopt -o filenames; " + offer("-f");
  std::string words;
  for (const std::string& choice : value.choices) words += (words.empty() ? "" : " ") + choice;
  return words.empty() ? "COMPREPLY=()" : offer_words(words);
}

std::string option_words(const Syntax& syntax) {
  std::string words;
  for (const Option& option : all_options(syntax)) {
    words += (words.empty() ? "--" : " --") + option.name;
    if (option.letter) words += std::string(" -") + option.letter;
  }
  return words;
}

// Returns the operand to complete: a file, if any operand may be one.
const Value& operand_value(const Operands& operands) {
  return operands.before.empty() || operands.value.path ? operands.value : operands.before.front();
}

// Completes the second word of a family, and then joins both words to the subcommand.
std::string bash_family(const std::string& family, const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : " ") + word;
  return "    " + family + ")\n      if ((COMP_CWORD == 2)); then\n        " + offer_words(list) +
         "\n        return\n      fi\n      subcommand+=\" ${COMP_WORDS[2]}\"\n      ;;\n";
}

std::string bash_case(const Command& command) {
  std::string out = "    '" + command.word + "')\n      case $before in\n";
  for (const Option& option : all_options(command.syntax)) {
    if (option.is_flag()) continue;
    out += "        --" + option.name;
    if (option.letter) out += std::string(" | -") + option.letter;
    out += ") " + offer_values(option.value) + "; return ;;\n";
  }
  return out + "      esac\n      if [[ $word == -* ]]; then\n        " +
         offer_words(option_words(command.syntax)) + "\n      else\n        " +
         offer_values(operand_value(command.syntax.operands)) + "\n      fi\n      ;;\n";
}

std::string bash_script() {
  bool version = false;
  const std::vector<Command> commands = all_commands();
  std::string words;
  std::string families;
  std::string cases;
  for (const std::string& word : first_words(commands)) {
    words += word + ' ';
    const auto family = second_words(commands, word);
    if (!family.empty()) families += bash_family(word, family);
  }
  for (const Command& command : commands) cases += bash_case(command);
  // Bash cuts `--name=value` at the equals sign into three words.
  return R"(# Completion of semel for bash, made by 'semel completion bash'.
# shellcheck shell=bash
_semel() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if ((COMP_CWORD == 1)); then
    )" + offer_words(words + option_words(program_syntax(version))) +
         R"(
    return
  fi
  local subcommand=${COMP_WORDS[1]}
  case $subcommand in
)" + families +
         R"(  esac
  case $subcommand in
)" + cases +
         R"(  esac
}
complete -F _semel semel
)";
}

}  // namespace

Command completion_command() {
  auto shell = std::make_shared<Shell>(Shell::bash);
  Syntax syntax{"semel completion",
                "Writes the script with which a shell completes semel's command lines",
                "",
                {}};
  syntax.operands = {choice_value<Shell, Shell>("SHELL", *shell, {{"bash", Shell::bash}}), 1, 1};
  syntax.examples = {{"source <(semel completion bash)", "completion in this shell, from now on"}};
  return {"completion", std::move(syntax),
          [shell] { return print("semel completion", bash_script()); }};
}

}  // namespace semel::cli
