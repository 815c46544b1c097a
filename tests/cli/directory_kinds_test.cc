// Directories of RocksDB of many kinds, and one law for all of them: what `semel` says and writes
// is what the owner's own RocksDB reads, or the directory is refused with the reason and not
// changed. In both cases the owner finds its records, its other column families, its prepared
// transactions and its OPTIONS afterwards.
#include "tests/cli/directory_kinds.h"

#include <gtest/gtest.h>
#include <rocksdb/utilities/options_util.h>

#include <algorithm>
#include <cctype>

#include "tests/cli/command.h"
#include "tests/cli/files_below.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Records partner_records() {
  Records records = first_records();
  records.erase(records.begin());                // only the kind has it
  std::next(records.begin(), 5)->second = "~";   // the greater of two values
  std::next(records.begin(), 10)->second = "!";  // the lesser
  records["aaaa"] = "only here";
  return records;
}

// Returns what both have after a sync: the greater of two values.
Records joined(const Records& a, const Records& b) {
  Records both = a;
  for (const auto& [key, value] : b) both[key] = std::max(both[key], value);
  return both;
}

std::string difference(const Records& a, const Records& b) {
  std::string out;
  for (const auto& [key, value] : joined(a, b)) {
    const bool here = a.contains(key);
    const bool there = b.contains(key);
    if (here && there && a.at(key) == b.at(key)) continue;
    out += (here && there ? "! " : here ? "< " : "> ") + key + '\n';
  }
  return out;
}

std::string lines_of(const Records& records) {
  std::string out;
  for (const auto& [key, value] : records) out += key + '\t' + value + '\n';
  return out;
}

// Returns the keys that the owner reads otherwise than expected, by column family.
std::string mistakes(const Families& read, const Families& expected) {
  std::string out;
  for (const auto& [family, records] : expected) {
    const auto found = read.find(family);
    const std::string wrong = difference(found == read.end() ? Records() : found->second, records);
    if (!wrong.empty()) out += family + ":\n" + wrong;
  }
  return read.size() == expected.size() ? out : out + "other column families\n";
}

// The newest OPTIONS file, which is the one that counts.
std::string options_of(const std::string& directory) {
  std::string name;
  const rocksdb::Status found =
      rocksdb::GetLatestOptionsFileName(directory, rocksdb::Env::Default(), &name);
  return found.ok() ? read_file(directory + "/" + name) : "";
}

class DirectoryKinds : public ::testing::TestWithParam<Kind> {
 protected:
  DirectoryKinds() {
    fs::create_directories(place_.root);
    GetParam().set_up(place_, owner_);
    {
      Owner owner(place_.directory(), owner_);
      Records half = first_records();
      Records rest(std::next(half.begin(), 20), half.end());
      half.erase(std::next(half.begin(), 20), half.end());
      owner.write(half);
      owner.flush();
      owner.write(rest);
      if (GetParam().also) GetParam().also(owner, place_);
      oracle_ = owner.read();
    }
    if (GetParam().afterwards) GetParam().afterwards(place_, owner_);
    options_text_ = options_of(place_.directory());
    Owner(partner(), OwnerOptions()).write(partner_records());
  }

  std::string partner() const { return directory_.path() / "partner"; }
  Records& records() { return oracle_[owner_.family]; }

  Outcome semel(Words words, const Words& operands) const {
    if (GetParam().options) {
      const Words more = GetParam().options(place_);
      words.insert(words.end(), more.begin(), more.end());
    }
    words.insert(words.end(), operands.begin(), operands.end());
    return run_semel(words);
  }
  Outcome with_partner(Words words) const {
    if (owner_.family == rocksdb::kDefaultColumnFamilyName) {
      return semel(std::move(words), {place_.directory(), partner()});
    }
    // The partner has one column family alone.
    words.insert(words.end(), {"--via", SEMEL_COMMAND " serve-sync " + partner()});
    return semel(std::move(words), {place_.directory()});
  }

