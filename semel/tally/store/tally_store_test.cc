// TallyStore at one site: restarts, what a crash loses, sums from the index, and threads.
#include "semel/tally/store/tally_store.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "semel/index/indexed_store.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/store/counter_merger.h"
#include "tests/support/allocation.h"
#include "tests/support/crashing_store.h"
#include "tests/support/tally_stores.h"

namespace semel::tally {

namespace {

struct InMemory : ::testing::Test {
  CrashingStore store{&tally::counter_merger()};
};

TEST_F(InMemory, AnswersAsATableDoes) {
  const auto table = opened(store, settings_of());
  EXPECT_EQ(added(*table, "x", 5, id(1)), (Answer{Outcome::applied, 5}));
  EXPECT_EQ(added(*table, "x", 5, id(1)), (Answer{Outcome::duplicate, 5}));
  EXPECT_EQ(added(*table, "x", kMost, id(2)), (Answer{Outcome::overflow, 5}));
  EXPECT_EQ(added(*table, "x", -6, numbered(1, 1)), (Answer{Outcome::applied, -1}));
  EXPECT_EQ(*table->reset("x", id(3), kNow), (Answer{Outcome::applied, 0}));
  EXPECT_EQ(*table->remove("x", id(4), kNow), (Answer{Outcome::applied, std::nullopt}));
  EXPECT_EQ(value(*table, "x"), std::nullopt);
}

TEST_F(InMemory, OverflowIsFoundWithoutAskingForValues) {
  const auto table = opened(store, settings_of());
  const Addition batch[] = {
      {"x", kMost, id(1)}, {"x", 1, id(2)}, {"x", -2, id(3)}, {"x", 1, id(2)}};
  Answer answers[4];
  ASSERT_TRUE(table->add(batch, answers, kNow));
  EXPECT_EQ(answers[1].outcome, Outcome::overflow);
  EXPECT_EQ(answers[3], (Answer{Outcome::applied, std::nullopt}));
  EXPECT_EQ(value(*table, "x"), kMost - 1);
}

TEST_F(InMemory, ARestartKnowsTheRetriesOfTheWindow) {
  for (const Recognition::Kind kind :
       {Recognition::Kind::clients, Recognition::Kind::filter, Recognition::Kind::exact}) {
    CrashingStore own(&tally::counter_merger());
    opened(own, settings_of(1, kind));
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto table = opened(own, settings_of(1, kind), kNow + static_cast<TimeMs>(i));
      EXPECT_EQ(added(*table, "x", 1, i % 2 == 0 ? id(i) : numbered(1, i)).outcome,
                Outcome::applied);
      EXPECT_EQ(table->info().recalled, i);
    }
    const auto table = opened(own, {}, kNow + kWindow - 1);
    for (std::uint64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(added(*table, "x", 1, i % 2 == 0 ? id(i) : numbered(1, i)).outcome,
                Outcome::duplicate);
    }
    EXPECT_EQ(value(*table, "x"), 20);
    if (kind != Recognition::Kind::exact) continue;
    EXPECT_EQ(added(*table, "x", 2, id(0)).outcome, Outcome::conflict);
  }
}

// The journal may hold ids that have left the window in the meantime.
TEST_F(InMemory, ARestartRecallsOnlyIdsOfTheWindow) {
  for (const Recognition::Kind kind :
       {Recognition::Kind::clients, Recognition::Kind::filter, Recognition::Kind::exact}) {
    CrashingStore own(&tally::counter_merger());
    opened(own, settings_of(1, kind));
    for (std::uint64_t i = 0; i < 10; ++i) {
      const TimeMs at_ms = kNow + static_cast<TimeMs>(i);
      const auto table = opened(own, settings_of(1, kind), at_ms);
      EXPECT_EQ(added(*table, "x", 1, id(i), at_ms).outcome, Outcome::applied);
    }
    for (std::uint64_t gone = 0; gone <= 10; ++gone) {
      const TimeMs now_ms = kNow + kWindow + static_cast<TimeMs>(gone);
      EXPECT_EQ(opened(own, {}, now_ms)->info().recalled, 10 - gone);
    }
  }
}

// A retry of an operation from before the restart does not count again, however full the table is.
TEST_F(InMemory, ARestartAtTheMemoryLimitKnowsTheRetriesOfTheWindow) {
  for (const Recognition::Kind kind :
       {Recognition::Kind::clients, Recognition::Kind::filter, Recognition::Kind::exact}) {
    CrashingStore own(&tally::counter_merger());
    TallyStore::Settings settings = settings_of(1, kind);
    settings.recognition->fpr = 1e-6;
    settings.recognition->max_bytes = 24 << 10;
    Random random(4);
    std::map<std::uint64_t, TimeMs> taken;  // the time when each id was taken
    std::uint64_t next = 0;
    std::uint64_t refused = 0;
    TimeMs now = kNow;
    for (int restart = 0; restart < 30; ++restart) {
      const auto table = opened(own, settings, now);
      EXPECT_EQ(table->info().counts.refused, 0U);
      const auto ask = [&](std::uint64_t i) {
        return added(*table, "x", 1, i % 2 == 0 ? id(i) : numbered(i, i), now).outcome;
      };
      for (const auto& [i, at_ms] : taken) {
        if (now - at_ms > kWindow) continue;
        ASSERT_EQ(ask(i), Outcome::duplicate) << "kind " << int(kind) << ", restart " << restart;
      }
      for (std::uint64_t i = random.below(700); i > 0; --i) {
        now += static_cast<TimeMs>(random.below(kWindow / 2000));
        const Outcome outcome = ask(next);
        if (outcome == Outcome::applied) taken[next] = now;
        refused += outcome == Outcome::full ? 1 : 0;
        ++next;
      }
      ASSERT_TRUE(table->tick(now));
    }
    EXPECT_GT(refused, 0U);
  }
}

// An old sequence of a client that stays must not count again after a restart.
TEST_F(InMemory, WhatIsTooOldIsStillStaleAfterARestart) {
  auto table = opened(store, settings_of());
  TimeMs now = kNow;
  for (std::uint64_t i = 1; i <= 30; ++i) {
    now += kWindow / 4;
    added(*table, "x", 1, numbered(1, i), now);
    ASSERT_TRUE(table->tick(now));
    if (i % 5 == 0) table = opened(store, settings_of(), now);
  }
  for (std::uint64_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(added(*table, "x", 1, numbered(1, i), now).outcome, Outcome::stale) << i;
  }
  EXPECT_EQ(value(*table, "x"), 30);
}

TEST_F(InMemory, TheJournalAndItsMarksDoNotGrowForever) {
  auto table = opened(store, settings_of());
  const auto records = [&] {
    std::size_t count = 0;
    const auto cursor = *store.cursor();
    for (cursor->seek({}); cursor->valid(); cursor->next()) ++count;
    return count;
  };
  TimeMs now = kNow;
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    now += kWindow / 20;
    added(*table, "x", 1, numbered(i / 10, i), now);
    ASSERT_TRUE(table->tick(now));
    if (i == 199) most = records();
  }
  EXPECT_LE(records(), most + 5);
  now += 10 * kWindow;
  ASSERT_TRUE(table->tick(now));
  ASSERT_TRUE(table->tick(now + kWindow));
  EXPECT_EQ(records(), 3U);  // shape, state, the counter
}

