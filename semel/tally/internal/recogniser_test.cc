// Recogniser: the three kinds beside an exact model, batches, the under-count, and bytes.
#include "semel/tally/internal/recogniser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/oracle/recogniser_twin.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel::tally::internal {
namespace {

using Kind = Recogniser::Kind;

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr std::array kKinds = {Kind::clients, Kind::filter, Kind::exact};
constexpr auto applied = Outcome::applied, duplicate = Outcome::duplicate, stale = Outcome::stale,
               full = Outcome::full, conflict = Outcome::conflict;

Recogniser::Goal goal_of(Kind kind) {
  return {.kind = kind, .window_ms = 1000, .fpr = 1e-9, .ids = 64, .hash = kTestHash};
}
Recogniser made(const Recogniser::Goal& goal, TimeMs now_ms = kNow) {
  return *Recogniser::make(goal, now_ms);
}

TEST(Recogniser, KnowsWhatAnExactModelKnows) {
  for (const Kind kind : kKinds) {
    EXPECT_TRUE(rc::check("kind " + std::to_string(static_cast<int>(kind)), [kind] {
      follow(goal_of(kind), kNow,
             *rc::gen::container<std::vector<RecogniserStep>>(rc::gen::construct<RecogniserStep>(
                 rc::gen::inRange(0, 8), rc::gen::inRange<std::uint64_t>(0, 60),
                 rc::gen::inRange(0, 24))));
    }));
  }
}

// Returns ids of all kinds and clients, which come again now and then, sometimes with another
// content.
std::vector<Query> stream(std::uint64_t seed, std::size_t size) {
  Random random(seed);
  std::vector<Query> queries;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t back = random.below(4) == 0 ? random.below(1 + i) : 0;
    queries.push_back(query_of(7 * seed + i - back, random.below(50) == 0));
  }
  return queries;
}

TEST(Recogniser, AnswersABatchAsItDoesOneByOne) {
  for (const Kind kind : kKinds) {
    for (const OnFull on_full : {OnFull::refuse, OnFull::forget}) {
      for (const std::uint64_t max_bytes : {kNoCap, std::uint64_t{16384}}) {
        Recogniser::Goal goal = goal_of(kind);
        goal.fpr = 1e-3;
        goal.max_bytes = max_bytes;
        goal.on_full = on_full;
        Recogniser batched = made(goal), single = batched;
        for (std::uint64_t round = 0; round < 30; ++round) {
          const std::vector<Query> queries = stream(round, round * 37 % 700);
          Answers expected;
          for (const Query& query : queries) expected.push_back(single.test(query));
          ASSERT_EQ(tested(batched, queries), expected);
          expected.clear();
          for (const Query& query : queries) expected.push_back(single.test_and_insert(query));
          ASSERT_EQ(taken(batched, queries), expected);
          ASSERT_EQ(batched, single);
          ASSERT_EQ(batched.counts(), single.counts());
          ASSERT_LE(batched.bytes(), max_bytes);
          for (Recogniser* one : {&batched, &single}) one->advance(one->now() + 100);
        }
        EXPECT_NEAR(batched.expected_undercount(), single.expected_undercount(), 1e-3);
      }
    }
  }
}

TEST(Recogniser, RefusesAnImpossibleGoal) {
  for (const Kind kind : kKinds) {
    const auto refusal = [&](auto change) {
      Recogniser::Goal goal = goal_of(kind);
      change(goal);
      const Result<Recogniser> recogniser = Recogniser::make(goal, kNow);
      return recogniser ? Errc::full : recogniser.error().code;  // make() never answers `full`
    };
    using Goal = Recogniser::Goal;
    EXPECT_EQ(refusal([](Goal&) {}), Errc::full);
    EXPECT_EQ(refusal([](Goal& goal) { goal.window_ms = 0; }), Errc::invalid);
    EXPECT_EQ(refusal([](Goal& goal) { goal.fpr = 0; }), Errc::invalid);
    EXPECT_EQ(refusal([](Goal& goal) { goal.fpr = 1; }), Errc::invalid);
    EXPECT_EQ(refusal([](Goal& goal) { goal.fpr = std::nan(""); }), Errc::invalid);
    EXPECT_EQ(refusal([](Goal& goal) { goal.ids = 0; }), Errc::invalid);
    EXPECT_EQ(refusal([](Goal& goal) { goal.ids = ~0ull; }), Errc::limit);
    EXPECT_EQ(refusal([](Goal& goal) { goal.max_bytes = 8191; }), Errc::invalid);
    EXPECT_EQ(refusal([](Goal& goal) { goal.max_bytes = 8192; }), Errc::full);
    EXPECT_EQ(refusal([](Goal& goal) { goal.kind = static_cast<Kind>(3); }), Errc::invalid);
    EXPECT_EQ(refusal([](Goal& goal) { goal.hash.kind = static_cast<HashKind>(2); }),
              Errc::invalid);
    EXPECT_EQ(refusal([](Goal& goal) { goal.on_full = static_cast<OnFull>(2); }), Errc::invalid);
  }
  // A filter that does not fit is reported at once, even if it would be made later.
  Recogniser::Goal goal = goal_of(Kind::clients);
  goal.ids = 1 << 20;
  goal.max_bytes = 1 << 20;
  EXPECT_EQ(Recogniser::make(goal, kNow).error().code, Errc::limit);
}

