// RocksStore: directories of others, and changes that bypass it.
#include "semel/store/rocksdb_store.h"

#include <gtest/gtest.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/comparator.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/iostats_context.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/sst_file_writer.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "semel/core/internal/random.h"
#include "semel/store/internal/rocksdb_options.h"
#include "semel/store/internal/rocksdb_places.h"
#include "semel/store/internal/rocksdb_position.h"
#include "semel/store/range_set.h"
#include "tests/cli/process.h"
#include "tests/cli/temporary_directory.h"
#include "tests/golden/golden.h"
#include "tests/support/eventually.h"
#include "tests/support/store.h"

// RocksDB creates the compaction filter that an OPTIONS file names without an owner. A process
// cannot tell whether it may delete it, so 32 bytes leak with every opening.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:rocksdb::CompactionFilter::CreateFromString\n";
}
// NOLINTEND(bugprone-reserved-identifier)

namespace semel {

using namespace store_internal;

namespace {

namespace fs = std::filesystem;
using Mode = RocksStore::Mode;

std::string key(int n) { return std::string("k").append(std::to_string(1000 + n)); }

// Returns options with the compaction filter that RocksDB itself has.
rocksdb::Options without_empty_values() {
  rocksdb::Options options;
  const rocksdb::Status made = rocksdb::CompactionFilter::CreateFromString(
      {}, "RemoveEmptyValueCompactionFilter", &options.compaction_filter);
  EXPECT_TRUE(made.ok()) << made.ToString();
  return options;
}

// Rewrites every file, so that a compaction filter sees every record.
void compact(rocksdb::DB& db) {
  rocksdb::CompactRangeOptions all;
  all.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  const rocksdb::Status compacted = db.CompactRange(all, nullptr, nullptr);
  EXPECT_TRUE(compacted.ok()) << compacted.ToString();
}

// A directory that we or others open.
class RocksStoreTest : public ::testing::Test {
 protected:
  std::string path() const { return (directory_.path() / "db").string(); }

  std::unique_ptr<RocksStore> open(RocksStore::Settings settings = {.create = true}) const {
    auto store = RocksStore::open(path(), settings);
    EXPECT_TRUE(store) << store.error().message();
    return store ? *std::move(store) : nullptr;
  }
  Errc refusal(const RocksStore::Settings& settings) const {
    const auto store = RocksStore::open(path(), settings);
    return store ? Errc::full : store.error().code;
  }
  // Opens the directory as another program would: no options of ours, no archive, no listener.
  std::unique_ptr<rocksdb::DB> foreign(rocksdb::Options options = {}) const {
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, path(), &db);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return std::unique_ptr<rocksdb::DB>(db);
  }
  std::string table(const std::string& name, const Model& records) const {
    rocksdb::SstFileWriter writer({}, {});
    const std::string file = (directory_.path() / name).string();
    EXPECT_TRUE(writer.Open(file).ok());
    for (const auto& [one, value] : records) EXPECT_TRUE(writer.Put(one, value).ok());
    EXPECT_TRUE(writer.Finish().ok());
    return file;
  }
  // Writes the state that an earlier run of ours leaves: a hundred records, and a position.
  Bytes left_behind(int records = 100) const {
    const auto store = open();
    for (int n = 0; n < records; ++n) put(*store, key(n), "before");
    return *store->position();
  }
  // Opens the directory and checks that all differences from `before` are reported.
  Told told_since(const Bytes& position, const Model& before,
                  const RocksStore::Settings& settings = {}) const {
    Told told;
    const auto store = open(settings);
    const Result<void> changes = store->changes_since(position, told);
    EXPECT_TRUE(changes) << changes.error().message();
    Model now = read(*store);
    for (const auto& [one, value] : before) {
      if (now.contains(one) && now[one] == value) {
        now.erase(one);
      } else {
        EXPECT_TRUE(told.contains(one)) << one;
      }
    }
    for (const auto& [one, value] : now) EXPECT_TRUE(told.contains(one)) << one;
    return told;
  }

  static Model hundred(int records = 100) {
    Model model;
    for (int n = 0; n < records; ++n) model[key(n)] = "before";
    return model;
  }

  TemporaryDirectory directory_;
};

TEST_F(RocksStoreTest, CreatesADatabaseOnlyIfAsked) {
  EXPECT_EQ(refusal({}), Errc::invalid);
  EXPECT_EQ(refusal({.mode = Mode::read_only, .create = true}), Errc::invalid);
  EXPECT_EQ(refusal({.mode = Mode::secondary}), Errc::invalid);
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_FALSE(RocksStore::column_families(path()));
  const std::string file = directory_.write("db/note.txt", "not a database");
  EXPECT_EQ(refusal({}), Errc::invalid);
  EXPECT_EQ(std::distance(fs::directory_iterator(path()), {}), 1);
  EXPECT_TRUE(open());
}

TEST_F(RocksStoreTest, ADamagedDatabaseIsAnErrorWithTheReason) {
  left_behind();
  directory_.write("db/CURRENT", "MANIFEST-999999\n");
  const auto store = RocksStore::open(path(), {});
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Errc::io);
  const std::string why = store.error().message();
  EXPECT_NE(why.find("MANIFEST-999999"), std::string::npos) << why;
}

