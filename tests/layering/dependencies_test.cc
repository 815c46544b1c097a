// docs/dependencies.md and tools/packages name the same packages.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace semel {
namespace {

// Returns the lines of all files.
std::set<std::string> installed_packages() {
  std::set<std::string> packages;
  for (const auto& list : std::filesystem::directory_iterator("tools/packages")) {
    std::ifstream in(list.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch package;
      EXPECT_TRUE(
          std::regex_match(line, package, std::regex("(?:[a-z0-9]+/)?([a-z0-9][a-z0-9+.-]+)")))
          << list.path() << ": '" << line << "' is not the name of a package";
      packages.insert(package[1]);
    }
  }
  return packages;
}

// Returns the first cells of the table's rows.
std::set<std::string> explained_packages() {
  std::set<std::string> packages;
  std::ifstream in("docs/dependencies.md");
  const std::regex row(R"(\| `([^`]+)` \| .+ \| .+ \|)");
  for (std::string line; std::getline(in, line);) {
    std::smatch cells;
    if (std::regex_match(line, cells, row)) {
      EXPECT_TRUE(packages.insert(cells[1]).second) << cells[1] << " has two lines";
    }
  }
  return packages;
}

TEST(Dependencies, EveryPackageIsExplainedAndEveryExplanationHasItsPackage) {
  const std::set<std::string> installed = installed_packages();
  EXPECT_FALSE(installed.empty());
  EXPECT_EQ(installed, explained_packages());
}

}  // namespace
}  // namespace semel
