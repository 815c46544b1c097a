// OrderedStore: one contract for every store: compared with a std::map, cursors of one instant,
// concurrent writers, and an observer that hears of everything.
#include "semel/store/ordered_store.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <new>
#include <set>
#include <thread>

#include "semel/core/internal/random.h"
#include "semel/store/internal/responsible_store.h"
#include "semel/store/memory_store.h"
#include "semel/store/range_set.h"
#include "semel/store/rocksdb_store.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/allocation.h"
#include "tests/support/crashing_store.h"
#include "tests/support/store.h"
#include "tests/support/store_driver.h"

namespace semel {

using namespace store_internal;

namespace {

const Appender kAppender;

class MemoryCase {
 public:
  OrderedStore& store() { return store_; }
  void reopen() {}  // it lives as long as its object
  static KeyRange everything() { return KeyRange::all(); }

 private:
  MemoryStore store_{MemoryStore::kLogKeys, &kAppender};
};

class CrashingCase {
 public:
  OrderedStore& store() { return store_; }
  void reopen() { ASSERT_TRUE(store_.sync()); }
  static KeyRange everything() { return KeyRange::all(); }

 private:
  CrashingStore store_{&kAppender};
};

class RocksCase {
 public:
  RocksCase() { open(); }
  OrderedStore& store() { return *store_; }
  void reopen() {
    store_.reset();
    open();
  }
  static KeyRange everything() { return KeyRange::all(); }

 private:
  void open() {
    auto opened =
        RocksStore::open(directory_.path().string(),
                         {.create = true, .write_buffer_bytes = 1 << 16, .merger = &kAppender});
    SEMEL_ASSERT(opened);
    store_ = *std::move(opened);
  }
  TemporaryDirectory directory_;
  std::unique_ptr<RocksStore> store_;
};

// Answers for the keys before "m". The store below has other keys too.
template <class Below>
class ResponsibleCase {
 public:
  ResponsibleCase() {
    for (const char* const key : {"m", "n", "x"}) put(below_.store(), key, "outside");
    reopen();
  }
  OrderedStore& store() { return *store_; }
  void reopen() {
    store_.reset();
    below_.reopen();
    store_.emplace(below_.store(), RangeSet(everything()));
  }
  static KeyRange everything() { return {"", "m"}; }