// This is no test by itself: the next test runs it as another process.
TEST(RocksStoreOwner, HoldsADirectory) {
  const char* const path = std::getenv("SEMEL_TEST_HOLD");
  if (path == nullptr) GTEST_SKIP() << "started by another test";
  const auto store = RocksStore::open(path, {});
  ASSERT_TRUE(store);
  std::puts("held");
  std::fflush(stdout);
  std::getchar();
  put(**store, "written by", "the owner");
}

TEST_F(RocksStoreTest, ADirectoryInUseByAnotherProcessIsReportedAndNotHarmed) {
  left_behind();
  Process owner({.command = {fs::read_symlink("/proc/self/exe").string(),
                             "--gtest_filter=RocksStoreOwner.*", "--gtest_brief=1"},
                 .environment = {{"SEMEL_TEST_HOLD", path()}}});
  std::string said;
  while (said.find("held") == std::string::npos) {
    const std::string more = owner.read(1);
    ASSERT_FALSE(more.empty()) << said;
    said += more;
  }
  std::set<std::string> before, after;
  for (const auto& file : fs::directory_iterator(path())) before.insert(file.path().filename());
  EXPECT_EQ(refusal({}), Errc::busy);
  EXPECT_EQ(read(*open({.mode = Mode::read_only})), hundred());
  EXPECT_EQ(read(*open({.mode = Mode::secondary})), hundred());
  for (const auto& file : fs::directory_iterator(path())) after.insert(file.path().filename());
  EXPECT_EQ(after, before);
  owner.write("\n");
  EXPECT_EQ(owner.finish().status, 0);
  EXPECT_EQ(**open()->get("written by"), "the owner");
}

TEST_F(RocksStoreTest, ADirectoryThatThisProcessHasOpenIsBusyToo) {
  const auto store = open();
  EXPECT_EQ(refusal({}), Errc::busy);
  put(*store, "a", "1");
}

TEST_F(RocksStoreTest, ReadsOnlyWhatIsOpenedReadOnly) {
  const Bytes position = left_behind();
  {
    const auto store = open();
    put(*store, "later", "1");
    ASSERT_TRUE(store->save_checkpoint(position));
  }
  for (const Mode mode : {Mode::read_only, Mode::secondary}) {
    const auto store = open({.mode = mode});
    const RecordWrite write{"a", "1"};
    const std::vector<std::string_view> keys = {"a"};
    EXPECT_EQ(store->write({&write, 1}).error().code, Errc::unsupported);
    EXPECT_EQ(store->remove_range(KeyRange::all()).error().code, Errc::unsupported);
    EXPECT_EQ(store->update(keys, [](std::size_t, auto) { return "1"; }).error().code,
              Errc::unsupported);
    EXPECT_EQ(store->save_checkpoint(position).error().code, Errc::unsupported);
    EXPECT_EQ(store->position().error().code, Errc::unsupported);
    EXPECT_EQ(store->ingest({}).error().code, Errc::unsupported);
    EXPECT_EQ(store->sync().error().code, Errc::unsupported);
    EXPECT_EQ(**store->load_checkpoint(), position);
    EXPECT_EQ(read(*store).size(), 101u);
    EXPECT_EQ(**store->get("later"), "1");
  }
  const Told told = told_since(position, hundred(), {.mode = Mode::read_only});
  EXPECT_EQ(told.keys(), (std::set<std::string>{"later"}));
  Told nobody;
  EXPECT_EQ(open({.mode = Mode::secondary})->changes_since(position, nobody).error().code,
            Errc::gap);
}

TEST_F(RocksStoreTest, ASecondaryFollowsItsOwnerStepByStep) {
  const auto owner = open();
  put(*owner, "a", "1");
  std::string private_directory;
  {
    const auto store = open({.mode = Mode::secondary});
    Told told;
    store->observe(&told);
    ASSERT_TRUE(store->catch_up());
    EXPECT_TRUE(told.nothing());
    put(*owner, "b", "2");
    EXPECT_EQ(read(*store), (Model{{"a", "1"}}));
    ASSERT_TRUE(store->catch_up());
    EXPECT_EQ(read(*store), (Model{{"a", "1"}, {"b", "2"}}));
    EXPECT_TRUE(told.contains("b"));
    store->observe(nullptr);
  }
  EXPECT_EQ(owner->catch_up().error().code, Errc::unsupported);
}

