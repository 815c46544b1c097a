// TallyStore at several sites: any sync carries a table, and an operation counts once whatever
// fails.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/store/counter_merger.h"
#include "semel/tally/store/tally_store.h"
#include "tests/support/crashing_store.h"
#include "tests/support/tally_stores.h"

namespace semel::tally {

using namespace internal;

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
      EXPECT_TRUE(made) << made.error().message();
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
  // Copies the present content of a store, as a backup does.
  CrashingStore& copy_of(const OrderedStore& store) {
    copies.push_back(std::make_unique<CrashingStore>(&tally::counter_merger()));
    CrashingStore& copy = *copies.back();
    const auto cursor = *store.cursor();
    for (cursor->seek({}); cursor->valid(); cursor->next()) {
      const RecordWrite write{cursor->key(), cursor->value()};
      EXPECT_TRUE(copy.write({&write, 1}));
    }
    EXPECT_TRUE(copy.sync());
    return copy;
  }
  CrashingStore stores[3] = {CrashingStore(&tally::counter_merger()),
                             CrashingStore(&tally::counter_merger()),
                             CrashingStore(&tally::counter_merger())};
  std::vector<std::unique_ptr<CrashingStore>> copies;
  std::unique_ptr<TallyStore> a, b, c;
};

TEST_F(ThreeSites, AnySyncCarriesTheTable) {
  EXPECT_EQ(added(*a, "x", 5, id(1)).outcome, Outcome::applied);
  EXPECT_EQ(added(*b, "x", 5, id(1)).outcome,
            Outcome::applied);  // a retry, new to b
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
  EXPECT_EQ(a->info().held, before.held);
  EXPECT_EQ(a->info().folded, before.folded);
  EXPECT_EQ(a->info().members, before.members);
  EXPECT_EQ(*a->sum({}), (RangeSum{2, 7}));
  sync_all();
  EXPECT_EQ(*a->sum({}), (RangeSum{2, 7}));
  EXPECT_EQ(a->info().unfolded, 0U);
}

// Others must never see an operation whose number the site may use again.
TEST_F(ThreeSites, OnlyWhatIsDurableIsShared) {
  Random random(3);
  a.reset();
  const TallyStore::Settings settings =
      settings_of(1, Recognition::Kind::clients, Durability::none);
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

// An earlier process wrote it, and was killed before a sync.
TEST_F(ThreeSites, WhatAnEarlierProcessWroteIsSyncedBeforeItIsShared) {
  const TallyStore::Settings settings =
      settings_of(1, Recognition::Kind::clients, Durability::none);
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
  CrashingStore fourth(&tally::counter_merger());
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
    const RecordWrite write{key, "value"};
    EXPECT_FALSE(a->entries().write({&write, 1})) << key;
  }
  const std::string view = view_key(2);
  const RecordWrite removal{view, std::nullopt};
  EXPECT_EQ(a->entries().write({&removal, 1}).error().code, Errc::unsupported);
  EXPECT_FALSE(a->entries().remove_range({}));
}

using Wanted = std::function<bool(std::string_view key)>;
bool all_entries(std::string_view /*key*/) { return true; }

// Sends the wanted shared entries of one site to another.
Result<void> hand_on(TallyStore& from, TallyStore& to, const Wanted& wanted = all_entries) {
  std::vector<std::pair<std::string, std::string>> entries;
  const auto cursor = *from.entries().cursor();
  for (cursor->seek(kSharedFirst); cursor->valid() && cursor->key() < kSharedEnd; cursor->next()) {
    if (wanted(cursor->key())) entries.emplace_back(cursor->key(), cursor->value());
  }
  std::vector<RecordWrite> writes;
  for (const auto& [key, entry] : entries) writes.push_back({key, entry});
  return to.entries().write(writes);
}
void deliver(TallyStore& from, TallyStore& to, const Wanted& wanted = all_entries) {
  ASSERT_TRUE(hand_on(from, to, wanted));
}
// Selects everything but the operations of one site.
Wanted without_log_of(SiteId site) {
  return [site](std::string_view key) {
    const std::optional<Dot> dot = dot_of_key(key);
    return !dot || dot->site != site;
  };
}