 private:
  Below below_;
  std::optional<ResponsibleStore> store_;
};

template <class Case>
class OrderedStoreContract : public ::testing::Test {
 protected:
  OrderedStore& store() { return case_.store(); }
  Case case_;
};
using Cases = ::testing::Types<MemoryCase, CrashingCase, RocksCase, ResponsibleCase<MemoryCase>,
                               ResponsibleCase<RocksCase>>;
TYPED_TEST_SUITE(OrderedStoreContract, Cases);

TYPED_TEST(OrderedStoreContract, IsAMapThatTellsOfEveryChangeBeforeTheCallReturns) {
  Driver driver(this->store(), TypeParam::everything());
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const Model before = driver.model();
    Told told;
    this->store().observe(&told);
    driver.step(random);
    this->store().observe(nullptr);
    expect_told(told, before, driver.model());
    const std::string key = small_key(random.below(60));
    const auto value = this->store().get(key);
    ASSERT_TRUE(value);
    const auto expected = driver.model().find(key);
    ASSERT_EQ(value->has_value(), expected != driver.model().end());
    ASSERT_TRUE(!*value || **value == expected->second);
    if (i % 50 == 0) {
      ASSERT_EQ(read(this->store()), driver.model()) << i;
    }
    if (this->HasFatalFailure()) return;
  }
  this->case_.reopen();
  EXPECT_EQ(read(this->store()), driver.model());
}

TYPED_TEST(OrderedStoreContract, ASeekFindsTheFirstKeyThatIsNotLess) {
  Driver driver(this->store(), TypeParam::everything());
  Random random(2);
  for (int i = 0; i < 100; ++i) driver.step(random);
  const auto cursor = this->store().cursor();
  ASSERT_TRUE(cursor);
  EXPECT_FALSE((*cursor)->valid());
  for (std::uint64_t n = 0; n < 500; ++n) {
    const std::string key = small_key(n);
    const Model& model = driver.model();
    EXPECT_EQ(read(**cursor, key), Model(model.lower_bound(key), model.end()));
  }
  (*cursor)->seek(std::string(9, '\xff'));
  EXPECT_FALSE((*cursor)->valid());
  EXPECT_TRUE((*cursor)->status());
}

// Cursors of many instants are open at once, and are read while writers go on.
TYPED_TEST(OrderedStoreContract, ACursorSeesTheInstantOfItsOpening) {
  Driver driver(this->store(), TypeParam::everything());
  Random random(3);
  struct Open {
    std::unique_ptr<Cursor> cursor;
    Model model;
  };
  std::vector<Open> open;
  for (int i = 0; i < 1500; ++i) {
    driver.step(random);
    if (random.below(4) == 0 && open.size() < 8) {
      open.push_back({*this->store().cursor(), driver.model()});
    }
    if (open.empty() || random.below(3) != 0) continue;
    const std::size_t which = random.below(open.size());
    ASSERT_EQ(read(*open[which].cursor), open[which].model) << i;
    if (random.below(2) == 0) open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
  }
  open.clear();
  EXPECT_EQ(read(this->store()), driver.model());
}

TYPED_TEST(OrderedStoreContract, TheLastOfEqualKeysInAWriteCounts) {
  const std::vector<RecordWrite> writes = {{"a", "1"}, {"a", std::nullopt}, {"b", "1"},
                                           {"b", "2"}, {"c", std::nullopt}, {"c", "3"}};
  const auto open = this->store().cursor();  // versions are kept
  ASSERT_TRUE(this->store().write(writes));
  EXPECT_EQ(read(this->store()), (Model{{"b", "2"}, {"c", "3"}}));
  EXPECT_EQ(read(**open), Model{});
}

TYPED_TEST(OrderedStoreContract, AMergeAddsToWhateverIsThere) {
  OrderedStore& store = this->store();
  put(store, "gone", "1");
  put(store, "here", "1");
  const RecordWrite remove{"gone", std::nullopt};
  ASSERT_TRUE(store.write({&remove, 1}));
  for (const char* const key : {"absent", "gone", "here"}) {
    ASSERT_TRUE(merge(store, key, "a"));
    ASSERT_TRUE(merge(store, key, "b"));
  }
  ASSERT_TRUE(merge(store, "empty", ""));
  const Model expected = {{"absent", "ab"}, {"empty", ""}, {"gone", "ab"}, {"here", "1ab"}};
  EXPECT_EQ(read(store), expected);
  this->case_.reopen();
  EXPECT_EQ(read(this->store()), expected);
}

TYPED_TEST(OrderedStoreContract, AMergeSeesWhatCameBeforeItInTheSameWrite) {
  put(this->store(), "b", "0");
  put(this->store(), "c", "0");
  put(this->store(), "d", "0");
  const std::vector<RecordWrite> writes = {
      {"a", "1", true}, {"a", "2", true},    {"a", "3", true},  // absent before
      {"b", "1", true}, {"b", std::nullopt}, {"b", "2", true},  // a removal in between
      {"c", "1", true}, {"c", "2"},          {"c", "3", true},  // a value in between
      {"d", "1", true}, {"d", std::nullopt}};
  ASSERT_TRUE(this->store().write(writes));
  EXPECT_EQ(read(this->store()), (Model{{"a", "123"}, {"b", "2"}, {"c", "23"}}));
}

TYPED_TEST(OrderedStoreContract, ACursorDoesNotSeeLaterMerges) {
  put(this->store(), "a", "1");
  ASSERT_TRUE(merge(this->store(), "b", "1"));
  const auto open = this->store().cursor();
  ASSERT_TRUE(open);
  for (const char* const key : {"a", "b", "c"}) ASSERT_TRUE(merge(this->store(), key, "2"));
  EXPECT_EQ(read(**open), (Model{{"a", "1"}, {"b", "1"}}));
  EXPECT_EQ(read(this->store()), (Model{{"a", "12"}, {"b", "12"}, {"c", "2"}}));
}

TYPED_TEST(OrderedStoreContract, AMergeIsToldAtOnceAndAfterReopening) {
  const Result<Bytes> position = this->store().position();
  ASSERT_TRUE(position);
  Told told;
  this->store().observe(&told);
  ASSERT_TRUE(merge(this->store(), "a", "1"));
  this->store().observe(nullptr);
  EXPECT_EQ(told.keys(), (std::set<std::string>{"a"}));
  this->case_.reopen();
  Told later;
  ASSERT_TRUE(this->store().changes_since(*position, later));
  EXPECT_EQ(later.keys(), (std::set<std::string>{"a"}));
}

// A store that merges at once refuses the write. A store that merges later cannot read the record.
TYPED_TEST(OrderedStoreContract, ADamagedMergeIsCorruptWhereItIsMadeAndHarmsNoOtherRecord) {
  OrderedStore& store = this->store();
  put(store, "b", "1");
  put(store, "c", "1");
  const std::vector<RecordWrite> writes = {{"a", "2"}, {"b", "!", true}};
  const Result<void> written = store.write(writes);
  if (!written) {
    EXPECT_EQ(written.error().code, Errc::corrupt);
    EXPECT_EQ(read(store), (Model{{"b", "1"}, {"c", "1"}}));
    return;
  }
  const auto corrupt = [](const auto& result) {
    return !result && result.error().code == Errc::corrupt;
  };
  EXPECT_TRUE(corrupt(store.get("b")));
  const std::vector<std::string_view> keys = {"a", "b"};
  EXPECT_TRUE(corrupt(store.update(keys, [](std::size_t, auto) { return "3"; })));
  const auto cursor = store.cursor();
  ASSERT_TRUE(cursor);
  (*cursor)->seek("b");
  EXPECT_FALSE((*cursor)->valid());
  EXPECT_TRUE(corrupt((*cursor)->status()));
  EXPECT_EQ(**store.get("a"), "2");
  EXPECT_EQ(**store.get("c"), "1");
  put(store, "b", "4");
  EXPECT_EQ(read(store), (Model{{"a", "2"}, {"b", "4"}, {"c", "1"}}));
}

TYPED_TEST(OrderedStoreContract, SyncChangesNoRecord) {
  ASSERT_TRUE(this->store().sync());
  ASSERT_TRUE(merge(this->store(), "a", "1"));
  ASSERT_TRUE(this->store().sync());
  EXPECT_EQ(read(this->store()), (Model{{"a", "1"}}));
}

TYPED_TEST(OrderedStoreContract, TheEmptyKeyAndTheEmptyValueAreARecord) {
  put(this->store(), "", "");
  EXPECT_EQ(read(this->store()), (Model{{"", ""}}));
  EXPECT_EQ(**this->store().get(""), "");
  ASSERT_TRUE(this->store().remove_range({"", std::string(1, '\0')}));
  EXPECT_EQ(read(this->store()), Model{});
}

TYPED_TEST(OrderedStoreContract, AnEmptyRangeRemovesNothing) {
  put(this->store(), "b", "1");
  ASSERT_TRUE(this->store().remove_range({"c", "a"}));
  ASSERT_TRUE(this->store().remove_range({"b", "b"}));
  EXPECT_EQ(read(this->store()), (Model{{"b", "1"}}));
}

TYPED_TEST(OrderedStoreContract, NoUpdateIsLostAmongThreads) {
  constexpr int kThreads = 4, kRounds = 200;
  Told told;
  this->store().observe(&told);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string own = "each " + std::to_string(t);
      const std::vector<std::string_view> keys = {"all", own};
      for (int i = 0; i < kRounds; ++i) {
        ASSERT_TRUE(
            this->store().update(keys, [](std::size_t, std::optional<std::string_view> now) {
              return std::to_string(std::stoi(std::string(now.value_or("0"))) + 1);
            }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  this->store().observe(nullptr);
  EXPECT_EQ(**this->store().get("all"), std::to_string(kThreads * kRounds));
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(**this->store().get("each " + std::to_string(t)), std::to_string(kRounds));
  }
  EXPECT_EQ(told.keys().size(), 1u + kThreads);
}

// Every write sets all its keys to one number. A cursor that sees two numbers has seen half a
// write.
TYPED_TEST(OrderedStoreContract, ACursorSeesNoHalfWriteWhileOthersWrite) {
  constexpr int kKeys = 300, kRounds = 60;
  std::atomic<bool> ended = false;
  std::vector<std::string> keys(kKeys);
  for (int n = 0; n < kKeys; ++n) keys[n] = std::string("k").append(std::to_string(1000 + n));
  const auto set_all = [&](const std::string& value) {
    std::vector<RecordWrite> writes;
    for (const std::string& key : keys) writes.push_back({key, value});
    ASSERT_TRUE(this->store().write(writes));
  };
  set_all("start");
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) set_all(std::to_string(kRounds * t + i));
    });
  }
  std::thread reader([&] {
    while (!ended) {
      const Model seen = read(this->store());
      ASSERT_EQ(seen.size(), static_cast<std::size_t>(kKeys));
      for (const auto& [key, value] : seen) ASSERT_EQ(value, seen.begin()->second);
      ASSERT_TRUE(this->store().position());
    }
  });
  for (std::thread& writer : writers) writer.join();
  ended = true;
  reader.join();
}

