// Table: the answers to clients, values beside a map, sites that exchange entries, and bytes.
#include "semel/tally/table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "semel/core/internal/random.h"
#include "semel/core/limits.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/ledger.h"
#include "semel/tally/internal/site_view.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/allocation.h"
#include "tests/support/keys.h"
#include "tests/support/reseal.h"
#include "tests/support/table_probe.h"

namespace semel::tally {

using namespace internal;

namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

Table table_of(Recognition::Kind kind, SiteId site = 1, std::uint64_t most_operations = 1 << 20) {
  Table::Settings settings;
  settings.recognition = {.kind = kind, .window_ms = 1000, .fpr = 1e-9, .ids = 64};
  settings.site = site;
  settings.max_unfolded = most_operations;
  return *Table::make(settings, kNow);
}

OperationId id(std::uint64_t number) { return OperationId::opaque(key(number)); }
OperationId numbered(std::uint64_t client, std::uint64_t sequence) {
  return OperationId::numbered(key(client), sequence);
}

Answer added(Table& table, std::string_view counter, std::int64_t delta, const OperationId& named,
             TimeMs now_ms = kNow) {
  return *table.add({counter, delta, named}, now_ms);
}

std::optional<std::int64_t> value(const Table& table, std::string_view counter) {
  return *table.get(counter);
}

// Everything that a client may rely on, with each of the three kinds.
class EveryKind : public ::testing::TestWithParam<Recognition::Kind> {
 protected:
  Table table = table_of(GetParam());
};

TEST_P(EveryKind, ARetryIsAnsweredWithTheValueAndCountsNothing) {
  EXPECT_EQ(added(table, "x", 5, id(1)), (Answer{Outcome::applied, 5}));
  EXPECT_EQ(added(table, "x", 2, id(2)), (Answer{Outcome::applied, 7}));
  EXPECT_EQ(added(table, "x", 5, id(1)), (Answer{Outcome::duplicate, 7}));
  EXPECT_EQ(added(table, "y", -3, numbered(9, 1)), (Answer{Outcome::applied, -3}));
  EXPECT_EQ(added(table, "y", -3, numbered(9, 1)), (Answer{Outcome::duplicate, -3}));
  EXPECT_EQ(value(table, "x"), 7);
  EXPECT_EQ(value(table, "z"), std::nullopt);
}

TEST_P(EveryKind, WhatIsNotAppliedLeavesNothingNotEvenItsTime) {
  added(table, "x", 5, id(1));
  added(table, "y", kMost, numbered(9, 1));
  Bytes before;
  table.encode(before);
  const TimeMs later = kNow + 700;
  EXPECT_EQ(added(table, "x", 5, id(1), later).outcome, Outcome::duplicate);
  EXPECT_EQ(added(table, "y", 1, id(2), later).outcome, Outcome::overflow);
  const Addition batch[] = {{"x", 5, id(1)}, {"y", 1, {}}, {"y", kMost, numbered(9, 1)}};
  Answer answers[3];
  ASSERT_TRUE(table.add(batch, answers, later));
  EXPECT_EQ(answers[0], (Answer{Outcome::duplicate, 5}));
  EXPECT_EQ(answers[1], (Answer{Outcome::overflow, kMost}));
  EXPECT_EQ(answers[2], (Answer{Outcome::duplicate, kMost}));
  Bytes after;
  table.encode(after);
  EXPECT_EQ(after, before);
}

TEST_P(EveryKind, WithoutAnIdEachCounts) {
  EXPECT_EQ(added(table, "x", 1, {}), (Answer{Outcome::applied, 1}));
  EXPECT_EQ(added(table, "x", 1, {}), (Answer{Outcome::applied, 2}));
}

TEST_P(EveryKind, ABatchIsAnsweredInOrder) {
  const Addition batch[] = {{"x", 1, id(1)}, {"x", 1, id(1)}, {"x", 2, id(2)}, {"y", 4, {}}};
  Answer answers[4];
  ASSERT_TRUE(table.add(batch, answers, kNow));
  EXPECT_EQ(answers[0], (Answer{Outcome::applied, 1}));
  EXPECT_EQ(answers[1].outcome, Outcome::duplicate);
  EXPECT_EQ(answers[2], (Answer{Outcome::applied, 3}));
  EXPECT_EQ(answers[3], (Answer{Outcome::applied, 4}));
}

TEST_P(EveryKind, OverflowIsRefusedAndTheIdStaysFree) {
  EXPECT_EQ(added(table, "x", kMost, id(1)).outcome, Outcome::applied);
  EXPECT_EQ(added(table, "x", 1, id(2)), (Answer{Outcome::overflow, kMost}));
  EXPECT_EQ(added(table, "y", kLeast, id(3)), (Answer{Outcome::applied, kLeast}));
  EXPECT_EQ(added(table, "y", -1, id(4)), (Answer{Outcome::overflow, kLeast}));
  EXPECT_EQ(added(table, "x", -5, id(5)).outcome, Outcome::applied);
  EXPECT_EQ(added(table, "x", 1, id(2)), (Answer{Outcome::applied, kMost - 4}));
  const Addition batch[] = {{"x", 4, id(6)}, {"x", 1, id(7)}, {"x", -1, id(8)}, {"x", 1, id(7)}};
  Answer answers[4];
  ASSERT_TRUE(table.add(batch, answers, kNow));
  EXPECT_EQ(answers[0], (Answer{Outcome::applied, kMost}));
  EXPECT_EQ(answers[1], (Answer{Outcome::overflow, kMost}));
  EXPECT_EQ(answers[2], (Answer{Outcome::applied, kMost - 1}));
  EXPECT_EQ(answers[3], (Answer{Outcome::applied, kMost}));
}

TEST_P(EveryKind, ANameThatIsTooLongRefusesTheWholeBatch) {
  const std::string name(limits::kCounterNameBytes + 1, 'x');
  const Addition batch[] = {{"x", 1, id(1)}, {name, 1, id(2)}};
  Answer answers[2];
  const Result<void> refused = table.add(batch, answers, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::limit);
  EXPECT_EQ(value(table, "x"), std::nullopt);
  EXPECT_EQ(added(table, "x", 1, id(1)).outcome, Outcome::applied);
  EXPECT_EQ(added(table, name.substr(1), 1, id(2)).outcome, Outcome::applied);
}

TEST_P(EveryKind, ResetAndRemoveAreRecognisedToo) {
  added(table, "x", 5, id(1));
  EXPECT_EQ(*table.reset("x", id(2), kNow), (Answer{Outcome::applied, 0}));
  added(table, "x", 3, id(3));
  EXPECT_EQ(*table.reset("x", id(2), kNow), (Answer{Outcome::duplicate, 3}));
  EXPECT_EQ(*table.remove("x", id(4), kNow), (Answer{Outcome::applied, std::nullopt}));
  EXPECT_EQ(value(table, "x"), std::nullopt);
  EXPECT_EQ(table.sum({}), (RangeSum{0, 0}));
  EXPECT_EQ(added(table, "x", 1, id(5)), (Answer{Outcome::applied, 1}));
}

TEST_P(EveryKind, DecodedItGoesOnAsItWas) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    added(table, std::string("counter").append(std::to_string(i % 7)), static_cast<int>(i) - 50,
          i % 2 == 0 ? id(i) : numbered(i % 5, i));
  }
  const Bytes bytes = encoded(table);
  Result<Table> copy = Table::decode(bytes);
  ASSERT_TRUE(copy) << copy.error().message();
  EXPECT_EQ(*copy, table);
  for (std::uint64_t i = 90; i < 110; ++i) {
    const OperationId named = i % 2 == 0 ? id(i) : numbered(i % 5, i);
    const std::string counter = std::string("counter").append(std::to_string(i % 7));
    EXPECT_EQ(added(*copy, counter, static_cast<int>(i) - 50, named),
              added(table, counter, static_cast<int>(i) - 50, named));
  }
  EXPECT_EQ(*copy, table);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryKind,
                         ::testing::Values(Recognition::Kind::clients, Recognition::Kind::filter,
                                           Recognition::Kind::exact));

