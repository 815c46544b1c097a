#include "semel/index/indexed_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/store/memory_store.h"
#include "semel/store/ordered_store.h"
#include "tests/support/allocation.h"
#include "tests/support/index.h"
#include "tests/support/store.h"

namespace semel {
namespace {

using Fresh = IndexedStore::Fresh;
using Opened = IndexedStore::Opened;

// The settings are small, so that a thousand records make many containers and many slabs.
const IndexedStore::Settings kSettings = {.burst_bytes = 512, .slab_bytes = 4096};

std::string numbered_key(std::uint64_t number) { return std::to_string(1'000'000 + number); }

// Returns the length of the value, negated for every other key.
int128 signed_length(std::string_view key, std::string_view value) {
  const auto length = static_cast<int128>(value.size());
  return key.back() % 2 == 0 ? length : -length;
}

// Makes writes, removals, batches and range removals over the first `keys` keys.
void change(OrderedStore& store, Random& random, int times, std::uint64_t keys = 2000) {
  for (int n = 0; n < times; ++n) {
    const std::uint64_t draw = random.below(100);
    if (draw < 3) {
      const std::uint64_t first = random.below(keys);
      ASSERT_TRUE(store.remove_range({numbered_key(first), numbered_key(first + draw * 10)}));
      continue;
    }
    std::vector<std::pair<std::string, std::string>> records(1 + random.below(3));
    std::vector<RecordWrite> writes;
    for (auto& [key, value] : records) {
      key = numbered_key(random.below(keys));
      value.assign(random.below(60), static_cast<char>('a' + draw % 26));
      writes.push_back({key, draw < 20 ? std::nullopt : std::optional<std::string_view>(value)});
    }
    ASSERT_TRUE(store.write(writes));
  }
}

// A merger that appends to values.
class Appending final : public Merger {
 public:
  const char* name() const override { return "appending"; }
  bool merge(std::string_view, std::optional<std::string_view> now, std::string_view operand,
             std::string& merged) const override {
    merged = std::string(now.value_or("")).append(operand);
    return true;
  }
};

// Counts the reads of a store, and makes them fail.
class WatchedStore final : public ForwardingStore {
 public:
  WatchedStore() : ForwardingStore(memory_) {}

  std::uint64_t reads = 0;                                  // records that cursors came to
  std::uint64_t fails_at = ~std::uint64_t{0};               // the read that fails
  std::function<void(Bytes& checkpoint)> damage = nullptr;  // the damage of a bad disk

  std::function<void()> after_cursor = nullptr;     // called right after opening a cursor
  std::function<void()> before_position = nullptr;  // called right before taking a position

  Result<std::unique_ptr<Cursor>> cursor() const override {
    Result<std::unique_ptr<Cursor>> opened = below().cursor();
    if (!opened) return opened;
    if (after_cursor) after_cursor();
    return std::unique_ptr<Cursor>(
        new WatchedCursor(const_cast<WatchedStore&>(*this), *std::move(opened)));
  }
  void observe(ChangeObserver* observer) override {
    observer_ = observer;
    below().observe(observer);
  }
  // Makes a change that the observer does not hear of.
  void silently(const std::function<void()>& change) {
    below().observe(nullptr);
    change();
    below().observe(observer_);
  }
  // Reports a whole range, like a store that knows no better.
  void tell(const KeyRange& range) { observer_->changed(range); }
  Result<Bytes> position() const override {
    if (before_position) before_position();
    return below().position();
  }
  Result<std::optional<Bytes>> load_checkpoint() const override {
    Result<std::optional<Bytes>> loaded = below().load_checkpoint();
    if (damage && loaded && *loaded) damage(**loaded);
    return loaded;
  }

 private:
  class WatchedCursor final : public Cursor {
   public:
    WatchedCursor(WatchedStore& store, std::unique_ptr<Cursor> below)
        : store_(store), below_(std::move(below)) {}
    void seek(std::string_view key) override {
      below_->seek(key);
      count();
    }
    void next() override {
      below_->next();
      count();
    }
    bool valid() const override { return !failed_ && below_->valid(); }
    std::string_view key() const override { return below_->key(); }
    std::string_view value() const override { return below_->value(); }
    Result<void> status() const override {
      if (failed_) return Error{Errc::io, "a bad block"};
      return below_->status();
    }

