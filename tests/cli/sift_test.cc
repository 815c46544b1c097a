// semel sift beside a simple exact reference, and at every edge.
//
// Seeds are fixed. Where chance is involved the tolerance is five standard deviations.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unordered_set>

#include "tests/cli/command.h"
#include "tests/cli/lines.h"
#include "tests/cli/temporary_directory.h"
#include "tests/cli/wildcard.h"
#include "tests/support/rate.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

struct Sifted {
  std::string first;
  std::string duplicates;
  bool operator==(const Sifted&) const = default;
};

// The definition: a set of keys, and a newline supplied where a line without one is followed.
Sifted reference(const std::vector<std::string>& files) {
  Sifted sifted;
  std::unordered_set<std::string> seen;
  for (const std::string& file : files) {
    for (const std::string& line : lines_of(file)) {
      const std::string key = line.ends_with('\n') ? line.substr(0, line.size() - 1) : line;
      std::string& to = seen.insert(key).second ? sifted.first : sifted.duplicates;
      if (!to.empty() && to.back() != '\n') to += '\n';
      to += line;
    }
  }
  return sifted;
}

constexpr std::size_t kLineBytes = 17;

std::string stream(const Words& options) {
  Words arguments = {"generate", "--bytes", std::to_string(kLineBytes)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_semel(arguments).out;
}

double number_in(const std::string& json, const std::string& name) {
  const std::string before = '"' + name + "\":";
  const std::size_t at = json.find(before);
  EXPECT_NE(at, std::string::npos) << name << " is not in " << json;
  return at == std::string::npos ? 0 : std::stod(json.substr(at + before.size()));
}

TEST(Sift, KeepsTheFirstOfEachLineInOrder) {
  const Outcome outcome = run_semel({"sift", "-q"}, "b\na\nb\n\na\n\nc\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "b\na\n\nc\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Sift, ReadsFilesInOrderAndADashAsStandardInput) {
  const TemporaryDirectory directory;
  const std::string a = directory.write("a", "1\n2\n");
  const std::string b = directory.write("b", "4\n1\n");
  EXPECT_EQ(run_semel({"sift", "-q", a, "-", b}, "3\n2\n").out, "1\n2\n3\n4\n");
  EXPECT_EQ(run_semel({"sift", "-q", "--", a}, "3\n").out, "1\n2\n");
}

TEST(Sift, TreatsBytesAsBytes) {
  using std::string_literals::operator""s;
  const std::string input = "a\0b\na\0c\na\0b\nx\r\nx\n\xff\xfe\n\xff\xfe\n\r\n\n"s;
  EXPECT_EQ(run_semel({"sift", "-q"}, input).out, "a\0b\na\0c\nx\r\nx\n\xff\xfe\n\r\n\n"s);
}

TEST(Sift, WritesNothingForNothing) {
  const Outcome outcome = run_semel({"sift", "--json"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(number_in(outcome.err, "lines"), 0);
  EXPECT_EQ(number_in(outcome.err, "wrongly_dropped_bound"), 0);
  EXPECT_EQ(run_semel({"sift", "/dev/null"}).out, "");
}

TEST(Sift, TakesALastLineWithoutNewlineForTheSameLine) {
  EXPECT_EQ(run_semel({"sift", "-q"}, "a\nb").out, "a\nb");
  EXPECT_EQ(run_semel({"sift", "-q"}, "b\na\nb").out, "b\na\n");
  const TemporaryDirectory directory;
  const std::string a = directory.write("a", "x\ny");
  EXPECT_EQ(run_semel({"sift", "-q", a, "-"}, "y\nz").out, "x\ny\nz");
  EXPECT_EQ(run_semel({"sift", "-q", a, a, a}).out, "x\ny");
}

// Random bytes with many newlines, over several files and standard input, in both outputs.
RC_GTEST_PROP(Sift, EqualsTheReferenceWhenExact, ()) {
  const auto bytes =
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("\n\n\nab\0\r\xff", 8)));
  const auto files = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(bytes));
  const TemporaryDirectory directory;
  const std::string duplicates = directory.path() / "duplicates";
  Words arguments = {"sift", "--exact", "--quiet", "--duplicates-to", duplicates, "-"};
  for (std::size_t i = 1; i < files.size(); ++i) {
    arguments.push_back(directory.write(std::to_string(i), files[i]));
  }
  const Outcome outcome = run_semel(arguments, files[0]);
  RC_ASSERT(outcome.status == 0);
  RC_ASSERT((Sifted{outcome.out, read_file(duplicates)}) == reference(files));
}

TEST(Sift, EqualsTheReferenceOnALongStreamWhenExact) {
  const std::string input = stream({"--lines", "300k", "--duplicates", "0.5"});
  const TemporaryDirectory directory;
  const std::string duplicates = directory.path() / "duplicates";
  const Outcome outcome = run_semel({"sift", "-x", "--json", "-d", duplicates}, input);
  const Sifted expected = reference({input});
  EXPECT_TRUE(outcome.out == expected.first);
  EXPECT_TRUE(read_file(duplicates) == expected.duplicates);
  EXPECT_EQ(number_in(outcome.err, "first"), 150'000);
  EXPECT_EQ(number_in(outcome.err, "duplicates"), 150'000);
  EXPECT_NEAR(number_in(outcome.err, "wrongly_dropped_bound"), 150'000.0 * 150'000 * 0x1p-129,
              1e-36);
}

// 1.5 million different lines are more than the first filter holds: its error comes near its bound.
TEST(Sift, DropsNoMoreNewLinesThanItPromisesAndLetsNoDuplicateThrough) {
  constexpr double kDifferent = 1.5e6;
  const std::string input = stream({"--lines", "3M", "--duplicates", "0.5"});
  for (const double error : {0.1, 1e-2, 1e-4}) {
    const Outcome outcome = run_semel({"sift", "--json", "--error", std::to_string(error)}, input);
    ASSERT_EQ(outcome.status, 0);
    std::unordered_set<std::string_view> kept;
    for (std::size_t start = 0; start < outcome.out.size(); start += kLineBytes) {
      ASSERT_TRUE(kept.insert(std::string_view(outcome.out).substr(start, kLineBytes)).second);
    }
    const auto first = static_cast<double>(kept.size());
    const double dropped = kDifferent - first;
    const double now = number_in(outcome.err, "error_now");
    EXPECT_LE(now, error);
    EXPECT_LE(dropped, kDifferent * error + five_deviations(kDifferent, error));
    EXPECT_LE(dropped, kDifferent * now + five_deviations(kDifferent, now));
    EXPECT_GT(dropped, 0) << "no filter is that good";
    EXPECT_EQ(number_in(outcome.err, "first"), first);
    EXPECT_EQ(number_in(outcome.err, "error_bound"), error);
    EXPECT_NEAR(number_in(outcome.err, "wrongly_dropped_bound"), first * error / (1 - error), 0.1);
    EXPECT_NEAR(number_in(outcome.err, "wrongly_dropped_now"), first * now / (1 - now), 0.1);
  }
}

TEST(Sift, DropsOtherLinesWronglyWithAnotherSeed) {
  const std::string input = stream({"--lines", "20k", "--duplicates", "0"});
  const auto sifted = [&](const char* seed) {
    return run_semel({"sift", "-q", "-e", "0.5", "--seed", seed}, input).out;
  };
  EXPECT_EQ(sifted("1"), sifted("1"));
  EXPECT_NE(sifted("1"), sifted("2"));
}

TEST(Sift, TakesALineOf100MB) {
  std::string input;
  input.resize(100'000'000, 'x');
  input += "\nshort\n" + input + "\nend";
  EXPECT_TRUE(run_semel({"sift", "-q"}, input).out == input.substr(0, 100'000'007) + "end");
}

TEST(Sift, CountsInsteadOfWriting) {
  const Outcome outcome = run_semel({"sift", "--count", "--quiet"}, "a\nb\na\na\n");
  EXPECT_EQ(outcome.out, "lines 4\nfirst 2\nduplicates 2\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Sift, WritesWhatItDropsToAFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("dropped", "what was there before, which is longer\n");
  const Outcome outcome = run_semel({"sift", "-cq", "-d", path}, "a\nb\na\nb\na");
  EXPECT_EQ(outcome.out, "lines 5\nfirst 2\nduplicates 3\n");
  EXPECT_EQ(read_file(path), "a\nb\na");
}

TEST(Sift, SummarisesForPeople) {
  const Outcome outcome = run_semel({"sift"}, stream({"--lines", "3000"}));
  const char* expected =
      "lines            3,000\n"
      "first            1,500\n"
      "duplicates       1,500\n"
      "wrongly dropped  at most 0.0015 expected, by the bound of 1e-06\n"
      "                 at most [...] expected, by the filters as they are now, [...]\n"
      "memory           [...] MiB of filters in 16 slices\n"
      "time             [...] s, [...] lines a second\n";
  EXPECT_TRUE(matches_wildcard(expected, outcome.err)) << outcome.err;

  const Outcome exact = run_semel({"sift", "--exact"}, stream({"--lines", "3000"}));
  const char* expected_exact =
      "lines            3,000\n"
      "first            1,500\n"
      "duplicates       1,500\n"
      "wrongly dropped  3.3e-33 expected, by equal digests\n"
      "memory           [...] KiB of digests in 16 slices\n"
      "time             [...] s, [...] lines a second\n";
  EXPECT_TRUE(matches_wildcard(expected_exact, exact.err)) << exact.err;
}

TEST(Sift, SummarisesForPrograms) {
  const Outcome outcome = run_semel({"sift", "--json"}, stream({"--lines", "3000"}));
  const char* expected =
      R"({"lines":3000,"first":1500,"duplicates":1500,"unreadable":0,"mode":"filter",)"
      R"("window_ms":null,"longest_ms":null,"error_bound":1e-06,)"
      R"("error_now":[...],"wrongly_dropped_bound":0.0015[...],"wrongly_dropped_now":[...],)"
      R"("memory_bytes":[...],"slices":16,"seconds":[...],"lines_per_second":[...]})"
      "\n";
  EXPECT_TRUE(matches_wildcard(expected, outcome.err)) << outcome.err;
  EXPECT_GT(number_in(outcome.err, "memory_bytes"), 0);
  EXPECT_GT(number_in(outcome.err, "seconds"), 0);
  EXPECT_GT(number_in(outcome.err, "lines_per_second"), 0);
}

// A reader that follows a log sees a line at once, not when a buffer is full.
TEST(Sift, WritesWhatIsDecidedBeforeItWaits) {
  const TemporaryDirectory directory;
  const std::string dropped = directory.path() / "dropped";
  Process process({.command = {SEMEL_COMMAND, "sift", "-q", "-d", dropped}});
  process.write("a\nb\na\npart");
  EXPECT_EQ(process.read(4), "a\nb\n");
  process.write("ial\nb\n");
  EXPECT_EQ(process.read(8), "partial\n");
  process.write("c\n");
  EXPECT_EQ(process.read(2), "c\n");
  EXPECT_EQ(read_file(dropped), "a\nb\n");
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
}

TEST(Sift, ShowsItsProgressOnATerminalAlone) {
  const TemporaryDirectory directory;
  // The second half comes when the first was written, and the next look at the progress is due.
  const auto slowly = [&](const std::string& sift) {
    return "rm -f out; ($SEMEL generate -n 1000; until [ -s out ]; do sleep 0.02; done; sleep 0.7; "
           "$SEMEL generate -n 1000 -s 2) | " +
           sift + " >out";
  };
  const auto on_terminal = [&](const std::string& sift) {
    return run_shell("script -qec '" + slowly(sift) + "' /dev/null </dev/null", directory.path());
  };
  const Outcome terminal = on_terminal("$SEMEL sift");
  EXPECT_NE(terminal.out.find(" lines, "), std::string::npos) << terminal.out;
  EXPECT_NE(terminal.out.find(" % duplicates, error "), std::string::npos) << terminal.out;
  EXPECT_NE(terminal.out.find("\033[K\r"), std::string::npos) << terminal.out;
  const Outcome quiet = on_terminal("$SEMEL sift -q");
  EXPECT_EQ(quiet.out, "");
  const Outcome pipe = run_shell(slowly("$SEMEL sift"), directory.path());
  EXPECT_EQ(pipe.err.find('\r'), std::string::npos) << pipe.err;
}

TEST(Sift, EndsQuietlyWhenItsReaderHasEnough) {
  const std::string died = std::to_string(128 + SIGPIPE) + "\n";
  const Outcome outcome = run_shell(
      "$SEMEL generate -n 1G -d 0 | $SEMEL sift | head -1 | wc -l; echo ${PIPESTATUS[1]}");
  EXPECT_EQ(outcome.out, "1\n" + died);
  EXPECT_EQ(outcome.err, "");
  const Outcome ignored = run_shell(
      "trap '' PIPE; $SEMEL generate -n 1G -d 0 | $SEMEL sift | head -1 | wc -l; "
      "echo ${PIPESTATUS[1]}");
  EXPECT_EQ(ignored.out, "1\n" + died);
  EXPECT_EQ(ignored.err, "");
}

TEST(Sift, ReportsAnInputItCannotReadAndSiftsTheOthers) {
  const TemporaryDirectory directory;
  directory.write("a", "1\n");
  directory.write("b", "2\n1\n");
  const Outcome outcome = run_shell("$SEMEL sift -q a missing . b", directory.path());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "1\n2\n");
  EXPECT_EQ(outcome.err,
            "semel sift: cannot read 'missing': No such file or directory\n"
            "semel sift: cannot read '.': Is a directory\n");
}

TEST(Sift, ReportsAFullDisk) {
  const TemporaryDirectory directory;
  directory.write("in", stream({"--lines", "100k"}));
  for (const char* line : {"$SEMEL sift in >/dev/full", "$SEMEL sift -qc in >/dev/full",
                           "echo x | $SEMEL sift >/dev/full"}) {
    const Outcome outcome = run_shell(line, directory.path());
    EXPECT_EQ(outcome.status, 1) << line;
    EXPECT_EQ(outcome.err, "semel sift: cannot write standard output: No space left on device\n");
  }
  const Outcome outcome = run_shell("$SEMEL sift -d /dev/full in >first", directory.path());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "semel sift: cannot write '/dev/full': No space left on device\n");
  const std::string first = read_file(directory.path() / "first");
  EXPECT_NE(first, "");
  EXPECT_TRUE(reference({read_file(directory.path() / "in")}).first.starts_with(first));
}

TEST(Sift, ReportsAFileThatMayNotGrow) {
  const TemporaryDirectory directory;
  const Outcome outcome =
      run_shell("ulimit -f 100; seq 1000000 | $SEMEL sift -q >out", directory.path());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "semel sift: cannot write standard output: File too large\n");
}

TEST(Sift, StopsAtOnceWhenTheDiskIsFull) {
  const std::string message = "semel sift: cannot write standard output: No space left on device\n";
  Process waiting({.command = {"bash", "-c", "exec $0 sift -q 2>&1 >/dev/full", SEMEL_COMMAND}});
  waiting.write("a\n");
  EXPECT_EQ(waiting.read(message.size()), message);  // although the input has not ended
  EXPECT_EQ(waiting.finish().status, 1);

  const Outcome busy = run_shell("$SEMEL sift -q /dev/urandom >/dev/full");
  EXPECT_EQ(busy.status, 1);
  EXPECT_EQ(busy.err, message);
}

TEST(Sift, ReportsAFileItCannotCreate) {
  const Outcome outcome = run_semel({"sift", "-d", "/nowhere/at/all"}, "a\n");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "semel sift: cannot write '/nowhere/at/all': No such file or directory\n");
}

