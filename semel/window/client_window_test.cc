// ClientWindow: the promise beside an exact twin, sets of sequences, merging, and bytes.
#include "semel/window/client_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "semel/window/internal/generation_time.h"
#include "semel/window/internal/sequence_set.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/laws/merge_laws.h"
#include "tests/oracle/window_twin.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {

using window_internal::GenerationTime;
using window_internal::SequenceSet;

namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kFirst = std::numeric_limits<TimeMs>::min();
constexpr TimeMs kLast = std::numeric_limits<TimeMs>::max();
constexpr std::uint64_t kHighest = ~std::uint64_t{0};

ClientWindow window_of(const ClientWindow::Goal& goal, TimeMs now_ms = kNow) {
  return *ClientWindow::make(goal, now_ms);
}

struct Configurations {
  using Type = ClientWindow;
  static constexpr bool kFalsePositives = false, kStaleById = true;
  static constexpr ClientWindow::Goal kGoals[] = {
      {.window_ms = 1000},
      {.window_ms = 1000, .max_bytes = 4096, .on_full = OnFull::refuse},
      {.window_ms = 1000, .generations = 3, .max_bytes = 4096, .on_full = OnFull::forget},
      {.window_ms = 997, .generations = 1, .max_bytes = 1 << 20},
      {.window_ms = 64, .generations = 64, .max_bytes = 8192, .on_full = OnFull::forget},
  };
  static constexpr int kConfigurations = std::size(kGoals);

  static Type make(int i, TimeMs now_ms) { return window_of(kGoals[i], now_ms); }
  static std::uint64_t cap(int i) { return kGoals[i].max_bytes; }
  static OnFull on_full(int i) { return kGoals[i].on_full; }
  static std::optional<TimeMs> upper_edge(const Type& window) {
    const ClientWindow::Goal& goal = window.goal();
    return goal.window_ms + (goal.window_ms - 1) / goal.generations + 1;
  }
};

// Clients that number from 0 on, with some operations that overtake others.
struct DenseCase : Configurations {
  static ClientOperation id(std::uint64_t number) {
    const std::uint64_t n = number / 5;
    return {{mix(number % 5), 1}, n / 16 * 16 + (7 * n + 3) % 16};
  }
};
// Sequences far apart, as times are.
struct SparseCase : Configurations {
  static ClientOperation id(std::uint64_t number) {
    return {{mix(number % 40), 1}, number / 40 * 1'000'003};
  }
};
// The highest sequences there are, downwards.
struct HostileCase : Configurations {
  static ClientOperation id(std::uint64_t number) {
    return {{mix(number % 3), 1}, kHighest - number / 3};
  }
};

// Runs, bitmaps and single sequences, in several generations.
struct BytesCase {
  using Type = ClientWindow;
  static constexpr std::size_t kHeaderSize = 63;
  static constexpr char kFile[] = "client_window_v1.bin";
  static Type make() {
    ClientWindow window = window_of(
        {.window_ms = 1000, .max_bytes = 1 << 20, .on_full = OnFull::forget, .hash = kTestHash},
        kNow - 1200);
    EXPECT_EQ(window.insert({key(1), 90}), Verdict::fresh);
    window.advance(kNow - 500);
    for (std::uint64_t n = 100; n < 400; ++n) {
      EXPECT_EQ(window.insert({key(1), n}), Verdict::fresh);
    }
    window.advance(kNow);
    EXPECT_EQ(window.insert({key(1), 1000}), Verdict::fresh);
    EXPECT_EQ(window.insert({key(1), kHighest}), Verdict::fresh);
    EXPECT_EQ(window.insert({key(2), 0}, kNow - 600), Verdict::fresh);
    return window;
  }
};