TEST(TableExact, AnIdWithAnotherDeltaOrCounterIsAConflict) {
  Table table = table_of(Recognition::Kind::exact);
  added(table, "x", 5, id(1));
  EXPECT_EQ(added(table, "x", 6, id(1)), (Answer{Outcome::conflict, 5}));
  EXPECT_EQ(added(table, "y", 5, id(1)), (Answer{Outcome::conflict, std::nullopt}));
  EXPECT_EQ(added(table, "x", 5, id(1)), (Answer{Outcome::duplicate, 5}));
  const Addition batch[] = {{"x", 1, id(2)}, {"x", 2, id(2)}};
  Answer answers[2];
  ASSERT_TRUE(table.add(batch, answers, kNow));
  EXPECT_EQ(answers[1].outcome, Outcome::conflict);
}

TEST(TableClients, ASequenceTooOldIsStale) {
  Table table = table_of(Recognition::Kind::clients);
  added(table, "x", 1, numbered(1, 5), kNow);
  added(table, "x", 1, numbered(1, 6), kNow + 900);
  EXPECT_EQ(added(table, "x", 1, numbered(1, 5), kNow + 1800), (Answer{Outcome::stale, 2}));
  EXPECT_EQ(table.counts().stale, 1u);
}

// Whoever finds an operation stale: judge() because time moved, a window in a batch or alone, or
// the check for overflow.
TEST(TableClients, CountsEachStaleOperationOnce) {
  for (const std::int64_t delta : {std::int64_t{1}, std::numeric_limits<std::int64_t>::max()}) {
    Table table = table_of(Recognition::Kind::clients);
    added(table, "x", delta, numbered(1, 5), kNow);
    added(table, "y", 1, numbered(1, 6), kNow + 900);
    const Addition batch[] = {{"x", delta, numbered(1, 5)},
                              {"x", delta, numbered(1, 4)},
                              {"y", 1, numbered(1, 7)},
                              {"x", delta, numbered(1, 5)}};
    Answer answers[4];
    ASSERT_TRUE(table.add(batch, answers, kNow + 1800));
    EXPECT_EQ(answers[2].outcome, Outcome::applied);
    EXPECT_EQ(answers[3].outcome, Outcome::stale);
    EXPECT_EQ(table.counts().stale, 3u);
    EXPECT_EQ(added(table, "x", delta, numbered(1, 5), kNow + 1800).outcome, Outcome::stale);
    EXPECT_EQ(table.counts().stale, 4u);
    EXPECT_EQ(table.counts().refused, 0u);
  }
}

