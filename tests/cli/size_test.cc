// semel size: its figures beside objects that are really made, forwards and backwards.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "semel/core/internal/random.h"
#include "semel/crdt/series.h"
#include "semel/filter/cuckoo_filter.h"
#include "semel/window/client_window.h"
#include "semel/window/window.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr std::uint64_t kIds = 100'000;
constexpr double kError = 1e-3;
constexpr TimeMs kWindowMs = 600'000;

struct Row {
  std::uint64_t ids, bytes;
  double bits_per_id, error;
};

double number_in(const std::string& json, const std::string& name) {
  const std::size_t at = json.find("\"" + name + "\":");
  EXPECT_NE(at, std::string::npos) << name << " is not in " << json;
  return at == std::string::npos ? 0 : std::stod(json.substr(at + name.size() + 3));
}

std::map<std::string, Row> rows(std::vector<std::string> options) {
  options.insert(options.begin(), {"size", "--json"});
  const Outcome outcome = run_semel(options);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  std::istringstream lines(outcome.out);
  std::map<std::string, Row> all;
  const std::string before = R"({"structure":")";
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.starts_with(before) && line.ends_with("\"}")) << line;
    const std::string name =
        line.substr(before.size(), line.find('"', before.size()) - before.size());
    all[name] = {static_cast<std::uint64_t>(number_in(line, "capacity")),
                 static_cast<std::uint64_t>(number_in(line, "bytes")),
                 number_in(line, "bits_per_id"), number_in(line, "error")};
  }
  return all;
}

std::map<std::string, Row> sets() { return rows({"--capacity", "100k", "--error", "1e-3"}); }

void expect_row(const std::map<std::string, Row>& all, const std::string& name, std::uint64_t bytes,
                double error) {
  ASSERT_TRUE(all.contains(name)) << name;
  const Row& row = all.at(name);
  EXPECT_EQ(row.ids, kIds) << name;
  EXPECT_EQ(row.bytes, bytes) << name;
  EXPECT_NEAR(row.bits_per_id, 8 * static_cast<double>(bytes) / kIds, 0.001) << name;
  EXPECT_NEAR(row.error, error, 1e-4 * error) << name;
}

TEST(Size, TellsTheBytesOfSets) {
  const auto all = sets();
  for (const auto& [name, layout] : {std::pair{"bloom-plain", BloomLayout::plain},
                                     {"bloom-blocked", BloomLayout::blocked},
                                     {"bloom-blocked2", BloomLayout::blocked2},
                                     {"bloom-blocked3", BloomLayout::blocked3}}) {
    const BloomFilter filter(
        *BloomShape::for_goal({.keys = kIds, .fpr = kError, .layout = layout}));
    expect_row(all, name, filter.bytes(), filter.shape().expected_fpr(kIds));
    EXPECT_LE(all.at(name).error, kError);
  }
  const CuckooFilter cuckoo(*CuckooShape::for_goal({.keys = kIds, .fpr = kError}));
  expect_row(all, "cuckoo", cuckoo.bytes(), cuckoo.shape().expected_fpr(kIds));
  for (const auto structure : {Window::Structure::forgetful, Window::Structure::exact}) {
    const bool exact = structure == Window::Structure::exact;
    const double error = exact ? 0 : kError;
    Window set = *Window::make({.structure = structure, .fpr = error, .ids = kIds}, 0);
    for (const Digest& id : keys(0, kIds)) (void)set.insert(id);
    if (exact) {
      expect_row(all, "exact", set.bytes(), error);
    } else {  // which is sized for all ids, and has not set the bits of false positives
      EXPECT_NEAR(static_cast<double>(all.at("forgetful").bytes), static_cast<double>(set.bytes()),
                  0.01 * static_cast<double>(set.bytes()));
      EXPECT_EQ(all.at("forgetful").error, kError);
    }
  }
  EXPECT_EQ(all.size(), 8u);
}