// Operations of every kind and views, as a store has them that another site reads.
struct EveryStoredEntry : ThreeSites {
  EveryStoredEntry() {
    added(*a, "x", 1, id(1));
    added(*a, "y", 2, numbered(1, 300));
    EXPECT_TRUE(a->reset("y", {}, kNow).has_value());
    EXPECT_TRUE(a->remove("z", id(2), kNow).has_value());
    EXPECT_TRUE(a->publish());
    const auto cursor = *a->entries().cursor();
    for (cursor->seek(kSharedFirst); cursor->valid() && cursor->key() < kSharedEnd;
         cursor->next()) {
      entries.emplace_back(cursor->key(), cursor->value());
    }
    EXPECT_GE(entries.size(), 7U);
    before = content_of(stores[1]);
  }
  static std::map<std::string, std::string> content_of(const OrderedStore& store) {
    std::map<std::string, std::string> content;
    const auto cursor = *store.cursor();
    for (cursor->seek({}); cursor->valid(); cursor->next()) {
      content.emplace(cursor->key(), cursor->value());
    }
    return content;
  }
  static void expect_corrupt(const Result<void>& written, std::string_view key) {
    ASSERT_FALSE(written) << "damage in an entry of kind " << key.front();
    EXPECT_EQ(written.error().code, Errc::corrupt);
  }
  // Hands an entry to b, by itself and after sound ones, as any transport and as a sync do.
  void expect_refused(const std::string& key, const std::string& damaged) {
    test_clock().set(kNow + 500);
    const RecordWrite alone{key, damaged};
    expect_corrupt(b->entries().write({&alone, 1}), key);
    std::vector<RecordWrite> many;
    for (const auto& [sound_key, value] : entries) many.push_back({sound_key, value});
    many.push_back(alone);
    expect_corrupt(b->entries().write(many), key);
    const std::string_view keys[] = {key};
    const auto join = [&](std::size_t, std::optional<std::string_view> now) {
      return std::optional(now ? join_entries(key, *now, damaged) : damaged);
    };
    // What is there is sound and stays.
    const Result<void> joined = b->entries().update(keys, join);
    if (before.contains(key)) {
      ASSERT_TRUE(joined);
    } else {
      expect_corrupt(joined, key);
    }
    test_clock().set(kNow);
  }
  void expect_that_true_entries_are_taken() {
    EXPECT_EQ(content_of(stores[1]), before);
    b.reset();
    b = opened(stores[1], settings_of(2));
    sync_all();
    for (TallyStore* site : {a.get(), b.get(), c.get()}) {
      EXPECT_EQ(value(*site, "x"), 1);
      EXPECT_EQ(value(*site, "y"), 0);
      EXPECT_FALSE(site->info().superseded);
      EXPECT_TRUE(site->info().forked.empty());
      EXPECT_EQ(site->info().unfolded, 0U);
    }
  }
  std::vector<std::pair<std::string, std::string>> entries;
  std::map<std::string, std::string> before;
};

TEST_F(EveryStoredEntry, WithAFlippedBitIsRefusedAndChangesNothing) {
  for (const auto& [key, value] : entries) {
    for (std::size_t bit = 0; bit < 8 * value.size(); ++bit) {
      std::string damaged = value;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
      expect_refused(key, damaged);
    }
  }
  expect_that_true_entries_are_taken();
}

TEST_F(EveryStoredEntry, WithOtherBytesOrUnderAnotherKeyIsRefusedAndChangesNothing) {
  Random random(1);
  for (const auto& [key, value] : entries) {
    for (int i = 0; i < 200; ++i) {
      std::string damaged = value;
      for (std::uint64_t n = random.below(8); n < 8; ++n) {
        char& byte = damaged[random.below(damaged.size())];
        byte = static_cast<char>(byte ^ static_cast<char>(1 + random.below(255)));
      }
      if (damaged != value) expect_refused(key, damaged);
    }
    for (const auto& [other, its_value] : entries) {
      if (key != other) expect_refused(other, value);
    }
  }
  expect_that_true_entries_are_taken();
}