TEST(TableClients, WhatTheRecogniserHasNoRoomForIsRefused) {
  Table::Settings settings;
  settings.recognition = {.window_ms = 1000, .ids = 16, .max_bytes = Recogniser::kLeastBytes};
  Table table = *Table::make(settings, kNow);
  std::uint64_t applied = 0;
  std::uint64_t full = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Answer answer = added(table, "x", 1, numbered(i, 1));
    if (answer.outcome == Outcome::applied) ++applied;
    if (answer.outcome == Outcome::full) ++full;
  }
  EXPECT_GT(full, 0U);
  EXPECT_EQ(applied + full, 1000U);
  EXPECT_EQ(value(table, "x"), static_cast<std::int64_t>(applied));
}

// One site beside a map, with every kind of operation.
RC_GTEST_PROP(TableProperty, EqualsAMap, ()) {
  Table table = table_of(*rc::gen::element(Recognition::Kind::clients, Recognition::Kind::filter,
                                           Recognition::Kind::exact));
  std::map<std::string, std::int64_t> model;
  std::map<std::uint64_t, std::pair<std::string, std::int64_t>> seen;
  const int steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const std::string counter(1, static_cast<char>('a' + *rc::gen::inRange(0, 6)));
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        RC_ASSERT(table.reset(counter, {}, kNow).has_value());
        model[counter] = 0;
        break;
      case 1:
        RC_ASSERT(table.remove(counter, {}, kNow).has_value());
        model.erase(counter);
        break;
      default: {
        const auto number = static_cast<std::uint64_t>(*rc::gen::inRange(0, 40));
        const auto retry = seen.find(number);
        const auto [name, delta] =
            retry == seen.end()
                ? std::pair<std::string, std::int64_t>{counter, *rc::gen::inRange(-9, 10)}
                : retry->second;
        const Answer answer = added(table, name, delta, id(number));
        RC_ASSERT((answer.outcome == Outcome::duplicate) == (retry != seen.end()));
        if (retry == seen.end()) model[name] += delta;
        seen.emplace(number, std::pair{name, delta});
        const auto now = model.find(name);
        RC_ASSERT(answer.value == (now == model.end() ? std::nullopt : std::optional(now->second)));
      }
    }
  }
  const std::string first(1, static_cast<char>('a' + *rc::gen::inRange(0, 6)));
  const std::string end(1, static_cast<char>('a' + *rc::gen::inRange(0, 7)));
  RangeSum expected;
  std::map<std::string, std::int64_t> within;
  for (const auto& [name, sum] : model) {
    if (name < first || name >= end) continue;
    within.emplace(name, sum);
    ++expected.count;
    expected.sum += sum;
  }
  RC_ASSERT(table.sum({first, end}) == expected);
  std::map<std::string, std::int64_t> scanned;
  table.scan({first, end}, [&](std::string_view name, int128 sum) {
    scanned.emplace(name, static_cast<std::int64_t>(sum));
    return true;
  });
  RC_ASSERT(scanned == within);
}