TEST(Sift, NeverOverwritesWhatItReadsOrWrites) {
  const TemporaryDirectory directory;
  directory.write("in", "a\na\n");
  for (const char* line : {"$SEMEL sift -d in in", "$SEMEL sift -d in <in",
                           "$SEMEL sift -d ./in x in", "ln in link; $SEMEL sift -d link in"}) {
    const Outcome outcome = run_shell(line, directory.path());
    expect_usage_error(outcome, {"which is also read or written"});
    EXPECT_EQ(read_file(directory.path() / "in"), "a\na\n") << line;
  }
  expect_usage_error(run_shell("$SEMEL sift -d out in >out", directory.path()),
                     {"--duplicates-to cannot be 'out'"});
  // Nothing is made before that is known.
  for (const char* line :
       {"$SEMEL sift -S new -d in in", "$SEMEL sift -S new -d new in",
        "$SEMEL sift -S new -d ../${PWD##*/}/new in", "$SEMEL sift -S in -d new in"}) {
    expect_usage_error(run_shell(line, directory.path()), {"which is also read or written"});
    EXPECT_FALSE(std::filesystem::exists(directory.path() / "new")) << line;
    EXPECT_EQ(read_file(directory.path() / "in"), "a\na\n") << line;
  }
}

// A run would read for ever what it writes. A file is recognised under any of its names.
TEST(Sift, RefusesToAppendToWhatItReads) {
  const TemporaryDirectory directory;
  const std::string text = "a\nb\na\n";
  directory.write("in", text);
  directory.write("other", "c\n");
  std::filesystem::create_hard_link(directory.path() / "in", directory.path() / "link");
  std::filesystem::create_symlink("in", directory.path() / "symlink");
  for (const char* line :
       {"$SEMEL sift in >>in", "$SEMEL sift <in >>in", "$SEMEL sift link >>in",
        "$SEMEL sift symlink >>link", "$SEMEL sift ./in 1<>in", "$SEMEL sift other - <link >>in",
        "$SEMEL sift /dev/stdin <in >>in", "$SEMEL sift --exact other in >>symlink"}) {
    expect_usage_error(run_shell(line, directory.path()),
                       {"standard output is the same file as", "; allowed: "});
    EXPECT_EQ(read_file(directory.path() / "in"), text) << line;
  }
  for (const char* line : {"$SEMEL sift -q in >>other", "$SEMEL sift -q in </dev/null >/dev/null",
                           "$SEMEL sift -q other <in >>in", "$SEMEL sift -q --count in >>other"}) {
    EXPECT_EQ(run_shell(line, directory.path()).status, 0) << line;
  }
}