struct LawsCase {
  using Type = ClientWindow;
  static std::uint64_t first(int replica) { return 300 * static_cast<std::uint64_t>(replica); }
  static ClientOperation id(std::uint64_t n) { return {key(n % 7), 10'000 + n}; }
  // Each window shares operations with the next, some of them in other generations. One window in
  // three has forgotten operations of the same clients.
  static Type make(int replica) {
    ClientWindow window = window_of({.window_ms = 1000, .hash = kTestHash}, kNow - 1300);
    for (std::uint64_t n = 0; n < 7; ++n) {
      if (n % 3 == static_cast<unsigned>(replica)) (void)window.insert({key(n), n});
    }
    window.advance(kNow);
    for (std::uint64_t n = first(replica); n < first(replica) + 500; ++n) {
      const auto age_ms =
          static_cast<TimeMs>(mix(n + n % 3 * static_cast<unsigned>(replica)) % 999);
      EXPECT_EQ(window.test_and_insert(id(n), kNow - age_ms), Verdict::fresh);
    }
    return window;
  }
  static bool holds(const Type& window, int replica) {
    for (std::uint64_t n = first(replica); n < first(replica) + 500; ++n) {
      if (window.test(id(n)) != Verdict::duplicate) return false;
    }
    return true;
  }
};

using TwinCases = ::testing::Types<DenseCase, SparseCase, HostileCase>;
INSTANTIATE_TYPED_TEST_SUITE_P(Client, WindowHistory, TwinCases);
INSTANTIATE_TYPED_TEST_SUITE_P(Client, HostileBytes, BytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Client, Golden, BytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Client, MergeLaws, LawsCase);

// Returns numbers that crowd in a few chunks: at the bottom, around a border and at the top.
std::uint64_t crowded(Random& random) {
  const std::uint64_t offset = random.below(300);
  switch (random.below(3)) {
    case 0:
      return offset;
    case 1:
      return (std::uint64_t{1} << 40) - 150 + offset;
    default:
      return kHighest - offset;
  }
}

TEST(SequenceSet, IsASetInOneFormWhateverTheOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    SequenceSet set;
    std::set<std::uint64_t> twin;
    const std::uint64_t count = random.below(6000);  // more numbers fill more chunks
    for (std::uint64_t n = 0; n < count; ++n) {
      const std::uint64_t number = crowded(random);
      ASSERT_EQ(set.contains(number), twin.contains(number));
      const std::uint64_t bytes = set.bytes_with(number);
      set.insert(number);
      twin.insert(number);
      ASSERT_LE(set.bytes(), bytes);
      ASSERT_EQ(set.size(), twin.size());
      ASSERT_EQ(set.highest(), *twin.rbegin());
    }
    SequenceSet ordered, appended;
    for (const std::uint64_t number : twin) ordered.insert(number);
    ASSERT_EQ(set, ordered);
    ASSERT_EQ(set.bytes(), ordered.bytes());
    appended.reserve(set.pieces().size());
    for (const SequenceSet::Piece& piece : set.pieces()) ASSERT_TRUE(appended.append(piece));
    const SequenceSet copy = set;
    ASSERT_EQ(appended, set);
    ASSERT_EQ(appended.bytes(), set.bytes());
    ASSERT_EQ(copy.bytes(), set.bytes());
  }
}

// Many blocks of pieces, in an order that fills the middle.
TEST(SequenceSet, TakesNumbersThatStandAloneAnywhere) {
  Random random(5);
  SequenceSet set, ordered;
  std::set<std::uint64_t> twin;
  for (int n = 0; n < 60'000; ++n) {
    const std::uint64_t number = random.below(1 << 20) * 64 + random.below(2);
    ASSERT_EQ(set.contains(number), twin.contains(number));
    set.insert(number);
    twin.insert(number);
  }
  // Some of the chunks become full, and runs.
  for (std::uint64_t number = 1 << 20; number < (1 << 20) + 64 * 200; ++number) {
    set.insert(number);
    twin.insert(number);
  }
  ASSERT_EQ(set.size(), twin.size());
  ASSERT_EQ(set.highest(), *twin.rbegin());
  for (const std::uint64_t number : twin) ordered.insert(number);
  ASSERT_EQ(set, ordered);
  ASSERT_EQ(set.bytes(), ordered.bytes());
  EXPECT_LT(set.bytes(), 16.2 * static_cast<double>(set.pieces().size()));
}

TEST(SequenceSet, UnitesAsIfEachNumberWereInserted) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    SequenceSet a, b, both;
    for (SequenceSet* set : {&a, &b}) {
      for (std::uint64_t n = random.below(3000); n > 0; --n) {
        const std::uint64_t number = crowded(random);
        set->insert(number);
        both.insert(number);
      }
    }
    a.insert(b);
    ASSERT_EQ(a, both);
    ASSERT_EQ(a.bytes(), both.bytes());
    a.insert(a);
    ASSERT_EQ(a, both);
  }
}

