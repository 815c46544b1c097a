// ExactWindow: the promise beside an exact twin, the tables below, merging, and bytes.
#include "semel/window/internal/exact_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/laws/merge_laws.h"
#include "tests/oracle/ahead.h"
#include "tests/oracle/window_twin.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel::window_internal {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kFirst = std::numeric_limits<TimeMs>::min();
constexpr TimeMs kLast = std::numeric_limits<TimeMs>::max();

ExactWindow window_of(const ExactWindow::Goal& goal, TimeMs now_ms = kNow) {
  return *ExactWindow::make(goal, now_ms);
}

std::vector<Verdict> verdicts_of(ExactWindow& window, std::span<const Digest> ids) {
  std::vector<Verdict> verdicts(ids.size());
  window.test_and_insert(ids, verdicts);
  return verdicts;
}

struct TwinCase {
  using Type = ExactWindow;
  static constexpr bool kFalsePositives = false, kStaleById = false;
  static constexpr ExactWindow::Goal kGoals[] = {
      {.window_ms = 1000},
      {.window_ms = 1000, .ids = 1000, .max_bytes = 16384, .on_full = OnFull::refuse},
      {.window_ms = 1000, .generations = 3, .max_bytes = 16384, .on_full = OnFull::forget},
      {.window_ms = 997, .ids = 50, .generations = 1, .max_bytes = 1 << 20},
      {.window_ms = 64, .generations = 64, .max_bytes = 4096, .on_full = OnFull::forget},
      {.window_ms = 1000, .punctual = true},
      {.window_ms = 997, .ids = 50, .generations = 1, .punctual = true},
      {.window_ms = 1000, .generations = 3, .max_bytes = 16384, .punctual = true},
      {.window_ms = 64,
       .generations = 5,
       .max_bytes = 4096,
       .on_full = OnFull::forget,
       .punctual = true},
  };
  static constexpr int kConfigurations = std::size(kGoals);

  static Digest id(std::uint64_t number) { return {mix(number), mix(~number)}; }
  static Type make(int i, TimeMs now_ms) { return window_of(kGoals[i], now_ms); }
  static std::uint64_t cap(int i) { return kGoals[i].max_bytes; }
  static OnFull on_full(int i) { return kGoals[i].on_full; }
  static std::optional<TimeMs> upper_edge(const Type& window) {
    return ExactWindow::longest_ms(window.goal());
  }
};

// Three generations, one of them with the digest that marks free slots.
struct BytesCase {
  using Type = ExactWindow;
  static constexpr std::size_t kHeaderSize = 72;
  static constexpr char kFile[] = "exact_window_v1.bin";
  static Type make() {
    ExactWindow window = window_of({.window_ms = 1000,
                                    .ids = 100,
                                    .generations = 4,
                                    .max_bytes = 1 << 20,
                                    .on_full = OnFull::forget,
                                    .hash = kTestHash});
    EXPECT_EQ(window.test_and_insert({0, 0}, kNow - 900), Verdict::fresh);
    for (std::uint64_t n = 0; n < 20; ++n) {
      EXPECT_EQ(window.test_and_insert(key(n), kNow - 50 * static_cast<TimeMs>(n % 7)),
                Verdict::fresh);
    }
    return window;
  }
};

// A punctual window. The oldest generation has ids on both sides of the edge.
struct PunctualBytesCase {
  using Type = ExactWindow;
  static constexpr std::size_t kHeaderSize = 72;
  static constexpr char kFile[] = "exact_window_v1_punctual.bin";
  static Type make() {
    ExactWindow window = window_of({.window_ms = 1000,
                                    .ids = 100,
                                    .generations = 4,
                                    .max_bytes = 1 << 20,
                                    .hash = kTestHash,
                                    .punctual = true});
    EXPECT_EQ(window.test_and_insert({0, 0}, kNow - 900), Verdict::fresh);
    EXPECT_EQ(window.test_and_insert(key(20), kNow - 990), Verdict::fresh);
    for (std::uint64_t n = 0; n < 20; ++n) {
      EXPECT_EQ(window.test_and_insert(key(n), kNow - 50 * static_cast<TimeMs>(n % 7)),
                Verdict::fresh);
    }
    window.advance(kNow + 20);
    EXPECT_EQ(window.test(key(20)), Verdict::fresh);
    return window;
  }
};