TEST(Recogniser, RemembersNothingOfAnOperationWithoutAnId) {
  for (const Kind kind : kKinds) {
    Recogniser recogniser = made(goal_of(kind));
    const Recogniser before = recogniser;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(recogniser.test(nameless()), applied);
      EXPECT_EQ(recogniser.test_and_insert(nameless()), applied);
      EXPECT_EQ(recogniser.insert(nameless(), kNow - 1), applied);
      EXPECT_EQ(taken(recogniser, std::vector<Query>(3, nameless())), Answers(3, applied));
    }
    EXPECT_EQ(recogniser, before);
  }
}

TEST(Recogniser, TellsAClientFromAnIdAndOneSequenceFromTheNext) {
  for (const Kind kind : kKinds) {
    Recogniser recogniser = made(goal_of(kind));
    EXPECT_EQ(recogniser.test_and_insert(opaque(1)), applied);
    for (const std::uint64_t sequence : {0ull, 1ull, ~0ull}) {
      EXPECT_EQ(recogniser.test_and_insert(numbered(1, sequence)), applied);
      EXPECT_EQ(recogniser.test_and_insert(numbered(2, sequence)), applied);
      EXPECT_EQ(recogniser.test_and_insert(numbered(1, sequence)), duplicate);
    }
    EXPECT_EQ(recogniser.test_and_insert(opaque(1)), duplicate);
  }
}

TEST(Recogniser, FindsAnIdThatComesWithAnotherContent) {
  for (const Query& one : {opaque(1, 10), numbered(1, 5, 10)}) {
    Query other = one;
    other.content = key(11);
    Recogniser exact = made(goal_of(Kind::exact));
    EXPECT_EQ(taken(exact, std::vector<Query>{one, other, one, other}),
              (Answers{applied, conflict, duplicate, conflict}));
    const Recogniser before = exact;
    EXPECT_EQ(exact.test_and_insert(other), conflict);
    EXPECT_EQ(exact.test(other), conflict);
    EXPECT_EQ(tested(exact, std::vector<Query>{nameless(), other, one}),
              (Answers{applied, conflict, duplicate}));
    EXPECT_EQ(exact, before);
    for (const Kind kind : {Kind::clients, Kind::filter}) {
      Recogniser recogniser = made(goal_of(kind));
      EXPECT_FALSE(recogniser.wants_content());
      EXPECT_EQ(recogniser.test_and_insert(one), applied);
      EXPECT_EQ(recogniser.test_and_insert(other), duplicate);
    }
  }
}

TEST(Recogniser, CallsASequenceStaleOnceItsClientHasForgottenAHigherOne) {
  Recogniser recogniser = made(goal_of(Kind::clients));
  EXPECT_EQ(recogniser.test_and_insert(numbered(1, 9)), applied);
  recogniser.advance(kNow + 900);
  EXPECT_EQ(recogniser.test_and_insert(numbered(1, 20)), applied);
  recogniser.advance(kNow + 1300);
  const std::vector<Query> queries = {numbered(1, 9), numbered(1, 8), numbered(1, 10)};
  EXPECT_EQ(tested(recogniser, queries), (Answers{stale, stale, applied}));
  EXPECT_EQ(taken(recogniser, queries), (Answers{stale, stale, applied}));
  EXPECT_EQ(recogniser.counts().stale, 2u);
  // An operation of another site is remembered all the same, even after the client would have left.
  EXPECT_EQ(recogniser.insert(numbered(1, 8), recogniser.now()), applied);
  EXPECT_EQ(recogniser.test(numbered(1, 8)), duplicate);
  recogniser.advance(recogniser.now() + 1000);
  EXPECT_EQ(recogniser.test(numbered(1, 8)), duplicate);
}

