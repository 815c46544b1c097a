// The subcommands of semel, one file each, and the code that they share.
//
// Error     run() returns an error, and main() prints it. Errc::invalid means that the command line
//           makes no sense: Exit::usage. Any other error gives the subcommand's `failure`.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/options.h"
#include "semel/core/result.h"

namespace semel::cli {

enum class Exit : int {
  success = 0,
  failure = 1,  // the work could not be done: a file, a disk, memory
  usage = 2,    // the command line makes no sense; nothing was done
  refused = 3,  // a table did not count an operation, and said why
  // For `semel diff`, like diff(1):
  different = 1,
  trouble = 2,  // the work could not be done
};

struct Command {
  std::string word;  // the word after `semel`, or both words of a family (`tally add`)
  Syntax syntax;     // its values go to settings that `run` holds
  // Runs the subcommand. REQUIRES: parse(syntax, ...) succeeded.
  std::function<Result<Exit>()> run;
  Exit failure = Exit::failure;  // the status for errors other than Errc::invalid
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

// Returns the syntax of `semel` itself, whose operand is the subcommand.
Syntax program_syntax(bool& version);
std::vector<Command> all_commands();
std::string program_help();
// Returns the first word of each command, once.
std::vector<std::string> first_words(std::span<const Command> commands);
// Returns the second words of a family; none if the word names no family.
std::vector<std::string> second_words(std::span<const Command> commands, std::string_view family);
std::string family_help(std::string_view family);

// Writes a line to standard error: "semel sift: text".
void complain(std::string_view who, std::string_view text);
// Returns, for example, "cannot read 'x': No such file or directory".
std::string cannot(std::string_view what, std::string_view name, const std::error_code& why);
// Returns the error for a command line that makes no sense.
Error usage_error(std::string words);
// Returns the error for two options of which only one may be given.
Error exclusive(std::string_view one, std::string_view other);
// Returns the error `cannot(what, name, why)`.
Error io_error(std::string_view what, std::string_view name, const std::error_code& why);
// Returns all that is in a file.
Result<std::string> read_file(const std::string& path);
// Writes all of `text` to standard output. Complains and returns Exit::failure if it cannot.
Exit print(std::string_view who, std::string_view text);

}  // namespace semel::cli