TEST_F(RocksStoreTest, WorksOnOneColumnFamilyOfSeveral) {
  {
    const auto db = foreign();
    for (const char* const name : {"blue", "red"}) {
      rocksdb::ColumnFamilyHandle* handle = nullptr;
      ASSERT_TRUE(db->CreateColumnFamily({}, name, &handle).ok());
      ASSERT_TRUE(db->Put({}, handle, "color", name).ok());
      ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
    ASSERT_TRUE(db->Put({}, "color", "none").ok());
  }
  EXPECT_EQ(*RocksStore::column_families(path()),
            (std::vector<std::string>{"default", "blue", "red"}));
  EXPECT_EQ(**open({})->get("color"), "none");
  EXPECT_EQ(refusal({.column_family = "green"}), Errc::invalid);
  for (const Mode mode : {Mode::read_write, Mode::read_only, Mode::secondary}) {
    EXPECT_EQ(**open({.mode = mode, .column_family = "red"})->get("color"), "red");
  }
  Bytes position;
  {
    const auto red = open({.column_family = "red"});
    position = *red->position();
    ASSERT_TRUE(red->save_checkpoint(position));
    put(*red, "new", "1");
  }
  {
    const auto blue = open({.column_family = "blue"});
    EXPECT_EQ(*blue->load_checkpoint(), std::nullopt);
    put(*blue, "other", "1");
    Told told;
    EXPECT_EQ(blue->changes_since(position, told).error().code, Errc::gap);
  }
  const Told told = told_since(position, {{"color", "red"}}, {.column_family = "red"});
  EXPECT_EQ(told.keys(), (std::set<std::string>{"new"}));
  EXPECT_TRUE(told.ranges().empty());
  EXPECT_TRUE(open({.create = true, .column_family = "green"}));
  EXPECT_EQ(RocksStore::column_families(path())->size(), 4u);
}

class ByLength final : public rocksdb::Comparator {
 public:
  const char* Name() const override { return "by length"; }
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override {
    return a.size() == b.size() ? a.compare(b) : a.size() < b.size() ? -1 : 1;
  }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

TEST_F(RocksStoreTest, RefusesAnotherOrderOfKeys) {
  const ByLength by_length;
  for (const rocksdb::Comparator* const order :
       {rocksdb::ReverseBytewiseComparator(),
        static_cast<const rocksdb::Comparator*>(&by_length)}) {
    fs::remove_all(path());
    rocksdb::Options options;
    options.comparator = order;
    foreign(options);
    for (const Mode mode : {Mode::read_write, Mode::read_only, Mode::secondary}) {
      EXPECT_EQ(refusal({.mode = mode}), Errc::unsupported);
    }
    for (const auto& file : fs::directory_iterator(path())) {  // as if there were no OPTIONS file
      if (file.path().filename().string().starts_with("OPTIONS")) fs::remove(file);
    }
    EXPECT_EQ(refusal({}), Errc::unsupported);
  }
}

class Longest final : public rocksdb::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "longest"; }
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* now, const rocksdb::Slice& operand,
             std::string* merged, rocksdb::Logger*) const override {
    *merged = (now != nullptr && now->size() > operand.size() ? *now : operand).ToString();
    return true;
  }
};

TEST_F(RocksStoreTest, RefusesAMergeOperatorThatIsNotKnownAndTakesOneThatIs) {
  rocksdb::Options options;
  options.merge_operator = std::make_shared<Longest>();
  ASSERT_TRUE(foreign(options)->Put({}, "a", "1").ok());
  EXPECT_EQ(read(*open({})), (Model{{"a", "1"}}));  // there is nothing to merge
  ASSERT_TRUE(foreign(options)->Merge({}, "a", "22").ok());
  EXPECT_EQ(refusal({}), Errc::unsupported);
  EXPECT_EQ(refusal({.mode = Mode::read_only}), Errc::unsupported);
  EXPECT_EQ(refusal({.mode = Mode::secondary}), Errc::unsupported);
  fs::remove_all(path());
  ASSERT_TRUE(
      rocksdb::MergeOperator::CreateFromString({}, "uint64add", &options.merge_operator).ok());
  ASSERT_TRUE(foreign(options)->Merge({}, "n", std::string("\x02\0\0\0\0\0\0\0", 8)).ok());
  EXPECT_EQ((**open({})->get("n"))[0], 2);
  const Bytes position = *open({})->position();
  ASSERT_TRUE(foreign(options)->Merge({}, "n", std::string("\x03\0\0\0\0\0\0\0", 8)).ok());
  told_since(position, {{"n", std::string("\x02\0\0\0\0\0\0\0", 8)}});
}

TEST_F(RocksStoreTest, ARecordWithWideColumnsIsAnErrorThatNamesIt) {
  {
    const auto db = foreign();
    const rocksdb::WideColumns columns = {{"", "1"}, {"other", "2"}};
    ASSERT_TRUE(db->PutEntity({}, db->DefaultColumnFamily(), "wide", columns).ok());
  }
  const auto store = open({});
  put(*store, "plain", "1");
  EXPECT_EQ(**store->get("plain"), "1");
  const Error error = store->get("wide").error();
  EXPECT_EQ(error.code, Errc::unsupported);
  EXPECT_NE(error.message().find("'wide'"), std::string::npos) << error.message();
  EXPECT_EQ(store->health().error().message(), error.message());
  const auto cursor = *store->cursor();
  cursor->seek("plain");
  ASSERT_TRUE(cursor->valid());
  cursor->next();
  EXPECT_FALSE(cursor->valid());
  EXPECT_EQ(cursor->status().error().code, Errc::unsupported);
}

const Appender kAppender;

class OtherMerger final : public Merger {
 public:
  const char* name() const override { return "semel.test.other"; }
  bool merge(std::string_view, std::optional<std::string_view>, std::string_view,
             std::string&) const override {
    return false;
  }
};