TEST(Recogniser, RenewsByInsertAlone) {
  for (const Kind kind : kKinds) {
    for (const Query& query : {opaque(1, 2), numbered(1, 1, 2)}) {
      Recogniser recogniser = made(goal_of(kind));
      EXPECT_EQ(recogniser.insert(query, kNow), applied);
      recogniser.advance(kNow + 900);
      EXPECT_EQ(recogniser.test_and_insert(query), duplicate);
      EXPECT_EQ(recogniser.insert(query, kNow + 800), applied);
      recogniser.advance(kNow + 1800);
      EXPECT_EQ(recogniser.test(query), duplicate);
      recogniser.advance(kNow + 4000);
      EXPECT_EQ(recogniser.test(query), applied);
      EXPECT_EQ(recogniser.insert(query, kNow + 2999), stale);
      EXPECT_EQ(recogniser.test(query), applied);
      EXPECT_EQ(recogniser.insert(query, kNow + 3000), applied);
      EXPECT_EQ(recogniser.test(query), duplicate);
    }
  }
}

TEST(Recogniser, RefusesWhatDoesNotFitAndKnowsWhatItTook) {
  for (const Kind kind : kKinds) {
    for (const bool numbers : {false, true}) {
      Recogniser::Goal goal = goal_of(kind);
      goal.max_bytes = 32768;
      Recogniser recogniser = made(goal);
      std::vector<Query> queries;
      for (std::uint64_t n = 0; n < 5000; ++n) {
        queries.push_back(numbers ? numbered(n, n) : opaque(n));
      }
      const Answers answers = taken(recogniser, queries);
      const auto refused =
          static_cast<std::uint64_t>(std::count(answers.begin(), answers.end(), full));
      EXPECT_GT(refused, 0u);
      EXPECT_LT(refused, 5000u);
      EXPECT_EQ(recogniser.counts().refused, refused);
      EXPECT_LE(recogniser.bytes(), goal.max_bytes);
      const Recogniser before = recogniser;
      for (std::size_t i = 0; i < queries.size(); ++i) {
        const bool known = answers[i] != full;
        ASSERT_EQ(recogniser.test(queries[i]), known ? duplicate : applied);
        ASSERT_EQ(recogniser.test_and_insert(queries[i]), known ? duplicate : full);
      }
      EXPECT_EQ(recogniser, before);
      EXPECT_EQ(recogniser.promise().kept_from_ms, kNow - 1000);
      recogniser.advance(kNow + 2500);
      EXPECT_EQ(recogniser.test_and_insert(queries.back()), applied);
    }
  }
}

// The content is forgotten along with its id, or a retry would be a conflict.
TEST(Recogniser, ForgetsTheOldestEarlyAndSaysSo) {
  for (const Kind kind : kKinds) {
    for (const bool numbers : {false, true}) {
      Recogniser::Goal goal = goal_of(kind);
      goal.max_bytes = kind == Kind::exact ? 8192 : 32768;
      goal.on_full = OnFull::forget;
      Recogniser recogniser = made(goal);
      for (std::uint64_t n = 0; n < 5000; ++n) {
        const Query query = numbers ? numbered(n, n) : opaque(n);
        ASSERT_EQ(recogniser.test_and_insert(query), applied) << n;
        ASSERT_EQ(recogniser.test(query), duplicate) << n;
        if (n % 100 == 99) recogniser.advance(recogniser.now() + 7);
      }
      EXPECT_GT(recogniser.counts().forgotten_early, 1000u);
      EXPECT_LT(recogniser.counts().forgotten_early, 5000u);
      EXPECT_GT(recogniser.promise().kept_from_ms, recogniser.now() - 1000);
      EXPECT_LE(recogniser.bytes(), goal.max_bytes);
      EXPECT_EQ(recogniser.insert(numbers ? numbered(0, 0) : opaque(0), kNow), stale);
    }
  }
}