   private:
    void count() {
      if (below_->valid() && ++store_.reads >= store_.fails_at) failed_ = true;
    }
    WatchedStore& store_;
    std::unique_ptr<Cursor> below_;
    bool failed_ = false;
  };

  MemoryStore memory_;
  ChangeObserver* observer_ = nullptr;
};

std::unique_ptr<IndexedStore> opened(OrderedStore& store,
                                     const IndexedStore::Settings& settings = kSettings,
                                     std::uint8_t secret = 1) {
  auto index = IndexedStore::open(store, numbered_secret(secret), settings);
  EXPECT_TRUE(index) << index.error().message();
  return *std::move(index);
}

IndexedStore::Settings settings_of(KeyRange range, RecordMeasure measure) {
  IndexedStore::Settings settings = kSettings;
  settings.range = std::move(range);
  settings.measure = measure;
  return settings;
}

// Returns what the index should report for a range: the sum over its indexed records.
Aggregate sum_of(const OrderedStore& store, const KeyRange& range, const Secret& secret,
                 RecordMeasure measure) {
  EntryDigest digest(secret);
  Aggregate sum;
  for (const auto& [key, value] : read(store)) {
    if (!range.contains(key)) continue;
    sum += {1, key.size() + value.size(), digest(key, value), measure(key, value)};
  }
  return sum;
}

KeyRange some_range(Random& random, std::uint64_t keys = 2000) {
  const std::uint64_t first = random.below(keys);
  KeyRange range{numbered_key(first), numbered_key(first + random.below(keys))};
  if (random.below(4) == 0) range.end.reset();
  if (random.below(4) == 0) range.first.clear();
  return range;
}

std::uint64_t distance(const Floret& a, const Floret& b) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < a.bytes().size(); ++i) {
    sum +=
        static_cast<std::uint64_t>(std::abs(static_cast<std::int8_t>(a.bytes()[i] - b.bytes()[i])));
  }
  return sum;
}

TEST(IndexedStore, EqualsARebuiltIndexAfterAnyChanges) {
  MemoryStore store;
  Random random(1);
  change(store, random, 500);
  const auto index = opened(store);
  EXPECT_EQ(index->opened(), Opened::rebuilt);
  expect_equals_rebuilt(*index);
  for (int round = 0; round < 30; ++round) {
    change(store, random, static_cast<int>(random.below(200)));
    expect_equals_rebuilt(*index);
  }
  ASSERT_TRUE(store.remove_range(KeyRange::all()));
  expect_equals_rebuilt(*index);
  EXPECT_EQ(index->view()->trie().total(), Aggregate());
}

TEST(IndexedStore, OfAnEmptyStoreIsEmpty) {
  MemoryStore store;
  const auto index = opened(store);
  expect_equals_rebuilt(*index);
  EXPECT_EQ(index->view()->trie().total(), Aggregate());
}

TEST(IndexedStore, EqualsARebuiltIndexWhenConcurrentWritersHaveComeToRest) {
  MemoryStore store;
  const auto index = opened(store);
  constexpr int kWriters = 2;
  std::atomic<int> writing = kWriters;
  std::vector<std::thread> writers;
  for (int seed = 0; seed < kWriters; ++seed) {
    writers.emplace_back([&, seed] {
      Random random(static_cast<std::uint64_t>(seed));
      change(store, random, 3000);
      --writing;
    });
  }
  for (int round = 0; writing > 0; ++round) {
    {
      const Result<IndexedStore::View> view = index->view();
      EXPECT_TRUE(view);
      EXPECT_TRUE(index->floret(*view, KeyRange::all(), Fresh::exact));
    }
    EXPECT_GT(index->bytes(), 0U);
    if (round % 8 == 0) {
      EXPECT_TRUE(index->checkpoint());
    }
  }
  for (std::thread& writer : writers) writer.join();
  expect_equals_rebuilt(*index);
}

