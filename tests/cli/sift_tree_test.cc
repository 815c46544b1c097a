// semel sift --tree: a tree of filters gives the answers of one.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cli/tree_plan.h"
#include "semel/core/internal/random.h"
#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kTree =
    "# from the root down\n"
    "kind dense\n"
    "level world slices 3\n"
    "level region key 2 # a column\n"
    "level site key 3\n";

// Events with a key, a region and a site in it; keys are shared between sites.
std::string events(int count, bool timed = false) {
  Random random(7);
  std::string out;
  for (int i = 0; i < count; ++i) {
    const std::string region = std::to_string(random.below(3));
    out += std::to_string(random.below(static_cast<std::uint64_t>(count) / 3)) + ',' + region +
           ',' + std::to_string(random.below(4));
    if (timed) out += ',' + std::to_string(1'700'000'000'000 + 10 * i);
    out += '\n';
  }
  return out;
}

class SiftTree : public ::testing::Test {
 protected:
  Outcome sift(Words options, const std::string& input) const {
    options.insert(options.begin(), {"sift", "-f", "csv", "-k", "1"});
    return run_semel(options, input);
  }
  TemporaryDirectory directory_;
  std::string tree_ = directory_.write("tree", kTree);
};

TEST_F(SiftTree, GivesTheAnswersOfOneFilter) {
  const std::string input = events(30'000);
  const std::string expected = sift({"-q", "-x"}, input).out;
  for (const char* kind :
       {"kind dense\n", "kind sparse\n", "kind dense\nconfirm 1\n", "confirm 2\n"}) {
    const std::string tree =
        directory_.write("t", kind + std::string("level a\nlevel b key 2\nlevel c key 3\n"));
    for (const char* threads : {"1", "3"}) {
      EXPECT_TRUE(sift({"-q", "-x", "-t", threads, "-r", tree}, input).out == expected) << kind;
    }
    EXPECT_TRUE(sift({"-q", "-r", tree}, input).out == expected) << kind;
  }
  EXPECT_TRUE(sift({"-q", "-r", tree_}, input).out == expected);
}

TEST_F(SiftTree, ForgetsWithItsWindows) {
  const std::string sparse = directory_.write("sparse", "level a\nlevel b key 2\n");
  const std::string input = "a,x,0,1000\na,y,0,1030\nb,y,0,1050\na,x,0,1200\nb,x,0,1201\n";
  for (const Words& mode : {Words{"-q"}, Words{"-q", "-x"}}) {
    Words options = {"-w", "1m", "-T", "4", "-r", sparse};
    options.insert(options.end(), mode.begin(), mode.end());
    EXPECT_EQ(sift(options, input).out, "a,x,0,1000\nb,y,0,1050\na,x,0,1200\nb,x,0,1201\n");
  }
}

TEST_F(SiftTree, GoesOnFromAState) {
  const std::string input = events(10'000);
  const std::string state = directory_.path() / "state";
  const std::string expected = sift({"-q", "-x"}, input).out;
  std::string out;
  const std::size_t half = input.find('\n', input.size() / 2) + 1;
  out += sift({"-q", "-x", "-r", tree_, "-S", state}, input.substr(0, half)).out;
  out += sift({"-q", "-x", "-r", tree_, "-S", state}, input.substr(half)).out;
  EXPECT_TRUE(out == expected);

  const std::string other = directory_.write("other", "level a\nlevel b key 2\n");
  expect_usage_error(sift({"-q", "-x", "-r", other, "-S", state}, ""), {"it was made with --tree"});
  expect_usage_error(sift({"-q", "-x", "-S", state}, ""), {"it was made with --tree"});
  const std::string good = read_file(state);
  for (std::size_t at = 0; at < good.size(); at += good.size() / 50 + 1) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    directory_.write("state", bad);
    EXPECT_EQ(sift({"-q", "-x", "-r", tree_, "-S", state}, "").status, 1) << at;
  }
}

TEST_F(SiftTree, TellsWhatEachLevelFound) {
  const std::string input = events(3'000);
  const Outcome people = sift({"-r", tree_}, input);
  EXPECT_NE(people.err.find("level            world: 1 node, "), std::string::npos) << people.err;
  EXPECT_NE(people.err.find("level            region: 3 nodes, "), std::string::npos);
  EXPECT_NE(people.err.find("level            site: 12 nodes, "), std::string::npos);
  const Outcome programs = sift({"-j", "-r", tree_}, input);
  EXPECT_NE(programs.err.find("\"nodes\":16,"), std::string::npos) << programs.err;
  EXPECT_NE(programs.err.find(",\"levels\":[{\"nodes\":1,"), std::string::npos);
  EXPECT_TRUE(programs.err.ends_with("}]}\n"));
}

TEST_F(SiftTree, RefusesAnErrorThatLeavesTooLittleForALevel) {
  expect_usage_error(sift({"-r", tree_, "--error", "2e-12"}, "1,2,3\n"),
                     {"--error is divided among the levels of the tree; allowed for each: 1e-12"});
  EXPECT_EQ(sift({"-r", tree_, "--error", "4e-12"}, "1,2,3\n").out, "1,2,3\n");
}

TEST_F(SiftTree, RefusesAFileThatIsNoTree) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "a tree needs two levels or more"},
      {"level a\n", "a tree needs two levels or more"},
      {"level a\nlevel b\n", "line 2: level 'b' needs a key"},
      {"level a key 1\nlevel b key 1\n", "line 1: unknown word 'key'"},
      {"level a\nlevel a key 1\n", "line 2: level 'a' is there already"},
      {"\n\nlevel\n", "line 3: a level needs a name"},
      {"levels a\n", "line 1: unknown word 'levels'; allowed: kind, confirm, level"},
      {"kind thick\n", "line 1: kind cannot be 'thick'; allowed: sparse, dense"},
      {"level a\nlevel b key 0\n", "line 2: key cannot be '0'"},
      {"level a slices 0\n", "line 1: slices cannot be '0'"},
      {"confirm 2\nlevel a\nlevel b key 1\n", "confirm names a level that is not there"},
      {"confirm x\n", "line 1: confirm cannot be 'x'"},
  };
  for (const auto& [text, message] : cases) {
    const std::string path = directory_.write("bad", text);
    expect_usage_error(sift({"-r", path}, "1,2,3\n"), {message});
  }
  EXPECT_EQ(sift({"-r", "/nowhere"}, "").status, 1);
  expect_usage_error(run_semel({"sift", "-r", tree_}), {"--tree needs fields"});
  expect_usage_error(sift({"-r", tree_, "-n", "4"}, ""), {"exclude each other"});
  expect_usage_error(sift({"-r", directory_.write("names", "level a\nlevel b key site\n")}, ""),
                     {"'site' is a name"});
}

TEST_F(SiftTree, TellsOfARecordWithoutItsPlace) {
  const Outcome outcome = sift({"-q", "-r", tree_}, "a,1,2\nb,1\n");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "a,1,2\n");
  EXPECT_EQ(outcome.err,
            "semel sift: standard input line 2: there is no column 3, the last one is 2\n");
}

}  // namespace
}  // namespace semel