TEST_F(InMemory, EveryWriteLosesNothing) {
  Random random(1);
  for (std::uint64_t i = 0; i < 50; ++i) {
    {
      const auto table = opened(store, settings_of());
      added(*table, "x", 1, id(i));
    }
    store.crash(random);
    const auto table = opened(store, settings_of());
    EXPECT_EQ(value(*table, "x"), static_cast<std::int64_t>(i + 1));
  }
}

TEST_F(InMemory, PeriodicLosesNoMoreThanAPeriodAndIdsWithTheirEffects) {
  Random random(2);
  TallyStore::Settings settings = settings_of(1, Recognition::Kind::clients, Durability::periodic);
  settings.period_ms = 100;
  std::int64_t synced = 0;
  std::uint64_t next = 0;
  TimeMs now = kNow;
  opened(store, settings);
  for (int round = 0; round < 60; ++round) {
    {
      const auto table = opened(store, settings, now);
      for (int i = 0; i < 10; ++i) {
        now += 15;
        added(*table, "x", 1, id(next++), now);
        const std::size_t before = store.unsynced();
        ASSERT_TRUE(table->tick(now));
        if (store.unsynced() == 0 && before > 0) synced = *value(*table, "x");
      }
      EXPECT_LE(*value(*table, "x") - synced, 100 / 15 + 1);
    }
    store.crash(random);
    const auto table = opened(store, settings, now);
    EXPECT_GE(*value(*table, "x"), synced);
    // The client does not know which operations were lost, and sends the last ones again.
    for (std::uint64_t i = next - 10; i < next; ++i) added(*table, "x", 1, id(i), now);
    EXPECT_EQ(value(*table, "x"), static_cast<std::int64_t>(next));
    ASSERT_TRUE(table->sync());
    synced = *value(*table, "x");
  }
}