// Records that are not reported have not changed since the position. The store is reopened in
// between.
TYPED_TEST(OrderedStoreContract, ChangesSinceAPositionAreToldAfterReopening) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    std::optional<Driver> driver(std::in_place, this->store(), TypeParam::everything());
    ASSERT_TRUE(this->store().remove_range(TypeParam::everything()));
    for (std::uint64_t n = random.below(100); n > 0; --n) driver->step(random);
    const Model before = driver->model();
    const Result<Bytes> position = this->store().position();
    ASSERT_TRUE(position);
    for (std::uint64_t n = random.below(100); n > 0; --n) driver->step(random);
    this->case_.reopen();
    ASSERT_EQ(read(this->store()), driver->model());
    Told told;
    ASSERT_TRUE(this->store().changes_since(*position, told));
    expect_told(told, before, driver->model());
    Told again;
    const Result<Bytes> now = this->store().position();
    ASSERT_TRUE(now);
    ASSERT_TRUE(this->store().changes_since(*now, again));
    EXPECT_EQ(again.keys().size(), 0u);
    EXPECT_TRUE(again.ranges().empty());
  }
}

TYPED_TEST(OrderedStoreContract, AnUpdateThatChangesNothingWritesNothing) {
  put(this->store(), "a", "1");
  Told told;
  this->store().observe(&told);
  const std::vector<std::string_view> keys = {"a", "b"};
  ASSERT_TRUE(this->store().update(keys, [](std::size_t, std::optional<std::string_view> now) {
    return now ? std::optional<std::string>(*now) : std::nullopt;
  }));
  this->store().observe(nullptr);
  EXPECT_TRUE(told.nothing());
}