// Returns a batch of many pieces, with retries, counters that come again in another piece, and
// deltas that may leave 64 bits.
std::vector<Addition> many_additions(std::span<const std::string> names, std::uint64_t size) {
  std::vector<Addition> batch;
  for (std::uint64_t n = 0; n < size; ++n) {
    const auto chosen = *rc::gen::inRange<std::uint64_t>(0, 1 << 16);
    const std::uint64_t number = chosen % (2 * size);
    OperationId named;
    if (chosen % 3 == 0) named = id(number);
    if (chosen % 3 == 1) named = numbered(number % 5, number);
    const std::int64_t delta = chosen % 97 == 0 ? kMost / 2 : static_cast<std::int64_t>(chosen % 7);
    batch.push_back({names[chosen % names.size()], delta, named});
  }
  return batch;
}

RC_GTEST_PROP(TableProperty, ABatchIsAnsweredAndKeptAsOneByOne, ()) {
  Table::Settings settings;
  settings.recognition = {
      .kind = *rc::gen::element(Recognition::Kind::clients, Recognition::Kind::filter,
                                Recognition::Kind::exact),
      .window_ms = 1000,
      .fpr = 1e-3,
      .ids = 64,
      .max_bytes = *rc::gen::element(kNoCap, std::uint64_t{16384}),
      .on_full = *rc::gen::element(OnFull::refuse, OnFull::forget)};
  settings.max_unfolded = *rc::gen::element<std::uint64_t>(300, 1 << 20);
  Table batched = *Table::make(settings, kNow);
  const bool two_sites = *rc::gen::arbitrary<bool>();
  if (two_sites) RC_ASSERT(batched.admit(2).has_value());
  Bytes start;
  batched.encode(start);
  Table single = *Table::decode(start);

  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("counter:" + std::to_string(i));
  for (int round = 0; round < 3; ++round) {
    const auto size = *rc::gen::inRange<std::uint64_t>(1, 3 * Ledger::kPiece + 2);
    const std::vector<Addition> batch = many_additions(names, size);
    const TimeMs now_ms = kNow + 300 * round;
    std::vector<Answer> answers(size), expected(size);
    RC_ASSERT(batched.add(batch, answers, now_ms).has_value());
    for (std::uint64_t i = 0; i < size; ++i) expected[i] = *single.add(batch[i], now_ms);
    RC_ASSERT(answers == expected);
    RC_ASSERT(batched == single);
  }
}

TEST_P(EveryKind, ABatchTakesLittleMemoryAndLeavesNone) {
  added(table, "x", 1, {});
  const std::vector<Addition> batch(100'000, {"x", 1, {}});
  std::vector<Answer> answers(batch.size());
  for (const std::int64_t before : {std::int64_t{0}, kMost - 1'000'000}) {
    added(table, "y", before, {});  // near the end of 64 bits, sums are read
    const LiveAllocation live;
    const LargestAllocation largest;
    ASSERT_TRUE(table.add(batch, answers, kNow));
    EXPECT_EQ(live.bytes(), 0u) << before;
    EXPECT_LE(largest.bytes(), Ledger::kPiece * 128) << before;
  }
}

// Sends all entries of one site to another, as a sync would.
void send(Table& from, Table& to) {
  from.publish([&](std::string_view key, ByteView bytes) {
    const Result<bool> taken = to.receive(key, bytes, kNow);
    ASSERT_TRUE(taken) << taken.error().message();
  });
}

struct TwoSites : ::testing::Test {
  TwoSites() {
    EXPECT_TRUE(a.admit(2));
    b = *Table::decode(encoded(a));
    EXPECT_TRUE(b.become(2, kNow));
    exchange();
  }
  void exchange() {
    for (int i = 0; i < 3; ++i) {
      send(a, b);
      send(b, a);
    }
  }
  Table a = table_of(Recognition::Kind::clients, 1);
  Table b = table_of(Recognition::Kind::clients, 2);
};

TEST_F(TwoSites, ARetryElsewhereCountsOnce) {
  added(a, "x", 5, id(1));
  added(b, "x", 5, id(1));
  added(b, "y", 1, numbered(1, 1));
  exchange();
  for (const Table* table : {&a, &b}) {
    EXPECT_EQ(value(*table, "x"), 5);
    EXPECT_EQ(table->sum({}), (RangeSum{2, 6}));
    EXPECT_EQ(TableProbe::log(*table).unfolded(), 0U);
  }
  EXPECT_EQ(added(b, "x", 5, id(1)).outcome, Outcome::duplicate);
}

TEST_F(TwoSites, WhatIsNotFoldedIsInScansAndSums) {
  added(a, "b", 1, id(1));
  exchange();
  added(a, "b", 2, id(2));
  added(a, "a", 4, id(3));
  added(a, "c", 8, id(4));
  std::map<std::string, std::int64_t> scanned;
  a.scan({}, [&](std::string_view name, int128 sum) {
    scanned.emplace(name, static_cast<std::int64_t>(sum));
    return true;
  });
  EXPECT_EQ(scanned, (std::map<std::string, std::int64_t>{{"a", 4}, {"b", 3}, {"c", 8}}));
  EXPECT_EQ(a.sum({}), (RangeSum{3, 15}));
  EXPECT_EQ(a.sum({"b", "c"}), (RangeSum{1, 3}));
}

TEST_F(TwoSites, WhatIsNotFoldedIsRecognisedHoweverLate) {
  added(a, "x", 5, id(1));
  EXPECT_EQ(added(a, "x", 5, id(1), kNow + 1'000'000).outcome, Outcome::duplicate);
}

TEST_F(TwoSites, TogetherTheyMayLeave64BitsAndComeBack) {
  added(a, "x", kMost, id(1));
  added(b, "x", kMost, id(2));
  exchange();
  const Result<std::optional<std::int64_t>> beyond = a.get("x");
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Errc::limit);
  EXPECT_EQ(a.sum({}).sum, int128{kMost} * 2);
  EXPECT_EQ(added(a, "x", 1, id(3)), (Answer{Outcome::overflow, std::nullopt}));
  added(a, "x", -kMost, id(4));
  exchange();
  EXPECT_EQ(value(b, "x"), kMost);
}