// The disk of a gave back another bit than was written, so a sync reads a damaged entry.
TEST_F(EveryStoredEntry, DamagedInTheStoreOfOneSiteDoesNotReachAnother) {
  for (const auto& [key, value] : entries) {
    if (before.contains(key)) continue;
    std::string damaged = value;
    damaged.front() = static_cast<char>(damaged.front() ^ 1);
    const RecordWrite write{key, damaged};
    ASSERT_TRUE(stores[0].write({&write, 1}));
    expect_corrupt(hand_on(*a, *b), key);
    const RecordWrite repair{key, value};
    ASSERT_TRUE(stores[0].write({&repair, 1}));
  }
  expect_that_true_entries_are_taken();
}

TEST_F(ThreeSites, AViewOfAnotherTableChangesNothing) {
  CrashingStore apart(&tally::counter_merger());
  const auto other = opened(apart, settings_of(5));
  ASSERT_TRUE(other->admit(6));
  const auto before = EveryStoredEntry::content_of(stores[1]);
  const TallyStore::Info info = b->info();
  test_clock().set(kNow + 500);
  EXPECT_EQ(hand_on(*other, *b).error().code, Errc::mismatch);
  EXPECT_EQ(EveryStoredEntry::content_of(stores[1]), before);
  EXPECT_EQ(b->info().promise, info.promise);
}

