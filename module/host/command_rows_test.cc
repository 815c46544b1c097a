// CommandRow: what a server learns about a command, with and without the functions of later
// versions.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "module/host/api.h"
#include "module/host/command.h"
#include "tests/support/fake_host.h"

namespace semel::host {
namespace {

void read_key(Call& call) { call.ok(); }
void merge_keys(Call& call) { call.ok(); }
void serve(Call& call) { call.ok(); }

// The calls that the server got.
std::vector<std::string> categories;
std::vector<std::vector<api::CommandKeySpec>> key_specs;

// Loads a command of every kind, under names that nobody had before.
Result<void> load(const FakeHost& /*host*/) {
  static int loads = 0;
  static std::vector<std::string> names;
  names.reserve(100);
  const auto name = [&](const char* verb) {
    return names.emplace_back("F" + std::to_string(loads) + verb).c_str();
  };
  ++loads;
  static std::vector<std::array<CommandRow, 3>> rows;
  rows.reserve(100);
  const std::array<CommandRow, 3>& all = rows.emplace_back(std::array<CommandRow, 3>{
      command<read_key>({.name = name(".READ"),
                         .syntax = "key",
                         .kind = CommandKind::reads,
                         .summary = "",
                         .reply = ""}),
      command<merge_keys>({.name = name(".MERGE"),
                           .syntax = "destination source ...",
                           .kind = CommandKind::writes,
                           .pace = Pace::slow,
                           .sources = {2, -1},
                           .summary = "",
                           .reply = ""}),
      command<serve>({.name = name(".SERVE"),
                      .syntax = "ms",
                      .kind = CommandKind::server,
                      .keys = {0, 0},
                      .summary = "",
                      .reply = ""}),
  });
  categories.clear();
  key_specs.clear();
  api::SetCommandInfo = [](api::Command* /*command*/, const api::CommandInfo* info) {
    std::vector<api::CommandKeySpec>& specs = key_specs.emplace_back();
    for (const api::CommandKeySpec* spec = info->key_specs; spec->begin_search_type != 0; ++spec) {
      specs.push_back(*spec);
    }
    return api::kOk;
  };
  const std::string name_of_family = std::string("F").append(std::to_string(loads));
  const std::array families = {Family{name_of_family, "category", all}};
  return CommandTable::load(nullptr, families);
}

int take_categories(api::Command* /*command*/, const char* words) {
  categories.emplace_back(words);
  return api::kOk;
}

class CommandRows : public ::testing::Test {
 protected:
  void TearDown() override {
    api::SetCommandACLCategories = nullptr;
    api::AddACLCategory = nullptr;
  }
  const FakeHost host_;
};

TEST_F(CommandRows, AreInNoCategoryWhereTheServerTakesNone) {
  EXPECT_TRUE(load(host_));
  EXPECT_TRUE(categories.empty());
}

TEST_F(CommandRows, AreInTheServersCategoriesWhereItTakesThese) {
  api::SetCommandACLCategories = take_categories;
  EXPECT_TRUE(load(host_));
  EXPECT_EQ(categories,
            (std::vector<std::string>{"read fast", "write slow", "write admin dangerous fast"}));
}

TEST_F(CommandRows, AreInACategoryOfTheirFamilyWhereTheServerTakesNewOnes) {
  static std::string added;
  api::SetCommandACLCategories = take_categories;
  api::AddACLCategory = [](api::Ctx* /*ctx*/, const char* category) {
    added = category;
    return api::kOk;
  };
  EXPECT_TRUE(load(host_));
  EXPECT_EQ(added, "category");
  EXPECT_EQ(categories, (std::vector<std::string>{"read fast category", "write slow category",
                                                  "write admin dangerous fast category"}));
}

TEST_F(CommandRows, ReadTheirSourcesAlone) {
  EXPECT_TRUE(load(host_));
  ASSERT_EQ(key_specs.size(), 3u);
  ASSERT_EQ(key_specs[0].size(), 1u);
  EXPECT_EQ(key_specs[0][0].flags, api::kKeyRo | api::kKeyAccess);
  ASSERT_EQ(key_specs[1].size(), 2u);
  EXPECT_EQ(key_specs[1][0].flags, api::kKeyRw | api::kKeyAccess | api::kKeyUpdate);
  EXPECT_EQ(key_specs[1][0].bs.index.pos, 1);
  EXPECT_EQ(key_specs[1][0].fk.range.lastkey, 0);
  EXPECT_EQ(key_specs[1][1].flags, api::kKeyRo | api::kKeyAccess);
  EXPECT_EQ(key_specs[1][1].bs.index.pos, 2);
  EXPECT_EQ(key_specs[1][1].fk.range.lastkey, -1);
  EXPECT_TRUE(key_specs[2].empty());
}

}  // namespace
}  // namespace semel::host