// Merges are in the write-ahead log, in one table, in several, and after a compaction.
TEST_F(RocksStoreTest, MergesOutliveTheProcessWhereverTheyAre) {
  const RocksStore::Settings settings = {.create = true, .merger = &kAppender};
  std::string expected = "0";
  {
    const auto store = open(settings);
    put(*store, "a", "0");
  }
  for (const char* const operand : {"1", "2", "3", "4", "5", "6"}) {
    {
      const auto store = open(settings);
      ASSERT_TRUE(merge(*store, "a", operand));
      ASSERT_TRUE(merge(*store, "b", operand));
      if (*operand == '2' || *operand == '4') {
        ASSERT_TRUE(store->raw().Flush({}).ok());
      }
      if (*operand == '5') compact(store->raw());
      ASSERT_TRUE(merge(*store, "a", "+"));
    }
    expected.append(operand).append("+");
    for (const Mode mode : {Mode::read_only, Mode::secondary, Mode::read_write}) {
      const auto store = open({.mode = mode, .merger = &kAppender});
      EXPECT_EQ(**store->get("a"), expected);
      EXPECT_EQ(read(*store).at("a"), expected);
    }
  }
  EXPECT_EQ(**open(settings)->get("b"), "123456");
}

TEST_F(RocksStoreTest, MergesOfARunAreToldAfterItAsKeys) {
  const RocksStore::Settings settings = {.create = true, .merger = &kAppender};
  Bytes position;
  {
    const auto store = open(settings);
    for (int n = 0; n < 100; ++n) put(*store, key(n), "before");
    position = *store->position();
    ASSERT_TRUE(merge(*store, key(7), "+"));
    ASSERT_TRUE(merge(*store, "new", "+"));
  }
  const Told told = told_since(position, hundred(), settings);
  EXPECT_EQ(told.keys(), (std::set<std::string>{key(7), "new"}));
  EXPECT_TRUE(told.ranges().empty());
}

TEST_F(RocksStoreTest, OpensWhatWasMergedOnlyWithAMergerOfThatName) {
  const OtherMerger other;
  { ASSERT_TRUE(merge(*open({.create = true, .merger = &kAppender}), "a", "1")); }
  for (const Mode mode : {Mode::read_write, Mode::read_only, Mode::secondary}) {
    EXPECT_EQ(refusal({.mode = mode}), Errc::unsupported);
    EXPECT_EQ(refusal({.mode = mode, .merger = &other}), Errc::unsupported);
    EXPECT_EQ(**open({.mode = mode, .merger = &kAppender})->get("a"), "1");
  }
}

TEST_F(RocksStoreTest, ADirectoryWithoutMergesTakesAMergerAndKeepsIt) {
  left_behind();
  { ASSERT_TRUE(merge(*open({.merger = &kAppender}), key(7), " and after")); }
  EXPECT_EQ(**open({.merger = &kAppender})->get(key(7)), "before and after");
  EXPECT_EQ(refusal({}), Errc::unsupported);
}

TEST_F(RocksStoreTest, ADirectoryWithAMergeOperatorOfRocksDBTakesNoOther) {
  rocksdb::Options options;
  ASSERT_TRUE(
      rocksdb::MergeOperator::CreateFromString({}, "uint64add", &options.merge_operator).ok());
  foreign(options);
  EXPECT_EQ(refusal({.merger = &kAppender}), Errc::unsupported);
  EXPECT_EQ(merge(*open({}), "n", "1").error().code, Errc::unsupported);
}

// A column family that is not requested is not compacted, so nothing in it has to be merged.
TEST_F(RocksStoreTest, TheMergerOfOneColumnFamilyIsKeptByAWriterToAnother) {
  { ASSERT_TRUE(merge(*open({.create = true, .merger = &kAppender}), "a", "1")); }
  { put(*open({.create = true, .column_family = "blue"}), "a", "blue"); }
  const RocksStore::Settings red = {.create = true, .column_family = "red"};
  RocksStore::Settings merging = red;
  merging.merger = &kAppender;
  { ASSERT_TRUE(merge(*open(merging), "a", "red")); }
  EXPECT_EQ(**open({.mode = Mode::read_only, .merger = &kAppender})->get("a"), "1");
  EXPECT_EQ(**open(merging)->get("a"), "red");
  EXPECT_EQ(**open({.merger = &kAppender})->get("a"), "1");
}

TEST_F(RocksStoreTest, WithoutAMergerItRefusesToMergeAndChangesNothing) {
  const auto store = open();
  const std::vector<RecordWrite> writes = {{"a", "1"}, {"b", "1", true}};
  EXPECT_EQ(store->write(writes).error().code, Errc::unsupported);
  EXPECT_EQ(read(*store), Model{});
}

TEST_F(RocksStoreTest, ADamagedMergeThatRocksDBMeetsFirstStopsTheWriting) {
  auto store = open({.create = true, .merger = &kAppender});
  put(*store, "a", "1");
  put(*store, "b", "1");
  ASSERT_TRUE(merge(*store, "a", "!"));
  const Result<Bytes> flushed = store->position();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Errc::corrupt);
  EXPECT_EQ(merge(*store, "b", "2").error().code, Errc::corrupt);
  EXPECT_EQ(store->get("a").error().code, Errc::corrupt);
  EXPECT_EQ(**store->get("b"), "1");
  store.reset();
  EXPECT_EQ(refusal({.merger = &kAppender}), Errc::corrupt);
  EXPECT_EQ(**open({.mode = Mode::read_only, .merger = &kAppender})->get("b"), "1");
}