// The power fails when others have seen the publication of `a`, but its own disk has not. Then `a`
// folds its operation on their word, while c has not yet said that it holds the operations of b.
struct FoldedHalf : ThreeSites {
  void fail_after_publish(const Wanted& by_c = all_entries) {
    ASSERT_TRUE(a->publish());
    deliver(*a, *b);
    deliver(*a, *c, by_c);
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
  fail_after_publish(without_log_of(2));
  restart_a();
  EXPECT_EQ(value(*a, "x"), 0);
  sync_all();
  for (TallyStore* site : {a.get(), b.get(), c.get()}) EXPECT_EQ(value(*site, "x"), 0);
}

TEST_F(ThreeSites, ARetiredMemberIsNotCopied) {
  ASSERT_TRUE(a->admit(4));
  CrashingStore before(&tally::counter_merger());
  ASSERT_TRUE(a->copy_to(before));
  sync_all();
  ASSERT_TRUE(b->retire(1));
  deliver(*b, *a);
  CrashingStore copied(&tally::counter_merger());
  const Result<void> copying = a->copy_to(copied);
  ASSERT_FALSE(copying);
  EXPECT_EQ(copying.error().code, Errc::outside);
  // A copy of the files asks nobody.
  const auto refused = TallyStore::open_as(copy_of(stores[0]), 4, settings_of(4), kNow);
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
  // The same holds after a restart.
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

// The sites that are not superseded publish, and all receive it. Returns true if nobody refused.
bool meet(TallyStore& one, TallyStore& other) {
  bool all = true;
  for (int i = 0; i < 3; ++i) {
    for (TallyStore* site : {&one, &other}) (void)site->publish();
    for (const auto& [from, to] : {std::pair{&one, &other}, std::pair{&other, &one}}) {
      all = hand_on(*from, *to).has_value() && all;
    }
  }
  return all;
}

struct Restored : ThreeSites {
  // Retires b, lets a new site take over the operations of b since the backup, and compares values.
  void continue_as_a_new_site(std::int64_t expected) {
    ASSERT_TRUE(a->retire(2));
    sync(*a, *c);
    ASSERT_TRUE(a->admit(4));
    CrashingStore store(&tally::counter_merger());
    ASSERT_TRUE(a->copy_to(store));
    const auto d = std::move(*TallyStore::open_as(store, 4, settings_of(4), kNow));
    for (int i = 0; i < 2; ++i) {
      sync(*a, *c);
      sync(*c, *d);
      sync(*a, *d);
    }
    const Result<TallyStore::TakenOver> taken = d->take_over(*b, kNow);
    ASSERT_TRUE(taken) << taken.error().message();
    EXPECT_EQ(taken->refused, 0U);
    for (int i = 0; i < 2; ++i) {
      sync(*a, *c);
      sync(*c, *d);
      sync(*a, *d);
    }
    for (TallyStore* site : {a.get(), c.get(), d.get()}) {
      EXPECT_EQ(value(*site, "x"), expected);
      EXPECT_EQ(site->info().unfolded, 0U);
    }
  }
  void expect_superseded() {
    EXPECT_TRUE(b->info().superseded);
    EXPECT_EQ(b->add({"x", 1, id(999)}, kNow).error().code, Errc::forked);
    EXPECT_EQ(b->publish().error().code, Errc::forked);
    EXPECT_EQ(b->admit(9).error().code, Errc::forked);
    CrashingStore store(&tally::counter_merger());
    EXPECT_EQ(b->copy_to(store).error().code, Errc::forked);
  }
  void restore_b(CrashingStore& backup) {
    b.reset();
    b = opened(backup, settings_of(2));
  }
};

TEST_F(Restored, ASiteThatTookOperationsSinceItsBackupIsFoundOut) {
  CrashingStore& backup = copy_of(stores[1]);
  for (std::uint64_t i = 0; i < 100; ++i) added(*b, "x", 1, id(i));
  sync_all();
  restore_b(backup);
  for (std::uint64_t i = 100; i < 111; ++i) added(*b, "x", 1, id(i));
  EXPECT_EQ(value(*b, "x"), 11);
  meet(*a, *b);
  expect_superseded();
  EXPECT_EQ(value(*a, "x"), 100);
  restore_b(backup);  // it is remembered
  expect_superseded();
  continue_as_a_new_site(111);
}

TEST_F(Restored, ASiteThatTookMoreThanItLostIsFoundOut) {
  CrashingStore& backup = copy_of(stores[1]);
  for (std::uint64_t i = 0; i < 10; ++i) added(*b, "x", 1, id(i));
  sync_all();
  restore_b(backup);
  for (std::uint64_t i = 10; i < 40; ++i) added(*b, "x", 1, id(i));
  meet(*a, *b);
  expect_superseded();
  EXPECT_EQ(a->info().forked, std::vector<SiteId>{2});
  EXPECT_EQ(value(*a, "x"), 10);
  continue_as_a_new_site(40);
}

TEST_F(Restored, ASiteThatLostOnlyWhatItHadAcknowledgedIsFoundOut) {
  CrashingStore& backup = copy_of(stores[1]);
  for (std::uint64_t i = 0; i < 10; ++i) added(*a, "x", 1, id(i));
  sync_all();
  EXPECT_EQ(a->info().unfolded, 0U);
  restore_b(backup);
  EXPECT_EQ(added(*b, "x", 1, id(3)).outcome, Outcome::applied);  // a retry that it cannot know
  meet(*a, *b);
  expect_superseded();
  continue_as_a_new_site(10);
}

TEST_F(Restored, EqualOperationsWithoutIdsAreTakenForOthers) {
  CrashingStore& backup = copy_of(stores[1]);
  added(*b, "x", 1, {}, kNow + 1);
  sync_all();
  restore_b(backup);
  added(*b, "x", 1, {}, kNow + 2);
  meet(*a, *b);
  expect_superseded();
  continue_as_a_new_site(2);
}

TEST_F(Restored, ABackupOfWhatAllHoldGoesOn) {
  for (std::uint64_t i = 0; i < 10; ++i) added(*b, "x", 1, id(i));
  sync_all();
  sync_all();
  CrashingStore& backup = copy_of(stores[1]);
  restore_b(backup);
  added(*b, "x", 1, id(10));
  sync_all();
  for (TallyStore* site : {a.get(), b.get(), c.get()}) EXPECT_EQ(value(*site, "x"), 11);
}

// Both start from a copy of a, as site 4.
TEST_F(ThreeSites, TwoSitesWithOneIdAreFoundOut) {
  ASSERT_TRUE(a->admit(4));
  sync_all();
  std::vector<std::unique_ptr<CrashingStore>> disks;
  std::vector<std::unique_ptr<TallyStore>> twins;
  for (int i = 0; i < 2; ++i) {
    disks.push_back(std::make_unique<CrashingStore>(&tally::counter_merger()));
    ASSERT_TRUE(a->copy_to(*disks.back()));
    twins.push_back(std::move(*TallyStore::open_as(*disks.back(), 4, settings_of(4), kNow)));
    for (TallyStore* member : {a.get(), b.get(), c.get()}) sync(*member, *twins.back());
  }
  EXPECT_EQ(added(*twins[0], "x", 1, id(1)).outcome, Outcome::applied);
  EXPECT_EQ(added(*twins[1], "x", 2, id(2)).outcome, Outcome::applied);
  meet(*twins[0], *a);
  meet(*twins[1], *a);
  EXPECT_EQ(twins[1]->add({"x", 1, id(3)}, kNow).error().code, Errc::forked);
  EXPECT_FALSE(twins[0]->info().superseded);
  EXPECT_EQ(value(*a, "x"), 1);
}

// One member took one log, and another member the other. Neither believes the other.
TEST_F(ThreeSites, MembersThatHoldTwoLogsOfOneSiteFoldNothing) {
  CrashingStore& backup = copy_of(stores[1]);
  added(*b, "x", 1, id(1));
  meet(*a, *b);
  b.reset();
  b = opened(backup, settings_of(2));
  added(*b, "x", 2, id(2));
  meet(*c, *b);
  const std::uint64_t unfolded = a->info().unfolded;
  meet(*a, *c);
  EXPECT_EQ(a->info().forked, std::vector<SiteId>{2});
  EXPECT_EQ(c->info().forked, std::vector<SiteId>{2});
  EXPECT_EQ(a->info().unfolded, unfolded);
  EXPECT_EQ(value(*a, "x"), 1);
  EXPECT_EQ(value(*c, "x"), 2);
  // The restored site hears of it, and c, which believed it, is retired as well.
  meet(*a, *b);
  EXPECT_TRUE(b->info().superseded);
  ASSERT_TRUE(a->retire(2));
  ASSERT_TRUE(a->retire(3));
  EXPECT_EQ(a->info().unfolded, 0U);
  const Result<TallyStore::TakenOver> taken = a->take_over(*c, kNow);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->applied, 1U);
  EXPECT_EQ(value(*a, "x"), 3);
}

// The twin holds other operations than c, and not fewer. It took a retry of an operation that c had
// acknowledged.
TEST_F(ThreeSites, ATwinThatHoldsOtherOperationsIsFoundOut) {
  const auto twin = opened(copy_of(stores[2]), settings_of(3));
  added(*a, "y", 1, id(1));
  added(*a, "y", 1, id(2));
  ASSERT_TRUE(a->publish());
  deliver(*a, *twin);
  added(*b, "x", 1, id(3));
  ASSERT_TRUE(b->publish());
  deliver(*b, *a);
  deliver(*b, *c);
  ASSERT_TRUE(c->publish());
  deliver(*c, *a);  // it holds what b took, and a folds it
  EXPECT_EQ(added(*twin, "x", 1, id(3)).outcome, Outcome::applied);
  EXPECT_TRUE(twin->publish());
  deliver(*twin, *a);
  EXPECT_EQ(value(*a, "x"), 1);
  EXPECT_EQ(a->info().forked, std::vector<SiteId>{3});
}

// The restored site catches up through b, which had not heard of the lost operations. Its views
// then exceed the lost ones, and only the folded operations at a reveal it.
TEST_F(ThreeSites, AForkIsNotForgottenWithARestartOrACopy) {
  CrashingStore& backup = copy_of(stores[2]);
  added(*a, "x", 1, id(1));
  ASSERT_TRUE(a->publish());
  deliver(*a, *b);
  deliver(*a, *c);
  for (TallyStore* site : {b.get(), c.get()}) ASSERT_TRUE(site->publish());
  deliver(*b, *a);
  deliver(*c, *a);
  EXPECT_EQ(a->info().unfolded, 0U);
  c.reset();
  c = opened(backup, settings_of(3));
  EXPECT_EQ(added(*c, "x", 1, id(1)).outcome, Outcome::applied);
  meet(*c, *b);
  ASSERT_TRUE(c->publish());
  deliver(*c, *a, [](std::string_view key) { return site_of_key(key).has_value(); });
  ASSERT_TRUE(a->admit(4));
  CrashingStore copied(&tally::counter_merger());
  ASSERT_TRUE(a->copy_to(copied));
  const auto d = std::move(*TallyStore::open_as(copied, 4, settings_of(4), kNow));
  a.reset();
  a = opened(stores[0], settings_of(1));
  for (int i = 0; i < 2; ++i) {
    for (TallyStore* one : {a.get(), d.get()}) {
      for (TallyStore* other : {b.get(), c.get()}) meet(*one, *other);
    }
  }
  for (TallyStore* site : {a.get(), d.get()}) {
    EXPECT_EQ(value(*site, "x"), 1);
    EXPECT_EQ(site->info().forked, std::vector<SiteId>{3});
  }
}

// A site has a clock that is ahead by more than the window, and a copy that is older than that.
TEST_F(ThreeSites, ACopyRemembersForAWindowByWhateverClock) {
  added(*a, "x", 1, id(1));
  sync_all();
  ASSERT_TRUE(a->admit(4));
  CrashingStore store(&tally::counter_merger());
  ASSERT_TRUE(a->copy_to(store));
  const TimeMs ahead = kNow + 20 * kWindow;
  ManualClock clock(ahead);
  TallyStore::Settings settings = settings_of(4);
  settings.clock = &clock;
  auto d = std::move(*TallyStore::open_as(store, 4, settings, ahead));
  for (int i = 0; i < 2; ++i) {
    for (TallyStore* member : {a.get(), b.get(), c.get()}) sync(*member, *d);
  }
  EXPECT_EQ(d->info().unfolded, 0U);
  EXPECT_EQ(added(*d, "x", 1, id(1), ahead + kWindow / 2).outcome, Outcome::duplicate);
  EXPECT_EQ(added(*d, "x", 1, id(2), ahead + kWindow / 2).outcome, Outcome::applied);
  d.reset();
  d = opened(store, settings, ahead + kWindow - 1);
  EXPECT_EQ(added(*d, "x", 1, id(1), ahead + kWindow - 1).outcome, Outcome::duplicate);
  EXPECT_GE(d->info().promise.kept_from_ms, kNow + 18 * kWindow);
  clock.set(ahead + kWindow);
  for (int i = 0; i < 2; ++i) {
    for (TallyStore* member : {a.get(), b.get(), c.get()}) sync(*member, *d);
  }
  ASSERT_TRUE(d->tick(ahead + 4 * kWindow));
  EXPECT_EQ(added(*d, "x", 1, id(2), ahead + 4 * kWindow).outcome, Outcome::applied);
}

// Its files were copied while it had operations that no other site had seen.
TEST_F(ThreeSites, ACopyOfFilesKeepsWhatItsMemberHadNotShared) {
  ASSERT_TRUE(a->admit(4));
  added(*a, "x", 5, id(1));
  CrashingStore& copy = copy_of(stores[0]);
  auto d = std::move(*TallyStore::open_as(copy, 4, settings_of(4), kNow));
  d.reset();
  d = opened(copy, settings_of(4));
  EXPECT_EQ(value(*d, "x"), 5);
  for (int i = 0; i < 3; ++i) {
    for (TallyStore* member : {a.get(), b.get(), c.get()}) sync(*member, *d);
  }
  EXPECT_EQ(added(*d, "x", 1, id(2)), (Answer{Outcome::applied, 6}));
}

TEST(SitesApart, TablesThatWereMadeApartAreNoSitesOfOne) {
  for (const SiteId other : {2, 1}) {
    CrashingStore one(&tally::counter_merger()), two(&tally::counter_merger());
    const auto a = opened(one, settings_of(1));
    const auto b = opened(two, settings_of(other));
    for (std::uint64_t i = 0; i < 5; ++i) added(*a, "x", 1, id(i));
    for (std::uint64_t i = 3; i < 9; ++i) added(*b, "x", 1, id(i));
    EXPECT_FALSE(meet(*a, *b)) << "neither has another member";
    ASSERT_TRUE(a->admit(7));
    EXPECT_FALSE(meet(*a, *b)) << "one has";
    ASSERT_TRUE(b->admit(7));
    EXPECT_FALSE(meet(*a, *b)) << "both have";
    for (TallyStore* table : {a.get(), b.get()}) {
      EXPECT_FALSE(table->info().superseded);
      EXPECT_EQ(added(*table, "x", 1, id(20)).outcome, Outcome::applied);
    }
    EXPECT_EQ(value(*a, "x"), 6);
    EXPECT_EQ(value(*b, "x"), 7);
  }
}

}  // namespace
}  // namespace semel::tally