TEST_F(TwoSites, AFullTailRefusesNewOnesAndKnowsRetries) {
  Table small = table_of(Recognition::Kind::clients, 1, 2);
  ASSERT_TRUE(small.admit(2));
  added(small, "x", 1, id(1));
  added(small, "x", 1, id(2));
  EXPECT_EQ(added(small, "x", 1, id(3)), (Answer{Outcome::full, 2}));
  EXPECT_EQ(added(small, "x", 1, id(2)), (Answer{Outcome::duplicate, 2}));
  EXPECT_EQ(TableProbe::log(small).waiting_for(), SiteId{2});
  ASSERT_TRUE(small.retire(2));
  EXPECT_EQ(added(small, "x", 1, id(3)), (Answer{Outcome::applied, 3}));
}

// Operations of every kind, with ids of every kind, and views of both sites.
struct EveryEntry : TwoSites {
  EveryEntry() {
    EXPECT_TRUE(a.admit(3));
    EXPECT_TRUE(a.retire(3));
    added(b, "x", 1, id(1));
    exchange();
    added(b, "x", 2, id(2));
    send(b, a);
    added(a, "x", 5, id(3));
    added(a, "y", -7, numbered(1, 300));
    added(a, "z", 9, {});
    EXPECT_TRUE(a.reset("y", {}, kNow).has_value());
    EXPECT_TRUE(a.remove("z", id(4), kNow).has_value());
    a.publish([this](std::string_view key, ByteView bytes) {
      entries.emplace_back(key, Bytes(bytes.begin(), bytes.end()));
      (dot_of_key(key) ? operations : views) += 1;
    });
    EXPECT_GE(operations, 5);
    EXPECT_EQ(views, 2);
  }
  // The time is later, because an error must not advance it.
  void expect_refused(std::string_view key, ByteView damaged, const char* what) {
    const Bytes before = encoded(b);
    const Result<bool> taken = b.receive(key, damaged, kNow + 500);
    ASSERT_FALSE(taken) << what << " in an entry of kind " << key.front();
    EXPECT_EQ(taken.error().code, Errc::corrupt);
    ASSERT_EQ(encoded(b), before);
  }
  void expect_that_true_entries_are_taken() {
    exchange();
    for (const Table* table : {&a, &b}) {
      EXPECT_EQ(value(*table, "x"), 8);
      EXPECT_EQ(value(*table, "y"), 0);
      EXPECT_EQ(value(*table, "z"), std::nullopt);
      EXPECT_FALSE(table->info().superseded);
      EXPECT_TRUE(table->info().forked.empty());
    }
    EXPECT_EQ(added(b, "x", 1, id(5)), (Answer{Outcome::applied, 9}));
  }
  std::vector<std::pair<std::string, Bytes>> entries;
  int operations = 0, views = 0;
};

TEST_F(EveryEntry, WithAFlippedBitIsRefusedAndChangesNothing) {
  for (const auto& [key, bytes] : entries) {
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      Bytes damaged = bytes;
      damaged[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
      expect_refused(key, damaged, "a flipped bit");
    }
  }
  expect_that_true_entries_are_taken();
}

