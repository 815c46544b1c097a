// Copies of a RocksDB directory whose owner is running. Whatever `semel` is asked to do with a
// copy, no file of the original changes, and after a kill the owner finds every record that it has
// acknowledged.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/options_util.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/cli/command.h"
#include "tests/cli/files_below.h"
#include "tests/cli/temporary_directory.h"

namespace semel {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kRecords = 5000;
constexpr const char* kRoot = "SEMEL_TEST_OWNED";

// Returns the owner's options. The original is below `root`/original, except its log.
rocksdb::Options owner_options(const std::string& root, bool log_beside) {
  rocksdb::Options options;
  options.create_if_missing = true;
  if (log_beside) options.wal_dir = root + "/log of the original";
  options.db_log_dir = root + "/messages of the original";
  return options;
}

std::string key(int number) { return "key-" + std::to_string(100'000 + number); }

void put(rocksdb::DB& db, int from, int to) {
  for (int n = from; n < to; ++n) ASSERT_TRUE(db.Put({}, key(n), "acknowledged").ok());
}

// The owner, which is not a test by itself. It says when it has written, and waits to be killed.
TEST(LiveOwner, HoldsADirectory) {
  const char* const root = std::getenv(kRoot);
  if (root == nullptr) GTEST_SKIP() << "started by another test";
  const bool log_beside = std::getenv("SEMEL_TEST_LOG_BESIDE") != nullptr;
  const std::string original = std::string(root) + "/original";
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(owner_options(root, log_beside), original, &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  put(*db, 0, kRecords / 4);
  ASSERT_TRUE(db->Flush({}).ok());
  put(*db, kRecords / 4, kRecords / 2);
  rocksdb::Checkpoint* made = nullptr;
  ASSERT_TRUE(rocksdb::Checkpoint::Create(db.get(), &made).ok());
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  ASSERT_TRUE(checkpoint->CreateCheckpoint(std::string(root) + "/copy").ok());
  put(*db, kRecords / 2, kRecords * 3 / 4);
  ASSERT_TRUE(db->Flush({}).ok());  // a table that the copy does not know
  put(*db, kRecords * 3 / 4, kRecords);
  std::puts("written");
  std::fflush(stdout);
  std::getchar();
}

enum class Copy : std::uint8_t { checkpoint, files, files_of_rocksdb_6 };

class LiveOwnerOf : public ::testing::TestWithParam<Copy> {
 protected:
  LiveOwnerOf() {
    std::string said;
    while (said.find("written") == std::string::npos) {
      const std::string more = owner_.read(1);
      EXPECT_FALSE(more.empty()) << said;
      if (more.empty()) break;
      said += more;
    }
    if (GetParam() != Copy::checkpoint) {
      fs::remove_all(copy());
      fs::copy(root() + "/original", copy(), fs::copy_options::recursive);
    }
    if (GetParam() == Copy::files_of_rocksdb_6) name_log_in_options(root() + "/original");
    EXPECT_EQ(run_semel({"load", other()}, "key-0\tother\n").status, 0);
  }

  static bool log_beside() { return GetParam() != Copy::files_of_rocksdb_6; }
  std::string root() const { return directory_.path(); }
  std::string copy() const { return root() + "/copy"; }
  std::string other() const { return root() + "/other"; }
  std::string log() const { return root() + (log_beside() ? "/log of the original" : "/original"); }
  FilesBelow files_of_original() const {
    return log_beside()
               ? FilesBelow(root() + "/original", log(), root() + "/messages of the original")
               : FilesBelow(root() + "/original", root() + "/messages of the original");
  }

  // RocksDB before 6.24 always did this.
  void name_log_in_options(const std::string& place) const {
    std::string name;
    ASSERT_TRUE(rocksdb::GetLatestOptionsFileName(copy(), rocksdb::Env::Default(), &name).ok());
    const std::string file = copy() + "/" + name;
    const std::string text = read_file(file);
    std::ofstream(file) << std::regex_replace(text, std::regex("\\[DBOptions\\]\n"),
                                              "[DBOptions]\n  wal_dir=" + place + "\n");
  }

  // Every command that opens a directory.
  std::vector<Words> commands() const {
    const std::string serve = SEMEL_COMMAND " serve-sync " + copy();
    return {{"sync", copy(), other()},
            {"sync", other(), copy()},
            {"sync", other(), "--via", serve},
            {"diff", copy(), other()},
            {"diff", "--secondary", copy(), other()},
            {"plan", copy(), other()},
            {"plan", "--secondary", copy(), other()},
            {"load", copy()},
            {"load", "--remove", copy()},
            {"dump", copy()},
            {"dump", "--secondary", copy()},
            {"tally", "add", copy(), "counter", "1"},
            {"tally", "get", copy(), "counter"},
            {"tally", "info", copy()}};
  }

  void kill_the_owner() {
    owner_.signal(SIGKILL);
    EXPECT_EQ(owner_.finish().signal, SIGKILL);
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::Open(owner_options(root(), log_beside()), root() + "/original", &opened);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const std::unique_ptr<rocksdb::DB> db(opened);
    int found = 0;
    const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator({}));
    for (at->SeekToFirst(); at->Valid(); at->Next()) ++found;
    EXPECT_EQ(found, kRecords);
  }

  TemporaryDirectory directory_;
  Process owner_{{.command = {fs::read_symlink("/proc/self/exe").string(),
                              "--gtest_filter=LiveOwner.HoldsADirectory", "--gtest_brief=1"},
                  .environment = environment()}};

 private:
  std::vector<std::pair<std::string, std::string>> environment() const {
    std::vector<std::pair<std::string, std::string>> out = {{kRoot, directory_.path()}};
    if (log_beside()) out.emplace_back("SEMEL_TEST_LOG_BESIDE", "yes");
    return out;
  }
};

TEST_P(LiveOwnerOf, ACopyIsRefusedWhileItsOptionsNameTheOriginalsLog) {
  const FilesBelow before = files_of_original();
  for (const Words& words : commands()) {
    const Outcome outcome = run_semel(words, "key-1\t1\n");
    EXPECT_GT(outcome.status, 0) << words[0] << " signal " << outcome.signal;
    EXPECT_NE(outcome.err.find("outside of the directory"), std::string::npos) << outcome.err;
    EXPECT_EQ(files_of_original(), before) << words[0] << ' ' << words[1];
    if (HasFailure()) break;
  }
  kill_the_owner();
}

TEST_P(LiveOwnerOf, ACopyThatIsGivenTheOriginalsLogIsRefused) {
  const FilesBelow before = files_of_original();
  const Outcome load = run_semel({"load", "--wal-dir", log(), copy()}, "key-1\t1\n");
  const Outcome dump = run_semel({"dump", "--wal-dir", log(), copy()});
  const Outcome sync = run_semel({"sync", "--wal-dir-b", log(), other(), copy()});
  for (const Outcome& outcome : {load, dump, sync}) {
    EXPECT_GT(outcome.status, 0) << outcome.signal;
    EXPECT_NE(outcome.err.find("cannot open"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(files_of_original(), before);
  kill_the_owner();
}

TEST_P(LiveOwnerOf, ACopyWithALogOfItsOwnIsSynced) {
  const FilesBelow before = files_of_original();
  const Outcome sync = run_semel({"sync", "--wal-dir-b", copy(), other(), copy()});
  EXPECT_EQ(sync.status, 0) << sync.err;
  const Outcome dump = run_semel({"dump", "--wal-dir", copy(), copy()});
  EXPECT_NE(dump.out.find("key-0\tother\n"), std::string::npos) << dump.err;
  EXPECT_NE(dump.out.find(key(0) + "\tacknowledged\n"), std::string::npos);
  EXPECT_EQ(dump.out, run_semel({"dump", other()}).out);
  EXPECT_EQ(files_of_original(), before);
  kill_the_owner();
}

std::string copy_name(const ::testing::TestParamInfo<Copy>& info) {
  return info.param == Copy::checkpoint ? "Checkpoint"
         : info.param == Copy::files    ? "Files"
                                        : "FilesOfRocksDb6";
}

INSTANTIATE_TEST_SUITE_P(, LiveOwnerOf,
                         ::testing::Values(Copy::checkpoint, Copy::files, Copy::files_of_rocksdb_6),
                         copy_name);

// Two of ours do not share a log either.
TEST(LogOutside, IsLockedWhileItIsUsed) {
  const TemporaryDirectory directory;
  const std::string root = directory.path();
  const std::string log = root + "/log of the original";
  for (const char* name : {"/original", "/second"}) {
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(owner_options(root, true), root + name, &opened).ok());
    delete opened;
    fs::remove_all(log);  // nothing is in it
    fs::create_directory(log);
  }
  Process first({.command = {SEMEL_COMMAND, "serve-sync", "--wal-dir", log, root + "/original"}});
  first.wait_until_still();
  ASSERT_TRUE(fs::exists(log + "/SEMEL-LOCK"));
  for (const char* command : {"load", "dump"}) {
    const Outcome outcome = run_semel({command, "--wal-dir", log, root + "/second"}, "a\t1\n");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("another process writes to"), std::string::npos) << outcome.err;
  }
  (void)first.finish();
  EXPECT_EQ(run_semel({"load", "--wal-dir", log, root + "/second"}, "a\t1\n").status, 0);
}

TEST(LogOutside, IsNotTheDirectoryOfAnotherDatabase) {
  const TemporaryDirectory directory;
  const std::string root = directory.path();
  ASSERT_EQ(run_semel({"load", root + "/a"}, "a\t1\n").status, 0);
  ASSERT_EQ(run_semel({"load", root + "/b"}, "b\t2\n").status, 0);
  const FilesBelow before(root);
  for (const char* option : {"--wal-dir", "--db-path"}) {
    const Outcome outcome = run_semel({"load", option, root + "/b", root + "/a"}, "c\t3\n");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("another database"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(FilesBelow(root), before);
}

}  // namespace
}  // namespace semel