// An id comes with two contents, so room ends between a content and its id. Making room for the id
// may drop everything else, including its content.
TEST(Recogniser, ForgetsNoContentForItsId) {
  Recogniser::Goal goal = goal_of(Kind::exact);
  goal.on_full = OnFull::forget;
  for (goal.max_bytes = 8192; goal.max_bytes < 16384; goal.max_bytes += 256) {
    Recogniser recogniser = made(goal);
    EXPECT_EQ(recogniser.insert(opaque(1000, 1), kNow), applied);
    EXPECT_EQ(recogniser.insert(opaque(1000, 2), kNow), applied);
    for (std::uint64_t n = 0; n < 1000; ++n) {
      ASSERT_EQ(recogniser.test_and_insert(opaque(n, n)), applied);
      ASSERT_EQ(recogniser.test(opaque(n, n)), duplicate) << n << " with " << goal.max_bytes;
    }
    EXPECT_GT(recogniser.counts().forgotten_early, 0u);
  }
}

// Here a refused id leaves its content behind, which does not make the id known when it comes
// again.
TEST(Recogniser, TakesAnIdLaterWhoseContentIsThere) {
  Recogniser::Goal goal = goal_of(Kind::exact);
  for (goal.max_bytes = 8192; goal.max_bytes < 16384; goal.max_bytes += 256) {
    Recogniser recogniser = made(goal, kNow);
    EXPECT_EQ(recogniser.test_and_insert(opaque(1000)), applied);
    recogniser.advance(kNow + 750);
    EXPECT_EQ(recogniser.insert(opaque(1001, 1), kNow + 750), applied);
    EXPECT_EQ(recogniser.insert(opaque(1001, 2), kNow + 750), applied);
    std::uint64_t n = 0;
    while (recogniser.test_and_insert(opaque(n)) != full) ++n;
    EXPECT_EQ(recogniser.test(opaque(n)), applied);
    recogniser.advance(kNow + 1250);  // the first id has left, but not the content
    EXPECT_EQ(recogniser.test_and_insert(opaque(n)), applied);
    EXPECT_EQ(recogniser.test_and_insert(opaque(n, 1)), conflict);
    recogniser.advance(kNow + 2250);  // the ids that came with the content have left
    EXPECT_EQ(recogniser.test_and_insert(opaque(n)), duplicate);
  }
}

TEST(Recogniser, MakesAFilterForTheFirstOpaqueId) {
  Recogniser::Goal goal = goal_of(Kind::clients);
  goal.ids = 1 << 20;
  Recogniser recogniser = made(goal);
  EXPECT_LT(recogniser.bytes(), 1000u);
  recogniser.advance(kNow + 5000);
  recogniser.advance(kNow + 4000);
  EXPECT_EQ(recogniser.test_and_insert(numbered(1, 1)), applied);
  EXPECT_EQ(recogniser.test(opaque(1)), applied);
  EXPECT_EQ(tested(recogniser, std::vector<Query>{opaque(1)}), Answers{applied});
  EXPECT_LT(recogniser.bytes(), 1000u);
  EXPECT_EQ(recogniser.false_positive_rate(), 0);
  const WindowPromise promise = recogniser.promise();
  EXPECT_EQ(recogniser.insert(opaque(1), kNow + 4500), applied);
  EXPECT_GT(recogniser.bytes(), 1u << 20);
  EXPECT_EQ(recogniser.now(), kNow + 5000);
  EXPECT_EQ(recogniser.promise().kept_from_ms, promise.kept_from_ms);
  EXPECT_EQ(recogniser.counts().backward_steps, 1u);
  recogniser.advance(kNow + 5500);
  EXPECT_EQ(recogniser.test(opaque(1)), duplicate);
  recogniser.advance(kNow + 5200);
  EXPECT_EQ(recogniser.counts().backward_steps, 2u);
}

// If one half of the memory forgets early, the promise of the whole is weaker.
TEST(Recogniser, PromisesNoMoreThanTheWeakerWindow) {
  Recogniser::Goal goal = goal_of(Kind::clients);
  goal.max_bytes = 16384;
  goal.on_full = OnFull::forget;
  for (const bool numbers : {false, true}) {
    Recogniser recogniser = made(goal);
    EXPECT_EQ(recogniser.test_and_insert(opaque(0)), applied);
    EXPECT_EQ(recogniser.test_and_insert(numbered(0, 0)), applied);
    for (std::uint64_t n = 1; n < 5000; ++n) {
      (void)recogniser.test_and_insert(numbers ? numbered(n, n) : opaque(n));
    }
    EXPECT_GT(recogniser.promise().kept_from_ms, kNow - 1000);
    EXPECT_LE(recogniser.promise().forgotten_before_ms, kNow - 1000);
    EXPECT_EQ(recogniser.test(numbers ? opaque(0) : numbered(0, 0)), duplicate);
    EXPECT_EQ(recogniser.test(numbers ? numbered(0, 0) : opaque(0)), applied);
  }
}