// The thread that holds the view makes more notes than are kept at ease, then more than are kept at
// all.
TEST(IndexedStore, KeepsNoWriterWaitingForAView) {
  for (const int writes : {600, 20'000}) {
    MemoryStore store;
    put(store, "a", "1");
    const auto index = opened(store);
    const std::string long_key(2000, 'm');
    {
      const Result<IndexedStore::View> view = index->view();
      ASSERT_TRUE(view);
      for (int n = 0; n < writes; ++n) put(store, long_key + std::to_string(n % 100), "2");
      EXPECT_EQ(view->trie().total().count, 1U);
    }
    EXPECT_LT(index->bytes(), std::size_t{33} << 20);
    expect_equals_rebuilt(*index);
    EXPECT_LT(index->bytes(), std::size_t{1} << 20);
  }
}

TEST(IndexedStore, MarksItsNotesBetweenViews) {
  MemoryStore store;
  const auto index = opened(store);
  expect_equals_rebuilt(*index);
  const std::string long_key(2000, 'm');
  for (int n = 0; n < 20'000; ++n) put(store, long_key + std::to_string(n % 100), "2");
  EXPECT_LT(index->bytes(), std::size_t{3} << 20);
  expect_equals_rebuilt(*index);
}

TEST(IndexedStore, AViewSeesOneInstant) {
  MemoryStore store;
  put(store, "a", "1");
  const auto index = opened(store);
  Result<IndexedStore::View> view = index->view();
  ASSERT_TRUE(view);
  put(store, "b", "2");
  view->cursor().seek("a");
  ASSERT_TRUE(view->cursor().valid());
  view->cursor().next();
  EXPECT_FALSE(view->cursor().valid());
  EXPECT_EQ(view->trie().total().count, 1U);
  { const IndexedStore::View gone = *std::move(view); }
  EXPECT_EQ(index->view()->trie().total().count, 2U);
}

TEST(IndexedStore, MissesNoChangeThatComesWhileAViewIsTaken) {
  WatchedStore store;
  Random random(11);
  change(store, random, 300);
  const auto index = opened(store);
  expect_equals_rebuilt(*index);
  store.after_cursor = [&] { put(store, numbered_key(7), "after the cursor"); };
  ASSERT_TRUE(index->view());
  store.after_cursor = nullptr;
  expect_equals_rebuilt(*index);
}

TEST(IndexedStore, MissesNoChangeThatComesWhileACheckpointIsTaken) {
  WatchedStore store;
  Random random(12);
  change(store, random, 300);
  {
    const auto index = opened(store);
    expect_equals_rebuilt(*index);
    store.before_position = [&] { put(store, numbered_key(7), "before the position"); };
    ASSERT_TRUE(index->checkpoint());
    store.before_position = nullptr;
  }
  const auto index = opened(store);
  EXPECT_EQ(index->opened(), Opened::followed);
  expect_equals_rebuilt(*index);
}

TEST(IndexedStore, FollowsFromItsCheckpoint) {
  WatchedStore store;
  Random random(2);
  change(store, random, 2000);
  {
    const auto index = opened(store);
    expect_equals_rebuilt(*index);
    change(store, random, 20);  // marked in the checkpoint
    ASSERT_TRUE(index->checkpoint());
    change(store, random, 20);  // after it
  }
  change(store, random, 20);  // after the index was closed
  const auto index = opened(store);
  EXPECT_EQ(index->opened(), Opened::followed);
  store.reads = 0;
  ASSERT_TRUE(index->view());
  const std::uint64_t reads = store.reads;
  expect_equals_rebuilt(*index);
  EXPECT_LT(reads, rebuilt_trie(**store.cursor(), 512, index->secret()).total().count);
}

// A compaction or a bulk load changes whole ranges. The trie reads them, and the florets take them
// too.
TEST(IndexedStore, MakesFloretsFreshWhereItReadsWholeSlabs) {
  WatchedStore store;
  const auto index = opened(store);
  ASSERT_TRUE(index->view());  // the store is empty
  for (int n = 0; n < 2000; ++n) put(store, numbered_key(n), "value");
  const auto expect_known = [&] {
    const auto view = index->view();
    ASSERT_TRUE(view);
    store.reads = 0;
    const auto kept = index->floret(*view, KeyRange::all(), Fresh::as_kept);
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->unknown, 0U);
    EXPECT_EQ(store.reads, 0U);
    EXPECT_EQ(kept->floret, rebuilt_floret(view->cursor(), KeyRange::all(), index->secret()));
  };
  expect_known();
  store.tell(KeyRange::all());
  expect_known();
  for (int n = 0; n < 2000; n += 2) put(store, numbered_key(n), "another value");
  expect_known();
}

// If nothing read worn slabs, the florets would know less with every write, until they know
// nothing.
TEST(IndexedStore, ReadsWornSlabsAndNoOthers) {
  WatchedStore store;
  for (int n = 0; n < 2000; ++n) put(store, numbered_key(n), "value");
  const auto index = opened(store);
  std::uint64_t most = 0, reads = 0;
  for (int round = 0; round < 500; ++round) {
    put(store, numbered_key(round % 2000), "value " + std::to_string(round));
    const auto view = index->view();
    ASSERT_TRUE(view);
    store.reads = 0;
    const auto floret = index->floret(*view, KeyRange::all(), Fresh::not_worn);
    ASSERT_TRUE(floret);
    most = std::max(most, floret->unknown);
    reads += store.reads;
  }
  const std::uint64_t containers = (*index->view()).trie().container_count();
  EXPECT_LE(most, containers);
  EXPECT_GT(most, 0U);
  EXPECT_LT(reads, 500 * 2000 / 20);
}

// The store changes behind the observer's back: one record changes, one goes, one comes.
TEST(IndexedStore, AScrubTellsWhereTheDiskHasChanged) {
  WatchedStore store;
  for (int n = 0; n < 2000; ++n) put(store, numbered_key(n), "value");
  const auto index = opened(store);
  const auto fresh = index->scrub();
  ASSERT_TRUE(fresh);
  EXPECT_FALSE(fresh->compared);
  EXPECT_EQ(fresh->records, 2000U);
  put(store, numbered_key(7), "told");
  const auto right = index->scrub();
  ASSERT_TRUE(right);
  EXPECT_TRUE(right->compared);
  EXPECT_EQ(right->stretches, 0U);

  store.silently([&] {
    put(store, numbered_key(100), "rotten");
    const std::string gone = numbered_key(900);
    const RecordWrite removal{gone, std::nullopt};
    ASSERT_TRUE(store.write({&removal, 1}));
    put(store, numbered_key(1500) + "x", "new");
  });
  const auto wrong = index->scrub();
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->stretches, 3U);
  EXPECT_EQ(wrong->records, 2000U);
  EXPECT_LT(wrong->in_question, 200U);
  ASSERT_EQ(wrong->first.size(), 3U);
  for (const int n : {100, 900, 1500}) {
    EXPECT_TRUE(std::ranges::any_of(wrong->first, [&](const KeyRange& keys) {
      return keys.contains(numbered_key(n));
    })) << n;
  }
  expect_equals_rebuilt(*index);
  EXPECT_EQ(index->scrub()->stretches, 0U);

  store.silently([&] { put(store, numbered_key(3), "rotten"); });
  store.fails_at = store.reads + 1000;
  EXPECT_FALSE(index->scrub());
  store.fails_at = ~std::uint64_t{0};
  EXPECT_EQ(index->scrub()->stretches, 1U);
}

