#include "cli/commands.h"

#include <unistd.h>

#include "cli/escaped.h"
#include "cli/files.h"
#include "client/url.h"

namespace semel::cli {

Syntax program_syntax(bool& version) {
  Syntax syntax{"semel",
                "Every effect once: recognises what was there before, in streams and between sites",
                "",
                {{"version", 'V', flag_value(version), "print the version and exit"}}};
  syntax.operands.value.placeholder = "SUBCOMMAND";
  return syntax;
}

std::vector<Command> all_commands() {
  std::vector<Command> commands;
  commands.push_back(sift_command());
  commands.push_back(generate_command());
  commands.push_back(size_command());
  commands.push_back(tally_add_command());
  commands.push_back(tally_load_command());
  commands.push_back(tally_get_command());
  commands.push_back(tally_top_command());
  commands.push_back(tally_sum_command());
  commands.push_back(tally_info_command());
  commands.push_back(sync_command());
  commands.push_back(diff_command());
  commands.push_back(plan_command());
  commands.push_back(serve_sync_command());
  commands.push_back(load_command());
  commands.push_back(dump_command());
  commands.push_back(completion_command());
  std::vector<std::string> words = first_words(commands);
  words.emplace_back("help");
  commands.push_back(help_command(std::move(words)));
  return commands;
}

std::vector<std::string> first_words(std::span<const Command> commands) {
  std::vector<std::string> words;
  for (const Command& command : commands) {
    std::string word = command.word.substr(0, command.word.find(' '));
    if (words.empty() || words.back() != word) words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::string> second_words(std::span<const Command> commands, std::string_view family) {
  std::vector<std::string> words;
  for (const Command& command : commands) {
    const std::size_t blank = command.word.find(' ');
    if (blank == std::string::npos || command.word.substr(0, blank) != family) continue;
    words.push_back(command.word.substr(blank + 1));
  }
  return words;
}

std::string family_help(std::string_view family) {
  std::vector<std::pair<std::string, std::string>> rows;
  const std::string name(family);
  for (const Command& command : all_commands()) {
    if (command.word.starts_with(name + ' ')) {
      rows.emplace_back(command.word, command.syntax.summary);
    }
  }
  return "Usage: semel " + name + " SUBCOMMAND [OPTION...] [OPERAND...]\n\nSubcommands:\n" +
         columns(rows) + "\n'semel help " + name + " SUBCOMMAND' explains one of them.\n";
}

std::string program_help() {
  bool version = false;
  const Syntax syntax = program_syntax(version);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command& command : all_commands()) {
    rows.emplace_back(command.word, command.syntax.summary);
  }
  std::string out = "Usage: semel SUBCOMMAND [OPTION...] [OPERAND...]\n       semel OPTION\n\n" +
                    syntax.summary + ".\n\nSubcommands:\n" + columns(rows) + "\nOptions:\n";
  rows.clear();
  for (const Option& option : all_options(syntax)) {
    rows.emplace_back(std::string("-") + option.letter + ", --" + option.name, option.help);
  }
  return out + columns(rows) + "\n'semel help SUBCOMMAND' explains one of them.\n";
}

void complain(std::string_view who, std::string_view text) {
  // The text may quote a server, a file or a peer, and must not steer the terminal. It may also
  // quote a URL from a place where none is expected.
  const std::string shown = client::without_password(text);
  const std::string line = printable(std::string(who) + ": " + shown) + '\n';
  (void)write_all(STDERR_FILENO, line);  // nobody is left to tell
}

std::string cannot(std::string_view what, std::string_view name, const std::error_code& why) {
  return "cannot " + std::string(what) + ' ' + std::string(name) + ": " + why.message();
}

Error usage_error(std::string words) { return {Errc::invalid, std::move(words)}; }

Error exclusive(std::string_view one, std::string_view other) {
  return usage_error(std::string(one).append(" and ").append(other) +
                     " exclude each other; allowed: one of them");
}

Error io_error(std::string_view what, std::string_view name, const std::error_code& why) {
  return {Errc::io, cannot(what, name, why)};
}

Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  const File file = File::open_to_read(path, error);
  std::string text;
  if (!error) error = read_all(file.fd(), text);
  if (error) return io_error("read", quoted(path), error);
  return text;
}

Exit print(std::string_view who, std::string_view text) {
  const std::error_code error = write_all(STDOUT_FILENO, text);
  if (!error) return Exit::success;
  complain(who, cannot("write", "standard output", error));
  return Exit::failure;
}

}  // namespace semel::cli