TEST(Recogniser, ExpectsTheUnderCountThatThereIs) {
  for (const Kind kind : {Kind::clients, Kind::filter}) {
    for (const std::size_t batch : {1, 1000}) {
      Recogniser::Goal goal = goal_of(kind);
      goal.fpr = 0.05;
      goal.ids = 50'000;
      Recogniser recogniser = made(goal);
      std::uint64_t next = 0, lost = 0;
      double largest = 0, change = 0, last = 0;
      while (next < 200'000) {
        std::vector<Query> queries;
        for (std::size_t i = 0; i < batch; ++i) queries.push_back(opaque(next++));
        if (batch == 1) {
          lost += recogniser.test_and_insert(queries[0]) == duplicate;
        } else {
          const Answers answers = taken(recogniser, queries);
          lost += static_cast<std::uint64_t>(std::count(answers.begin(), answers.end(), duplicate));
        }
        if (next % 1000 != 0) continue;
        recogniser.advance(recogniser.now() + 20);
        const double rate = recogniser.false_positive_rate();
        largest = std::max(largest, rate);
        change += std::abs(rate - last);
        last = rate;
      }
      const double expected = recogniser.expected_undercount();
      EXPECT_GT(lost, 1000u);
      EXPECT_LE(largest, 0.05);
      // The odds are at most 1 / 0.95^2 times as steep as the rate.
      EXPECT_NEAR(static_cast<double>(lost), expected,
                  5 * std::sqrt(expected) + Recogniser::kSettled * change / (0.95 * 0.95));
    }
  }
}