// Counts the merges of each key since its last put.
class MergeCountingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::size_t longest = 0;

  Result<void> write(std::span<const RecordWrite> writes) override {
    for (const RecordWrite& write : writes) {
      std::size_t& merges = merges_[std::string(write.key)];
      merges = write.merge ? merges + 1 : 0;
      longest = std::max(longest, merges);
    }
    return below().write(writes);
  }

 private:
  std::map<std::string, std::size_t> merges_;
};

TEST_F(InMemory, ACounterThatManyAddToStaysQuickToRead) {
  MergeCountingStore counting(store);
  const auto table = opened(counting, settings_of());
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Addition batch[] = {{"hot", 1, id(i)}, {"hot", 1, {}}, {"cold", 1, {}}};
    Answer answers[3];
    ASSERT_TRUE(table->add(batch, answers, kNow));
  }
  EXPECT_LE(counting.longest, 128U);
  EXPECT_GT(counting.longest, 100U);
  EXPECT_EQ(value(*table, "hot"), 2000);
}

TEST_F(InMemory, AnotherShapeIsRefusedAndNothingChanges) {
  opened(store, settings_of());
  TallyStore::Settings other = settings_of();
  other.recognition->window_ms += 1;
  const Result<std::unique_ptr<TallyStore>> refused = TallyStore::open(store, other, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::mismatch);
  EXPECT_TRUE(TallyStore::open(store, {}, kNow));
}

TEST_F(InMemory, AStoreThatIsNoTableIsRefused) {
  EXPECT_EQ(TallyStore::open(store, {}, kNow).error().code, Errc::invalid);
  const RecordWrite write{"some", "record"};
  ASSERT_TRUE(store.write({&write, 1}));
  EXPECT_EQ(TallyStore::open(store, settings_of(), kNow).error().code, Errc::corrupt);
}

TEST_F(InMemory, ReadOnlyWritesNothing) {
  opened(store, settings_of());
  TallyStore::Settings settings;
  settings.read_only = true;
  const auto table = opened(store, settings);
  EXPECT_EQ(table->add({"x", 1, id(1)}, kNow).error().code, Errc::unsupported);
  EXPECT_EQ(table->tick(kNow).error().code, Errc::unsupported);
  EXPECT_EQ(table->sum({})->count, 0U);
}

// A store whose writes can be made to fail.
class FailingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  bool failing = false;

  Result<void> write(std::span<const RecordWrite> writes) override {
    if (failing) return Error{Errc::io, "planted"};
    return below().write(writes);
  }
};

TEST_F(InMemory, AfterAFailedWriteNothingIsAnsweredUntilItIsOpenedAgain) {
  FailingStore failing(store);
  {
    const auto table = opened(failing, settings_of());
    added(*table, "x", 1, id(1));
    failing.failing = true;
    EXPECT_EQ(table->add({"x", 1, id(2)}, kNow).error().code, Errc::io);
    failing.failing = false;
    EXPECT_EQ(table->add({"x", 1, id(2)}, kNow).error().code, Errc::io);
    EXPECT_EQ(table->get("x").error().code, Errc::io);
    EXPECT_EQ(table->scan({}, [](std::string_view, int128) { return true; }).error().code,
              Errc::io);
    EXPECT_EQ(table->sum({}).error().code, Errc::io);
  }
  const auto table = opened(failing, settings_of());
  EXPECT_EQ(added(*table, "x", 1, id(2)), (Answer{Outcome::applied, 2}));
}

