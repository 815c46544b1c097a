// The subcommands of semel, a file each, and the few words they all speak.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/options.h"

namespace semel::cli {

enum class Exit : int {
  success = 0,
  failure = 1,  // the work could not be done: a file, a disk, memory
  usage = 2,    // the command line makes no sense; nothing was done
  refused = 3,  // a table did not count an operation, for a reason of its own
  // As diff(1) has them, where 1 is an answer:
  different = 1,
  trouble = 2,  // failure
};

struct Command {
  std::string word;           // what stands after `semel`: a word, or two of a family (`tally add`)
  Syntax syntax;              // its values go to settings that `run` holds
  std::function<Exit()> run;  // REQUIRES: parse(syntax, ...) refused nothing
  Exit failure = Exit::failure;
};

Command sift_command();
Command generate_command();
Command size_command();
Command tally_add_command();
Command tally_load_command();
Command tally_get_command();
Command tally_top_command();
Command tally_sum_command();
Command tally_info_command();
Command sync_command();
Command diff_command();
Command plan_command();
Command serve_sync_command();
Command load_command();
Command dump_command();
Command completion_command();
Command help_command(std::vector<std::string> words);

// Of `semel` itself, whose operand is the subcommand.
Syntax program_syntax(bool& version);
std::vector<Command> all_commands();
std::string program_help();
// The first word of each command, once.
std::vector<std::string> first_words(std::span<const Command> commands);
// What there is of a family; empty if the word is none.
std::vector<std::string> second_words(std::span<const Command> commands, std::string_view family);
std::string family_help(std::string_view family);

// A line on standard error: "semel sift: text".
void complain(std::string_view who, std::string_view text);
// "cannot read 'x': No such file or directory"
std::string cannot(std::string_view what, std::string_view name, const std::error_code& why);
// All of `text` on standard output, or a complaint and Exit::failure.
Exit print(std::string_view who, std::string_view text);

}  // namespace semel::cli