// Opening a pipe only to look at it would end the program that writes to it.
TEST(Sift, ReadsANamedPipeOnce) {
  const TemporaryDirectory directory;
  const Outcome outcome = run_shell(
      "mkfifo pipe; (printf 'a\\na\\n' >pipe; echo written >after) & "
      "$SEMEL sift -q -d dropped pipe; wait; cat after dropped",
      directory.path());
  EXPECT_EQ(outcome.out, "a\nwritten\na\n");
}

TEST(Sift, RefusesBadOptions) {
  for (const char* error : {"0", "1", "-1", "9e-13", "5e-324", "x", "nan", ""}) {
    expect_usage_error(run_semel({"sift", "--error", error}),
                       {std::string("semel sift: --error cannot be '") + error + "'",
                        "a number, 1e-12 or more, below 1"});
  }
  expect_usage_error(run_semel({"sift", "--exact", "--error", "0.1"}), {"exclude each other"});
  expect_usage_error(run_semel({"sift", "--json", "--quiet"}), {"exclude each other"});
  expect_usage_error(run_semel({"sift", "--seed", "x"}), {"--seed cannot be 'x'"});
  expect_usage_error(run_semel({"sift", "--duplicates-to"}), {"--duplicates-to needs a value"});
  expect_usage_error(run_semel({"sift", "--cuont"}), {"--count is nearest"});
  expect_usage_error(run_semel({"sift", ""}), {"FILE cannot be ''"});
}

TEST(Sift, AcceptsTheWholeRangeOfErrors) {
  for (const char* error : {"0.9999999999999999", "1e-12"}) {
    EXPECT_EQ(run_semel({"sift", "-q", "--error", error}, "a\na\n").out, "a\n");
    for (const char* layout : {"horizontal", "vertical", "diced", "diced-vh"}) {
      for (const char* window : {"1h", "100d"}) {
        EXPECT_EQ(run_semel({"sift", "-q", "-e", error, "-L", layout, "-w", window}, "a\na\n").out,
                  "a\n")
            << layout;
      }
      EXPECT_EQ(run_semel({"sift", "-q", "-e", error, "-L", layout}, "a\na\n").out, "a\n")
          << layout;
    }
  }
}

}  // namespace
}  // namespace semel
