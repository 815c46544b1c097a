// Damage that can be recognised in a RocksDB directory, exhaustively for small logs.
// tests/cli/damage_test.cc tests what the command does about it.
#include "semel/store/internal/rocksdb_damage.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/checkpoint.h>

#include <filesystem>
#include <memory>
#include <string>

#include "semel/core/internal/random.h"
#include "semel/store/internal/rocksdb_log.h"
#include "semel/store/internal/rocksdb_seal.h"
#include "semel/store/rocksdb_store.h"
#include "tests/cli/temporary_directory.h"
#include "tests/golden/golden.h"
#include "tests/support/store.h"

namespace semel {

using namespace store_internal;

namespace {

namespace fs = std::filesystem;
using State = LogCheck::State;

constexpr std::size_t kBlockBytes = std::size_t{32} << 10;

class DamagedLog : public ::testing::Test {
 protected:
  // The bytes of the log that RocksDB writes of records of these sizes.
  std::string log_of(const std::vector<std::size_t>& sizes) const {
    fs::remove_all(path());
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* opened = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, path(), &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    Random random(1);
    for (const std::size_t size : sizes) {
      std::string value;
      while (value.size() < size) value += static_cast<char>(random.below(256));
      EXPECT_TRUE(db->Put({}, "key", value).ok());
    }
    for (const auto& entry : fs::directory_iterator(path())) {
      if (entry.path().extension() == ".log") return read_file(entry.path());
    }
    ADD_FAILURE() << "there is no log";
    return "";
  }
  LogCheck check(const std::string& bytes) const {
    return check_log(directory_.write("log", bytes), LogKind::writes);
  }
  std::string path() const { return directory_.path() / "db"; }