// With manual_wal_flush a write stays in the process until somebody flushes the log.
TEST_F(RocksStoreTest, WhatIsSyncedIsOnDisk) {
  rocksdb::Options options;
  options.manual_wal_flush = true;
  foreign(options);
  const auto store = open({});
  const auto killed = [&] {  // what another process would see
    const auto copy = directory_.path() / "copy";
    fs::remove_all(copy);
    fs::copy(path(), copy);
    return read(**RocksStore::open(copy.string(), {}));
  };
  put(*store, "a", "1");
  EXPECT_EQ(killed(), Model{});
  rocksdb::SetPerfLevel(rocksdb::kEnableTime);
  const std::uint64_t before = rocksdb::get_iostats_context()->fsync_nanos;
  ASSERT_TRUE(store->sync());
  EXPECT_NE(rocksdb::get_iostats_context()->fsync_nanos, before);  // the only trace of an fsync
  rocksdb::SetPerfLevel(rocksdb::kDisable);
  EXPECT_EQ(killed(), (Model{{"a", "1"}}));
}

// RocksDB makes none of these changes by itself, because we do not pass on the options that cause
// them. So the test makes them through its Env.
TEST_F(RocksStoreTest, NoFileOutsideOfTheDirectoryIsChanged) {
  const std::string victim = directory_.write("beside/000001.sst", "of another database");
  const auto store = open();
  rocksdb::Env& env = *store->raw().GetEnv();
  EXPECT_FALSE(env.DeleteFile(victim).ok());
  EXPECT_FALSE(env.RenameFile(victim, path() + "/taken").ok());
  std::unique_ptr<rocksdb::WritableFile> file;
  EXPECT_FALSE(env.NewWritableFile(victim, &file, {}).ok());
  EXPECT_FALSE(env.ReopenWritableFile(victim, &file, {}).ok());
  EXPECT_FALSE(env.CreateDirIfMissing((directory_.path() / "new").string()).ok());
  fs::create_symlink(victim, path() + "/link");
  EXPECT_FALSE(env.NewWritableFile(path() + "/link", &file, {}).ok());
  EXPECT_TRUE(env.DeleteFile(path() + "/link").ok());  // the name is ours
  EXPECT_EQ(read_file(victim), "of another database");
}

TEST_F(RocksStoreTest, ReadersChangeNoFile) {
  left_behind();
  for (const Mode mode : {Mode::read_only, Mode::secondary}) {
    const auto store = open({.mode = mode});
    EXPECT_FALSE(store->raw().GetEnv()->DeleteFile(path() + "/CURRENT").ok());
  }
  EXPECT_TRUE(fs::exists(path() + "/CURRENT"));
}

TEST_F(RocksStoreTest, KeepsTheOptionsOfADirectory) {
  rocksdb::Options options;
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.num_levels = 3;
  foreign(options);
  const auto store = open({});
  EXPECT_EQ(store->raw().GetOptions().compaction_style, rocksdb::kCompactionStyleUniversal);
  EXPECT_EQ(store->raw().GetOptions().num_levels, 3);
}

// Covers everything that may happen to a directory between two runs of ours. Each case writes past
// us in its own way, and all differences must be reported afterwards.

TEST_F(RocksStoreTest, TellsWritesOfAnotherProgram) {
  const Bytes position = left_behind();
  {
    const auto db = foreign();
    ASSERT_TRUE(db->Put({}, key(7), "after").ok());
    ASSERT_TRUE(db->Delete({}, key(8)).ok());
    ASSERT_TRUE(db->SingleDelete({}, key(9)).ok());
    ASSERT_TRUE(db->Put({}, "new", "1").ok());
  }
  const Told told = told_since(position, hundred());
  EXPECT_EQ(told.keys(), (std::set<std::string>{key(7), key(8), key(9), "new"}));
  EXPECT_TRUE(told.ranges().empty());
}

TEST_F(RocksStoreTest, TellsARangeThatAnotherProgramRemoved) {
  const Bytes position = left_behind();
  {
    const auto db = foreign();
    ASSERT_TRUE(db->DeleteRange({}, db->DefaultColumnFamily(), key(20), key(30)).ok());
  }
  const Told told = told_since(position, hundred());
  EXPECT_EQ(told.ranges(), RangeSet(KeyRange{key(20), key(30)}));
}

TEST_F(RocksStoreTest, TellsWritesWhoseLogIsGone) {
  const Bytes position = left_behind();
  {
    const auto db = foreign();
    ASSERT_TRUE(db->Put({}, key(20), "after").ok());
    ASSERT_TRUE(db->Delete({}, key(30)).ok());
    ASSERT_TRUE(db->Flush({}).ok());
  }
  const Told told = told_since(position, hundred());
  EXPECT_FALSE(told.ranges().contains(key(19)));
  EXPECT_TRUE(told.ranges().contains(key(25)));
  EXPECT_FALSE(told.ranges().contains(key(31)));
}