// The ids of an interrupted call may be known without their effects. So the table must be opened
// again, and then a retry counts once.
TEST_F(InMemory, MemoryThatRunsOutLosesNoOperation) {
  bool failed = true;
  for (std::size_t good = 0; failed; ++good) {
    CrashingStore own(&tally::counter_merger());
    std::unique_ptr<TallyStore> table = opened(own, settings_of());
    added(*table, "x", 1, id(1));
    const Addition batch[] = {{"x", 5, id(2)}, {"y", 7, numbered(1, 1)}, {"z", 9, id(3)}};
    Answer answers[3];
    failed = false;
    try {
      const FailingAllocation failing(good);
      ASSERT_TRUE(table->add(batch, answers, kNow));
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    if (const Result<void> after = table->add(batch, answers, kNow); !after) {
      EXPECT_TRUE(failed) << good;
      EXPECT_EQ(after.error().code, Errc::io);
      table = opened(own, settings_of());
      ASSERT_TRUE(table->add(batch, answers, kNow));
    }
    EXPECT_EQ(value(*table, "x"), 6) << good;
    EXPECT_EQ(value(*table, "y"), 7) << good;
    EXPECT_EQ(value(*table, "z"), 9) << good;
  }
}

RC_GTEST_PROP(TallyStoreProperty, SumsAndScansEqualAMapThroughRestarts, ()) {
  CrashingStore store(&tally::counter_merger());
  auto table = opened(store, settings_of());
  std::map<std::string, std::int64_t> model;
  const int steps = *rc::gen::inRange(1, 80);
  for (int step = 0; step < steps; ++step) {
    const std::string counter =
        std::string("counter").append(std::to_string(*rc::gen::inRange(0, 40)));
    switch (*rc::gen::inRange(0, 10)) {
      case 0:
        RC_ASSERT(table->remove(counter, {}, kNow).has_value());
        model.erase(counter);
        break;
      case 1:
        table.reset();
        table = opened(store, {});
        break;
      case 2:
        RC_ASSERT(table->sum({}).has_value());
        RC_ASSERT(table->checkpoint().has_value());
        break;
      default: {
        const std::int64_t delta = *rc::gen::inRange(-1000, 1000);
        RC_ASSERT(added(*table, counter, delta, {}).outcome == Outcome::applied);
        model[counter] += delta;
      }
    }
  }
  const std::string first = std::string("counter").append(std::to_string(*rc::gen::inRange(0, 40)));
  const std::string end = std::string("counter").append(std::to_string(*rc::gen::inRange(0, 40)));
  RangeSum expected;
  std::map<std::string, std::int64_t> within;
  for (const auto& [name, sum] : model) {
    if (name < first || name >= end) continue;
    within.emplace(name, sum);
    ++expected.count;
    expected.sum += sum;
  }
  RC_ASSERT(*table->sum({first, end}) == expected);
  std::map<std::string, std::int64_t> scanned;
  RC_ASSERT(table
                ->scan({first, end},
                       [&](std::string_view name, int128 sum) {
                         scanned.emplace(name, static_cast<std::int64_t>(sum));
                         return true;
                       })
                .has_value());
  RC_ASSERT(scanned == within);
}

// Many threads share one counter, and each has its own: nothing is lost.
TEST_F(InMemory, ThreadsAreWrittenTogether) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 300;
  const auto table = opened(store, settings_of());
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string own = std::string("own").append(std::to_string(t));
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const Addition batch[] = {{"all", 1, id(t * kEach + i)}, {own, 1, {}}};
        Answer answers[2];
        EXPECT_TRUE(table->add(batch, answers, kNow));
        if (i % 3 == 0) {
          EXPECT_EQ(added(*table, "all", 1, id(t * kEach + i)).outcome, Outcome::duplicate);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value(*table, "all"), static_cast<std::int64_t>(kThreads * kEach));
  EXPECT_EQ(table->sum({})->sum, int128{2 * kThreads * kEach});
}

}  // namespace
}  // namespace semel::tally