TEST(IndexedStore, ReadsNothingWhenNothingHasChangedSinceTheCheckpoint) {
  WatchedStore store;
  Random random(3);
  change(store, random, 2000);
  {
    const auto index = opened(store);
    expect_equals_rebuilt(*index);
    ASSERT_TRUE(index->checkpoint());
  }
  const auto index = opened(store);
  EXPECT_EQ(index->opened(), Opened::followed);
  store.reads = 0;
  {
    const auto view = index->view();
    ASSERT_TRUE(view);
    const auto floret = index->floret(*view, KeyRange::all(), Fresh::exact);
    ASSERT_TRUE(floret);
    EXPECT_EQ(floret->unknown, 0U);
  }
  EXPECT_EQ(store.reads, 0U);
  expect_equals_rebuilt(*index);
}

TEST(IndexedStore, IsRebuiltWhereTheStoreHasForgottenTheChanges) {
  MemoryStore store(100);
  Random random(4);
  change(store, random, 500);
  {
    const auto index = opened(store);
    expect_equals_rebuilt(*index);
    ASSERT_TRUE(index->checkpoint());
  }
  change(store, random, 500);
  const auto index = opened(store);
  EXPECT_EQ(index->opened(), Opened::rebuilt);
  expect_equals_rebuilt(*index);
}