// The log begins later than the requested sequence, and RocksDB does not say so.
TEST_F(RocksStoreTest, TellsWritesWhoseLogIsGoneThoughALaterOneIsThere) {
  const Bytes position = left_behind();
  {
    const auto db = foreign();
    ASSERT_TRUE(db->Put({}, key(20), "after").ok());
    ASSERT_TRUE(db->Flush({}).ok());
    ASSERT_TRUE(db->Put({}, key(40), "after").ok());
  }
  told_since(position, hundred());
}

TEST_F(RocksStoreTest, TellsWritesThatWentPastTheLog) {
  const Bytes position = left_behind();
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  {
    const auto db = foreign();
    ASSERT_TRUE(db->Put({}, key(10), "logged").ok());
    ASSERT_TRUE(db->Put(unlogged, key(20), "after").ok());
    ASSERT_TRUE(db->Put({}, key(30), "logged").ok());
  }
  told_since(position, hundred());
}

TEST_F(RocksStoreTest, TellsWritesPastTheLogInItsOwnRun) {
  const auto store = open();
  put(*store, "a", "1");
  const Bytes position = *store->position();
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  ASSERT_TRUE(store->raw().Put(unlogged, "b", "2").ok());
  Told told;
  ASSERT_TRUE(store->changes_since(position, told));
  EXPECT_TRUE(told.contains("b"));
}

TEST_F(RocksStoreTest, TellsFilesThatAnotherProgramTookIn) {
  for (const bool overlaps : {false, true}) {
    for (const bool compacts : {false, true}) {
      fs::remove_all(path());
      const Bytes position = left_behind();
      {
        const auto db = foreign();
        const std::string file = table("in.sst", overlaps ? Model{{key(50), "in"}, {key(55), "in"}}
                                                          : Model{{"x", "in"}, {"y", "in"}});
        ASSERT_TRUE(db->IngestExternalFile({file}, {}).ok());
        ASSERT_TRUE(!compacts || db->CompactRange({}, nullptr, nullptr).ok());
      }
      const Told told = told_since(position, hundred());
      EXPECT_TRUE(compacts || !told.contains(key(49)));
    }
  }
}

TEST_F(RocksStoreTest, TellsWhatACompactionFilterOfAnotherProgramDropped) {
  {
    const auto store = open();
    for (int n = 0; n < 100; ++n) put(*store, key(n), n == 50 ? "" : "before");
  }
  Model before = hundred();
  before[key(50)] = "";
  const Bytes position = *open()->position();
  compact(*foreign(without_empty_values()));
  told_since(position, before);
  EXPECT_FALSE(open()->get(key(50))->has_value());
}

TEST_F(RocksStoreTest, TellsFilesThatAnotherProgramDropped) {
  const Bytes position = left_behind();
  {
    const auto db = foreign();
    rocksdb::CompactRangeOptions all;
    all.change_level = true;
    ASSERT_TRUE(db->CompactRange(all, nullptr, nullptr).ok());
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    ASSERT_EQ(files.size(), 1u);
    ASSERT_TRUE(db->DeleteFile(files[0].name).ok());
  }
  told_since(position, hundred());
  EXPECT_TRUE(read(*open()).empty());
}

// An older copy of the directory was restored, and others have written to it since.
TEST_F(RocksStoreTest, TellsWhatARestoredCopyChanged) {
  const std::string copy = (directory_.path() / "copy").string();
  for (const int later : {0, 1, 500}) {
    fs::remove_all(path());
    fs::remove_all(copy);
    left_behind(50);
    fs::copy(path(), copy);
    Bytes position;
    {
      const auto store = open();
      for (int n = 50; n < 100; ++n) put(*store, key(n), "before");
      position = *store->position();
    }
    fs::remove_all(path());
    fs::copy(copy, path());
    {
      const auto db = foreign();
      for (int n = 0; n < later; ++n) ASSERT_TRUE(db->Put({}, "z" + key(n), "another").ok());
    }
    if (later < 500) {  // fewer writes than were lost
      Told told;
      EXPECT_EQ(open()->changes_since(position, told).error().code, Errc::gap);
    } else {
      told_since(position, hundred());
      told_since(position, hundred(), {.mode = Mode::read_only});
    }
  }
}

// The files of this column family did not change meanwhile, so they reveal nothing.
TEST_F(RocksStoreTest, TellsWritesToARestoredCopyThatReuseSequenceNumbers) {
  const std::string copy = (directory_.path() / "copy").string();
  { left_behind(); }
  {
    const auto store = open({.create = true, .column_family = "other"});
    ASSERT_TRUE(store->position());
  }
  fs::copy(path(), copy);
  {
    const auto other = open({.column_family = "other"});
    for (int n = 0; n < 20; ++n) put(*other, key(n), "elsewhere");
  }
  const Bytes position = *open()->position();
  for (const Mode mode : {Mode::read_only, Mode::read_write}) {
    fs::remove_all(path());
    fs::copy(copy, path());
    {
      const auto store = open();
      for (int n = 0; n < 40; ++n) put(*store, key(n), "after");
    }
    told_since(position, hundred(), {.mode = mode});
  }
}