TEST(SequenceSet, TakesARunOfAllNumbers) {
  SequenceSet all, some;
  ASSERT_TRUE(all.append({1, std::uint64_t{1} << 58}));
  EXPECT_TRUE(all.contains(0));
  EXPECT_TRUE(all.contains(kHighest));
  EXPECT_EQ(all.highest(), kHighest);
  EXPECT_EQ(all.size(), kHighest);
  some.insert(77);
  some.insert(all);
  EXPECT_EQ(some, all);
  all.insert(5);
  EXPECT_EQ(some, all);
}

TEST(SequenceSet, RefusesPiecesThatNoSetHas) {
  const auto takes = [](std::initializer_list<SequenceSet::Piece> pieces) {
    SequenceSet set;
    return std::all_of(pieces.begin(), pieces.end(), [&](auto piece) { return set.append(piece); });
  };
  EXPECT_TRUE(takes({{0, 5}, {65, 2}, {192, 1}, {256, 1}, {321, 1}}));
  EXPECT_FALSE(takes({{0, 0}}));         // an empty bitmap
  EXPECT_FALSE(takes({{0, kHighest}}));  // a full one
  EXPECT_FALSE(takes({{1, 0}}));         // an empty run
  EXPECT_FALSE(takes({{2, 1}}));         // unknown kind
  EXPECT_FALSE(takes({{1, (1ull << 58) + 1}}));
  EXPECT_FALSE(takes({{65, 1ull << 58}}));
  EXPECT_FALSE(takes({{1, 2}, {129, 1}}));  // two runs that are one
  EXPECT_FALSE(takes({{1, 2}, {64, 1}}));   // overlapping
  EXPECT_FALSE(takes({{64, 1}, {64, 2}}));
  EXPECT_FALSE(takes({{64, 1}, {0, 2}}));
}

