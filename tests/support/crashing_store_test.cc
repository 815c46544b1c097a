// CrashingStore: what a crash may take, and what it may not.
#include "tests/support/crashing_store.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/support/store.h"
#include "tests/support/store_driver.h"

namespace semel {
namespace {

const Appender kAppender;

// Every write makes a state; a crash leads back to one of those since the last sync.
TEST(CrashingStore, LosesAnyNumberOfTheLastWritesAndNothingThatWasSynced) {
  CrashingStore store(&kAppender);
  Driver driver(store, KeyRange::all());
  Random random(5);
  std::set<std::size_t> losses;
  for (int round = 0; round < 500; ++round) {
    std::vector<Model> states = {driver.model()};
    const Bytes position = *store.position();
    for (std::uint64_t n = random.below(6); n > 0; --n) {
      const std::size_t before = store.unsynced();
      driver.step(random);
      if (store.unsynced() > before) states.push_back(driver.model());
      EXPECT_EQ(states.back(), driver.model());
      if (random.below(8) == 0) {
        ASSERT_TRUE(store.sync());
        states = {driver.model()};
      }
    }
    ASSERT_EQ(store.unsynced(), states.size() - 1);
    const Model before = read(store);
    const std::size_t lost = store.crash(random);
    ASSERT_LT(lost, states.size());
    const Model& after = states[states.size() - 1 - lost];
    ASSERT_EQ(read(store), after);
    EXPECT_EQ(store.unsynced(), 0u);
    Told told;
    ASSERT_TRUE(store.changes_since(position, told));
    expect_told(told, before, after);
    driver.restore(after);
    if (states.size() == 4) losses.insert(lost);
  }
  EXPECT_EQ(losses, (std::set<std::size_t>{0, 1, 2, 3}));
}

TEST(CrashingStore, LosesAllThatWasNotSynced) {
  CrashingStore store(&kAppender);
  put(store, "a", "1");
  ASSERT_TRUE(merge(store, "b", "1"));
  ASSERT_TRUE(store.sync());
  const Model synced = read(store);
  ASSERT_TRUE(store.save_checkpoint(Bytes{1}));
  Told told;
  store.observe(&told);
  ASSERT_TRUE(merge(store, "a", "2"));
  ASSERT_TRUE(store.remove_range({"b", "c"}));
  ASSERT_TRUE(merge(store, "a", "3"));
  EXPECT_FALSE(merge(store, "c", "!"));
  EXPECT_EQ(store.unsynced(), 3u);
  store.lose_all_unsynced();
  EXPECT_EQ(read(store), synced);
  EXPECT_EQ(**store.load_checkpoint(), Bytes{1});
  put(store, "after", "1");
  EXPECT_FALSE(told.contains("after"));
}

}  // namespace
}  // namespace semel