TEST_F(RocksStoreTest, FollowsManyRunsOfRandomChanges) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    fs::remove_all(path());
    Random random(seed);
    Bytes position;
    Model before;
    {
      const auto store = open({.create = true, .write_buffer_bytes = 1 << 16});
      for (int n = 0; n < 2000; ++n) put(*store, key(random.below(1000)), std::string(60, 'a'));
      position = *store->position();
      before = read(*store);
      for (std::uint64_t n = random.below(3000); n > 0; --n) {
        put(*store, key(random.below(1000)), std::to_string(random()) + std::string(60, 'b'));
      }
    }
    for (std::uint64_t runs = random.below(3); runs > 0; --runs) {
      const bool ours = random.below(2) == 0;
      std::unique_ptr<RocksStore> store = ours ? open() : nullptr;
      std::unique_ptr<rocksdb::DB> db = ours ? nullptr : foreign();
      rocksdb::DB& raw = ours ? store->raw() : *db;
      for (std::uint64_t n = random.below(300); n > 0; --n) {
        rocksdb::WriteOptions how;
        how.disableWAL = random.below(20) == 0;
        ASSERT_TRUE(raw.Put(how, key(random.below(1000)), std::to_string(random())).ok());
        ASSERT_TRUE(random.below(100) != 0 || raw.Flush({}).ok());
        ASSERT_TRUE(random.below(200) != 0 || raw.CompactRange({}, nullptr, nullptr).ok());
      }
    }
    told_since(position, before);
  }
}

TEST_F(RocksStoreTest, TellsFilesTakenInAtOnceAndAfterACrash) {
  const auto store = open();
  for (int n = 0; n < 100; ++n) put(*store, key(n), "before");
  Told told;
  store->observe(&told);
  ASSERT_TRUE(store->ingest({table("a.sst", {{"x1", "in"}, {"x5", "in"}})}));
  EXPECT_EQ(told.ranges(), RangeSet(KeyRange{"x1", successor("x5")}));
  const Bytes position = *store->position();
  ASSERT_TRUE(store->raw().IngestExternalFile({table("b.sst", {{key(3), "in"}})}, {}).ok());
  EXPECT_TRUE(told.contains(key(3)));
  Told later;
  ASSERT_TRUE(store->changes_since(position, later));
  EXPECT_TRUE(later.contains(key(3)));
  EXPECT_FALSE(later.contains("x1"));
  store->observe(nullptr);
  EXPECT_EQ(store->ingest({"/nonexistent.sst"}).error().code, Errc::io);
}

TEST_F(RocksStoreTest, TellsWhatFifoCompactionDrops) {
  rocksdb::Options options;
  options.compaction_style = rocksdb::kCompactionStyleFIFO;
  options.compaction_options_fifo.max_table_files_size = 20'000;
  options.compression = rocksdb::kNoCompression;
  foreign(options);
  const auto store = open({});
  for (int n = 0; n < 100; ++n) put(*store, key(n), std::string(100, 'x'));
  const Bytes position = *store->position();
  const Model before = read(*store);
  Told told;
  store->observe(&told);
  for (int n = 100; n < 300; ++n)
    put(*store, std::string("z").append(key(n)), std::string(100, 'x'));
  ASSERT_TRUE(store->position());
  EXPECT_TRUE(eventually([&] { return told.contains(key(0)); }));
  EXPECT_FALSE(store->get(key(0))->has_value());
  Told later;
  ASSERT_TRUE(store->changes_since(position, later));
  EXPECT_TRUE(later.contains(key(0)));
  store->observe(nullptr);
}

TEST_F(RocksStoreTest, TellsWhatACompactionFilterDrops) {
  foreign(without_empty_values());
  const auto store = open({});
  Told told;
  put(*store, "a", "1");
  put(*store, "m", "");
  put(*store, "z", "1");
  ASSERT_TRUE(store->position());
  store->observe(&told);
  compact(store->raw());
  EXPECT_FALSE(store->get("m")->has_value());
  EXPECT_TRUE(told.contains("m"));
  store->observe(nullptr);
}

TEST_F(RocksStoreTest, SaysWhenItHasFlushed) {
  const auto store = open();
  EXPECT_FALSE(store->flushed_since_checkpoint());
  put(*store, "a", "1");
  EXPECT_FALSE(store->flushed_since_checkpoint());
  ASSERT_TRUE(store->raw().Flush({}).ok());
  EXPECT_TRUE(eventually([&] { return store->flushed_since_checkpoint(); }));
  ASSERT_TRUE(store->save_checkpoint(*store->position()));
  EXPECT_FALSE(store->flushed_since_checkpoint());
}