TEST(ClientWindow, KeepsThePromiseForMillionsOfIds) {
  for (int configuration = 0; configuration < Configurations::kConfigurations; ++configuration) {
    check_promise<DenseCase>(configuration, 1, 1'000'000);
    check_promise<SparseCase>(configuration, 2, 300'000);
  }
}

TEST(ClientWindow, RefusesAnImpossibleGoal) {
  for (const ClientWindow::Goal& goal : {ClientWindow::Goal{.window_ms = 0},
                                         {.window_ms = -1},
                                         {.window_ms = 1, .generations = 0},
                                         {.window_ms = 1, .generations = 65},
                                         {.window_ms = 1, .max_bytes = ClientWindow::kLeastCap - 1},
                                         {.window_ms = 1, .hash = {static_cast<HashKind>(2), 0}}}) {
    const Result<ClientWindow> window = ClientWindow::make(goal, kNow);
    ASSERT_FALSE(window);
    EXPECT_EQ(window.error().code, Errc::invalid);
  }
}

TEST(ClientWindow, AcceptsADelayedOperationAfterLaterOnes) {
  ClientWindow window = window_of({.window_ms = 1000});
  EXPECT_EQ(window.test_and_insert({key(1), 7}), Verdict::fresh);
  EXPECT_EQ(window.test_and_insert({key(1), 9}), Verdict::fresh);
  EXPECT_EQ(window.test_and_insert({key(1), 9}), Verdict::duplicate);
  EXPECT_EQ(window.test_and_insert({key(1), 8}), Verdict::fresh);
  EXPECT_EQ(window.test_and_insert({key(1), 8}), Verdict::duplicate);
  EXPECT_EQ(window.test_and_insert({key(2), 8}), Verdict::fresh);
}

TEST(ClientWindow, CallsStaleWhatItMayHaveForgotten) {
  ClientWindow window = window_of({.window_ms = 1000});
  EXPECT_EQ(window.test_and_insert({key(1), 10}), Verdict::fresh);
  window.advance(kNow + 800);
  EXPECT_EQ(window.test_and_insert({key(1), 5}),
            Verdict::fresh);  // late, and remembered from now on
  EXPECT_EQ(window.test_and_insert({key(1), 20}), Verdict::fresh);
  window.advance(kNow + 1300);
  EXPECT_EQ(window.test_and_insert({key(1), 5}), Verdict::duplicate);
  EXPECT_EQ(window.test_and_insert({key(1), 10}), Verdict::stale);  // accepted once
  EXPECT_EQ(window.test({key(1), 9}), Verdict::stale);              // perhaps
  EXPECT_EQ(window.test_and_insert({key(1), 11}), Verdict::fresh);  // certainly not
  EXPECT_EQ(window.counts().stale, 1u);
}

TEST(ClientWindow, ForgetsAClientThatHasBeenIdle) {
  ClientWindow window = window_of({.window_ms = 1000});
  const std::uint64_t empty = window.bytes();
  EXPECT_EQ(window.test_and_insert({key(1), 10}), Verdict::fresh);
  window.advance(kNow + 1250);
  EXPECT_EQ(window.clients(), 0u);
  EXPECT_EQ(window.bytes(), empty);
  EXPECT_EQ(window.test_and_insert({key(1), 10}), Verdict::fresh);
}

// Many clients leave at once. They are cleared a few at a time, and no answer shows which are
// already cleared.
TEST(ClientWindow, ClearsAFewMarksACall) {
  const ClientWindow empty = window_of({.window_ms = 1000}, kNow + 2000);
  ClientWindow window = window_of({.window_ms = 1000});
  for (std::uint64_t n = 0; n < 1000; ++n) (void)window.test_and_insert({key(n), 10});
  window.advance(kNow + 2000);
  EXPECT_GT(window.clients(), 900u);
  EXPECT_EQ(window, empty);
  EXPECT_EQ(encoded(window), encoded(empty));
  for (std::uint64_t n = 0; n < 1000; ++n) ASSERT_EQ(window.test({key(n), 5}), Verdict::fresh);
  // The clients that came last are cleared first, because they come again.
  for (std::uint64_t n = 1000; n-- > 700;) {
    ASSERT_EQ(window.test_and_insert({key(n), 5}), Verdict::fresh);
    ASSERT_EQ(window.test({key(n), 7}), Verdict::fresh);
  }
  for (std::uint64_t n = 6; n < 500; ++n) (void)window.test_and_insert({key(999), n});
  EXPECT_EQ(window.clients(), 300u);
  for (int round = 0; round < 20; ++round) window.advance(kNow + 5000);
  EXPECT_EQ(window.clients(), 0u);
}

TEST(ClientWindow, CallsStaleWhatItHasYetToClear) {
  ClientWindow window = window_of({.window_ms = 1000});
  for (std::uint64_t n = 0; n < 1000; ++n) (void)window.test_and_insert({key(n), 10});
  window.advance(kNow + 800);
  for (std::uint64_t n = 0; n < 1000; ++n) (void)window.test_and_insert({key(n), 20});
  window.advance(kNow + 1300);
  for (std::uint64_t n = 0; n < 1000; ++n) {
    ASSERT_EQ(window.test({key(n), 10}), Verdict::stale);
    ASSERT_EQ(window.test({key(n), 11}), Verdict::fresh);
    ASSERT_EQ(window.test({key(n), 20}), Verdict::duplicate);
  }
  EXPECT_EQ(encoded(*ClientWindow::decode(encoded(window))), encoded(window));
}

// One operation may need the next step of its block, which takes several kilobytes.
TEST(ClientWindow, ClearsAllThatHasLeftBeforeItIsFull) {
  ClientWindow window = window_of({.window_ms = 1000, .max_bytes = 700'000});
  for (std::uint64_t n = 0; n < 1000; ++n) (void)window.test_and_insert({key(n), 10});
  window.advance(kNow + 900);
  std::uint64_t sequence = 0;
  while (window.test_and_insert({key(1000), sequence}) == Verdict::fresh) sequence += 64;
  window.advance(kNow + 1300);
  EXPECT_EQ(window.test_and_insert({key(1000), sequence}, kNow + 900), Verdict::fresh);
  EXPECT_LT(window.clients(), 970u);
  EXPECT_LE(window.bytes(), window.goal().max_bytes);
}

TEST(ClientWindow, TakesASixthOfAByteForAnOperationOfABusyClient) {
  ClientWindow window = window_of({.window_ms = 10'000});
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    window.advance(kNow + static_cast<TimeMs>(n) * 2);
    for (std::uint64_t client = 0; client < 10; ++client) {
      ASSERT_EQ(window.test_and_insert({key(client), n}), Verdict::fresh);
    }
  }
  EXPECT_LT(static_cast<double>(window.bytes()) / (10 * 5000), 1.0 / 6);
}

TEST(ClientWindow, RefusesWhatDoesNotFitAndTakesItWhenTheOldestHaveLeft) {
  ClientWindow window = window_of({.window_ms = 1000, .max_bytes = 4096});
  std::uint64_t n = 0;
  while (window.test_and_insert({key(n), 64}) == Verdict::fresh) ++n;
  EXPECT_EQ(n, (4096 - 256) / (96 + 88 + 16u));
  EXPECT_EQ(window.counts().refused, 1u);
  EXPECT_EQ(window.test_and_insert({key(0), 65}), Verdict::fresh);  // needs no memory
  EXPECT_EQ(window.promise().kept_from_ms, kNow - 1000);
  window.advance(kNow + 1250);
  EXPECT_EQ(window.test_and_insert({key(n), 64}), Verdict::fresh);
}

TEST(ClientWindow, ForgetsTheOldestEarlyAndSaysSo) {
  ClientWindow window =
      window_of({.window_ms = 1000, .max_bytes = 4096, .on_full = OnFull::forget});
  EXPECT_EQ(window.test_and_insert({key(0), 1}), Verdict::fresh);
  EXPECT_EQ(window.test_and_insert({key(1), 1}), Verdict::fresh);
  window.advance(kNow + 500);
  EXPECT_EQ(window.test_and_insert({key(0), 2}), Verdict::fresh);
  std::uint64_t n = 2;
  while (window.counts().forgotten_early == 0) (void)window.test_and_insert({key(n++), 1});
  EXPECT_EQ(window.counts().forgotten_early, 2u);
  EXPECT_GT(window.promise().kept_from_ms, kNow);
  EXPECT_LE(window.promise().kept_from_ms, kNow + 500);
  EXPECT_EQ(window.test({key(0), 1}), Verdict::stale);
  EXPECT_EQ(window.test({key(0), 2}), Verdict::duplicate);
  EXPECT_EQ(window.test({key(1), 1}), Verdict::fresh);  // the client has left
  while (window.counts().forgotten_early == 2) (void)window.test_and_insert({key(n++), 1});
  EXPECT_EQ(window.promise().kept_from_ms, window.now() + 1);
  EXPECT_EQ(window.clients(), 1u);
}

TEST(ClientWindow, TakesTimesOfEverySignAndSize) {
  for (const TimeMs start_ms : {kFirst, kFirst + 5, TimeMs{-1}, kLast - 5, kLast}) {
    for (const TimeMs window_ms : {TimeMs{1}, TimeMs{1000}, kLast}) {
      for (const std::uint32_t generations : {1u, 7u, 64u}) {
        ClientWindow window = window_of({.window_ms = window_ms,
                                         .generations = generations,
                                         .max_bytes = 4096,
                                         .on_full = OnFull::forget},
                                        start_ms);
        EXPECT_EQ(window.test_and_insert({key(1), 1}), Verdict::fresh);
        EXPECT_EQ(window.insert({key(1), kHighest}, kLast), Verdict::fresh);
        const Verdict of_old = window.insert({key(3), 0}, kFirst);
        EXPECT_EQ(of_old == Verdict::stale, older_than(kFirst, window_ms, start_ms));
        EXPECT_EQ(*ClientWindow::decode(encoded(window)), window);
        for (std::uint64_t n = 0; n < 100; ++n) (void)window.insert({key(n), n});
        EXPECT_EQ(*ClientWindow::decode(encoded(window)), window);
        window.advance(kLast);
        window.advance(kFirst);
        EXPECT_EQ(window.now(), kLast);
        EXPECT_EQ(window.counts().backward_steps, 1u);
      }
    }
  }
}

// The copy has another order of clients and no leftovers, but the same memory and the same answers.
TEST(ClientWindow, GoesOnAsItsCopyFromBytesDoes) {
  for (const ClientWindow::Goal& goal : Configurations::kGoals) {
    ClientWindow window = window_of(goal);
    ClientWindow copy = window;
    Random random(1);
    TimeMs now_ms = kNow;
    for (int round = 0; round < 2000; ++round) {
      if (round % 10 == 0) copy = *ClientWindow::decode(encoded(window));
      now_ms += static_cast<TimeMs>(random.below(40));
      window.advance(now_ms);
      copy.advance(now_ms);
      for (int n = 0; n < 8; ++n) {
        const std::uint64_t about = 40 * static_cast<std::uint64_t>(round);
        const ClientOperation id{key(random.below(20)), about + random.below(100)};
        ASSERT_EQ(window.test_and_insert(id), copy.test_and_insert(id));
      }
      ASSERT_EQ(window, copy);
    }
    EXPECT_EQ(encoded(window), encoded(copy));
  }
}

TEST(ClientWindow, IsReadFromItsBytesAfterItsCapWasLowered) {
  for (const std::uint64_t cap : {std::uint64_t{0}, std::uint64_t{5000}}) {
    ClientWindow window = window_of({.window_ms = 1000});
    for (std::uint64_t n = 0; n < 100; ++n) window.insert({key(n), n});
    ASSERT_GT(window.bytes(), 5000U);
    window.set_max_bytes(cap);
    Result<ClientWindow> read = ClientWindow::decode(encoded(window));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, window);
    for (std::uint64_t n = 0; n < 100; ++n) EXPECT_EQ(read->test({key(n), n}), Verdict::duplicate);
    EXPECT_EQ(read->insert({key(100), 1}), Verdict::full);
    read->advance(kNow + 3000);
    EXPECT_EQ(read->insert({key(100), 1}), Verdict::fresh);
  }
}

TEST(ClientWindow, MergesOnlyWindowsOfOneGoalAndTimeAndWithinTheCap) {
  const ClientWindow::Goal goal{.window_ms = 1000, .max_bytes = 4096};
  ClientWindow a = window_of(goal), b = window_of(goal);
  EXPECT_EQ(a.merge(window_of(goal, kNow + 1)).error().code, Errc::mismatch);
  EXPECT_EQ(a.merge(window_of({.window_ms = 1001})).error().code, Errc::mismatch);
  for (std::uint64_t n = 0; n < 15; ++n) {
    EXPECT_EQ(a.test_and_insert({key(n), 1}), Verdict::fresh);
    EXPECT_EQ(b.test_and_insert({key(n + 10), 1}), Verdict::fresh);
  }
  const ClientWindow before = a;
  EXPECT_EQ(a.merge(b).error().code, Errc::full);
  EXPECT_EQ(a, before);
  EXPECT_EQ(a.bytes(), before.bytes());
}

TEST(ClientWindow, MergeKeepsWhatEitherSideMayHaveForgotten) {
  ClientWindow a = window_of({.window_ms = 1000}), b = a;
  EXPECT_EQ(a.test_and_insert({key(1), 10}), Verdict::fresh);
  a.advance(kNow + 800);
  EXPECT_EQ(a.test_and_insert({key(1), 20}), Verdict::fresh);
  a.advance(kNow + 1300);
  b.advance(kNow + 1300);
  EXPECT_EQ(b.test_and_insert({key(1), 7}), Verdict::fresh);
  ASSERT_TRUE(b.merge(a));
  EXPECT_EQ(b.test({key(1), 7}), Verdict::duplicate);
  EXPECT_EQ(b.test({key(1), 20}), Verdict::duplicate);
  EXPECT_EQ(b.test({key(1), 10}), Verdict::stale);
  EXPECT_EQ(b.test({key(1), 11}), Verdict::fresh);
}

TEST(ClientWindow, RefusesBytesThatNoWindowWrites) {
  ClientWindow window = window_of({.window_ms = 1000});
  EXPECT_EQ(window.insert({{1, 1}, 5}, kNow - 500), Verdict::fresh);
  EXPECT_EQ(window.insert({{1, 1}, 6}), Verdict::fresh);
  EXPECT_EQ(window.insert({{1, 2}, 5}), Verdict::fresh);
  const Bytes bytes = encoded(window);
  const auto refusal = [&](std::size_t at, std::uint64_t value, int width = 8) -> std::string {
    Bytes damaged = bytes;
    for (int i = 0; i < width; ++i) {
      damaged[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value >> (8 * i));
    }
    store_u64(damaged.data() + damaged.size() - 8,
              checksum(ByteView(damaged).first(damaged.size() - 8)));
    const Result<ClientWindow> read = ClientWindow::decode(damaged);
    return read ? "none" : read.error().message();
  };
  const std::size_t first = 63, mark = first + 26, second = mark + 32;
  const std::uint64_t newest = kNow / 250;
  const std::string marks = "client window: marks of a client";
  EXPECT_EQ(refusal(23, 0), "client window: goal");
  EXPECT_EQ(refusal(31, 4095), "client window: goal");
  EXPECT_EQ(refusal(31, 4096), "none");
  EXPECT_EQ(refusal(47, kNow + 1), "none");
  EXPECT_EQ(refusal(47, kNow + 2), "client window: kept from a later time");
  EXPECT_EQ(refusal(55, 1), "client window: size");
  EXPECT_EQ(refusal(55, 3), "client window: number of clients");
  EXPECT_EQ(refusal(first + 8, 2), "client window: order of clients");
  EXPECT_EQ(refusal(first + 16, 7), "client window: sequence forgotten");
  EXPECT_EQ(refusal(first + 24, 1, 1), "none");
  EXPECT_EQ(refusal(first + 24, 2, 1), "client window: number of clients");
  EXPECT_EQ(refusal(first + 25, 0, 1), marks);
  EXPECT_EQ(refusal(first + 25, 255, 1), marks);
  EXPECT_EQ(refusal(mark, newest - 5), marks);
  EXPECT_EQ(refusal(mark, newest - 4), "none");
  EXPECT_EQ(refusal(mark, newest), marks);
  EXPECT_EQ(refusal(second, newest + 1), marks);
  EXPECT_EQ(refusal(mark + 8, 0), marks);
  EXPECT_EQ(refusal(mark + 8, kHighest), marks);
  EXPECT_EQ(refusal(mark + 16, 3), marks);
  EXPECT_EQ(refusal(mark + 24, 0), marks);
}

TEST(ClientWindow, ARestartKeepsWhatWasForgotten) {
  const ClientWindow::Goal goal{.window_ms = 1000, .generations = 2};
  ClientWindow window = window_of(goal);
  EXPECT_EQ(window.insert({key(1), 7}), Verdict::fresh);
  EXPECT_EQ(window.forgotten(key(1)), std::nullopt);
  window.advance(kNow + 900);
  EXPECT_EQ(window.insert({key(1), 9}), Verdict::fresh);
  window.advance(kNow + 1600);
  EXPECT_EQ(window.forgotten(key(1)), 7);
  EXPECT_EQ(window.forgotten(key(2)), std::nullopt);

  ClientWindow restarted = window_of(goal, kNow + 1600);
  restarted.restore_forgotten(key(1), 7);  // nothing of it is remembered yet
  EXPECT_EQ(restarted.test({key(1), 7}), Verdict::fresh);
  EXPECT_EQ(restarted.insert({key(1), 9}, kNow + 900), Verdict::fresh);
  restarted.restore_forgotten(key(1), 7);
  restarted.restore_forgotten(key(1), 3);
  for (const std::uint64_t sequence : {3, 7, 8, 9}) {
    EXPECT_EQ(restarted.test({key(1), sequence}), window.test({key(1), sequence}));
  }
  window.advance(kNow + 5000);
  EXPECT_EQ(window.forgotten(key(1)), std::nullopt);
}

}  // namespace
}  // namespace semel