TEST(IndexedStore, DoesNotBelieveACheckpointOfAnotherSecretOrShape) {
  MemoryStore store;
  Random random(5);
  change(store, random, 500);
  {
    const auto index = opened(store);
    expect_equals_rebuilt(*index);
    ASSERT_TRUE(index->checkpoint());
  }
  const auto is_rebuilt = [&](const IndexedStore::Settings& settings, std::uint8_t secret) {
    const auto index = opened(store, settings, secret);
    EXPECT_EQ(index->opened(), Opened::rebuilt);
    expect_equals_rebuilt(*index);
  };
  is_rebuilt(kSettings, 2);
  is_rebuilt({.burst_bytes = 1024, .slab_bytes = kSettings.slab_bytes}, 1);
  is_rebuilt({.burst_bytes = kSettings.burst_bytes, .slab_bytes = 8192}, 1);
  is_rebuilt(settings_of({numbered_key(100), std::nullopt}, nullptr), 1);
  is_rebuilt(settings_of({"", numbered_key(100)}, nullptr), 1);
  is_rebuilt(settings_of({}, &signed_length), 1);
  EXPECT_EQ(opened(store)->opened(), Opened::followed);
}

TEST(IndexedStore, DoesNotBelieveACheckpointOfAnotherRangeOrWithMeasuresThatNobodyWants) {
  MemoryStore store;
  Random random(13);
  change(store, random, 500);
  const KeyRange range{numbered_key(500), numbered_key(1500)};
  const IndexedStore::Settings settings = settings_of(range, &signed_length);
  {
    const auto index = opened(store, settings);
    expect_equals_rebuilt(*index);
    ASSERT_TRUE(index->checkpoint());
  }
  for (const IndexedStore::Settings& others :
       {settings_of(range, nullptr), settings_of({}, &signed_length),
        settings_of({range.first, std::nullopt}, &signed_length),
        settings_of({range.first, numbered_key(1400)}, &signed_length),
        settings_of({numbered_key(501), range.end}, &signed_length)}) {
    const auto index = opened(store, others);
    EXPECT_EQ(index->opened(), Opened::rebuilt);
    expect_equals_rebuilt(*index);
  }
  EXPECT_EQ(opened(store, settings)->opened(), Opened::followed);
}

// Covers writes, merges, removals, checkpoints and openings, with all keys indexed and with some.
TEST(IndexedStore, SumsMeasuresOfTheRecordsThatAreIndexed) {
  for (const KeyRange& indexed :
       {KeyRange::all(), KeyRange{numbered_key(400), numbered_key(1600)},
        KeyRange{numbered_key(400), std::nullopt}, KeyRange{"", numbered_key(1600)}}) {
    const Appending appending;
    MemoryStore store(MemoryStore::kLogKeys, &appending);
    Random random(14);
    const IndexedStore::Settings settings = settings_of(indexed, &signed_length);
    change(store, random, 1000);
    auto index = opened(store, settings);
    for (int round = 0; round < 40; ++round) {
      change(store, random, static_cast<int>(random.below(100)));
      for (std::uint64_t n = random.below(20); n > 0; --n) {
        const std::string key = numbered_key(random.below(2000));
        const RecordWrite merge{key, "longer", true};
        ASSERT_TRUE(store.write({&merge, 1}));
      }
      if (round % 10 == 3) {
        ASSERT_TRUE(index->checkpoint());
      }
      if (round % 10 == 5) {
        index.reset();
        change(store, random, 20);
        index = opened(store, settings);
        ASSERT_EQ(index->opened(), Opened::followed);
      }
      const Result<IndexedStore::View> view = index->view();
      ASSERT_TRUE(view);
      const auto expected = [&](const KeyRange& range) {
        return sum_of(store, intersection(range, indexed), index->secret(), &signed_length);
      };
      ASSERT_EQ(view->trie().total(), expected(KeyRange::all()));
      for (int n = 0; n < 10; ++n) {
        const KeyRange range = some_range(random);
        ASSERT_EQ(*view->trie().sum(range, view->cursor()), expected(range));
        const auto floret = index->floret(*view, range, Fresh::exact);
        ASSERT_TRUE(floret);
        const auto cursor = store.cursor();
        ASSERT_EQ(floret->floret,
                  rebuilt_floret(**cursor, intersection(range, indexed), index->secret()));
      }
    }
  }
}