TEST_F(RocksStoreTest, KeepsNoMoreOfTheLogThanItMay) {
  const auto store =
      open({.create = true, .write_buffer_bytes = 1 << 16, .log_archive_bytes = 1 << 20});
  const std::string value(10'000, 'v');
  for (int n = 0; n < 1000; ++n) put(*store, key(n), value);
  ASSERT_TRUE(store->position());
  std::uint64_t bytes = 0;
  for (const auto& log : fs::directory_iterator(path() + "/archive")) {
    std::error_code gone;  // RocksDB removes logs at times of its own, also between our steps
    const std::uint64_t size = log.file_size(gone);
    if (!gone) bytes += size;
  }
  EXPECT_GT(bytes, 0u);
  EXPECT_LE(bytes, 2u << 20);
}

struct PositionCase {
  using Type = RocksPosition;
  static constexpr char kFile[] = "rocksdb_position_v1.bin";
  static Type make() {
    return {.identity = "id",
            .column_family = 3,
            .sequence = 1'000'000,
            .files = {{7, "session", 1000, 1'700'000'000, 5, 300, "a", std::string("b\0", 2)},
                      {9, "", 1, 2, 0, 0, "", ""}},
            .doubtful = {{"x", "z"}, KeyRange::all()}};
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(RocksPosition, Golden, PositionCase);

TEST(PlaceLock, IsForOneWriterOrManyReaders) {
  const TemporaryDirectory place;
  const std::string path = place.path();
  EXPECT_TRUE(PlaceLock::share(path));
  EXPECT_FALSE(fs::exists(path + "/SEMEL-LOCK"));  // readers write nothing
  {
    const auto writer = PlaceLock::take(path);
    ASSERT_TRUE(writer);
    EXPECT_FALSE(PlaceLock::take(path));
    EXPECT_FALSE(PlaceLock::share(path));
  }
  const auto reader = PlaceLock::share(path);
  EXPECT_TRUE(reader);
  EXPECT_TRUE(PlaceLock::share(path));
  EXPECT_FALSE(PlaceLock::take(path));
}

TEST(Places, AreComparedAfterAllLinksAreFollowed) {
  const TemporaryDirectory directory;
  const std::string root = directory.path();
  fs::create_directories(root + "/a/inner");
  fs::create_directories(root + "/b");
  fs::create_directory_symlink(root + "/b", root + "/a/link");
  fs::create_directory_symlink(root + "/a", root + "/same");
  for (const char* same : {"/a/", "/a/.", "/same", "/same/", "/b/../a", "/a/inner/.."}) {
    EXPECT_TRUE(same_place(root + "/a", root + same)) << same;
  }
  for (const char* other : {"/b", "/a/link", "/a/inner", "/none"}) {
    EXPECT_FALSE(same_place(root + "/a", root + other)) << other;
  }
  for (const char* inner : {"/a", "/a/inner", "/a/none", "/same/inner/"}) {
    EXPECT_TRUE(within(root + "/a", root + inner)) << inner;
  }
  for (const char* outer : {"", "/b", "/a/link", "/a/link/x", "/ab", "/a/../b"}) {
    EXPECT_FALSE(within(root + "/a", root + outer)) << outer;
  }
}

TEST(RocksOptionsText, KeepsItsOwnSectionsAndTakesThoseItLacks) {
  const RocksOptionsText own(
      "[Version]\n  rocksdb_version=6.11.4\n\n[DBOptions]\n  wal_dir=/x\n"
      "[CFOptions \"default\"]\n  comparator=mine\n  merge_operator=nullptr\n");
  const RocksOptionsText written(
      "[Version]\n  rocksdb_version=7.8.3\n[DBOptions]\n  wal_dir=\n"
      "[CFOptions \"default\"]\n  comparator=other\n  merge_operator=added\n"
      "[CFOptions \"red\"]\n  comparator=red\n[TableOptions/BlockBasedTable \"red\"]\n  a=1\n");
  EXPECT_EQ(own.db_option("wal_dir"), "/x");
  EXPECT_EQ(own.family_option("default", "comparator"), "mine");
  EXPECT_EQ(own.family_option("default", "merge_operator"), "");
  EXPECT_EQ(own.family_option("red", "comparator"), "");
  EXPECT_EQ(own.with_families_of(own, {}), own);
  const RocksOptionsText both = own.with_families_of(written, {});
  EXPECT_TRUE(both.text().starts_with(own.text()));
  EXPECT_EQ(both.family_option("red", "comparator"), "red");
  EXPECT_EQ(both.family_option("default", "comparator"), "mine");
  EXPECT_NE(both.text().find("[TableOptions/BlockBasedTable \"red\"]\n  a=1"), std::string::npos);
  const RocksOptionsText merging = own.with_families_of(written, {"default"});
  EXPECT_EQ(merging.family_option("default", "merge_operator"), "added");
  EXPECT_EQ(merging.db_option("wal_dir"), "/x");
}

TEST(RocksPosition, DecodesWhatItEncodedAndRefusesTheRest) {
  const RocksPosition position = PositionCase::make();
  Bytes bytes;
  position.encode(bytes);
  ASSERT_TRUE(RocksPosition::decode(bytes));
  EXPECT_EQ(*RocksPosition::decode(bytes), position);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(RocksPosition::decode(ByteView(bytes).first(size))) << size;
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes flipped = bytes;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const Result<RocksPosition> decoded = RocksPosition::decode(flipped);
    if (!decoded) continue;
    Bytes again;
    decoded->encode(again);
    EXPECT_EQ(again, flipped) << bit;
  }
  bytes.push_back(0);
  EXPECT_FALSE(RocksPosition::decode(bytes));
}

}  // namespace
}  // namespace semel