TEST(Size, TellsTheBytesOfSift) {
  for (const char* ids : {"1", "3M"}) {
    const std::string lines = run_semel({"generate", "-n", ids, "-d", "0", "-b", "17"}).out;
    const std::string summary = run_semel({"sift", "-c", "--json", "-e", "1e-3"}, lines).err;
    const std::uint64_t bytes = rows({"--capacity", ids, "--error", "1e-3"}).at("sift").bytes;
    EXPECT_NE(summary.find("\"memory_bytes\":" + std::to_string(bytes) + ','), std::string::npos)
        << bytes << " is not in " << summary;
  }
}

// Returns the most memory that the window takes once ids have come for longer than it lasts.
template <class W, class IdOf>
double measured(W window, std::uint64_t ids, IdOf id_of) {
  std::uint64_t most = 0;
  for (std::uint64_t n = 0; n < 3 * ids; ++n) {
    window.advance(static_cast<TimeMs>(n * kWindowMs / ids));
    (void)window.insert(id_of(n));
    if (n >= 2 * ids) most = std::max(most, window.bytes());
  }
  return static_cast<double>(most);
}

TEST(Size, TellsTheBytesOfFiltersWithAWindow) {
  for (const std::uint64_t ids : {1'000, 100'000, 1'500'000}) {
    const auto all = rows({"-n", std::to_string(ids), "-e", "1e-3", "-w", "10m"});
    for (const auto& [name, structure] : {std::pair{"forgetful", Window::Structure::forgetful},
                                          {"timers", Window::Structure::timers}}) {
      SCOPED_TRACE(name);
      const Window window = *Window::make(
          {.structure = structure, .window_ms = kWindowMs, .fpr = kError, .ids = ids}, 0);
      ASSERT_TRUE(all.contains(name));
      const auto bytes = static_cast<double>(all.at(name).bytes);
      EXPECT_NEAR(bytes, static_cast<double>(window.bytes()), 0.01 * bytes) << ids;
      EXPECT_EQ(all.at(name).error, kError);
      if (ids <= kIds) {
        EXPECT_LE(measured(window, ids, [](std::uint64_t n) { return key(n); }), bytes);
      }
    }
    EXPECT_EQ(all.size(), 5u);
  }
}