TEST(IndexedStore, NeitherNotesNorReadsWhatIsNotIndexed) {
  WatchedStore store;
  for (std::uint64_t n = 0; n < 3000; ++n) put(store, numbered_key(n), "value");
  const KeyRange range{numbered_key(1000), numbered_key(2000)};
  const auto index = opened(store, settings_of(range, nullptr));
  store.reads = 0;
  ASSERT_TRUE(index->view());
  EXPECT_EQ(index->view()->trie().total().count, 1000U);
  EXPECT_LE(store.reads, 1001U);  // with the one that ends the range

  const std::size_t bytes = index->bytes();
  for (const std::uint64_t n : {0, 999, 2000, 2999}) put(store, numbered_key(n), "another");
  ASSERT_TRUE(store.remove_range({numbered_key(10), range.first}));
  ASSERT_TRUE(store.remove_range({*range.end, std::nullopt}));
  EXPECT_EQ(index->bytes(), bytes);
  store.reads = 0;
  ASSERT_TRUE(index->view());
  EXPECT_EQ(store.reads, 0U);

  for (const std::uint64_t n : {1000, 1999}) put(store, numbered_key(n), "another");
  expect_equals_rebuilt(*index);
  EXPECT_EQ(index->view()->trie().total().count, 1000U);
  ASSERT_TRUE(store.remove_range({"", numbered_key(1001)}));
  ASSERT_TRUE(store.remove_range({numbered_key(1999), std::nullopt}));
  expect_equals_rebuilt(*index);
  EXPECT_EQ(index->view()->trie().total().count, 998U);
}

TEST(IndexedStore, AViewShowsTheRecordsThatAreIndexed) {
  MemoryStore store;
  for (const char* const key : {"a", "b", "c", "d", "e"}) put(store, key, "value");
  const auto index = opened(store, settings_of({"b", "d"}, nullptr));
  const Result<IndexedStore::View> view = index->view();
  ASSERT_TRUE(view);
  Cursor& cursor = view->cursor();
  EXPECT_FALSE(cursor.valid());
  EXPECT_EQ(read(cursor), (Model{{"b", "value"}, {"c", "value"}}));
  EXPECT_EQ(read(cursor, "bb"), (Model{{"c", "value"}}));
  EXPECT_EQ(read(cursor, "d"), Model());
}

TEST(IndexedStore, DoesNotBelieveADamagedCheckpoint) {
  WatchedStore store;
  Random random(6);
  change(store, random, 300);
  {
    const auto index = opened(store);
    expect_equals_rebuilt(*index);
    ASSERT_TRUE(index->checkpoint());
  }
  for (int round = 0; round < 50; ++round) {
    store.damage = [&](Bytes& bytes) {
      if (round % 5 == 0) {
        bytes.resize(random.below(bytes.size()));
      } else {
        bytes[random.below(bytes.size())] ^= static_cast<std::uint8_t>(1U << random.below(8));
      }
    };
    const auto index = opened(store);
    EXPECT_EQ(index->opened(), Opened::rebuilt);
    expect_equals_rebuilt(*index);
  }
  store.damage = nullptr;
  EXPECT_EQ(opened(store)->opened(), Opened::followed);
}

TEST(IndexedStore, GivesTheErrorOfItsStoreAndIsRightAfterwards) {
  WatchedStore store;
  Random random(7);
  change(store, random, 1000);
  const auto index = opened(store);
  for (const bool first : {true, false}) {
    store.fails_at = store.reads + (first ? 300 : 1);
    const Result<IndexedStore::View> failed = index->view();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Errc::io);
    store.fails_at = ~std::uint64_t{0};
    expect_equals_rebuilt(*index);
    change(store, random, 20);
  }
  expect_equals_rebuilt(*index);
  change(store, random, 20);
  {
    const Result<IndexedStore::View> view = index->view();
    ASSERT_TRUE(view);
    store.fails_at = store.reads + 50;
    const auto floret = index->floret(*view, KeyRange::all(), Fresh::exact);
    ASSERT_FALSE(floret);
    EXPECT_EQ(floret.error().code, Errc::io);
    store.fails_at = ~std::uint64_t{0};
  }
  expect_equals_rebuilt(*index);
}

