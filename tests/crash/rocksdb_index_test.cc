// An index over RocksDB: through writes past it, files that come and go, and directories that
// change while nobody looks.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "semel/core/internal/random.h"
#include "tests/cli/temporary_directory.h"
#include "tests/crash/operations.h"
#include "tests/crash/setup.h"
#include "tests/support/index.h"

namespace semel::crash {
namespace {

using Opened = IndexedStore::Opened;

class RocksIndexTest : public ::testing::Test {
 protected:
  void open() {
    auto opened_store = RocksStore::open(directory_, kStore);
    ASSERT_TRUE(opened_store) << opened_store.error().message();
    store_ = *std::move(opened_store);
    auto opened_index = IndexedStore::open(*store_, secret(), kIndex);
    ASSERT_TRUE(opened_index) << opened_index.error().message();
    index_ = *std::move(opened_index);
  }
  void close() {
    index_.reset();
    store_.reset();
  }

  void change(std::uint64_t seed, int times) {
    for (int n = 0; n < times; ++n) {
      const Operation some = operation(seed, static_cast<std::uint64_t>(n));
      ASSERT_TRUE(carry_out(some, *store_));
    }
  }
  // RocksDB drops files by a thread of its own, which tells of them afterwards.
  void expect_equals_rebuilt_at_rest() {
    ASSERT_TRUE(store_->raw().PauseBackgroundWork().ok());
    expect_equals_rebuilt(*index_);
    ASSERT_TRUE(store_->raw().ContinueBackgroundWork().ok());
  }
  // A file of 100 records, taken in.
  void ingest(std::uint64_t first) {
    const std::string file = scratch_.path() / "taken.sst";
    rocksdb::SstFileWriter writer({}, {});
    ASSERT_TRUE(writer.Open(file).ok());
    for (std::uint64_t n = 0; n < 100; ++n) {
      ASSERT_TRUE(
          writer.Put(std::to_string(100'000 + first + n).insert(0, "key/"), "taken in").ok());
    }
    ASSERT_TRUE(writer.Finish().ok());
    ASSERT_TRUE(store_->ingest({file}));
  }

  const TemporaryDirectory scratch_;
  const std::string directory_ = scratch_.path() / "store";
  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<IndexedStore> index_;
};

TEST_F(RocksIndexTest, EqualsARebuiltOneThroughWritesFilesCompactionsAndOpenings) {
  Random random(1);
  open();
  EXPECT_EQ(index_->opened(), Opened::rebuilt);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    change(random(), static_cast<int>(random.below(150)));
    switch (random.below(6)) {
      case 0:
        ingest(random.below(5000));
        break;
      case 1:
        ASSERT_TRUE(store_->raw().Flush({}).ok());
        break;
      case 2:
        ASSERT_TRUE(store_->raw().CompactRange({}, nullptr, nullptr).ok());
        break;
      case 3:
        ASSERT_TRUE(index_->checkpoint());
        break;
      default:
        break;
    }
    if (random.below(3) == 0) {
      close();
      open();
    }
    expect_equals_rebuilt(*index_);
  }
}

TEST_F(RocksIndexTest, FollowsItsCheckpoint) {
  open();
  change(1, 2000);
  expect_equals_rebuilt(*index_);
  ASSERT_TRUE(index_->checkpoint());
  change(2, 20);
  close();
  open();
  EXPECT_EQ(index_->opened(), Opened::followed);
  expect_equals_rebuilt(*index_);
}

TEST_F(RocksIndexTest, EqualsARebuiltOneWhenConcurrentWritersHaveComeToRest) {
  open();
  std::atomic<int> writing = 2;
  std::vector<std::thread> writers;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    writers.emplace_back([&, seed] {
      change(seed, 3000);
      --writing;
    });
  }
  for (int round = 0; writing > 0; ++round) {
    EXPECT_TRUE(index_->view());
    if (round % 4 == 0) {
      EXPECT_TRUE(index_->checkpoint());
    }
  }
  for (std::thread& writer : writers) writer.join();
  expect_equals_rebuilt(*index_);
  close();
  open();
  EXPECT_EQ(index_->opened(), Opened::followed);
  expect_equals_rebuilt(*index_);
}

TEST_F(RocksIndexTest, FollowsWhatIsWrittenWithoutALogWhileItIsClosed) {
  open();
  change(1, 500);
  expect_equals_rebuilt(*index_);
  ASSERT_TRUE(index_->checkpoint());
  close();
  {
    rocksdb::Options options;
    options.write_buffer_size = *kStore.write_buffer_bytes;
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, directory_, &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    rocksdb::WriteOptions without_log;
    without_log.disableWAL = true;
    ASSERT_TRUE(db->Put(without_log, "key/100007", "past").ok());
    ASSERT_TRUE(db->Delete(without_log, "key/100014").ok());
    ASSERT_TRUE(db->Flush({}).ok());
    ASSERT_TRUE(db->DeleteRange({}, db->DefaultColumnFamily(), "key/102", "key/1021").ok());
  }
  open();
  expect_equals_rebuilt(*index_);
}

// Records go when their file is the oldest and there are too many.
TEST_F(RocksIndexTest, FollowsWhatACompactionDrops) {
  {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = *kStore.write_buffer_bytes;
    options.compaction_style = rocksdb::kCompactionStyleFIFO;
    options.compaction_options_fifo.max_table_files_size = 100'000;
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, directory_, &raw).ok());
    delete raw;
  }
  open();
  std::uint64_t most = 0;
  for (std::uint64_t round = 0; round < 12; ++round) {
    for (std::uint64_t n = 0; n < 200; ++n) {
      const std::string key = std::to_string(1'000'000 + 200 * round + n);
      std::string value;
      for (std::uint64_t i = 0; i < 20; ++i) value += std::to_string(Random(n * 20 + i)());
      const RecordWrite write{key, value};
      ASSERT_TRUE(store_->write({&write, 1}));
    }
    ASSERT_TRUE(store_->raw().Flush({}).ok());
    ASSERT_TRUE(store_->raw().CompactRange({}, nullptr, nullptr).ok());
    expect_equals_rebuilt_at_rest();
    most = std::max(most, index_->view()->trie().total().count);
    if (round % 3 == 0) {
      ASSERT_TRUE(index_->checkpoint());
    }
    if (round % 4 == 0) {
      close();
      open();
      expect_equals_rebuilt_at_rest();
    }
  }
  EXPECT_LT(most, 2000U);
}

// A backup that is put back has an older state; the newer checkpoint must not be believed.
TEST_F(RocksIndexTest, DoesNotBelieveACheckpointThatIsNewerThanItsStore) {
  open();
  change(1, 300);
  expect_equals_rebuilt(*index_);
  ASSERT_TRUE(index_->checkpoint());
  close();
  const std::string backup = scratch_.path() / "backup";
  std::filesystem::copy(directory_, backup, std::filesystem::copy_options::recursive);
  open();
  change(2, 300);
  expect_equals_rebuilt(*index_);
  ASSERT_TRUE(index_->checkpoint());
  close();
  std::filesystem::copy_file(directory_ + "/SEMEL-INDEX", backup + "/SEMEL-INDEX",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove_all(directory_);
  std::filesystem::rename(backup, directory_);
  open();
  EXPECT_EQ(index_->opened(), Opened::rebuilt);
  expect_equals_rebuilt(*index_);
}

}  // namespace
}  // namespace semel::crash
