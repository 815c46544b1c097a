// --scrub: records that have changed on the disk behind RocksDB's back, which a warm index hides.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/cli/command.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

class SyncScrub : public ::testing::Test {
 protected:
  static constexpr int kRecords = 2000;

  // Two directories of equal records, with their indexes. Tables without checksums stand for those
  // whose checksums were made again by whatever changed them.
  void SetUp() override {
    for (const char* const name : {"a", "b"}) {
      rocksdb::BlockBasedTableOptions table;
      table.checksum = rocksdb::kNoChecksum;
      rocksdb::Options options;
      options.create_if_missing = true;
      options.compression = rocksdb::kNoCompression;
      options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
      rocksdb::DB* opened = nullptr;
      ASSERT_TRUE(rocksdb::DB::Open(options, path(name), &opened).ok());
      const std::unique_ptr<rocksdb::DB> db(opened);
      for (int n = 10'000; n < 10'000 + kRecords; ++n) {
        const std::string number = std::to_string(n);
        ASSERT_TRUE(db->Put({}, "key-" + number, "value-" + number).ok());
      }
      ASSERT_TRUE(db->Flush({}).ok());
      ASSERT_TRUE(db->Close().ok());
    }
    ASSERT_EQ(run_semel({"sync", "-q", path("a"), path("b")}).status, 0);
    ASSERT_TRUE(std::filesystem::exists(path("a") + "/SEMEL-INDEX"));
  }

  std::string path(const std::string& name) const { return directory_.path() / name; }

  // In place, so that nothing but the bytes changes.
  void rot(const std::string& name, const std::string& from, const std::string& to) const {
    int changed = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path(name))) {
      if (entry.path().extension() != ".sst") continue;
      const std::size_t at = read_file(entry.path()).find(from);
      if (at == std::string::npos) continue;
      std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(at));
      file << to;
      ++changed;
    }
    ASSERT_EQ(changed, 1);
  }

  Outcome on_both(std::vector<std::string> words) const {
    words.insert(words.end(), {path("a"), path("b")});
    return run_semel(std::move(words));
  }
  Outcome by_pipe(std::vector<std::string> words, const std::string& options) const {
    words.insert(words.end(),
                 {path("a"), "--via", SEMEL_COMMAND " serve-sync " + options + path("b")});
    return run_semel(std::move(words));
  }
  // Expects a message that the index of this directory was wrong, and where.
  static void expect_told(const Outcome& outcome, const std::string& directory) {
    for (const std::string& part :
         {std::string("the index of '" + directory + "' was wrong in 1 stretch of keys"),
          std::string("'key-1"), std::string("changed on the disk")}) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << ": " << outcome.err;
    }
  }

  TemporaryDirectory directory_;
};

TEST_F(SyncScrub, FindsARecordThatHasChangedBehindTheIndex) {
  rot("b", "value-11234", "VALUE-11234");
  EXPECT_EQ(on_both({"diff", "-q"}).status, 0);  // so says the index
  const Outcome diff = on_both({"diff", "-q", "--scrub"});
  EXPECT_EQ(diff.status, 1);
  EXPECT_EQ(diff.out, "! key-11234\n");
  expect_told(diff, path("b"));
  EXPECT_EQ(on_both({"diff", "-q"}).status, 0);  // a diff leaves the index as it was

  const Outcome plan = on_both({"plan", "--scrub"});
  EXPECT_EQ(plan.status, 1);
  expect_told(plan, path("b"));
  EXPECT_EQ(plan.out.find("none"), std::string::npos) << plan.out;
}

TEST_F(SyncScrub, ASyncRepairsItAndLeavesTheIndexRight) {
  rot("b", "value-11234", "VALUE-11234");
  EXPECT_EQ(on_both({"sync", "-q", "--rule", "source"}).status, 0);  // which finds nothing
  const Outcome sync = on_both({"sync", "-q", "--scrub", "--rule", "source"});
  EXPECT_EQ(sync.status, 1);
  expect_told(sync, path("b"));
  const Outcome dump = run_semel({"dump", "--prefix", "key-11234", path("b")});
  EXPECT_EQ(dump.out, "key-11234\tvalue-11234\n");
  const Outcome again = on_both({"sync", "--scrub"});
  EXPECT_EQ(again.status, 0);
  EXPECT_NE(again.err.find("scrubbed"), std::string::npos) << again.err;
  EXPECT_EQ(on_both({"diff", "-q", "--scrub"}).status, 0);
}

TEST_F(SyncScrub, OfTheOtherHostIsAskedForThere) {
  rot("b", "value-11234", "VALUE-11234");
  EXPECT_EQ(by_pipe({"diff", "-q", "--scrub"}, "--read-only ").status, 0);
  const Outcome diff = by_pipe({"diff", "-q"}, "--read-only --scrub ");
  EXPECT_EQ(diff.out, "! key-11234\n");
  expect_told(diff, path("b"));
  EXPECT_NE(diff.status, 0);
}

// Both directories have rotted alike: they are equal, and still wrong.
TEST_F(SyncScrub, FailsEvenIfNothingDiffers) {
  for (const char* const name : {"a", "b"}) rot(name, "value-10077", "VALUE-10077");
  EXPECT_EQ(on_both({"diff", "-q"}).status, 0);
  const Outcome diff = on_both({"diff", "-q", "--scrub"});
  EXPECT_EQ(diff.status, 2);
  expect_told(diff, path("a"));
  expect_told(diff, path("b"));
}

TEST_F(SyncScrub, OfANewIndexThereIsNothingToCompare) {
  for (const char* const name : {"a", "b"}) {
    std::filesystem::remove(path(name) + "/SEMEL-INDEX");
  }
  rot("b", "value-11234", "VALUE-11234");
  const Outcome diff = on_both({"diff", "--scrub"});
  EXPECT_EQ(diff.status, 1);
  EXPECT_EQ(diff.out, "! key-11234\n");
  EXPECT_NE(diff.err.find("there was no index"), std::string::npos) << diff.err;
}

}  // namespace
}  // namespace semel
