// semel itself: subcommands, help, version, completion, and what it does when things go wrong.
#include "tests/cli/command.h"

#include <gtest/gtest.h>

#include "cli/commands.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

// Returns what bash offers for the last of the words, sorted.
std::vector<std::string> completed(const std::string& words, const std::string& directory = "") {
  const Outcome outcome = run_shell(
      "source <($SEMEL completion bash); compopt() { :; }; COMP_WORDS=(" + words +
          "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _semel; printf '%s\\n' \"${COMPREPLY[@]}\"",
      directory);
  EXPECT_EQ(outcome.err, "");
  std::vector<std::string> offers;
  for (std::size_t start = 0, end = 0; start < outcome.out.size(); start = end + 1) {
    end = outcome.out.find('\n', start);
    if (end > start) offers.push_back(outcome.out.substr(start, end - start));
  }
  std::sort(offers.begin(), offers.end());
  return offers;
}

using Words = std::vector<std::string>;

// Joins the words of a subcommand, which may be in a family, and the words after them.
Words words_of(const cli::Command& command, const Words& more) {
  const std::size_t blank = command.word.find(' ');
  Words words = {command.word.substr(0, blank)};
  if (blank != std::string::npos) words.push_back(command.word.substr(blank + 1));
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Command, TellsItsVersion) {
  const Outcome outcome = run_semel({"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "semel " SEMEL_VERSION "\n");
  EXPECT_EQ(run_semel({"-V"}).out, outcome.out);
}

TEST(Command, AlonePrintsItsUsageOnStandardErrorAndExitsWith2) {
  const Outcome outcome = run_semel({});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, run_semel({"help"}).out);
}

TEST(Command, ListsEverySubcommandInItsHelp) {
  const Outcome outcome = run_semel({"help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(run_semel({"--help"}).out, outcome.out);
  EXPECT_EQ(run_semel({"-h"}).out, outcome.out);
  for (const cli::Command& command : cli::all_commands()) {
    EXPECT_NE(outcome.out.find("\n  " + command.word + ' '), std::string::npos) << command.word;
  }
}

TEST(Command, ExplainsEveryOptionOfEverySubcommand) {
  for (const cli::Command& command : cli::all_commands()) {
    Words words = words_of(command, {});
    words.insert(words.begin(), "help");
    const Outcome outcome = run_semel(words);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out.find("Usage: semel " + command.word), 0u);
    EXPECT_EQ(run_semel(words_of(command, {"--help"})).out, outcome.out);
    for (const cli::Option& option : cli::all_options(command.syntax)) {
      EXPECT_NE(outcome.out.find("--" + option.name), std::string::npos) << option.name;
    }
    for (const cli::Example& example : command.syntax.examples) {
      EXPECT_NE(outcome.out.find(example.command), std::string::npos) << example.command;
    }
  }
}

TEST(Command, GivesNoLetterAndNoNameTwice) {
  for (const cli::Command& command : cli::all_commands()) {
    std::string letters;
    Words names;
    for (const cli::Option& option : cli::all_options(command.syntax)) {
      if (option.letter != 0) {
        EXPECT_EQ(letters.find(option.letter), std::string::npos) << option.letter;
        letters += option.letter;
      }
      EXPECT_EQ(std::count(names.begin(), names.end(), option.name), 0) << option.name;
      names.push_back(option.name);
    }
  }
}

TEST(Command, RefusesAnUnknownSubcommand) {
  expect_usage_error(run_semel({"sfit"}),
                     {"semel: unknown subcommand 'sfit'; sift is nearest; "
                      "allowed: sift, generate, size, tally, sync, diff, plan, serve-sync, "
                      "load, dump, completion, help"});
  expect_usage_error(run_semel({"help", "nothing"}),
                     {"unknown SUBCOMMAND 'nothing'; allowed: sift"});
  expect_usage_error(run_semel({""}), {"unknown subcommand ''"});
  expect_usage_error(run_semel({"a\nb"}), {"unknown subcommand 'a\\x0ab'"});
}

TEST(Command, RefusesAnUnknownOptionInEverySubcommand) {
  expect_usage_error(run_semel({"--nonsense"}),
                     {"semel: unknown option '--nonsense'", "--version"});
  expect_usage_error(run_semel({"--versoin"}), {"--version is nearest"});
  for (const cli::Command& command : cli::all_commands()) {
    expect_usage_error(
        run_semel(words_of(command, {"--nonsense"})),
        {command.syntax.name + ": unknown option '--nonsense'; allowed: ", "--help"});
  }
}

TEST(Command, ReportsAFullDiskWhateverItPrints) {
  for (const char* arguments : {"--version", "--help", "help", "help sift", "completion bash"}) {
    const Outcome outcome = run_shell(std::string("$SEMEL ") + arguments + " >/dev/full");
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_NE(outcome.err.find("cannot write standard output: No space left on device\n"),
              std::string::npos);
  }
}

// A file opened under the number of a closed stream would be read or written for it.
TEST(Command, DoesNotTakeAFileForAClosedStream) {
  const TemporaryDirectory directory;
  directory.write("in", "a\na\n");
  const Outcome no_output =
      run_shell("exec >&-; exec $SEMEL sift -d repeated in", directory.path());
  EXPECT_EQ(no_output.status, 1);
  EXPECT_EQ(no_output.err, "semel sift: cannot write standard output: Bad file descriptor\n");
  EXPECT_EQ(read_file(directory.path() / "in"), "a\na\n");

  const Outcome no_error = run_shell("exec $SEMEL sift -d repeated in 2>&-", directory.path());
  EXPECT_EQ(no_error.status, 0);
  EXPECT_EQ(no_error.out, "a\n");
  EXPECT_EQ(read_file(directory.path() / "repeated"), "a\n");

  const Outcome no_input = run_shell("exec $SEMEL sift -q <&-", directory.path());
  EXPECT_EQ(no_input.status, 1);
  EXPECT_EQ(no_input.err, "semel sift: cannot read standard input: Bad file descriptor\n");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need all addresses
TEST(Command, SaysSoWhenMemoryRunsOut) {
  const Outcome outcome =
      run_shell("ulimit -v 200000; head -c 300000000 /dev/zero | $SEMEL sift >/dev/null");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "semel sift: out of memory\n");
}

// Every thread takes 8 MiB of addresses, those of RocksDB too.
TEST(Command, EndsInOrderWhereverAddressesRunOut) {
  const TemporaryDirectory directory;
  const char* const make =
      "seq 1000 >in; sed 's/$/\\t1/' in | $SEMEL load a; "
      "printf 'b\\t1\\n' | $SEMEL load b; "
      "sed 's/.*/c&\\t1\\ti&/' in | $SEMEL tally load -q t";
  ASSERT_EQ(run_shell(make, directory.path()).status, 0);
  for (int kilobytes = 40'000; kilobytes < 700'000; kilobytes += kilobytes / 4) {
    for (const std::string line : {"sift -q -t 8 in", "sift -q -w 1h -S state in", "dump a",
                                   "sync -q a b", "tally sum t", "tally add t x 1 --id $RANDOM"}) {
      const Outcome outcome = run_shell(
          "ulimit -v " + std::to_string(kilobytes) + "; $SEMEL " + line, directory.path());
      EXPECT_EQ(outcome.signal, 0) << line << ", " << kilobytes << ": " << outcome.err;
      EXPECT_FALSE(outcome.timed_out) << line << ", " << kilobytes;
      EXPECT_TRUE(outcome.status == 0 || !outcome.err.empty()) << line << ", " << kilobytes;
      EXPECT_LT(outcome.status, 126) << line << ", " << kilobytes << ": " << outcome.err;
    }
  }
}
#endif

TEST(Completion, IsValidBash) {
  const Outcome outcome = run_shell("$SEMEL completion bash | bash -n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
}

TEST(Completion, OffersEverySubcommandAndEveryOption) {
  Words words;
  for (const cli::Command& command : cli::all_commands()) {
    words.push_back(words_of(command, {}).front());
    Words options;
    for (const cli::Option& option : cli::all_options(command.syntax)) {
      options.push_back("--" + option.name);
    }
    std::sort(options.begin(), options.end());
    EXPECT_EQ(completed("semel " + command.word + " --"), options);
  }
  const Words offers = completed("semel ''");
  for (const std::string& word : words) {
    EXPECT_EQ(std::count(offers.begin(), offers.end(), word), 1) << word;
  }
  EXPECT_EQ(completed("semel s"), (Words{"serve-sync", "sift", "size", "sync"}));
  EXPECT_EQ(completed("semel --v"), Words{"--version"});
  EXPECT_EQ(completed("semel t"), Words{"tally"});
  EXPECT_EQ(completed("semel tally ''"), (Words{"add", "get", "info", "load", "sum", "top"}));
}

TEST(Completion, OffersFilesAndChoicesWhereTheyAreAllowed) {
  const TemporaryDirectory directory;
  directory.write("events.log", "");
  directory.write("other one", "");
  const std::string path = directory.path();
  EXPECT_EQ(completed("semel sift ev", path), Words{"events.log"});
  EXPECT_EQ(completed("semel sift --quiet ev", path), Words{"events.log"});
  EXPECT_EQ(completed("semel sift -d ev", path), Words{"events.log"});
  EXPECT_EQ(completed("semel sift --duplicates-to = ev", path), Words{"events.log"});
  EXPECT_EQ(completed("semel sift --duplicates-to =", path), (Words{"events.log", "other one"}));
  EXPECT_EQ(completed("semel sift --error ''", path), Words{});
  EXPECT_EQ(completed("semel generate ''", path), Words{});
  EXPECT_EQ(completed("semel completion ''", path), Words{"bash"});
  EXPECT_EQ(completed("semel help g", path), Words{"generate"});
  EXPECT_EQ(completed("semel tally get ev", path), Words{"events.log"});
  EXPECT_EQ(completed("semel tally add DIR likes --durability e", path), Words{"every-write"});
}

}  // namespace
}  // namespace semel