  void expect_refused(const Outcome& outcome, const std::string& reason) const {
    EXPECT_GT(outcome.status, 0) << "signal " << outcome.signal;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(reason), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(place_.directory()), std::string::npos) << outcome.err;
  }

  void expect_comparison(const Words& diff, const std::string& refused) const {
    const Outcome outcome = with_partner(diff);
    if (!refused.empty()) return expect_refused(outcome, refused);
    EXPECT_EQ(outcome.status, 1) << outcome.err << outcome.signal;
    EXPECT_EQ(outcome.out, difference(oracle_.at(owner_.family), partner_records()));
  }

  void expect_dump_and_plan() const {
    const Outcome dump = semel({"dump"}, {place_.directory()});
    const Outcome plan = with_partner({"plan"});
    if (!GetParam().reading_refused.empty()) {
      EXPECT_GT(dump.status, 0) << "signal " << dump.signal;
      EXPECT_NE(dump.err.find(GetParam().reading_refused), std::string::npos) << dump.err;
      return expect_refused(plan, GetParam().reading_refused);
    }
    EXPECT_EQ(plan.status, 0) << plan.err;
    EXPECT_EQ(dump.status, 0) << dump.err;
    EXPECT_EQ(dump.out, lines_of(oracle_.at(owner_.family)));
  }

  // Both have all that either had, and the owner finds the rest unchanged.
  void expect_synced() {
    const Outcome outcome = with_partner({"sync"});
    EXPECT_EQ(outcome.status, 0) << outcome.err << outcome.signal;
    EXPECT_EQ(options_of(place_.directory()), options_text_);
    records() = joined(records(), Owner(partner(), OwnerOptions()).read()["default"]);
    EXPECT_EQ(Owner(partner(), OwnerOptions()).read()["default"], records());
  }

  TemporaryDirectory directory_;
  Place place_{directory_.path() / "place"};
  OwnerOptions owner_;
  Families oracle_;
  std::string options_text_;
};

TEST_P(DirectoryKinds, IsComparedRightOrRefusedAndNotChanged) {
  const FilesBelow before(place_.root);
  expect_comparison({"diff", "-q"}, GetParam().reading_refused);
  expect_comparison({"diff", "-q", "--secondary"}, GetParam().following_refused);
  expect_dump_and_plan();
  EXPECT_EQ(FilesBelow(place_.root), before);
  EXPECT_EQ(mistakes(Owner(place_.directory(), owner_).read(), oracle_), "");
}

TEST_P(DirectoryKinds, IsSyncedRightAgainAndAgainOrRefusedAndNotChanged) {
  if (!GetParam().writing_refused.empty()) {
    const FilesBelow before(place_.root);
    expect_refused(with_partner({"sync"}), GetParam().writing_refused);
    if (!GetParam().found_when_read) {
      EXPECT_EQ(FilesBelow(place_.root), before);
    }
    EXPECT_EQ(options_of(place_.directory()), options_text_);
    EXPECT_EQ(mistakes(Owner(place_.directory(), owner_).read(), oracle_), "");
    return;
  }
  expect_synced();
  {
    Owner owner(place_.directory(), owner_);
    EXPECT_EQ(mistakes(owner.read(), oracle_), "");
    owner.write(later_records());
    oracle_ = owner.read();
  }
  options_text_ = options_of(place_.directory());
  expect_synced();
  EXPECT_EQ(mistakes(Owner(place_.directory(), owner_).read(), oracle_), "");
}

TEST_P(DirectoryKinds, IsEqualToItsCopyAndFollowsIt) {
  if (!GetParam().writing_refused.empty() || !GetParam().closed_paths) {
    GTEST_SKIP() << "no copy of it can be synced";
  }
  const std::string copy = directory_.path() / "copy";
  fs::copy(place_.directory(), copy, fs::copy_options::recursive);
  EXPECT_EQ(semel({"diff", "-q"}, {place_.directory(), copy}).status, 0);
  Owner(copy, owner_).write(later_records());
  const Outcome outcome =
      semel({"sync", "--rule", "source", "--reverse"}, {place_.directory(), copy});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const auto& [key, value] : later_records()) records()[key] = value;
  EXPECT_EQ(mistakes(Owner(place_.directory(), owner_).read(), oracle_), "");
  EXPECT_EQ(mistakes(Owner(copy, owner_).read(), oracle_), "");
}

std::string test_name(const ::testing::TestParamInfo<Kind>& info) {
  std::string name;
  for (const char letter : info.param.name) {
    name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(, DirectoryKinds, ::testing::ValuesIn(directory_kinds()), test_name);

}  // namespace
}  // namespace semel
