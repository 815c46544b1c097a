#include "cli/options.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>

namespace semel::cli {
namespace {

enum class Layout { horizontal, vertical };

// One option of each kind that a subcommand can have.
struct Settings {
  bool quiet = false;
  bool count = false;
  std::uint64_t lines = 10;
  std::uint64_t memory = 0;
  TimeMs window = 0;
  std::optional<double> error;
  Layout layout = Layout::horizontal;
  std::optional<std::string> state;
  std::vector<std::string> files;
};

Syntax syntax_of(Settings& to) {
  Syntax syntax{"semel try",
                "Tries options",
                "First paragraph.\nSecond paragraph, which is long enough to be broken into two "
                "lines of text.",
                {{"quiet", 'q', flag_value(to.quiet), "say nothing"},
                 {"count", 'c', flag_value(to.count), "count"},
                 {"lines", 'n', count_value("N", to.lines, 1, 1000), "how many"},
                 {"memory", 0, bytes_value("SIZE", to.memory, 0, 1 << 30), "how much"},
                 {"window", 'w', duration_value("TIME", to.window), "how long"},
                 {"error", 0,
                  number_value("E", to.error, "a number above 0 and below 1",
                               [](double x) { return x > 0 && x < 1; }),
                  "how often"},
                 {"layout", 0,
                  choice_value<Layout, Layout>(
                      "LAYOUT", to.layout,
                      {{"horizontal", Layout::horizontal}, {"vertical", Layout::vertical}}),
                  "in which way"},
                 {"state", 0, path_value("FILE", to.state), "where to"}}};
  syntax.operands = {paths_value("FILE", to.files), 0, 3};
  syntax.examples = {{"semel try -q", "nothing"}};
  return syntax;
}

struct Tried {
  Settings settings;
  Result<Parsed> parsed = Parsed{};
};

Tried attempt(std::initializer_list<const char*> arguments) {
  Tried tried;
  const Syntax syntax = syntax_of(tried.settings);
  tried.parsed = parse(syntax, {arguments.begin(), arguments.size()});
  return tried;
}

std::string refusal(std::initializer_list<const char*> arguments) {
  const Tried tried = attempt(arguments);
  return tried.parsed ? "" : tried.parsed.error().message();
}

TEST(Options, TakeTheirValueInFourForms) {
  EXPECT_EQ(attempt({"--lines", "7"}).settings.lines, 7u);
  EXPECT_EQ(attempt({"--lines=7"}).settings.lines, 7u);
  EXPECT_EQ(attempt({"-n", "7"}).settings.lines, 7u);
  EXPECT_EQ(attempt({"-n7"}).settings.lines, 7u);
}

TEST(Options, KeepTheirDefaultWhenAbsent) {
  const Tried tried = attempt({});
  ASSERT_TRUE(tried.parsed);
  EXPECT_FALSE(tried.parsed->help);
  EXPECT_EQ(tried.settings.lines, 10u);
  EXPECT_EQ(tried.settings.error, std::nullopt);
  EXPECT_FALSE(tried.settings.quiet);
}

TEST(Options, JoinTheLettersOfFlags) {
  const Settings settings = attempt({"-qcn7"}).settings;
  EXPECT_TRUE(settings.quiet);
  EXPECT_TRUE(settings.count);
  EXPECT_EQ(settings.lines, 7u);
}

TEST(Options, HoldValuesOfEveryKind) {
  const Settings settings = attempt({"--memory", "64K", "--window", "2h", "--error=1e-3",
                                     "--layout", "vertical", "--state", "a=b"})
                                .settings;
  EXPECT_EQ(settings.memory, 65536u);
  EXPECT_EQ(settings.window, 7'200'000);
  EXPECT_EQ(settings.error, 1e-3);
  EXPECT_EQ(settings.layout, Layout::vertical);
  EXPECT_EQ(settings.state, "a=b");
}

TEST(Options, MixWithOperandsUntilTwoDashes) {
  const Settings settings = attempt({"a", "-q", "-", "--", "-c"}).settings;
  EXPECT_TRUE(settings.quiet);
  EXPECT_FALSE(settings.count);
  EXPECT_EQ(settings.files, (std::vector<std::string>{"a", "-", "-c"}));
}

TEST(Options, GivenTwiceTheLastCounts) {
  EXPECT_EQ(attempt({"--lines", "7", "-n8"}).settings.lines, 8u);
}

TEST(Options, TakeAValueThatLooksLikeAnOption) {
  EXPECT_EQ(attempt({"--state", "--quiet"}).settings.state, "--quiet");
}

TEST(Options, StopAtHelp) {
  for (const char* help : {"-h", "--help", "-qh"}) {
    const Tried tried = attempt({"a", help, "--nonsense"});
    ASSERT_TRUE(tried.parsed);
    EXPECT_TRUE(tried.parsed->help);
  }
}

TEST(Options, RefuseWhatTheyDoNotKnowAndNameTheNearest) {
  EXPECT_EQ(refusal({"--lime", "7"}),
            "unknown option '--lime'; --lines is nearest; allowed: --quiet, --count, --lines, "
            "--memory, --window, --error, --layout, --state, --help");
  EXPECT_EQ(refusal({"--mermory=7"}).substr(0, 54),
            "unknown option '--mermory'; --memory is nearest; allow");
  EXPECT_EQ(refusal({"--colour"}).find("nearest"), std::string::npos);
  EXPECT_EQ(refusal({"--line", "7"}).substr(0, 24),
            "unknown option '--line';");  // never abbreviated
  EXPECT_EQ(refusal({"-z"}).substr(0, 20), "unknown option '-z';");
  EXPECT_EQ(refusal({"-qz"}).substr(0, 31), "unknown option 'z' in '-qz'; al");
  EXPECT_EQ(refusal({"-\xc3\xa9"}).substr(0, 21), "unknown option '-\xc3\xa9';");
  EXPECT_EQ(refusal({"--=7"}).substr(0, 20), "unknown option '--';");
}

TEST(Options, RefuseAMissingValue) {
  EXPECT_EQ(refusal({"--lines"}),
            "--lines needs a value; allowed: a whole number from 1 to 1000; k stands for 1000");
  EXPECT_EQ(refusal({"-qn"}).substr(0, 17), "-n needs a value;");
}

TEST(Options, NameOnlyTheLettersThatFit) {
  const auto allowed = [](std::uint64_t most) {
    std::uint64_t to = 0;
    return count_value("N", to, 1, most).allowed;
  };
  EXPECT_EQ(allowed(256), "a whole number from 1 to 256");
  EXPECT_EQ(allowed(999'999), "a whole number from 1 to 999999; k stands for 1000");
  EXPECT_EQ(allowed(1'000'000), "a whole number from 1 to 1000000; k and M stand for thousands");
  EXPECT_EQ(allowed(1'000'000'000),
            "a whole number from 1 to 1000000000; k, M and G stand for thousands");
  EXPECT_EQ(allowed(1'000'000'000'000),
            "a whole number from 1 to 1000000000000; k, M, G and T stand for thousands");
}

TEST(Options, RefuseAValueForAFlag) {
  EXPECT_EQ(refusal({"--quiet=yes"}),
            "--quiet takes no value; allowed: --quiet alone, not '--quiet=yes'");
}

TEST(Options, RefuseABadValueAndSayWhatIsAllowed) {
  EXPECT_EQ(refusal({"--error", "2"}),
            "--error cannot be '2'; allowed: a number above 0 and below 1");
  EXPECT_EQ(refusal({"--layout", "diagonal"}),
            "--layout cannot be 'diagonal'; allowed: horizontal, vertical");
  for (const char* bad : {"0", "1001", "", "-1", "+1", "1.5", "ten", "7 ", " 7", "1e2", "0x7"}) {
    EXPECT_EQ(
        refusal({"-n", bad}).find("-n cannot be '" + std::string(bad) + "'; allowed: a whole"), 0u);
  }
  for (const char* bad : {"0", "1", "-1", "nan", "inf", "", "x", "0.1.2", "0,1", "1e-400"}) {
    EXPECT_EQ(refusal({"--error", bad}).find("--error cannot be"), 0u) << bad;
  }
  EXPECT_EQ(refusal({"--state", ""}), "--state cannot be ''; allowed: the name of a file");
}

TEST(Options, RefuseTooManyOrTooFewOperands) {
  EXPECT_EQ(refusal({"a", "b", "c", "d"}), "unexpected 'd'; allowed: at most 3 of FILE");
  EXPECT_EQ(refusal({""}), "FILE cannot be ''; allowed: names of files, - for standard input");
  std::vector<std::string> to;
  Syntax syntax{"semel none", "Takes none", "", {}};
  const char* argument = "x";
  EXPECT_EQ(parse(syntax, {&argument, 1}).error().message(),
            "unexpected 'x'; allowed: only options");
  syntax.operands = {paths_value("FILE", to), 1, 1};
  EXPECT_EQ(parse(syntax, {}).error().message(),
            "FILE is missing; allowed: names of files, - for standard input");
}

TEST(Options, GiveOperandsOfDifferentKindsTheirPlaces) {
  std::string directory;
  std::string counter;
  std::uint64_t number = 0;
  const auto parsed = [&](std::initializer_list<const char*> arguments, bool negative = false) {
    Syntax syntax{"semel try", "Tries operands", "", {}};
    syntax.operands = {count_value("N", number, 1, 9),
                       0,
                       1,
                       {path_value("DIRECTORY", directory), path_value("COUNTER", counter)},
                       negative};
    EXPECT_EQ(help_text(syntax).find("Usage: semel try [OPTION...] DIRECTORY COUNTER [N]\n"), 0u);
    const auto done = parse(syntax, {arguments.begin(), arguments.size()});
    return done ? "" : done.error().message();
  };
  EXPECT_EQ(parsed({"d", "c", "7"}), "");
  EXPECT_EQ(directory + counter + std::to_string(number), "dc7");
  EXPECT_EQ(parsed({"d", "e"}), "");
  EXPECT_EQ(counter, "e");
  EXPECT_EQ(parsed({}), "DIRECTORY is missing; allowed: the name of a file");
  EXPECT_EQ(parsed({"d"}), "COUNTER is missing; allowed: the name of a file");
  EXPECT_EQ(parsed({"d", ""}), "COUNTER cannot be ''; allowed: the name of a file");
  EXPECT_EQ(parsed({"d", "c", "7", "8"}), "unexpected '8'; allowed: at most 1 of N");
  EXPECT_EQ(parsed({"d", "c", "-7"}).find("unknown option '-7'"), 0u);
  EXPECT_EQ(parsed({"d", "c", "-7"}, true).find("N cannot be '-7'"), 0u);
  EXPECT_EQ(parsed({"d", "c", "-x7"}, true).find("unknown option"), 0u);
}

TEST(Options, KeepARefusalOnOneShortLine) {
  EXPECT_EQ(refusal({"-n", "1\n2\x7f"}).substr(0, 25), "-n cannot be '1\\x0a2\\x7f'");
  const std::string endless(1'000'000, 'x');
  EXPECT_LT(refusal({endless.c_str(), "-n", endless.c_str()}).size(), 200u);
  EXPECT_LT(refusal({("--" + endless).c_str()}).size(), 200u);
}

TEST(Options, AreAllExplainedByHelp) {
  Settings settings;
  EXPECT_EQ(help_text(syntax_of(settings)),
            "Usage: semel try [OPTION...] [FILE...]\n"
            "\n"
            "Tries options.\n"
            "\n"
            "First paragraph.\n"
            "\n"
            "Second paragraph, which is long enough to be broken into two lines of text.\n"
            "\n"
            "Options:\n"
            "  -q, --quiet          say nothing\n"
            "  -c, --count          count\n"
            "  -n, --lines N        how many\n"
            "      --memory SIZE    how much\n"
            "  -w, --window TIME    how long\n"
            "      --error E        how often\n"
            "      --layout LAYOUT  in which way\n"
            "      --state FILE     where to\n"
            "  -h, --help           explain all this and exit\n"
            "\n"
            "Examples:\n"
            "  semel try -q\n"
            "      nothing\n");
}

TEST(Options, WrapLongHelpWithinEightyColumns) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"--long", "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 012 345"},
      {"-s", "word"}};
  EXPECT_EQ(columns(rows),
            "  --long  0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 012\n"
            "          345\n"
            "  -s      word\n");
}

}  // namespace
}  // namespace semel::cli