template <bool kPunctual>
struct LawsCase {
  using Type = ExactWindow;
  static std::uint64_t first(int replica) { return 300 * static_cast<std::uint64_t>(replica); }
  // Each window shares ids with the next, some of them in other generations.
  static Type make(int replica) {
    ExactWindow window =
        window_of({.window_ms = 1000, .ids = 10, .hash = kTestHash, .punctual = kPunctual});
    for (std::uint64_t n = first(replica); n < first(replica) + 500; ++n) {
      const auto age_ms =
          static_cast<TimeMs>(mix(n + n % 3 * static_cast<unsigned>(replica)) % 999);
      EXPECT_EQ(window.test_and_insert(key(n), kNow - age_ms), Verdict::fresh);
    }
    return window;
  }
  static bool holds(const Type& window, int replica) {
    for (std::uint64_t n = first(replica); n < first(replica) + 500; ++n) {
      if (window.test(key(n)) != Verdict::duplicate) return false;
    }
    return true;
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Exact, WindowHistory, TwinCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Exact, HostileBytes, BytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Exact, Golden, BytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Exact, MergeLaws, LawsCase<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(Punctual, HostileBytes, PunctualBytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Punctual, Golden, PunctualBytesCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Punctual, MergeLaws, LawsCase<true>);

TEST(DigestTable, HoldsItsRoomInOneProbeSequenceAroundTheEnd) {
  for (const std::uint64_t room : {3ull, 12ull, 768ull, 1536ull, 3000ull}) {
    DigestTable table(room);
    Random random(room);
    std::vector<Digest> inside;
    for (std::uint64_t n = 0; n < room; ++n) {
      // Half of the digests crowd at the end.
      inside.push_back({random(), n % 2 == 0 ? random() : ~random.below(3)});
      ASSERT_FALSE(table.contains(inside.back()));
      table.insert(inside.back());
    }
    EXPECT_TRUE(table.full());
    const DigestTable copy = table;
    std::sort(inside.begin(), inside.end());
    DigestTable filled(room);
    DigestTable::End end;
    for (const Digest& digest : inside) filled.append(end, digest);
    for (const auto* one : std::initializer_list<const DigestTable*>{&table, &copy, &filled}) {
      for (const Digest& digest : inside) {
        ASSERT_TRUE(one->contains(digest));
        ASSERT_FALSE(one->contains({~digest.lo, digest.hi}));
      }
      std::vector<Digest> all;
      for (auto cursor = one->ascending(); cursor.valid(); cursor.next()) all.push_back(*cursor);
      EXPECT_EQ(all, inside);
    }
  }
}

TEST(SizeClass, IsTheLeastOfFewSizesThatIsEnough) {
  std::uint64_t last = 0, sizes = 0;
  for (std::uint64_t n = 1; n < 100'000; ++n) {
    const std::uint64_t size = size_class(n);
    ASSERT_GE(size, n);
    ASSERT_LE(size, n + n / 4);
    ASSERT_EQ(size_class(size), size);
    ASSERT_GE(size, last);
    sizes += size != last;
    last = size;
  }
  EXPECT_EQ(sizes, 8u + 4 * 14 - 1);  // up to 2^17, less its last quarter
}

TEST(ExactWindow, KeepsThePromiseForMillionsOfIds) {
  for (int configuration = 0; configuration < TwinCase::kConfigurations; ++configuration) {
    check_promise<TwinCase>(configuration, 1, 1'000'000);
  }
}

TEST(ExactWindow, RefusesAnImpossibleGoal) {
  for (const ExactWindow::Goal& goal : {ExactWindow::Goal{.window_ms = 0},
                                        {.window_ms = -1},
                                        {.window_ms = 1, .generations = 0},
                                        {.window_ms = 1, .generations = 65},
                                        {.window_ms = 1, .max_bytes = ExactWindow::kLeastCap - 1},
                                        {.window_ms = 1, .hash = {static_cast<HashKind>(2), 0}}}) {
    const Result<ExactWindow> window = ExactWindow::make(goal, kNow);
    ASSERT_FALSE(window);
    EXPECT_EQ(window.error().code, Errc::invalid);
  }
  EXPECT_EQ(ExactWindow::make({.window_ms = 1, .ids = ~0ull}, kNow).error().code, Errc::limit);
}

TEST(ExactWindow, RecognisesAnIdForTheWindowAndForgetsItWithinASpan) {
  for (const TimeMs from_ms : {kNow, TimeMs{-60}, kFirst}) {
    for (TimeMs start_ms = from_ms; start_ms < from_ms + 130; ++start_ms) {
      ExactWindow window = window_of({.window_ms = 1000}, start_ms);
      EXPECT_EQ(window.test_and_insert(key(1)), Verdict::fresh);
      window.advance(start_ms + 1000);
      EXPECT_EQ(window.test_and_insert(key(1)),
                Verdict::duplicate);  // not renewed
      for (TimeMs age_ms = 1001; age_ms < 1125; ++age_ms) {
        window.advance(start_ms + age_ms);
        const bool forgotten = start_ms < window.promise().forgotten_before_ms;
        EXPECT_EQ(window.test(key(1)), forgotten ? Verdict::fresh : Verdict::duplicate);
      }
      window.advance(start_ms + 1125);
      EXPECT_EQ(window.test(key(1)), Verdict::fresh);
    }
  }
}

TEST(ExactWindow, ForgetsAtTheMillisecondIfPunctual) {
  for (const TimeMs from_ms : {kNow, TimeMs{-60}, kFirst}) {
    for (TimeMs start_ms = from_ms; start_ms < from_ms + 130; ++start_ms) {
      ExactWindow window = window_of({.window_ms = 1000, .punctual = true}, start_ms);
      EXPECT_EQ(window.test_and_insert(key(1)), Verdict::fresh);
      window.advance(start_ms + 1000);
      EXPECT_EQ(window.test_and_insert(key(1)),
                Verdict::duplicate);  // not renewed
      EXPECT_EQ(window.test(key(1), start_ms + 1001), Verdict::fresh);
      window.advance(start_ms + 1001);
      EXPECT_EQ(window.test(key(1)), Verdict::fresh);
      EXPECT_EQ(window.test_and_insert(key(1), start_ms + 1), Verdict::fresh)
          << "late, into the generation that still holds it";
      EXPECT_EQ(window.test(key(1)), Verdict::duplicate);
      window.advance(start_ms + 1002);
      EXPECT_EQ(window.test(key(1)), Verdict::fresh);
    }
  }
}

TEST(ExactWindow, MergesTheLaterTimeIfPunctual) {
  ExactWindow a = window_of({.window_ms = 1000, .punctual = true}), b = a;
  EXPECT_EQ(a.test_and_insert(key(1), kNow - 30), Verdict::fresh);
  EXPECT_EQ(b.test_and_insert(key(1), kNow - 20), Verdict::fresh);
  ASSERT_TRUE(a.merge(b));
  a.advance(kNow + 980);
  EXPECT_EQ(a.test(key(1)), Verdict::duplicate);
  a.advance(kNow + 981);
  EXPECT_EQ(a.test(key(1)), Verdict::fresh);
  EXPECT_EQ(a.merge(window_of({.window_ms = 1000}, kNow + 981)).error().code, Errc::mismatch);
}

TEST(ExactWindow, RenewsByInsertAlone) {
  ExactWindow window = window_of({.window_ms = 1000});
  EXPECT_EQ(window.insert(key(1)), Verdict::fresh);
  window.advance(kNow + 900);
  EXPECT_EQ(window.insert(key(1)), Verdict::duplicate);
  EXPECT_EQ(window.insert(key(1), kNow + 300), Verdict::duplicate);  // known for longer already
  EXPECT_EQ(window.ids(), 2u);
  window.advance(kNow + 1900);
  EXPECT_EQ(window.test(key(1)), Verdict::duplicate);
  EXPECT_EQ(window.ids(), 1u);
}

TEST(ExactWindow, TakesTimesOfEverySignAndSize) {
  for (const TimeMs start_ms : {kFirst, kFirst + 5, TimeMs{-1}, kLast - 5, kLast}) {
    for (const TimeMs window_ms : {TimeMs{1}, TimeMs{1000}, kLast}) {
      for (const std::uint32_t generations : {1u, 7u, 64u}) {
        ExactWindow window =
            window_of({.window_ms = window_ms, .generations = generations}, start_ms);
        EXPECT_EQ(window.test_and_insert(key(1)), Verdict::fresh);
        EXPECT_EQ(window.insert(key(2), kLast), Verdict::fresh);
        const Verdict of_old = window.insert(key(3), kFirst);
        EXPECT_EQ(of_old == Verdict::stale, older_than(kFirst, window_ms, start_ms));
        EXPECT_EQ(*ExactWindow::decode(encoded(window)), window);
        window.advance(kLast);
        window.advance(kFirst);
        EXPECT_EQ(window.now(), kLast);
        EXPECT_EQ(window.counts().backward_steps, 1u);
        if (older_than(start_ms, window_ms, kLast - window_ms)) {
          EXPECT_EQ(window.test(key(1)), Verdict::fresh);
        }
      }
    }
  }
}

TEST(ExactWindow, SizesATableByTheLoadOfTheLast) {
  ExactWindow window = window_of({.window_ms = 1000});
  (void)verdicts_of(window, keys(0, 10'000));
  const std::uint64_t grown = window.bytes();
  EXPECT_LT(grown, 10'000 * 64u);
  window.advance(kNow + 500);
  (void)verdicts_of(window, keys(10'000, 20'000));
  EXPECT_LT(window.bytes() - grown, 10'000 * 64 * 5 / 4 / 3 + 1024u);  // one table, not a chain
  window.advance(kNow + 10'000);
  EXPECT_EQ(window.bytes(), window_of({.window_ms = 1000}).bytes());
}

TEST(ExactWindow, RefusesWhatDoesNotFitAndTakesItWhenTheOldestHaveLeft) {
  ExactWindow window = window_of({.window_ms = 1000, .max_bytes = 100'000});
  const std::vector<Verdict> verdicts = verdicts_of(window, keys(0, 10'000));
  const auto taken =
      static_cast<std::uint64_t>(std::count(verdicts.begin(), verdicts.end(), Verdict::fresh));
  EXPECT_GT(taken, 100'000 / 27u);
  EXPECT_EQ(window.counts().refused, 10'000 - taken);
  EXPECT_EQ(window.test_and_insert(key(10'000)), Verdict::full);
  EXPECT_EQ(window.promise().kept_from_ms, kNow - 1000);
  window.advance(kNow + 1125);
  EXPECT_EQ(window.test_and_insert(key(10'000)), Verdict::fresh);
}

TEST(ExactWindow, ForgetsTheOldestEarlyAndSaysSo) {
  ExactWindow window =
      window_of({.window_ms = 1000, .max_bytes = 100'000, .on_full = OnFull::forget});
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    window.advance(kNow + static_cast<TimeMs>(n / 20));
    ASSERT_EQ(window.test_and_insert(key(n)), Verdict::fresh);
    ASSERT_LE(window.bytes(), 100'000u);
  }
  EXPECT_EQ(window.counts().forgotten_early + window.ids(), 10'000u);
  const TimeMs kept_from_ms = window.promise().kept_from_ms;
  EXPECT_GT(kept_from_ms, window.now() - 1000);
  EXPECT_LT(kept_from_ms, window.now());
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    const bool kept = kNow + static_cast<TimeMs>(n / 20) >= kept_from_ms;
    ASSERT_EQ(window.test(key(n)), kept ? Verdict::duplicate : Verdict::fresh);
  }
  // An id that may have been forgotten cannot be judged.
  EXPECT_EQ(window.test_and_insert(key(1), kept_from_ms - 1), Verdict::stale);
}

// The copy has tables of another history, but the same memory and the same answers.
TEST(ExactWindow, GoesOnAsItsCopyFromBytesDoes) {
  for (const ExactWindow::Goal& goal : TwinCase::kGoals) {
    ExactWindow window = window_of(goal);
    ExactWindow copy = window;
    Random random(1);
    TimeMs now_ms = kNow;
    for (int round = 0; round < 2000; ++round) {
      if (round % 10 == 0) copy = *ExactWindow::decode(encoded(window));
      now_ms += static_cast<TimeMs>(random.below(20));
      window.advance(now_ms);
      copy.advance(now_ms);
      const std::uint64_t first = random.below(20'000);
      const std::vector<Digest> ids = keys(first, first + random.below(20));
      ASSERT_EQ(verdicts_of(window, ids), verdicts_of(copy, ids));
      ASSERT_EQ(window.bytes(), copy.bytes());
      ASSERT_EQ(window, copy);
    }
    EXPECT_EQ(encoded(window), encoded(copy));
  }
}

TEST(ExactWindow, GivesEqualBytesWhateverTheOrder) {
  std::vector<Digest> ids = keys(0, 1000);
  ExactWindow forwards = window_of({.window_ms = 1000}), backwards = forwards;
  (void)verdicts_of(forwards, ids);
  std::reverse(ids.begin(), ids.end());
  (void)verdicts_of(backwards, ids);
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(encoded(forwards), encoded(backwards));
  EXPECT_EQ(backwards.test_and_insert(key(1000)), Verdict::fresh);
  EXPECT_NE(forwards, backwards);
}

TEST(ExactWindow, MergesOnlyWindowsOfOneGoalAndTimeAndWithinTheCap) {
  const ExactWindow::Goal goal{.window_ms = 1000, .max_bytes = 20'000};
  ExactWindow a = window_of(goal), b = window_of(goal), c = window_of(goal, kNow + 1);
  EXPECT_EQ(a.merge(c).error().code, Errc::mismatch);
  EXPECT_EQ(a.merge(window_of({.window_ms = 1001})).error().code, Errc::mismatch);
  (void)verdicts_of(a, keys(0, 500));
  (void)verdicts_of(b, keys(500, 1000));
  const ExactWindow before = a;
  EXPECT_EQ(a.merge(b).error().code, Errc::full);
  EXPECT_EQ(a, before);
  EXPECT_EQ(a.bytes(), before.bytes());
}

TEST(ExactWindow, MergesWhatWasForgottenEarlyIntoThePromise) {
  const ExactWindow::Goal goal{.window_ms = 1000, .max_bytes = 20'000, .on_full = OnFull::forget};
  ExactWindow full = window_of(goal), other = window_of(goal);
  (void)verdicts_of(full, keys(0, 5000));
  ASSERT_EQ(full.promise().kept_from_ms, kNow + 1);
  ASSERT_TRUE(other.merge(full));
  EXPECT_EQ(other.promise(), full.promise());
}

TEST(ExactWindow, MergeTakesTheLargerRoom) {
  ExactWindow roomy = window_of({.window_ms = 1000}), tight = roomy;
  (void)verdicts_of(roomy, keys(0, 1000));
  for (ExactWindow* window : {&roomy, &tight}) {
    window->advance(kNow + 900);
    EXPECT_EQ(window->test_and_insert(key(1)),
              window == &roomy ? Verdict::duplicate : Verdict::fresh);
    (void)verdicts_of(*window, keys(2000, 2010));
    window->advance(kNow + 1200);
  }
  ASSERT_GT(roomy.bytes(), tight.bytes());
  ExactWindow a = roomy, b = tight;
  ASSERT_TRUE(a.merge(tight));
  ASSERT_TRUE(b.merge(roomy));
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.bytes(), b.bytes());
}

// Only forged bytes have such a room. It is accepted, but not allocated before it is needed.
TEST(ExactWindow, AllocatesNothingOnTheWordOfARoom) {
  ExactWindow small = window_of({.window_ms = 1000});
  EXPECT_EQ(small.test_and_insert(key(1)), Verdict::fresh);
  Bytes bytes = encoded(small);
  store_u64(bytes.data() + 72 + 8, 3ull << 39);
  store_u64(bytes.data() + bytes.size() - 8, checksum(ByteView(bytes).first(bytes.size() - 8)));
  Result<ExactWindow> window = ExactWindow::decode(bytes);
  ASSERT_TRUE(window) << window.error().message();
  const LargestAllocation largest;
  (void)verdicts_of(*window, keys(0, 1000));
  EXPECT_LT(largest.bytes(), 64'000u);
}

TEST(ExactWindow, RefusesBytesThatNoWindowWrites) {
  ExactWindow window = window_of({.window_ms = 1000, .generations = 4});
  EXPECT_EQ(window.test_and_insert({5, 1}, kNow - 500), Verdict::fresh);
  EXPECT_EQ(window.test_and_insert({5, 2}), Verdict::fresh);
  EXPECT_EQ(window.test_and_insert({6, 0}), Verdict::fresh);
  const Bytes bytes = encoded(window);
  const auto refusal = [&](std::size_t at, std::uint64_t value) -> std::string {
    Bytes damaged = bytes;
    store_u64(damaged.data() + at, value);
    store_u64(damaged.data() + damaged.size() - 8,
              checksum(ByteView(damaged).first(damaged.size() - 8)));
    const Result<ExactWindow> read = ExactWindow::decode(damaged);
    return read ? "none" : read.error().message();
  };
  const std::size_t first = 72, second = first + 24 + 16;
  const std::uint64_t newest = kNow / 250;
  EXPECT_EQ(refusal(24, 0), "exact window: goal");
  EXPECT_EQ(refusal(40, 4095), "exact window: goal");
  EXPECT_EQ(refusal(40, 4096), "none");
  EXPECT_EQ(refusal(56, kNow + 1), "none");
  EXPECT_EQ(refusal(56, kNow + 2), "exact window: kept from a later time");
  EXPECT_EQ(refusal(64, 1), "exact window: size");
  EXPECT_EQ(refusal(64, 3), "exact window: number of a generation");
  EXPECT_EQ(refusal(first, newest - 5), "exact window: number of a generation");
  EXPECT_EQ(refusal(first, newest), "exact window: number of a generation");
  EXPECT_EQ(refusal(first, newest - 4), "none");
  EXPECT_EQ(refusal(second, newest + 1), "exact window: number of a generation");
  EXPECT_EQ(refusal(second + 8, 13), "exact window: room of a generation");
  EXPECT_EQ(refusal(second + 8, 15), "none");
  EXPECT_EQ(refusal(second + 8, ~0ull), "exact window: room of a generation");
  EXPECT_EQ(refusal(second + 16, 0), "exact window: size of a generation");
  EXPECT_EQ(refusal(second + 16, 3), "exact window: size of a generation");
  EXPECT_EQ(refusal(second + 32, 2), "exact window: order of ids");
  EXPECT_EQ(refusal(second + 24, 7), "none");
}

TEST(ExactWindow, RefusesTimesOfAnotherGeneration) {
  ExactWindow window = window_of({.window_ms = 1000, .generations = 4, .punctual = true});
  EXPECT_EQ(window.test_and_insert({5, 1}), Verdict::fresh);
  const Bytes bytes = encoded(window);
  const TimeMs begin_ms = kNow / 250 * 250;
  for (const TimeMs time_ms : {begin_ms - 1, begin_ms, kNow, kNow + 1, begin_ms + 250}) {
    Bytes changed = bytes;
    store_u64(changed.data() + 72 + 24 + 16, static_cast<std::uint64_t>(time_ms));
    store_u64(changed.data() + changed.size() - 8,
              checksum(ByteView(changed).first(changed.size() - 8)));
    const Result<ExactWindow> read = ExactWindow::decode(changed);
    EXPECT_EQ(read.has_value(), time_ms >= begin_ms && time_ms <= kNow) << time_ms;
    EXPECT_EQ(read ? "exact window: time of an id" : read.error().message(),
              "exact window: time of an id");
  }
}

TEST(ExactWindow, TestsAheadOfTimeAsACopyThatWentThere) {
  for (const ExactWindow::Goal& goal : TwinCase::kGoals) {
    Random random(goal.generations);
    ExactWindow window = window_of(goal);
    std::uint64_t next = 0;
    for (int round = 0; round < 60; ++round) {
      window.advance(window.now() + static_cast<TimeMs>(random.below(200)));
      for (std::uint64_t n = random.below(12); n > 0; --n) {
        window.insert(key(next++), window.now() - static_cast<TimeMs>(random.below(600)));
      }
      const std::vector<Digest> ids = keys(0, next + 5);
      for (const TimeMs by_ms : {-5, 0, 1, 63, 450, 997, 1000, 1200, 100'000}) {
        expect_test_ahead_of_time(window, ids, window.now() + by_ms);
        ExactWindow later = window;
        later.advance(window.now() + by_ms);
        ASSERT_EQ(window.ids(window.now() + by_ms), later.ids());
      }
      expect_test_ahead_of_time(window, ids, kLast);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace semel::window_internal
