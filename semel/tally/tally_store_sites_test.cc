// TallyStore at several sites: any sync carries a table, and an operation counts once whatever fails.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "semel/tally/entries.h"
#include "semel/tally/tally_store.h"
#include "tests/support/crashing_store.h"
#include "tests/support/tally_stores.h"

namespace semel::tally {
namespace {

struct ThreeSites : ::testing::Test {
  ThreeSites() {
    test_clock().set(kNow);
    a = opened(stores[0], settings_of(1));
    for (std::size_t i = 1; i < 3; ++i) {
      const auto site = static_cast<SiteId>(i + 1);
      EXPECT_TRUE(a->admit(site));
      EXPECT_TRUE(a->copy_to(stores[i]));
      auto made = TallyStore::open_as(stores[i], site, settings_of(site), kNow);
      EXPECT_TRUE(made) << made.error().what;
      (i == 1 ? b : c) = std::move(*made);
    }
    sync_all();
  }
  void sync_all() {
    for (int i = 0; i < 2; ++i) {
      sync(*a, *b);
      sync(*b, *c);
      sync(*c, *a);
    }
  }
  CrashingStore stores[3] = {CrashingStore(&TallyStore::merger()),
                             CrashingStore(&TallyStore::merger()),
                             CrashingStore(&TallyStore::merger())};
  std::unique_ptr<TallyStore> a, b, c;
};

TEST_F(ThreeSites, AnySyncCarriesTheTable) {
  EXPECT_EQ(added(*a, "x", 5, id(1)).outcome, Outcome::applied);
  EXPECT_EQ(added(*b, "x", 5, id(1)).outcome, Outcome::applied);  // a retry, not yet heard of
  EXPECT_EQ(added(*c, "y", 1, numbered(1, 1)).outcome, Outcome::applied);
  sync_all();
  for (TallyStore* site : {a.get(), b.get(), c.get()}) {
    EXPECT_EQ(value(*site, "x"), 5);
    EXPECT_EQ(*site->sum({}), (RangeSum{2, 6}));
    EXPECT_EQ(site->info().unfolded, 0U);
    EXPECT_EQ(added(*site, "x", 5, id(1)).outcome, Outcome::duplicate);
  }
}

TEST_F(ThreeSites, WhatIsNotFoldedIsInSumsAndSurvivesARestart) {
  added(*a, "x", 5, id(1));
  added(*b, "x", 5, id(1));
  added(*b, "w", 2, id(2));
  sync(*a, *b);
  EXPECT_GT(a->info().unfolded, 0U);
  EXPECT_EQ(*a->sum({}), (RangeSum{2, 7}));
  const TallyStore::Info before = a->info();
  a.reset();
  a = opened(stores[0], settings_of(1));
  EXPECT_EQ(a->info().unfolded, before.unfolded);
  EXPECT_EQ(a->info().log, before.log);
  EXPECT_EQ(*a->sum({}), (RangeSum{2, 7}));
  sync_all();
  EXPECT_EQ(*a->sum({}), (RangeSum{2, 7}));
  EXPECT_EQ(a->info().unfolded, 0U);
}

// Others must never see an operation whose number the site may give away again.
TEST_F(ThreeSites, OnlyWhatIsDurableIsShared) {
  Random random(3);
  a.reset();
  const TallyStore::Settings settings = settings_of(1, Recogniser::Kind::clients, Durability::none);
  a = opened(stores[0], settings);
  ASSERT_TRUE(a->sync());
  added(*a, "x", 5, id(1));
  std::size_t operations = 0;
  const auto cursor = *stores[0].cursor();
  for (cursor->seek(kSharedFirst); cursor->valid() && cursor->key() < kSharedEnd; cursor->next()) {
    operations += dot_of_key(cursor->key()) ? 1 : 0;
  }
  EXPECT_EQ(operations, 0U);
  a.reset();
  stores[0].lose_all_unsynced();
  a = opened(stores[0], settings);
  EXPECT_EQ(value(*a, "x"), std::nullopt);
  added(*a, "y", 7, id(2));
  sync_all();
  EXPECT_EQ(value(*c, "y"), 7);
}

// A process that was killed had written it, and not synced it.
TEST_F(ThreeSites, WhatAnEarlierProcessWroteIsSyncedBeforeItIsShared) {
  const TallyStore::Settings settings = settings_of(1, Recogniser::Kind::clients, Durability::none);
  a.reset();
  a = opened(stores[0], settings);
  added(*a, "x", 5, id(1));
  a.reset();
  a = opened(stores[0], settings);
  ASSERT_TRUE(a->publish());
  sync(*a, *b);
  a.reset();
  stores[0].lose_all_unsynced();
  a = opened(stores[0], settings);
  EXPECT_EQ(value(*a, "x"), 5);
}

TEST_F(ThreeSites, AnUnsharedOperationSurvivesARestart) {
  added(*a, "x", 5, id(1));
  a.reset();
  a = opened(stores[0], settings_of(1));
  EXPECT_EQ(value(*a, "x"), 5);
  sync_all();
  EXPECT_EQ(value(*c, "x"), 5);
  EXPECT_EQ(c->info().unfolded, 0U);
}

TEST_F(ThreeSites, ADeadSiteIsRetiredAndReplaced) {
  added(*c, "x", 1, id(1));
  sync(*c, *a);
  const Dot dot{3, 1};
  EXPECT_GE(c->holders(dot), 2U);
  c.reset();
  added(*a, "x", 2, id(2));
  ASSERT_TRUE(a->retire(3));
  sync(*a, *b);
  EXPECT_EQ(a->info().unfolded, 0U);
  ASSERT_TRUE(b->admit(4));
  CrashingStore fourth(&TallyStore::merger());
  ASSERT_TRUE(b->copy_to(fourth));
  const auto d = std::move(*TallyStore::open_as(fourth, 4, settings_of(4), kNow));
  EXPECT_EQ(d->add({"x", 1, id(1)}, kNow).error().code, Errc::gap);
  for (int i = 0; i < 2; ++i) {
    sync(*a, *b);
    sync(*a, *d);
    sync(*b, *d);
  }
  EXPECT_EQ(added(*d, "x", 1, id(1)), (Answer{Outcome::duplicate, 3}));
  EXPECT_EQ(added(*d, "x", 4, id(3)), (Answer{Outcome::applied, 7}));
}

TEST_F(ThreeSites, WhatIsNoEntryIsRefused) {
  for (const std::string_view key : {"c", "x", "o", "v", "!state", "o1234567"}) {
    const Write write{key, "value"};
    EXPECT_FALSE(a->entries().write({&write, 1})) << key;
  }
  const std::string view = view_key(2);
  const Write removal{view, std::nullopt};
  EXPECT_EQ(a->entries().write({&removal, 1}).error().code, Errc::unsupported);
  EXPECT_FALSE(a->entries().remove_range({}));
}

// Hands on the shared entries of one site that `wanted` lets through.
template <class Wanted>
void deliver(TallyStore& from, TallyStore& to, Wanted wanted) {
  std::vector<std::pair<std::string, std::string>> entries;
  const auto cursor = *from.entries().cursor();
  for (cursor->seek(kSharedFirst); cursor->valid() && cursor->key() < kSharedEnd; cursor->next()) {
    if (wanted(cursor->key())) entries.emplace_back(cursor->key(), cursor->value());
  }
  std::vector<Write> writes;
  for (const auto& [key, entry] : entries) writes.push_back({key, entry});
  ASSERT_TRUE(to.entries().write(writes));
}
void deliver(TallyStore& from, TallyStore& to) {
  deliver(from, to, [](std::string_view) { return true; });
}
// Everything but the operations of one site.
auto without_log_of(SiteId site) {
  return [site](std::string_view key) {
    const std::optional<Dot> dot = dot_of_key(key);
    return !dot || dot->site != site;
  };
}

// The power fails when others have seen what `a` published, and its own disk has not. Then `a` folds
// its operation by what they say, while c has not yet said that it holds what b took.
struct FoldedHalf : ThreeSites {
  void fail_after_publish() {
    ASSERT_TRUE(a->publish());
    deliver(*a, *b);
    deliver(*a, *c);
    a.reset();
    stores[0].lose_all_unsynced();
    a = opened(stores[0], settings_of(1));
    ASSERT_TRUE(b->publish());
    ASSERT_TRUE(c->publish());
    deliver(*c, *a);
    deliver(*b, *a);
    EXPECT_EQ(a->info().unfolded, 1U);
  }
  void restart_a() {
    a.reset();
    a = opened(stores[0], settings_of(1));
  }
};

TEST_F(FoldedHalf, ARetryElsewhereCountsOnceAfterARestart) {
  added(*a, "x", 5, id(1));
  added(*b, "x", 5, id(1));
  fail_after_publish();
  restart_a();
  EXPECT_EQ(value(*a, "x"), 5);
  sync_all();
  for (TallyStore* site : {a.get(), b.get(), c.get()}) EXPECT_EQ(value(*site, "x"), 5);
}

TEST_F(FoldedHalf, AResetUndoesAfterARestartWhatIsNotFolded) {
  added(*b, "x", 5, id(1));
  ASSERT_TRUE(b->publish());
  deliver(*b, *a);
  ASSERT_TRUE(a->reset("x", id(2), kNow));
  ASSERT_TRUE(a->publish());
  deliver(*a, *b);
  deliver(*a, *c, without_log_of(2));
  a.reset();
  stores[0].lose_all_unsynced();
  a = opened(stores[0], settings_of(1));
  ASSERT_TRUE(b->publish());
  ASSERT_TRUE(c->publish());
  deliver(*c, *a);
  deliver(*b, *a);
  EXPECT_EQ(a->info().unfolded, 1U);
  restart_a();
  EXPECT_EQ(value(*a, "x"), 0);
  sync_all();
  for (TallyStore* site : {a.get(), b.get(), c.get()}) EXPECT_EQ(value(*site, "x"), 0);
}

TEST_F(ThreeSites, ARetiredMemberIsNotCopied) {
  ASSERT_TRUE(a->admit(4));
  CrashingStore before(&TallyStore::merger());
  ASSERT_TRUE(a->copy_to(before));
  sync_all();
  ASSERT_TRUE(b->retire(1));
  deliver(*b, *a);
  CrashingStore copied(&TallyStore::merger());
  const Result<void> copying = a->copy_to(copied);
  ASSERT_FALSE(copying);
  EXPECT_EQ(copying.error().code, Errc::outside);
  // Whoever copies files asks nobody.
  const auto cursor = *stores[0].cursor();
  for (cursor->seek({}); cursor->valid(); cursor->next()) {
    const Write write{cursor->key(), cursor->value()};
    ASSERT_TRUE(copied.write({&write, 1}));
  }
  const auto refused = TallyStore::open_as(copied, 4, settings_of(4), kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::outside);
}

// A standby hears of operations and is never ticked; then it takes over.
TEST_F(ThreeSites, WhatArrivesIsRememberedFromThatTimeOn) {
  const TimeMs later = kNow + 6 * kWindow;
  test_clock().set(later);
  EXPECT_EQ(added(*a, "x", 5, id(1), later).outcome, Outcome::applied);
  ASSERT_TRUE(a->publish());
  sync_all();
  EXPECT_EQ(c->info().unfolded, 0U);
  EXPECT_EQ(added(*c, "x", 5, id(1), later + 1000).outcome, Outcome::duplicate);
  // And after a restart.
  c.reset();
  c = opened(stores[2], settings_of(3), later + 2000);
  EXPECT_EQ(added(*c, "x", 5, id(1), later + 2000).outcome, Outcome::duplicate);
}

TEST_F(ThreeSites, AStandbyWithoutTicksForgetsItsJournal) {
  const auto records = [&] {
    std::size_t count = 0;
    const auto cursor = *stores[2].cursor();
    for (cursor->seek({&kJournalPrefix, 1}); cursor->valid() && cursor->key() < "$";
         cursor->next()) {
      ++count;
    }
    return count;
  };
  TimeMs now = kNow;
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    now += kWindow / 10;
    test_clock().set(now);
    added(*a, "x", 1, id(i), now);
    ASSERT_TRUE(a->publish());
    deliver(*a, *c);
    if (i == 50) most = records();
  }
  EXPECT_LE(records(), most + 3);
}

// The sequence is below one that was forgotten here; its client stays only for a while.
TEST_F(ThreeSites, ASequenceThatArrivesOutOfOrderIsRemembered) {
  TimeMs now = kNow;
  added(*b, "x", 1, numbered(1, 10), now);
  now += kWindow;
  added(*b, "x", 1, numbered(1, 12), now);
  now += kWindow / 2;
  test_clock().set(now);
  EXPECT_EQ(added(*b, "x", 1, numbered(1, 9), now).outcome, Outcome::stale);
  EXPECT_EQ(added(*a, "x", 1, numbered(1, 5), now).outcome, Outcome::applied);
  ASSERT_TRUE(a->publish());
  deliver(*a, *b);
  sync_all();
  EXPECT_EQ(b->info().unfolded, 0U);
  now += kWindow - 1;  // 12 is gone, and with it the client
  EXPECT_EQ(added(*b, "x", 1, numbered(1, 5), now).outcome, Outcome::duplicate);
  b.reset();
  b = opened(stores[1], settings_of(2), now);
  EXPECT_EQ(added(*b, "x", 1, numbered(1, 5), now).outcome, Outcome::duplicate);
}

}  // namespace
}  // namespace semel::tally