// Most ids that come to a full filter are refused, but some are taken for retries.
TEST(Recogniser, ExpectsTheUnderCountOfAFullFilter) {
  for (const std::size_t batch : {1, 100}) {
    Recogniser::Goal goal = goal_of(Kind::filter);
    goal.fpr = 0.01;
    goal.ids = 1000;
    goal.max_bytes = 60'000;
    Recogniser recogniser = made(goal);
    std::uint64_t lost = 0, refused = 0;
    for (std::uint64_t next = 0; next < 200'000;) {
      std::vector<Query> queries;
      for (std::size_t i = 0; i < batch; ++i) queries.push_back(opaque(next++));
      const Answers answers = taken(recogniser, queries);
      lost += static_cast<std::uint64_t>(std::count(answers.begin(), answers.end(), duplicate));
      refused += static_cast<std::uint64_t>(std::count(answers.begin(), answers.end(), full));
    }
    EXPECT_GT(refused, 100'000u);
    const double expected = recogniser.expected_undercount();
    EXPECT_GT(expected, 100);
    EXPECT_NEAR(static_cast<double>(lost), expected,
                5 * std::sqrt(expected) + Recogniser::kSettled * goal.fpr);
  }
}

TEST(Recogniser, ExpectsNoUnderCountOfExactAnswersAndOfLogs) {
  Recogniser clients = made(goal_of(Kind::clients)), exact = made(goal_of(Kind::exact));
  Recogniser filter = made(goal_of(Kind::filter));
  for (std::uint64_t n = 0; n < 2000; ++n) {
    EXPECT_EQ(clients.test_and_insert(numbered(n % 10, n)), applied);
    EXPECT_EQ(exact.test_and_insert(opaque(n)), applied);
    EXPECT_EQ(filter.insert(opaque(n), kNow), applied);
  }
  EXPECT_EQ(clients.expected_undercount(), 0);
  EXPECT_EQ(exact.expected_undercount(), 0);
  EXPECT_EQ(filter.expected_undercount(), 0);
  EXPECT_EQ(filter.test_and_insert(opaque(2000)), applied);
  EXPECT_NEAR(filter.expected_undercount(), filter.false_positive_rate(), 1e-12);
  EXPECT_GT(filter.expected_undercount(), 0);
}

TEST(Recogniser, GoesOnAsItsCopyFromBytesDoes) {
  for (const Kind kind : kKinds) {
    for (const OnFull on_full : {OnFull::refuse, OnFull::forget}) {
      Recogniser::Goal goal = goal_of(kind);
      goal.fpr = 1e-3;
      goal.max_bytes = 65536;
      goal.on_full = on_full;
      Recogniser recogniser = made(goal), copy = recogniser;
      for (std::uint64_t round = 0; round < 60; ++round) {
        if (round % 3 == 0) copy = *Recogniser::decode(encoded(recogniser));
        for (Recogniser* one : {&recogniser, &copy}) one->advance(kNow + 40 * TimeMs(round));
        const std::vector<Query> queries = stream(100 * round, 150);
        ASSERT_EQ(taken(recogniser, queries), taken(copy, queries));
        ASSERT_EQ(recogniser, copy);
        ASSERT_EQ(recogniser.expected_undercount(), copy.expected_undercount());
        ASSERT_EQ(encoded(recogniser), encoded(copy));
      }
    }
  }
}

// Bytes may describe a filter that would not fit. Then there is no room for its ids.
TEST(Recogniser, HasNoRoomForAFilterThatCannotBeMade) {
  Recogniser::Goal goal = goal_of(Kind::clients);
  goal.max_bytes = 1 << 20;
  Bytes bytes = encoded(made(goal));
  store_u64(bytes.data() + 39, std::uint64_t{1} << 38);
  store_u64(bytes.data() + bytes.size() - 8, checksum(ByteView(bytes).first(bytes.size() - 8)));
  Result<Recogniser> recogniser = Recogniser::decode(bytes);
  ASSERT_TRUE(recogniser) << recogniser.error().message();
  EXPECT_EQ(recogniser->test_and_insert(opaque(1)), full);
  EXPECT_EQ(recogniser->insert(opaque(1), kNow), full);
  EXPECT_EQ(taken(*recogniser, std::vector<Query>{opaque(1), numbered(1, 1)}),
            (Answers{full, applied}));
}

TEST(Recogniser, RefusesBytesThatNoRecogniserWrites) {
  Recogniser recogniser = made(goal_of(Kind::clients));
  EXPECT_EQ(recogniser.test_and_insert(numbered(1, 1)), applied);
  const Bytes without = encoded(recogniser);
  EXPECT_EQ(recogniser.test_and_insert(opaque(1)), applied);
  const Bytes with = encoded(recogniser);
  const auto refusal = [](Bytes damaged, std::size_t at, std::uint64_t value) -> std::string {
    store_u64(damaged.data() + at, value);
    store_u64(damaged.data() + damaged.size() - 8,
              checksum(ByteView(damaged).first(damaged.size() - 8)));
    const Result<Recogniser> read = Recogniser::decode(damaged);
    if (read) {
      EXPECT_EQ(encoded(*read), damaged);
    }
    return read ? "none" : read.error().message();
  };
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  EXPECT_EQ(refusal(with, 23, 0), "recogniser: goal");
  EXPECT_EQ(refusal(with, 23, 1001), "recogniser: a window of another goal");
  EXPECT_EQ(refusal(with, 31, bits(1)), "recogniser: goal");
  EXPECT_EQ(refusal(with, 31, bits(0.5)), "recogniser: a window of another goal");
  EXPECT_EQ(refusal(without, 31, bits(0.5)), "none");
  EXPECT_EQ(refusal(with, 39, 65), "recogniser: a window of another goal");
  EXPECT_EQ(refusal(with, 47, 8191), "recogniser: goal");
  EXPECT_EQ(refusal(with, 47, 1 << 20), "recogniser: a window of another goal");
  EXPECT_EQ(refusal(without, 47, 1 << 20), "recogniser: a window of another goal");
  EXPECT_EQ(refusal(with, 15, 1), "recogniser: a window of another goal");
  EXPECT_EQ(refusal(with, 55, bits(2.5)), "none");
  EXPECT_EQ(refusal(with, 55, bits(-0.0)), "recogniser: under-count");
  EXPECT_EQ(refusal(with, 55, bits(std::numeric_limits<double>::infinity())),
            "recogniser: under-count");
  EXPECT_EQ(refusal(without, 55, bits(2.5)), "recogniser: under-count");
  EXPECT_EQ(refusal(with, 63, 1023), "none");
  EXPECT_EQ(refusal(with, 63, 1024), "recogniser: under-count");
  EXPECT_EQ(refusal(without, 63, 1), "recogniser: under-count");
  EXPECT_EQ(refusal(with, 72, 1), "client window: cut short");
  EXPECT_EQ(refusal(with, 72, ~0ull), "recogniser: size of a window");
  const std::size_t second = 72 + 8 + load_u64(with.data() + 72);
  EXPECT_EQ(refusal(with, second, load_u64(with.data() + second) + 1),
            "recogniser: size of a window");
  constexpr auto kHasWindow = [](std::uint64_t flag) { return flag << 56; };  // behind zeros
  EXPECT_EQ(refusal(with, 64, kHasWindow(0)), "recogniser: size");
  EXPECT_EQ(refusal(without, 64, kHasWindow(1)), "recogniser: size of a window");
  EXPECT_EQ(refusal(with, 64, kHasWindow(2)), "recogniser: goal");
  const Bytes filter = encoded(made(goal_of(Kind::filter)));
  EXPECT_EQ(refusal(filter, 64, kHasWindow(1)), "none");
  EXPECT_EQ(refusal(filter, 64, kHasWindow(0)), "recogniser: no window");

  // This filter has another time.
  recogniser.advance(kNow + 1);
  const Bytes later = encoded(recogniser);
  Bytes mixed(with.begin(), with.begin() + static_cast<std::ptrdiff_t>(second));
  mixed.insert(mixed.end(), later.begin() + static_cast<std::ptrdiff_t>(second), later.end());
  EXPECT_EQ(refusal(mixed, 63, 1), "recogniser: two times");
}

// Uses caps of all sizes, so that an exact window may have room for a content and not for its id.
// Only counts may change, and what follows from them.
TEST(Recogniser, WhatIsRefusedLeavesNothingBehind) {
  for (const Kind kind : kKinds) {
    for (std::uint64_t cap = 8192; cap < 16'384; cap += 48) {
      Recogniser recogniser =
          made({.kind = kind, .window_ms = 1000, .fpr = 0.01, .ids = 16, .max_bytes = cap});
      std::uint64_t n = 0;
      for (; n < cap / 64; ++n) (void)recogniser.test_and_insert(opaque(n, n));
      recogniser.advance(kNow + 400);  // another generation, which takes what the first has left
      Recogniser before = recogniser;
      while (recogniser.test_and_insert(opaque(n, n)) != full) {
        ASSERT_LT(++n, 100'000u);
        before = recogniser;
      }
      ASSERT_EQ(recogniser, before) << cap;
      EXPECT_GE(recogniser.counts().refused, 1u);
    }
  }
}

// Two windows with a few ids each.
template <Kind kKind>
struct BytesCase {
  using Type = Recogniser;
  static constexpr std::size_t kHeaderSize = 72;
  static Type make() {
    Recogniser recogniser = made({.kind = kKind,
                                  .window_ms = 1000,
                                  .fpr = 0.1,
                                  .ids = 8,
                                  .max_bytes = 1 << 20,
                                  .on_full = OnFull::forget,
                                  .hash = kTestHash});
    for (std::uint64_t n = 0; n < 6; ++n) {
      EXPECT_EQ(recogniser.insert(opaque(n, n), kNow - 100 * static_cast<TimeMs>(n)), applied);
      (void)recogniser.test_and_insert(numbered(n % 2, n, n));
    }
    EXPECT_NE(recogniser.test_and_insert(opaque(100)), full);
    return recogniser;
  }
};
struct ClientsCase : BytesCase<Kind::clients> {
  static constexpr char kFile[] = "tally_recogniser_v1_clients.bin";
};
struct FilterCase : BytesCase<Kind::filter> {
  static constexpr char kFile[] = "tally_recogniser_v1_filter.bin";
};
struct ExactCase : BytesCase<Kind::exact> {
  static constexpr char kFile[] = "tally_recogniser_v1_exact.bin";
};

}  // namespace
}  // namespace semel::tally::internal

namespace semel {

using RecogniserCases = ::testing::Types<tally::internal::ClientsCase, tally::internal::FilterCase,
                                         tally::internal::ExactCase>;
INSTANTIATE_TYPED_TEST_SUITE_P(Recogniser, HostileBytes, RecogniserCases);
INSTANTIATE_TYPED_TEST_SUITE_P(Recogniser, Golden, RecogniserCases);

}  // namespace semel