  TemporaryDirectory directory_;
};

// Counts what a test expects of every state, and names the first place that is otherwise.
void expect_state(const LogCheck& check, State expected, std::size_t place) {
  ASSERT_EQ(static_cast<int>(check.state), static_cast<int>(expected)) << place;
}

TEST_F(DamagedLog, IsWholeAsRocksDbWritesIt) {
  const std::vector<std::vector<std::size_t>> logs = {
      {}, {0}, {1, 2, 3}, {100'000, 5}, {kBlockBytes, 0, kBlockBytes}};
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const std::string log = log_of(logs[i]);
    const LogCheck checked = check(log);
    expect_state(checked, State::whole, i);
    EXPECT_EQ(checked.sound_bytes, log.size());
  }
}

// Records that end at each of the last places of a block, where RocksDB fills up with zeros.
TEST_F(DamagedLog, IsWholeAroundTheEndOfABlock) {
  const std::size_t beside = log_of({1000}).size() - 1000;
  for (std::size_t left = 0; left < 20; ++left) {
    const std::size_t size = kBlockBytes - beside - left;
    expect_state(check(log_of({size})), State::whole, left);
    expect_state(check(log_of({size, 1})), State::whole, left);
  }
}

TEST_F(DamagedLog, TellsEveryFlippedBit) {
  const std::string log = log_of({30, 1, 200, 0, 60});
  for (std::size_t bit = 0; bit < 8 * log.size(); ++bit) {
    std::string flipped = log;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const LogCheck checked = check(flipped);
    expect_state(checked, State::damaged, bit);
    EXPECT_LE(checked.sound_bytes, bit / 8) << "what it says can be kept holds the damage";
  }
}

TEST_F(DamagedLog, TellsFlippedBitsInRecordsOfSeveralBlocks) {
  const std::string log = log_of({50, 100'000, 70'000, 10});
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    const std::size_t bit = random.below(8 * log.size());
    std::string flipped = log;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    expect_state(check(flipped), State::damaged, bit);
  }
}

TEST_F(DamagedLog, TellsZerosWhereverTheyAre) {
  const std::string log = log_of({300, 1000, 40'000, 300});
  for (std::size_t at = 0; at < log.size(); at += 512) {
    std::string zeroed = log;
    for (std::size_t i = at; i < std::min(at + 512, log.size()); ++i) zeroed[i] = '\0';
    expect_state(check(zeroed), State::damaged, at);
  }
}

// Other bytes from some place on are nothing that a kill could have left. A few of the random bytes
// look like the beginning of a record.
TEST_F(DamagedLog, TellsOtherBytesInItsPlace) {
  const std::string log = log_of({30, 1, 200, 0, 60});
  const std::vector<std::size_t> ends = [&] {
    std::vector<std::size_t> found = {0};
    for (std::size_t size = 1; size < log.size(); ++size) {
      if (check(log.substr(0, size)).state == State::whole) found.push_back(size);
    }
    return found;
  }();
  ASSERT_GE(ends.size(), 5u);
  const auto repeated = [](std::string_view text, std::size_t size) {
    std::string out;
    while (out.size() < size) out += text;
    return out.substr(0, size);
  };
  Random random(3);
  int passed = 0;
  for (const std::size_t end : ends) {
    const std::string before = log.substr(0, end);
    for (const std::size_t size : {7, 12, 50, 300, 20'000}) {
      for (const std::string_view text : {"\xff", "MANIFEST-000005\n",
                                          "\x7f"
                                          "ELF\x02\x01\x01"}) {
        if (size < 15 && text.size() == 7) continue;  // too little of it to know
        expect_state(check(before + repeated(text, size)), State::damaged, end);
      }
      for (int i = 0; i < 40; ++i) {
        std::string noise;
        while (noise.size() < size) noise += static_cast<char>(random.below(256));
        if (check(before + noise).state != State::damaged) ++passed;
      }
    }
  }
  EXPECT_LE(passed, 20);  // of 1200: a header of 7 bytes alone is one in 128
}

// A kill cuts the log somewhere: each cut keeps the records before it.
TEST_F(DamagedLog, EndsAnywhereAfterAKill) {
  for (const auto& sizes :
       {std::vector<std::size_t>{30, 1, 200, 0, 60}, std::vector<std::size_t>{40'000, 3, 33'000}}) {
    const std::string log = log_of(sizes);
    const std::size_t step = log.size() < 1000 ? 1 : 37;
    for (std::size_t size = 0; size < log.size(); size += step) {
      const LogCheck checked = check(log.substr(0, size));
      ASSERT_NE(checked.state, State::damaged) << size;
      EXPECT_LE(checked.sound_bytes, size);
      EXPECT_EQ(checked.state == State::whole, checked.sound_bytes == size) << size;
      expect_state(check(log.substr(0, checked.sound_bytes)), State::whole, size);
    }
  }
}

class DamagedDirectory : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "db") const { return directory_.path() / name; }
  std::unique_ptr<RocksStore> open(RocksStore::Settings settings = {.create = true}) const {
    auto store = RocksStore::open(path(), settings);
    EXPECT_TRUE(store) << store.error().message();
    return store ? *std::move(store) : nullptr;
  }
  std::string refusal(RocksStore::Settings settings = {}) const {
    const auto store = RocksStore::open(path(), settings);
    EXPECT_EQ(store ? Errc::full : store.error().code, Errc::io);
    return store ? "" : store.error().message();
  }
  std::string named(std::string_view end, const std::string& directory) const {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().string().find(end) != std::string::npos) return entry.path();
    }
    ADD_FAILURE() << end << " is not in " << directory;
    return "";
  }
  void expect_in(const std::string& text, std::string_view part) const {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }

  TemporaryDirectory directory_;
};

TEST_F(DamagedDirectory, HasNothingInItsLogOnceItIsClosed) {
  const auto store = open();
  put(*store, "a", "1");
  EXPECT_GT(fs::file_size(named(".log", path())), 0u);
  EXPECT_TRUE(store->close());
  EXPECT_EQ(fs::file_size(named(".log", path())), 0u);
  const DirectoryCheck checked = check_directory(path());
  EXPECT_EQ(checked.damage, "");
  EXPECT_TRUE(checked.closed);
  EXPECT_EQ(**open()->get("a"), "1");
}

TEST_F(DamagedDirectory, SaysWhatToDoWithADamagedLog) {
  {
    const auto store = open();
    put(*store, "a", "1");
    put(*store, "b", "2");
    fs::copy(path(), path("killed"), fs::copy_options::recursive);
  }
  fs::remove_all(path());
  fs::rename(path("killed"), path());
  const std::string log = named(".log", path());
  std::string bytes = read_file(log);
  bytes[bytes.size() - 1] ^= 1;
  std::ofstream(log, std::ios::binary) << bytes;
  for (const auto mode :
       {RocksStore::Mode::read_only, RocksStore::Mode::secondary, RocksStore::Mode::read_write}) {
    const std::string why = refusal({.mode = mode});
    expect_in(why, "is damaged at byte ");
    const std::string advice = why.substr(why.find("truncate "));
    expect_in(advice, log);
  }
  // The advice holds: what was written before is there.
  const std::string why = refusal();
  ASSERT_EQ(std::system(why.substr(why.find("truncate ")).c_str()), 0);
  const auto store = open();
  EXPECT_EQ(**store->get("a"), "1");
  EXPECT_FALSE(store->get("b")->has_value());
}

TEST_F(DamagedDirectory, IsNotMadeAnewWhereRecordsAre) {
  put(*open(), "a", "1");
  const std::string current = read_file(path() + "/CURRENT");
  fs::remove(path() + "/CURRENT");
  expect_in(refusal({.create = true}), "its CURRENT is missing");
  directory_.write("db/CURRENT", current);
  EXPECT_EQ(**open()->get("a"), "1");
}

// Neither has a seal: RocksDB does not copy it, and may leave out an empty log.
TEST_F(DamagedDirectory, IsNoCopyThatRocksDbMakes) {
  const auto store = open();
  put(*store, "a", "1");
  rocksdb::Checkpoint* made = nullptr;
  ASSERT_TRUE(rocksdb::Checkpoint::Create(&store->raw(), &made).ok());
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  ASSERT_TRUE(checkpoint->CreateCheckpoint(path("copy")).ok());
  for (const auto mode : {RocksStore::Mode::read_only, RocksStore::Mode::read_write}) {
    const auto copy = RocksStore::open(path("copy"), {.mode = mode});
    ASSERT_TRUE(copy) << copy.error().message();
    EXPECT_EQ(**(*copy)->get("a"), "1");
  }
}

// Another program that opens the directory makes a new MANIFEST and new OPTIONS.
TEST_F(DamagedDirectory, IsNoDirectoryThatAnotherProgramHasChanged) {
  put(*open(), "a", "1");
  {
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, path(), &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    ASSERT_TRUE(db->Put({}, "b", "2").ok());
  }
  EXPECT_EQ(**open({.mode = RocksStore::Mode::read_only})->get("b"), "2");
  EXPECT_EQ(**open()->get("b"), "2");
}

// RocksDB checks little of what an OPTIONS file says, and follows pointers that a damaged one
// leaves.
TEST_F(DamagedDirectory, OfOptionsThatRocksDbDoesNotSurviveIsRefusedOrHarmless) {
  const std::vector<std::pair<std::string, std::string>> damages = {
      {"[TableOptions/BlockBasedTable", "[TableOptions/BlgckBasedTable"},
      {"write_buffer_size=67108864", "write_buffer_size=6w108864"},
      {"arena_block_size=1048576", "arena_block_size=10t8576"}};
  for (const auto& [sound, damaged] : damages) {
    SCOPED_TRACE(damaged);
    fs::remove_all(path());
    put(*open(), "a", "1");
    fs::remove(path() + "/SEMEL-SEAL");
    std::string newest;
    for (const auto& entry : fs::directory_iterator(path())) {
      const std::string name = entry.path().filename();
      if (name.starts_with("OPTIONS-")) newest = std::max(newest, name);
    }
    std::string options = read_file(path() + "/" + newest);
    const std::size_t at = options.find(sound);
    ASSERT_NE(at, std::string::npos);
    directory_.write("db/" + newest, options.replace(at, sound.size(), damaged));
    for (const auto mode : {RocksStore::Mode::read_only, RocksStore::Mode::read_write}) {
      const auto store = RocksStore::open(path(), {.mode = mode});
      if (store) {
        EXPECT_EQ(**(*store)->get("a"), "1");
      } else {
        EXPECT_EQ(store.error().code, Errc::io);
      }
    }
  }
}

struct SealCase {
  using Type = RocksSeal;
  static constexpr char kFile[] = "rocksdb_seal_v1.bin";
  static Type make() {
    return {.closed = true,
            .log = 300,
            .manifest = {"MANIFEST-000005", 1000, 0x12345678},
            .options = {"OPTIONS-000007", 5000, 0x9abcdef0}};
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(RocksSeal, Golden, SealCase);

TEST(RocksSeal, DecodesWhatItEncodedAndRefusesTheRest) {
  Bytes bytes;
  SealCase::make().encode(bytes);
  EXPECT_EQ(*RocksSeal::decode(bytes), SealCase::make());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(RocksSeal::decode(ByteView(bytes).first(size))) << size;
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes flipped = bytes;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(RocksSeal::decode(flipped)) << bit;
  }
  bytes.push_back(0);
  EXPECT_FALSE(RocksSeal::decode(bytes));
}

}  // namespace
}  // namespace semel
