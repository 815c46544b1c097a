// kill -9 at random moments: everything acknowledged is there afterwards, and the index is right.
//
// SEMEL_CRASH_ROUNDS sets the number of kills for each test, SEMEL_CRASH_SEED chooses the moments.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "semel/core/internal/random.h"
#include "tests/cli/process.h"
#include "tests/cli/temporary_directory.h"
#include "tests/crash/operations.h"
#include "tests/crash/setup.h"
#include "tests/crash/sync_pair.h"
#include "tests/support/index.h"
#include "tests/support/setting.h"

namespace semel::crash {
namespace {

Model records(const OrderedStore& store) {
  Model model;
  const auto cursor = *store.cursor();
  for (cursor->seek(""); cursor->valid(); cursor->next())
    model.emplace(cursor->key(), cursor->value());
  EXPECT_TRUE(cursor->status());
  return model;
}

// Starts a child and kills it. Returns how many operations it has acknowledged; -1 if it was killed
// before its store was open.
int acknowledged_until_killed(const std::string& mode, const std::string& directory,
                              std::uint64_t seed, Random& random) {
  Process child({.command = {SEMEL_CRASH_CHILD, mode, directory, std::to_string(seed)}});
  std::string bytes;
  if (random.below(8) != 0) bytes = child.read(1 + random.below(300));
  std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000)));
  child.signal(SIGKILL);
  const Outcome outcome = child.finish();
  EXPECT_EQ(outcome.signal, SIGKILL) << outcome.err;
  return static_cast<int>(bytes.size() + outcome.out.size()) - 1;
}

// Stands in for another program that uses the directory between two runs: it writes without a log,
// and leaves a file.
void write_past_us(const std::string& directory, Random& random) {
  rocksdb::DB* raw = nullptr;
  rocksdb::Options options;
  options.write_buffer_size = *kStore.write_buffer_bytes;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory, &raw).ok());
  const std::unique_ptr<rocksdb::DB> db(raw);
  rocksdb::WriteOptions without_log;
  without_log.disableWAL = true;
  for (std::uint64_t n = random.below(20); n > 0; --n) {
    const Operation some = operation(random(), 0);
    for (const Operation::Change& change : some.changes) {
      ASSERT_TRUE(db->Put(random.below(2) == 0 ? without_log : rocksdb::WriteOptions(), change.key,
                          change.value.value_or("past"))
                      .ok());
    }
  }
  if (random.below(2) == 0) {
    const std::string file = directory + ".sst";
    rocksdb::SstFileWriter writer({}, {});
    ASSERT_TRUE(writer.Open(file).ok());
    for (std::uint64_t n = 0; n < 50; ++n) {
      ASSERT_TRUE(writer.Put(std::to_string(100'000 + 13 * n).insert(0, "key/"), "ingested").ok());
    }
    ASSERT_TRUE(writer.Finish().ok());
    ASSERT_TRUE(db->IngestExternalFile({file}, {}).ok());
  }
  ASSERT_TRUE(db->Flush({}).ok());
}

TEST(Crash, LosesNothingAcknowledgedAndLeavesTheIndexRight) {
  const std::uint64_t rounds = setting("SEMEL_CRASH_ROUNDS", 20);
  const std::uint64_t seed = setting("SEMEL_CRASH_SEED", 1);
  std::printf("SEMEL_CRASH_SEED=%llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  const TemporaryDirectory scratch;
  const std::string directory = scratch.path() / "store";
  Model model;
  std::uint64_t followed = 0;
  std::uint64_t operations = 0;
  for (std::uint64_t round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t child_seed = random();
    const int acknowledged = acknowledged_until_killed("write", directory, child_seed, random);
    for (int n = 0; n < acknowledged; ++n) {
      carry_out(operation(child_seed, static_cast<std::uint64_t>(n)), model);
      ++operations;
    }
    Model one_more = model;
    if (acknowledged >= 0) {
      carry_out(operation(child_seed, static_cast<std::uint64_t>(acknowledged)), one_more);
    }
    {
      const auto store = RocksStore::open(directory, kStore);
      ASSERT_TRUE(store) << store.error().message();
      Model found = records(**store);
      EXPECT_TRUE(found == model || found == one_more);
      model = std::move(found);
      const auto index = IndexedStore::open(**store, secret(), kIndex);
      ASSERT_TRUE(index) << index.error().message();
      followed += (*index)->opened() == IndexedStore::Opened::followed;
      expect_equals_rebuilt(**index);
    }
    if (random.below(4) == 0) {
      write_past_us(directory, random);
      const auto store = RocksStore::open(directory, kStore);
      ASSERT_TRUE(store) << store.error().message();
      model = records(**store);
    }
  }
  std::printf("%llu operations in %llu rounds; followed a checkpoint in %llu\n",
              static_cast<unsigned long long>(operations), static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(followed));
  EXPECT_GT(followed, rounds / 2);
}

// Two stores, killed between and within their syncs.
TEST(Crash, DuringASyncLeavesBothIndexesRightAndLosesNoJoin) {
  const std::uint64_t rounds = setting("SEMEL_CRASH_ROUNDS", 10);
  Random random(setting("SEMEL_CRASH_SEED", 1));
  const TemporaryDirectory scratch;
  Model least;  // what both must have at least, after a sync
  std::uint64_t syncs = 0;
  for (std::uint64_t round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t child_seed = random();
    const int acknowledged = acknowledged_until_killed("sync", scratch.path(), child_seed, random);
    for (int n = 0; n < acknowledged; ++n) {
      const auto number = static_cast<std::uint64_t>(n);
      if (is_sync(number)) {
        ++syncs;
      } else {
        join_in(operation(child_seed, number), least);
      }
    }
    std::array<std::unique_ptr<RocksStore>, 2> stores;
    std::array<std::unique_ptr<IndexedStore>, 2> indexes;
    for (std::size_t i = 0; i < 2; ++i) {
      auto store = RocksStore::open(scratch.path() / (i == 0 ? "a" : "b"), kStore);
      ASSERT_TRUE(store) << store.error().message();
      stores[i] = *std::move(store);
      auto index = IndexedStore::open(*stores[i], secret(), kIndex);
      ASSERT_TRUE(index) << index.error().message();
      indexes[i] = *std::move(index);
      expect_equals_rebuilt(*indexes[i]);
    }
    const Result<void> outcome = synced(*indexes[0], *indexes[1], round);
    ASSERT_TRUE(outcome) << outcome.error().message();
    for (const auto& index : indexes) expect_equals_rebuilt(*index);
    const Model found = records(*stores[0]);
    EXPECT_EQ(found, records(*stores[1]));
    for (const auto& [key, value] : least) {
      const auto record = found.find(key);
      EXPECT_TRUE(record != found.end() && record->second >= value) << key;
    }
  }
  std::printf("%llu syncs in %llu rounds\n", static_cast<unsigned long long>(syncs),
              static_cast<unsigned long long>(rounds));
}

}  // namespace
}  // namespace semel::crash