TEST(IndexedStore, MakesFloretsInTheOnePassOfItsBulkLoad) {
  WatchedStore store;
  Random random(8);
  change(store, random, 2000);
  const auto index = opened(store);
  const Result<IndexedStore::View> view = index->view();
  ASSERT_TRUE(view);
  EXPECT_LE(store.reads, view->trie().total().count + 1);
  store.reads = 0;
  const auto floret = index->floret(*view, KeyRange::all(), Fresh::as_kept);
  ASSERT_TRUE(floret);
  EXPECT_EQ(store.reads, 0U);
  EXPECT_EQ(floret->unknown, 0U);
  EXPECT_EQ(floret->floret, rebuilt_floret(view->cursor(), KeyRange::all(), index->secret()));
}

TEST(IndexedStore, GivesExactFloretsOfAnyRangeAndSaysWhatKeptOnesLack) {
  MemoryStore store;
  Random random(9);
  change(store, random, 2000);
  const auto index = opened(store);
  for (int round = 0; round < 60; ++round) {
    change(store, random, static_cast<int>(random.below(30)));
    const Result<IndexedStore::View> view = index->view();
    ASSERT_TRUE(view);
    const std::uint64_t first = random.below(2000);
    KeyRange range{numbered_key(first), numbered_key(first + random.below(2000))};
    if (round % 4 == 0) range.end.reset();
    if (round % 6 == 0) range.first.clear();
    const Floret truth = rebuilt_floret(view->cursor(), range, index->secret());
    const auto kept = index->floret(*view, range, Fresh::as_kept);
    ASSERT_TRUE(kept);
    // A change removes a record, adds one, or both.
    EXPECT_LE(distance(kept->floret, truth), 2 * kept->unknown);
    const auto exact = index->floret(*view, range, Fresh::exact);
    ASSERT_TRUE(exact);
    EXPECT_EQ(exact->unknown, 0U);
    EXPECT_EQ(exact->floret, truth);
  }
}

TEST(IndexedStore, StaysRightWhenMemoryRunsOutForANote) {
  MemoryStore store;
  Random random(10);
  change(store, random, 300);
  const std::string key(500, 'x');
  const KeyRange range{numbered_key(1), std::string(600, 'x')};
  for (std::size_t good = 0; good < 60; ++good) {
    const auto index = opened(store, settings_of(good % 2 == 0 ? KeyRange() : range, nullptr));
    expect_equals_rebuilt(*index);
    try {
      const FailingAllocation failing(good / 2);
      const RecordWrite write{key, "value"};
      EXPECT_TRUE(store.write({&write, 1}));
    } catch (const std::bad_alloc&) {  // thrown by the store
    }
    expect_equals_rebuilt(*index);
    ASSERT_TRUE(store.remove_range({key, std::nullopt}));
  }
}

TEST(IndexedStore, RefusesImpossibleSettings) {
  MemoryStore store;
  for (const IndexedStore::Settings& settings : {IndexedStore::Settings{.burst_bytes = 255},
                                                 {.burst_bytes = (1U << 26) + 1},
                                                 {.slab_bytes = 0},
                                                 settings_of({"b", "b"}, nullptr)}) {
    const auto index = IndexedStore::open(store, numbered_secret(1), settings);
    ASSERT_FALSE(index);
    EXPECT_EQ(index.error().code, Errc::invalid);
  }
}

TEST(IndexedStoreDeathTest, RefusesTheViewOfAnother) {
  MemoryStore one;
  MemoryStore other;
  const auto index = opened(one);
  const auto foreign = opened(other);
  const Result<IndexedStore::View> view = foreign->view();
  ASSERT_TRUE(view);
  EXPECT_DEATH((void)index->floret(*view, KeyRange::all(), Fresh::exact), "is_mine");
}

}  // namespace
}  // namespace semel