TEST_F(EveryEntry, WithOtherBytesOrAnotherSizeIsRefusedAndChangesNothing) {
  Random random(1);
  for (const auto& [key, bytes] : entries) {
    for (int i = 0; i < 1000; ++i) {
      Bytes damaged = bytes;
      for (std::uint64_t n = random.below(8); n < 8; ++n) {
        damaged[random.below(damaged.size())] ^= static_cast<std::uint8_t>(1 + random.below(255));
      }
      if (damaged != bytes) expect_refused(key, damaged, "other bytes");
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      expect_refused(key, ByteView(bytes).first(size), "a lost end");
    }
    Bytes longer = bytes;
    longer.insert(longer.end(), {1, 2, 3});
    expect_refused(key, longer, "more bytes");
  }
  expect_that_true_entries_are_taken();
}

TEST_F(EveryEntry, UnderAnotherKeyIsRefusedAndChangesNothing) {
  for (const auto& [key, bytes] : entries) {
    for (const auto& [other, its_bytes] : entries) {
      if (key != other) expect_refused(other, bytes, "the value of another key");
    }
    for (std::size_t bit = 0; bit < 8 * key.size(); ++bit) {
      std::string damaged = key;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
      expect_refused(damaged, bytes, "a flipped bit of the key");
    }
    expect_refused("c", bytes, "the key of a counter");
    expect_refused({&key.front(), 1}, bytes, "the end of the key");
  }
  EXPECT_EQ(b.receive("", {}, kNow).error().code, Errc::corrupt);
  expect_that_true_entries_are_taken();
}

TEST_F(TwoSites, AViewOfAnotherTableChangesNothing) {
  Table apart = table_of(Recognition::Kind::clients, 3);
  ASSERT_TRUE(apart.admit(4));
  const Bytes before = encoded(b);
  apart.publish([&](std::string_view key, ByteView bytes) {
    EXPECT_EQ(b.receive(key, bytes, kNow + 500).error().code, Errc::mismatch);
  });
  EXPECT_EQ(encoded(b), before);
}

TEST_F(TwoSites, ACopyOfAMemberBecomesANewSite) {
  added(a, "x", 1, id(1));
  exchange();
  added(a, "x", 2, id(2));
  ASSERT_TRUE(a.admit(3));
  Table c = *Table::decode(encoded(a));
  ASSERT_TRUE(c.become(3, kNow));
  EXPECT_EQ(value(c, "x"), 3);
  EXPECT_EQ(c.add({"x", 1, id(9)}, kNow).error().code, Errc::gap);
  for (int i = 0; i < 4; ++i) {
    exchange();
    send(a, c);
    send(b, c);
    send(c, a);
    send(c, b);
  }
  EXPECT_EQ(added(c, "x", 2, id(2)).outcome, Outcome::duplicate);
  EXPECT_EQ(added(c, "x", 4, id(3)), (Answer{Outcome::applied, 7}));
}

// The clock of the new site is ahead by more than the window.
TEST_F(TwoSites, ACopyRemembersForAWindowByWhateverClock) {
  added(a, "x", 1, id(1));
  exchange();
  ASSERT_TRUE(a.admit(3));
  const TimeMs ahead = kNow + 1'000'000'000;
  Table c = *Table::decode(encoded(a));
  const TimeMs window_ms = c.recognition().window_ms;
  ASSERT_TRUE(c.become(3, ahead));
  const auto meet = [&] {
    for (int i = 0; i < 4; ++i) {
      exchange();
      for (Table* other : {&a, &b}) {
        send(c, *other);
        other->publish([&](std::string_view key, ByteView bytes) {
          ASSERT_TRUE(c.receive(key, bytes, ahead));
        });
      }
    }
  };
  meet();
  EXPECT_EQ(added(c, "x", 1, id(1), ahead + window_ms / 2).outcome, Outcome::duplicate);
  EXPECT_EQ(added(c, "x", 1, id(2), ahead + window_ms / 2).outcome, Outcome::applied);
  c = *Table::decode(encoded(c));
  EXPECT_EQ(added(c, "x", 1, id(1), ahead + window_ms / 2).outcome, Outcome::duplicate);
  meet();
  EXPECT_EQ(added(c, "x", 1, id(2), ahead + window_ms).outcome, Outcome::duplicate);
  EXPECT_EQ(added(c, "x", 1, id(2), ahead + 3 * window_ms).outcome, Outcome::applied);
}