TYPED_TEST(OrderedStoreContract, SingleChangesAreToldAsKeys) {
  for (int n = 0; n < 100; ++n)
    put(this->store(), std::string("k").append(std::to_string(n)), "before");
  const Result<Bytes> position = this->store().position();
  ASSERT_TRUE(position);
  put(this->store(), "k7", "after");
  put(this->store(), "k8", "after");
  this->case_.reopen();
  Told told;
  ASSERT_TRUE(this->store().changes_since(*position, told));
  EXPECT_EQ(told.keys().size(), 2u);
  EXPECT_TRUE(told.ranges().empty());
}

TYPED_TEST(OrderedStoreContract, APositionOfAnotherStoreIsAGap) {
  put(this->store(), "a", "1");
  TypeParam other;
  put(other.store(), "a", "1");
  Told told;
  const Result<void> changes = this->store().changes_since(*other.store().position(), told);
  ASSERT_FALSE(changes);
  EXPECT_EQ(changes.error().code, Errc::gap);
}

TYPED_TEST(OrderedStoreContract, RefusesAPositionThatWasCut) {
  put(this->store(), "a", "1");
  const Result<Bytes> position = this->store().position();
  ASSERT_TRUE(position);
  for (std::size_t size = 0; size < position->size(); ++size) {
    Told told;
    EXPECT_FALSE(this->store().changes_since(ByteView(*position).first(size), told)) << size;
  }
}

