// semel: passes its arguments to the subcommand that they name.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "cli/commands.h"
#include "cli/files.h"
#include "client/url.h"

namespace semel::cli {
namespace {

constexpr const char* kVersion = "semel " SEMEL_VERSION "\n";

// Opens a null device, in the wrong direction, for each standard stream that our parent has closed.
// Otherwise the next file opened would take its number, and be read or written in its place.
void occupy_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    (void)::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

Exit refuse(std::string_view who, std::string_view text) {
  complain(who, text);
  return Exit::usage;
}

Exit run_program(std::span<const char* const> arguments) {
  bool version = false;
  const Syntax syntax = program_syntax(version);
  const Result<Parsed> parsed = parse(syntax, arguments);
  if (!parsed) return refuse(syntax.name, parsed.error().message());
  if (parsed->help) return print(syntax.name, program_help());
  if (version) return print(syntax.name, kVersion);
  (void)write_all(STDERR_FILENO, program_help());
  return Exit::usage;
}

// Explains a family, when the second word of a subcommand is missing.
Exit run_family(const std::string& family, std::span<const char* const> arguments) {
  const bool help = !arguments.empty() && (std::string_view(arguments[0]) == "--help" ||
                                           std::string_view(arguments[0]) == "-h");
  if (help) return print("semel " + family, family_help(family));
  (void)write_all(STDERR_FILENO, family_help(family));
  return Exit::usage;
}

// Overwrites passwords in URLs as soon as they are read: everybody can see a command line (ps).
void hide_passwords(std::span<char* const> arguments) {
  for (char* const argument : arguments) {
    const std::string_view password = client::password_in(argument);
    std::fill_n(argument + (password.empty() ? 0 : password.data() - argument), password.size(),
                '*');
  }
}

Exit run(std::span<char* const> arguments) {
  if (arguments.empty() || arguments[0][0] == '-') return run_program(arguments);
  const std::vector<Command> commands = all_commands();
  std::string_view given = arguments[0];
  std::string word(given);
  std::string who = "semel";
  arguments = arguments.subspan(1);
  std::vector<std::string> words = first_words(commands);
  if (auto family = second_words(commands, word); !family.empty()) {
    if (arguments.empty() || arguments[0][0] == '-') return run_family(word, arguments);
    who += ' ' + word;
    words = std::move(family);
    given = arguments[0];
    word.append(" ").append(given);
    arguments = arguments.subspan(1);
  }
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const Command& known) { return known.word == word; });
  if (command == commands.end()) {
    return refuse(who, "unknown subcommand " + quoted(given) + allowed_words(given, words));
  }
  const Result<Parsed> parsed = parse(command->syntax, arguments);
  hide_passwords(arguments);
  if (!parsed) return refuse(command->syntax.name, parsed.error().message());
  try {
    if (!parsed->help) {
      const Result<Exit> done = command->run();
      if (done) return *done;
      complain(command->syntax.name, done.error().message());
      return done.error().code == Errc::invalid ? Exit::usage : command->failure;
    }
    const Exit printed = print(command->syntax.name, help_text(command->syntax));
    return printed == Exit::success ? printed : command->failure;
  } catch (const std::bad_alloc&) {
    complain(command->syntax.name, "out of memory");
  } catch (const std::system_error& error) {
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    complain(command->syntax.name,
             thread ? cannot("start", "a thread", error.code()) : std::string(error.what()));
  }
  return command->failure;
}

// Ends the process when RocksDB gets no thread from the system, or no memory in a thread of its
// own: then nothing can be caught. What was acknowledged is in its log, as after a kill. Takes no
// memory: there is none. Several threads may come here at once; the first one speaks for all.
[[noreturn]] void end_at_once() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  } catch (...) {
    std::abort();
  }
  static std::atomic_flag spoken;
  constexpr std::string_view kWords = "semel: out of memory, or of threads\n";
  if (!spoken.test_and_set()) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWords.data(), kWords.size());
  }
  std::_Exit(static_cast<int>(Exit::failure));
}

}  // namespace
}  // namespace semel::cli

int main(int argc, char** argv) {
  using namespace semel::cli;
  occupy_standard_streams();
  std::set_terminate(end_at_once);
  std::signal(SIGPIPE, SIG_DFL);  // a reader that closes ends us, even if our parent ignores this
  std::signal(SIGXFSZ, SIG_IGN);  // a file that would grow beyond its limit is an error like others
  try {
    return static_cast<int>(run({argv + 1, static_cast<std::size_t>(std::max(argc - 1, 0))}));
  } catch (const std::bad_alloc&) {
    complain("semel", "out of memory");
    return static_cast<int>(Exit::failure);
  }
}