// Such a table would go on, and write bytes that nobody can read.
TEST_F(TwoSites, ATableThatPublishedMoreThanItKnowsIsRefused) {
  added(a, "x", 1, id(1));
  exchange();
  const SiteView published = TableProbe::log(a).view();
  ASSERT_TRUE(a.retire(2));
  const auto written = [](const SiteView& view) {
    Bytes bytes;
    Writer(bytes).text(text_of(encoded(view)));
    return bytes;
  };
  const auto refused = [&](const SiteView& view) {
    const Bytes bytes = encoded(a), before = written(published), after = written(view);
    const auto at = std::search(bytes.begin(), bytes.end(), before.begin(), before.end());
    EXPECT_NE(at, bytes.end());
    Bytes changed(bytes.begin(), at);
    changed.insert(changed.end(), after.begin(), after.end());
    changed.insert(changed.end(), at + static_cast<std::ptrdiff_t>(before.size()), bytes.end());
    const Result<Table> read = Table::decode(resealed(std::move(changed)));
    return !read && read.error().code == Errc::corrupt;
  };
  EXPECT_FALSE(refused(published));
  SiteView view = published;
  view.held.advance({2, view.held.at(2) + 1});
  EXPECT_TRUE(refused(view));
  view = published;
  view.members.admit(9);
  EXPECT_TRUE(refused(view));
}

// 100,000 counters and a million ids.
// With names of one size, and of all sizes. Small tables consist of small pieces.
TEST_P(EveryKind, MakesCountersUpToAMemoryAndNoFurther) {
  for (const std::uint64_t most :
       {std::uint64_t{40'000}, std::uint64_t{700'000}, std::uint64_t{6'000'000}}) {
    for (const std::size_t longest : {std::size_t{8}, std::size_t{limits::kCounterNameBytes}}) {
      Table small = table_of(GetParam());
      Random random(most + longest);
      std::vector<std::string> names;
      std::uint64_t refused = 0;
      for (std::uint64_t i = 0; refused < 300; ++i) {
        std::string name = std::to_string(i);
        name.resize(std::max<std::size_t>(8, random.below(longest) + 1), '.');
        // Ids take memory of their own, so few operations have one.
        const OperationId named = i % 64 == 0 ? id(i) : OperationId::none();
        const std::uint64_t before = small.bytes();
        const Answer answer = *small.add({name, 1, named}, kNow, most);
        if (answer.outcome == Outcome::applied) {
          names.push_back(name);
          continue;
        }
        ASSERT_EQ(answer, (Answer{kTooLarge})) << name.size() << " at " << small.bytes();
        ++refused;
        EXPECT_EQ(value(small, name), std::nullopt);
        EXPECT_EQ(small.bytes(), before);
      }
      EXPECT_LE(small.bytes(), most + small.info().recogniser_bytes);
      EXPECT_GE(small.bytes() + 24'000, most);

      // What is there goes on, and removed counters leave room for others.
      const std::uint64_t bytes = small.bytes();
      for (const std::string& name : names) {
        ASSERT_EQ(small.add({name, 1, {}}, kNow, most)->value, 2) << name;
      }
      for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < names.size(); i += 3) {
          ASSERT_TRUE(small.remove(names[i], {}, kNow).has_value());
        }
        std::uint64_t back = 0;
        for (std::size_t i = 0; i < names.size(); i += 3) {
          if (small.add({names[i], 1, {}}, kNow, most)->outcome == Outcome::applied) ++back;
        }
        EXPECT_GT(back, names.size() / 3 * 9 / 10);  // some need another page in the index
      }
      EXPECT_EQ(small.bytes(), bytes);
    }
  }
}

// Names that ascend are packed most tightly in the original.
TEST(Table, TakesNoMoreMemoryThanAllowedWhenDecoded) {
  for (double most = 60'000; most < 3e7; most *= 1.17) {
    for (const bool ascend : {false, true}) {
      Table original = table_of(Recognition::Kind::clients);
      for (std::uint64_t i = 0;; ++i) {
        const std::uint64_t number = 1'000'000'000'000 + (ascend ? i : key(i).lo >> 24);
        const std::string name = std::to_string(number);
        const auto bytes = static_cast<std::uint64_t>(most);
        if (original.add({name, 1, {}}, kNow, bytes)->outcome == kTooLarge) break;
      }
      EXPECT_LE(static_cast<double>(Table::decode(encoded(original))->bytes()), most) << ascend;
    }
  }
}