TEST(Size, TellsTheBytesOfExactWindows) {
  for (const std::uint64_t ids : {1'000, 20'000, 100'000}) {
    const auto all = rows({"-n", std::to_string(ids), "-e", "0.1", "-w", "10m"});
    for (const auto& [name, punctual] : {std::pair{"exact", false}, {"exact-punctual", true}}) {
      const double exact = measured(*Window::make({.structure = Window::Structure::exact,
                                                   .window_ms = kWindowMs,
                                                   .ids = ids,
                                                   .punctual = punctual},
                                                  0),
                                    ids, [](std::uint64_t n) { return key(n); });
      EXPECT_NEAR(static_cast<double>(all.at(name).bytes), exact, 0.01 * exact) << name << ids;
      EXPECT_EQ(all.at(name).error, 0);
    }
    const double clients =
        measured(*ClientWindow::make({.window_ms = kWindowMs}, 0), ids, [&](std::uint64_t n) {
          const std::uint64_t count = ids / 1000;
          return ClientOperation{key(n % count), n / count};
        });
    EXPECT_NEAR(static_cast<double>(all.at("clients").bytes), clients, 0.01 * clients) << ids;
    EXPECT_EQ(all.at("clients").error, 0);
  }
}

// Returns all text of the headers that are installed.
std::string public_headers() {
  std::istringstream list(read_file("cmake/SemelHeaders.cmake"));
  std::string all;
  for (std::string word; list >> word;) {
    if (word.starts_with("semel/") && word.ends_with(".h")) all += read_file(word);
  }
  return all;
}

// A user can have each row: its class is in a public header, its command in the list of commands.
TEST(Size, NamesOnlyWhatCanBeHad) {
  const std::string headers = public_headers(), commands = read_file("docs/commands.md");
  for (const char* window : {"", " -w 10m"}) {
    std::istringstream lines(run_shell("$SEMEL size -n 1k -e 1e-3" + std::string(window)).out);
    std::string line;
    std::getline(lines, line);
    const std::size_t use = line.find("use");
    while (std::getline(lines, line)) {
      EXPECT_EQ(line.find('_'), std::string::npos) << line;  // no name of a member
      std::istringstream words(line.substr(use));
      for (std::string word; words >> word;) {
        while (std::ispunct(static_cast<unsigned char>(word.back())) != 0) word.pop_back();
        if (std::isupper(static_cast<unsigned char>(word.front())) == 0) continue;
        const bool command = word.find('.') != std::string::npos;
        EXPECT_TRUE(command || word == "TIMERS" || word == "EXACT" ||
                    headers.find("\nclass SEMEL_API " + word + ' ') != std::string::npos)
            << word;
        EXPECT_TRUE(!command || commands.find("\n### " + word + '\n') != std::string::npos) << word;
      }
    }
  }
}

// At the edges where a set doubles, and beyond what the command measures itself.
TEST(Size, TellsTheBytesOfAnExactSetOfAnySize) {
  for (const std::uint64_t ids : {1, 3000, 4096, 4097, 6144, 6145, 98'304, 98'305, 200'000}) {
    Window set = *Window::make({.structure = Window::Structure::exact, .ids = ids}, 0);
    for (const Digest& id : keys(0, ids)) (void)set.insert(id);
    EXPECT_EQ(rows({"--capacity", std::to_string(ids), "--error", "0.1"}).at("exact").bytes,
              set.bytes())
        << ids;
  }
}

TEST(Size, WorksBackwardsFromItsOwnAnswers) {
  for (const char* window : {"", "10m"}) {
    const std::vector<std::string> in_window =
        *window == 0 ? std::vector<std::string>{} : std::vector<std::string>{"--window", window};
    const auto with = [&](std::vector<std::string> options) {
      options.insert(options.end(), in_window.begin(), in_window.end());
      return rows(options);
    };
    for (const auto& [name, row] : with({"--capacity", "100k", "--error", "1e-3"})) {
      SCOPED_TRACE(name);
      const std::string memory = std::to_string(row.bytes);
      const auto ids = with({"--max-bytes", memory, "--error", "1e-3"});
      ASSERT_TRUE(ids.contains(name));
      EXPECT_GE(ids.at(name).ids, kIds);
      EXPECT_LE(ids.at(name).bytes, row.bytes);
      const bool in_steps = name.starts_with("exact") || name == "clients" || name == "sift";
      EXPECT_TRUE(in_steps || ids.at(name).ids <= kIds + kIds / 100) << ids.at(name).ids;
      const auto errors = with({"--max-bytes", memory, "--capacity", "100k"});
      ASSERT_TRUE(errors.contains(name));
      EXPECT_LE(errors.at(name).error, row.error * 1.002);
      EXPECT_GE(errors.at(name).error, row.error * 0.98);
      EXPECT_LE(errors.at(name).bytes, row.bytes);
    }
  }
}

TEST(Size, TakesARateTimesAWindow) {
  const std::string by_rate =
      run_semel({"size", "--rate", "166.6", "--window", "10m", "--error", "0.01"}).out;
  EXPECT_NE(by_rate, "");
  EXPECT_EQ(by_rate, run_semel({"size", "-n", "99960", "-w", "10m", "-e", "0.01"}).out);
}

TEST(Size, LeavesOutWhatCannotErrSoLittle) {
  const auto all = rows({"--capacity", "1k", "--error", "1e-12"});
  EXPECT_TRUE(all.contains("bloom-plain"));
  EXPECT_TRUE(all.contains("cuckoo"));
  EXPECT_TRUE(all.contains("exact"));
  EXPECT_FALSE(all.contains("bloom-blocked"));
}

TEST(Size, TakesTheLeastAndTheMostOfEverything) {
  for (const char* ids : {"1", "2", "1000", "70368744177664"}) {
    for (const char* error : {"1e-12", "0.99"}) {
      for (const auto& [name, row] : rows({"--capacity", ids, "--error", error})) {
        EXPECT_GT(row.bytes, 0u) << name;
        EXPECT_LE(row.error, std::stod(error)) << name;
      }
      for (const char* window : {"1ms", "100d"}) {
        EXPECT_FALSE(rows({"--capacity", ids, "--error", error, "--window", window}).empty());
      }
    }
  }
  EXPECT_FALSE(rows({"--max-bytes", "1000T", "--error", "0.5"}).empty());
}

TEST(Size, AlignsItsTable) {
  const Outcome outcome =
      run_semel({"size", "--capacity", "1M", "--error", "1e-3", "--window", "1h"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  std::istringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("structure")) << line;
  const std::size_t use = line.find("use"), error_end = use - 2;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    EXPECT_TRUE(line.substr(error_end, 2) == "  " && line[error_end - 1] != ' ' &&
                std::isalpha(static_cast<unsigned char>(line[use])))
        << line;
    std::istringstream words(line);
    std::string name;
    std::uint64_t ids = 0, bytes = 0;
    double bits = 0, error = 0;
    EXPECT_TRUE(words >> name >> ids >> bytes >> bits >> error) << line;
    EXPECT_EQ(ids, 1'000'000u);
  }
  EXPECT_EQ(count, 5);
}

TEST(Size, RefusesAnythingButTwoOfThree) {
  for (const auto& options : std::vector<std::vector<std::string>>{
           {},
           {"--capacity", "1"},
           {"--error", "0.1"},
           {"--max-bytes", "1M"},
           {"--window", "1h"},
           {"--capacity", "1", "--error", "0.1", "--max-bytes", "1M"}}) {
    std::vector<std::string> arguments = {"size"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    expect_usage_error(
        run_semel(arguments),
        {"semel size: two of --capacity (or --rate), --error and --max-bytes are needed"});
  }
}

TEST(Size, RefusesBadValues) {
  const auto refused = [](std::vector<std::string> arguments, const std::string& part) {
    arguments.insert(arguments.begin(), "size");
    expect_usage_error(run_semel(arguments), {"semel size: ", part});
  };
  refused({"--capacity", "0", "--error", "0.1"}, "--capacity cannot be '0'");
  refused({"--capacity", "1", "--error", "0"}, "--error cannot be '0'");
  refused({"--capacity", "1", "--error", "1"}, "a number, 1e-12 or more, below 1");
  refused({"--capacity", "1", "--error", "nan"}, "--error cannot be 'nan'");
  refused({"--max-bytes", "0", "--error", "0.1"}, "--max-bytes cannot be '0'");
  refused({"--capacity", "1", "--error", "0.1", "--window", "0s"}, "--window cannot be '0'");
  refused({"--capacity", "1", "--error", "0.1", "--window", "soon"}, "--window cannot be 'soon'");
  refused({"--rate", "1", "--error", "0.1"}, "--rate needs --window");
  refused({"--rate", "0", "--error", "0.1", "--window", "1h"}, "--rate cannot be '0'");
  refused({"--rate", "inf", "--error", "0.1", "--window", "1h"}, "--rate cannot be 'inf'");
  refused({"--rate", "1e30", "--error", "0.1", "--window", "1h"}, "ids in a window; allowed: 1 to");
  refused({"--rate", "1", "--capacity", "1", "--error", "0.1", "--window", "1h"},
          "--capacity and --rate exclude each other");
  refused({"--capacity", "1", "--error", "0.1", "file"}, "unexpected 'file'");
}

TEST(Size, SaysWhenNothingFits) {
  const Outcome outcome = run_semel({"size", "--capacity", "1M", "--max-bytes", "10"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("semel size: no structure can do this")) << outcome.err;
}

TEST(Size, ReportsAFullDisk) {
  const Outcome outcome = run_shell("$SEMEL size -n 1k -e 0.1 >/dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "semel size: cannot write standard output: No space left on device\n");
}

}  // namespace
}  // namespace semel