TYPED_TEST(OrderedStoreContract, KeepsTheLastCheckpoint) {
  ASSERT_TRUE(this->store().load_checkpoint());
  EXPECT_EQ(*this->store().load_checkpoint(), std::nullopt);
  for (const Bytes& bytes : {Bytes{1, 2, 3}, Bytes{}, Bytes(100'000, 7)}) {
    ASSERT_TRUE(this->store().save_checkpoint(bytes));
    this->case_.reopen();
    const auto loaded = this->store().load_checkpoint();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(*loaded, bytes);
  }
}

TEST(MemoryStore, ItsLogGoesBackAsFarAsItSays) {
  MemoryStore store(10);
  put(store, "old", "1");
  const Bytes old = *store.position();
  put(store, "a", "1");
  const Bytes recent = *store.position();
  for (int n = 0; n < 10; ++n) put(store, "b", std::to_string(n));
  Told told;
  ASSERT_TRUE(store.changes_since(recent, told));
  EXPECT_TRUE(told.contains("b"));
  EXPECT_FALSE(told.contains("a"));
  EXPECT_EQ(store.changes_since(old, told).error().code, Errc::gap);
}

TEST(MemoryStore, ADamagedMergeIsNotTold) {
  MemoryStore store(MemoryStore::kLogKeys, &kAppender);
  const Bytes position = *store.position();
  Told told;
  store.observe(&told);
  EXPECT_EQ(merge(store, "a", "!").error().code, Errc::corrupt);
  ASSERT_TRUE(store.changes_since(position, told));
  EXPECT_TRUE(told.nothing());
  store.observe(nullptr);
}

// Also while a cursor is open, for which earlier versions are kept.
TEST(MemoryStore, AWriteIsDoneAsAWholeOrNotAtAllWhenMemoryRunsOut) {
  for (const bool watched : {false, true}) {
    for (int records = 1; records < 150; records += 7) {
      bool failed = true;
      for (std::size_t good = 0; failed; ++good) {
        MemoryStore store;
        Model expected;
        for (int i = 0; i < records; ++i) {
          expected["key-" + std::to_string(i)] = "a value that takes a block of its own: before";
        }
        for (const auto& [key, value] : expected) {
          const RecordWrite write{key, value};
          ASSERT_TRUE(store.write({&write, 1}));
        }
        const Model before = expected;
        const std::unique_ptr<Cursor> cursor = watched ? *store.cursor() : nullptr;

        const std::string after = "a value that takes a block of its own: after";
        const RecordWrite writes[] = {{"key-0", after},
                                      {"key-1", std::nullopt},
                                      {"a new key beside the others", after},
                                      {"key-0", std::nullopt},
                                      {"key-0", "twice"},
                                      {"none", std::nullopt},
                                      {"another key", after},
                                      {"another key", std::nullopt}};
        failed = false;
        try {
          const FailingAllocation failing(good);
          ASSERT_TRUE(store.write(writes));
        } catch (const std::bad_alloc&) {
          failed = true;
        }
        if (!failed) {
          for (const RecordWrite& write : writes) {
            expected.erase(std::string(write.key));
            if (write.value) expected[std::string(write.key)] = *write.value;
          }
        }
        EXPECT_EQ(read(store), expected) << good;
        if (watched) {
          EXPECT_EQ(read(*cursor), before);
        }
      }
    }
  }
}

TEST(MemoryStore, WithoutAMergerItRefusesToMergeAndChangesNothing) {
  MemoryStore store;
  const std::vector<RecordWrite> writes = {{"a", "1"}, {"b", "1", true}};
  EXPECT_EQ(store.write(writes).error().code, Errc::unsupported);
  EXPECT_EQ(read(store), Model{});
}

TEST(ResponsibleStore, AnythingOutsideIsAnErrorThatChangesNothing) {
  MemoryStore whole;
  put(whole, "x", "1");
  RangeSet inside(KeyRange{"b", "d"});
  inside.add({"f", "h"});
  ResponsibleStore store(whole, inside);
  const auto outside = [](const auto& result) {
    return !result && result.error().code == Errc::outside;
  };
  const std::vector<RecordWrite> half = {{"b", "1"}, {"d", "1"}};
  EXPECT_TRUE(outside(store.write(half)));
  const std::vector<std::string_view> keys = {"b", "e"};
  EXPECT_TRUE(outside(store.update(keys, [](std::size_t, auto) -> std::optional<std::string> {
    ADD_FAILURE() << "asked for a value";
    return std::nullopt;
  })));
  EXPECT_TRUE(outside(store.get("x")));
  EXPECT_TRUE(outside(store.get("h")));
  EXPECT_TRUE(outside(store.remove_range({"b", "g"})));
  EXPECT_TRUE(outside(store.remove_range(KeyRange::all())));
  EXPECT_EQ(read(whole), (Model{{"x", "1"}}));
  EXPECT_TRUE(store.get("c"));
  EXPECT_TRUE(store.remove_range({"f", "h"}));
  EXPECT_EQ(&store.whole(), &whole);
}

TEST(ResponsibleStore, TellsWhatEntersAndLeavesTheResponsibility) {
  MemoryStore whole;
  ResponsibleStore store(whole, RangeSet(KeyRange{"b", "f"}));
  for (const char* const key : {"a", "b", "c", "f", "g"}) put(whole, key, "1");
  EXPECT_EQ(read(store), (Model{{"b", "1"}, {"c", "1"}}));
  const Bytes position = *store.position();
  const auto open = store.cursor();
  Told live;
  store.observe(&live);
  store.set_responsibility(RangeSet(KeyRange{"c", "g"}));
  store.observe(nullptr);
  EXPECT_EQ(read(store), (Model{{"c", "1"}, {"f", "1"}}));
  EXPECT_EQ(read(**open), (Model{{"b", "1"}, {"c", "1"}}));
  Told later;
  ASSERT_TRUE(store.changes_since(position, later));
  const std::vector<KeyRange> expected = {{"b", "c"}, {"f", "g"}};
  EXPECT_EQ(live.ranges().ranges(), expected);
  EXPECT_EQ(later.ranges().ranges(), expected);
}

// After a responsibility is given up, no write to it becomes visible.
TEST(ResponsibleStore, NoWriteOutsideIsUnderWayWhenTheResponsibilityHasChanged) {
  MemoryStore whole;
  ResponsibleStore store(whole, RangeSet::all());
  std::atomic<bool> ended = false;
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; !ended; ++i) {
        const std::string key = std::string("k").append(std::to_string(t)),
                          value = std::to_string(i);
        const RecordWrite write{key, value};
        const Result<void> wrote = store.write({&write, 1});
        ASSERT_TRUE(wrote || wrote.error().code == Errc::outside);
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    store.set_responsibility(RangeSet(KeyRange{"l", std::nullopt}));
    const Model given_up = read(whole);
    std::this_thread::yield();
    ASSERT_EQ(read(whole), given_up);
    store.set_responsibility(RangeSet::all());
    std::this_thread::yield();
  }
  ended = true;
  for (std::thread& writer : writers) writer.join();
}

// Keys of one byte: a set of them is 256 bits.
RC_GTEST_PROP(RangeSet, IsASetOfKeysInItsLeastForm, ()) {
  RangeSet set;
  std::array<bool, 256> model{};
  const auto steps = *rc::gen::container<std::vector<std::tuple<bool, std::uint8_t, std::uint8_t>>>(
      rc::gen::arbitrary<std::tuple<bool, std::uint8_t, std::uint8_t>>());
  const auto key = [](std::size_t n) { return std::string(1, static_cast<char>(n)); };
  const auto end = [&](std::size_t n) {  // 0: there is none
    return n == 0 ? std::nullopt : std::optional(key(n));
  };
  for (const auto& [adds, first, last] : steps) {
    const KeyRange range{key(first), end(last)};
    if (adds) {
      set.add(range);
    } else {
      set.remove(range);
    }
    for (std::size_t n = first; n < (last == 0 ? 256U : last); ++n) model[n] = adds;
  }
  RangeSet rebuilt;
  for (std::size_t n = 0; n < 256; ++n) {
    RC_ASSERT(set.contains(key(n)) == model[n]);
    if (model[n]) rebuilt.add({key(n), end((n + 1) % 256)});
  }
  RC_ASSERT(set == rebuilt);
  for (std::size_t i = 0; i < set.ranges().size(); ++i) {
    RC_ASSERT(!set.ranges()[i].empty());
    RC_ASSERT((i == 0 || *set.ranges()[i - 1].end < set.ranges()[i].first));
  }
  for (std::size_t n = 0; n < 256; n += 7) {
    for (std::size_t m = n + 1; m < 256; m += 11) {
      const bool all = std::all_of(&model[n], &model[m], [](bool in) { return in; });
      RC_ASSERT(set.covers({key(n), key(m)}) == all);
    }
  }
  RC_ASSERT(set.covers({"b", "a"}));
}

}  // namespace
}  // namespace semel