// Beside a table that never hears of what was refused.
TEST_P(EveryKind, WhatIsTooLargeLeavesNoTrace) {
  constexpr std::uint64_t kMostBytes = 60'000;
  Table limited = table_of(GetParam()), twin = table_of(GetParam());
  Random random(1);
  std::uint64_t number = 0, too_large = 0, known = 0;
  TimeMs now = kNow;
  for (int call = 0; call < 600; ++call) {
    now += static_cast<TimeMs>(random.below(3) * 20);
    if (random.below(20) == 0) {
      const std::string name = std::to_string(random.below(300));
      EXPECT_EQ(*limited.remove(name, {}, now), *twin.remove(name, {}, now));
    }
    std::vector<std::string> names(1 + random.below(call % 50 == 0 ? 600 : 8));
    std::vector<Addition> additions;
    for (std::string& name : names) {
      name = std::to_string(random.below(call < 300 ? 100 + call : 3000));
      const OperationId named = id(random.below(4) == 0 ? random.below(number + 1) : number++);
      additions.push_back({name, 1, random.below(3) == 0 ? OperationId::none() : named});
    }
    std::vector<Answer> answers(additions.size());
    ASSERT_TRUE(limited.add(additions, answers, now, kMostBytes).has_value());
    std::vector<Addition> taken;
    std::vector<Answer> expected;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].outcome == kTooLarge) {
        ++too_large;
        continue;
      }
      if (answers[i].outcome != Outcome::applied) ++known;
      taken.push_back(additions[i]);
      expected.push_back(answers[i]);
    }
    if (taken.empty()) continue;
    std::vector<Answer> answered(taken.size());
    ASSERT_TRUE(twin.add(taken, answered, now).has_value());
    ASSERT_EQ(answered, expected) << call;
  }
  EXPECT_GT(too_large, 200u);
  EXPECT_GT(known, 20u);
  EXPECT_TRUE(limited == twin);
}

TEST_P(EveryKind, AnIdThatWasTooLargeIsStillFree) {
  const std::string name(9, 'n');
  ASSERT_EQ(table.add({"there", 1, {}}, kNow)->outcome, Outcome::applied);
  const Table before = *Table::decode(encoded(table));
  EXPECT_EQ(*table.add({name, 1, id(1)}, kNow + 5, 1000), (Answer{kTooLarge}));
  EXPECT_TRUE(table == before);
  EXPECT_EQ(*table.add({"there", 1, id(1)}, kNow + 5, 1000), (Answer{Outcome::applied, 2}));
  // A retry is a retry, wherever its counter is gone.
  ASSERT_EQ(table.remove("there", {}, kNow + 5)->outcome, Outcome::applied);
  EXPECT_EQ(*table.add({"there", 1, id(1)}, kNow + 5, 1000), (Answer{Outcome::duplicate}));
}

TEST(Table, SaysHowMuchMemoryItTakes) {
  for (const auto make_id : {+[](std::uint64_t n) { return id(n); },
                             +[](std::uint64_t n) { return numbered(n % 1000, n / 1000); }}) {
    const LiveAllocation live;
    Table table = *Table::make({.recognition = {.window_ms = 600'000, .fpr = 1e-6}}, kNow);
    EXPECT_NEAR(static_cast<double>(table.bytes()), static_cast<double>(live.bytes()), 2000);
    for (std::uint64_t n = 0; n < 1'000'000; ++n) {
      added(table, "counter:" + std::to_string(n % 100'000), 1, make_id(n), kNow + TimeMs(n / 2));
    }
    const auto bytes = static_cast<double>(live.bytes());
    EXPECT_NEAR(static_cast<double>(table.bytes()), bytes, bytes / 20);
    // Some names collide until they are compared as a whole.
    EXPECT_EQ(table.sum({}).count, 100'000u);
  }
}

// Two sites, with operations of both kinds that are not folded.
struct BytesCase {
  using Type = Table;
  static constexpr std::size_t kHeaderSize = 12;
  static constexpr std::size_t kMostGrowth = 64;
  static constexpr char kFile[] = "tally_table_v1.bin";
  static Type make() {
    Table table = table_of(Recognition::Kind::exact);
    EXPECT_EQ(added(table, "folded", 5, id(1)).outcome, Outcome::applied);
    EXPECT_EQ(added(table, "negative", -5, id(2)).outcome, Outcome::applied);
    EXPECT_TRUE(table.admit(2));
    EXPECT_EQ(added(table, "folded", 1, numbered(1, 300)).outcome, Outcome::applied);
    EXPECT_TRUE(table.reset("negative", {}, kNow).has_value());
    table.publish([](std::string_view, ByteView) {});
    return table;
  }
};

}  // namespace
}  // namespace semel::tally

namespace semel {

INSTANTIATE_TYPED_TEST_SUITE_P(Table, HostileBytes, tally::BytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Table, Golden, tally::BytesCase);

}  // namespace semel
