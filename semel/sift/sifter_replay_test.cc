// Sifter: a call that changes nothing leaves no trace, and copies that begin anywhere go on alike.
// sifter_test.cc tests the answers.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/sift/sifter.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kKeep = 300;
constexpr std::uint64_t kAnn = 1, kBen = 2;
constexpr auto kStructures = {Window::Structure::forgetful, Window::Structure::timers,
                              Window::Structure::exact};

Sifter::Goal goal_of(Window::Structure structure, std::uint64_t ids = 200) {
  return {{.structure = structure,
           .window_ms = 1000,
           .fpr = structure == Window::Structure::exact ? 0 : 1e-9,
           .ids = ids,
           .hash = kTestHash},
          kKeep};
}

Sifter sifter_of(const Sifter::Goal& goal, TimeMs now_ms = kNow) {
  Result<Sifter> sifter = Sifter::make(goal, now_ms);
  EXPECT_TRUE(sifter) << sifter.error().message();
  return *std::move(sifter);
}

Sifter with_content(Sifter sifter) {
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100, kNow), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.claim(key(2), kBen, kNow + 900, kNow), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.claim(key(3), kBen, kNow + 900, kNow), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.commit(key(3), kBen, kNow + 200), ClaimAnswer::done);
  EXPECT_EQ(sifter.test_and_insert(key(4), kNow + 200), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.test_and_insert(key(5), kNow + 200, kNow - 100), ClaimAnswer::fresh);
  return sifter;
}

template <Window::Structure kStructure>
struct SiftBytes {
  using Type = Sifter;
  static constexpr std::size_t kHeaderSize = 28;
  static constexpr const char* kFile =
      kStructure == Window::Structure::forgetful ? "sifter_v1_forgetful.bin"
      : kStructure == Window::Structure::timers  ? "sifter_v1_timers.bin"
                                                 : "sifter_v1_exact.bin";
  static Type make() {
    Sifter::Goal goal = goal_of(kStructure, 8);
    if (kStructure != Window::Structure::exact) goal.fpr = 0.1;
    goal.max_bytes = 64 << 10;
    return with_content(sifter_of(goal));
  }
};
using Forgetful = SiftBytes<Window::Structure::forgetful>;
using Timers = SiftBytes<Window::Structure::timers>;
using Exact = SiftBytes<Window::Structure::exact>;
using GoldenCases = ::testing::Types<Forgetful, Timers, Exact>;
INSTANTIATE_TYPED_TEST_SUITE_P(SifterReplay, HostileBytes, Exact);
INSTANTIATE_TYPED_TEST_SUITE_P(SifterReplay, Golden, GoldenCases);

TEST(SifterReplay, TakesAnIdOnceWhateverTheStructure) {
  for (const Window::Structure structure : kStructures) {
    Sifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.test(key(1), kNow), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.test_and_insert(key(1), kNow + 1), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.test_and_insert(key(1), kNow + 2), ClaimAnswer::seen);
    EXPECT_EQ(sifter.test(key(1), kNow + 1001), ClaimAnswer::seen);
    EXPECT_EQ(sifter.test(key(1), kNow + 9000), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.now(), kNow + 1);
    EXPECT_EQ(sifter.test_and_insert(key(1), kNow + 9000), ClaimAnswer::fresh);
  }
}

TEST(SifterReplay, ClaimsCommitsAndReleases) {
  for (const Window::Structure structure : kStructures) {
    Sifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100, kNow), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 100, kNow + 50), ClaimAnswer::pending);
    EXPECT_EQ(sifter.test_and_insert(key(1), kNow + 50), ClaimAnswer::pending);
    EXPECT_EQ(sifter.insert(key(1), kNow + 50), ClaimAnswer::pending);
    EXPECT_EQ(sifter.commit(key(1), kBen, kNow + 50), ClaimAnswer::lost);
    EXPECT_EQ(sifter.release(key(1), kBen, kNow + 50), ClaimAnswer::lost);
    EXPECT_EQ(sifter.now(), kNow);
    EXPECT_EQ(sifter.commit(key(1), kAnn, kNow + 60), ClaimAnswer::done);
    EXPECT_EQ(sifter.commit(key(1), kAnn, kNow + 70), ClaimAnswer::seen);
    EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 100, kNow + 70), ClaimAnswer::seen);
    EXPECT_EQ(sifter.claim(key(2), kBen, kNow + 100, kNow + 70), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.release(key(2), kBen, kNow + 80), ClaimAnswer::done);
    EXPECT_EQ(sifter.claim(key(2), kAnn, kNow + 100, kNow + 90), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.commit(key(2), kAnn, kNow + 101 + kKeep),
              ClaimAnswer::lost);  // dropped by then
    EXPECT_EQ(sifter.now(), kNow + 90);
    EXPECT_EQ(sifter.test_and_insert(key(2), kNow + 101 + kKeep), ClaimAnswer::fresh);
  }
}

TEST(SifterReplay, RenewsWhatIsInserted) {
  for (const Window::Structure structure : kStructures) {
    Sifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.insert(key(1), kNow), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.insert(key(1), kNow + 900), ClaimAnswer::seen);
    EXPECT_EQ(sifter.test(key(1), kNow + 1900), ClaimAnswer::seen);
    EXPECT_EQ(sifter.insert(key(2), kNow + 900, kNow - 2000), ClaimAnswer::stale);
  }
}

TEST(SifterReplay, EndsAnOverdueClaimOnWhatIsInserted) {
  for (const Window::Structure structure : kStructures) {
    Sifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100, kNow), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.insert(key(1), kNow + 100), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.claims(), 0u);
    EXPECT_EQ(sifter.commit(key(1), kAnn, kNow + 100), ClaimAnswer::seen);
  }
}

TEST(SifterReplay, TakesATimeBeforeItsOwnForItsOwn) {
  for (const Window::Structure structure : kStructures) {
    Sifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.test_and_insert(key(1), kNow - 5000), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.now(), kNow);
    EXPECT_EQ(sifter.counts().backward_steps, 0u);
    EXPECT_EQ(sifter.test(key(1), kNow + 1000), ClaimAnswer::seen);
  }
}

TEST(SifterReplay, LimitsClaimsToTheirPartOfTheMemory) {
  for (const Window::Structure structure : kStructures) {
    Sifter::Goal goal = goal_of(structure, 8);
    goal.max_bytes = 32 << 10;
    Sifter sifter = sifter_of(goal);
    ASSERT_EQ(sifter.most_claims(), (32u << 10) / 8 / Sifter::kClaimBytes);
    std::uint64_t n = 0;
    while (sifter.claim(key(n), kAnn, kNow + 100, kNow) == ClaimAnswer::fresh) ++n;
    EXPECT_EQ(n, sifter.most_claims());
    EXPECT_EQ(sifter.claim(key(n), kAnn, kNow + 100, kNow), ClaimAnswer::full);
    EXPECT_LE(sifter.bytes(), goal.max_bytes);
    // Existing claims can be prolonged and taken over.
    EXPECT_EQ(sifter.claim(key(0), kAnn, kNow + 200, kNow), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 200, kNow + 100), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.release(key(2), kAnn, kNow + 100), ClaimAnswer::done);
    EXPECT_EQ(sifter.claim(key(n), kAnn, kNow + 100, kNow + 100), ClaimAnswer::fresh);
    EXPECT_TRUE(Sifter::decode(encoded(sifter)));
  }
  EXPECT_EQ(sifter_of(goal_of(Window::Structure::exact)).most_claims(), kNoCap);
}

TEST(SifterReplay, KeepsWithinItsBytes) {
  for (const Window::Structure structure : kStructures) {
    Sifter::Goal goal = goal_of(structure, 50);
    goal.max_bytes = 100'000;
    Sifter sifter = sifter_of(goal);
    std::uint64_t n = 0;
    while (sifter.test_and_insert(key(n), kNow) == ClaimAnswer::fresh) ++n;
    EXPECT_EQ(sifter.test_and_insert(key(n), kNow), ClaimAnswer::full);
    EXPECT_GE(n, 50u);
    for (std::uint64_t m = n; m < n + sifter.most_claims(); ++m) {
      EXPECT_EQ(sifter.claim(key(m), kAnn, kNow + 100, kNow), ClaimAnswer::fresh);
    }
    EXPECT_LE(sifter.bytes(), goal.max_bytes);
    EXPECT_EQ(sifter.commit(key(n), kAnn, kNow), ClaimAnswer::full);
  }
}

TEST(SifterReplay, SaysHowManyItRemembers) {
  for (const Window::Structure structure : kStructures) {
    Sifter sifter = sifter_of(goal_of(structure, 10'000));
    for (std::uint64_t n = 0; n < 5000; ++n)
      EXPECT_EQ(sifter.test_and_insert(key(n), kNow), ClaimAnswer::fresh);
    for (std::uint64_t n = 0; n < 5000; ++n) (void)sifter.test_and_insert(key(n), kNow + 1);
    for (std::uint64_t n = 5000; n < 8000; ++n) (void)sifter.test_and_insert(key(n), kNow + 800);
    const double tolerance = structure == Window::Structure::timers ? 5 * std::sqrt(8000.0) : 0;
    EXPECT_NEAR(static_cast<double>(sifter.ids(kNow + 800)), 8000, tolerance);
    EXPECT_NEAR(static_cast<double>(sifter.ids(kNow + 1700)), 3000, tolerance);
    EXPECT_EQ(sifter.ids(kNow + 9000), 0u);
    EXPECT_EQ(sifter.now(), kNow + 800);
  }
}

TEST(SifterReplay, RefusesAnImpossibleGoal) {
  const auto refusal = [](auto change) {
    Sifter::Goal goal = goal_of(Window::Structure::forgetful);
    change(goal);
    const Result<Sifter> sifter = Sifter::make(goal, kNow);
    return sifter ? Errc::full : sifter.error().code;
  };
  EXPECT_EQ(refusal([](Sifter::Goal&) {}), Errc::full);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.window_ms = 0; }), Errc::invalid);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.fpr = 0; }), Errc::invalid);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.fpr = 1; }), Errc::invalid);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.fpr = std::nan(""); }), Errc::invalid);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.ids = 0; }), Errc::invalid);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.keep_ms = -1; }), Errc::invalid);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.max_bytes = 500; }), Errc::limit);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.structure = Window::Structure::exact; }),
            Errc::invalid);
  EXPECT_EQ(refusal([](Sifter::Goal& g) { g.ids = ~std::uint64_t{0}; }), Errc::limit);
}

// A primary takes all calls, a replica only those that changed something. Both must hold the same
// bytes, and so must every copy that begins with the bytes of any moment.
class Replicated {
 public:
  explicit Replicated(Sifter sifter) : primary_(std::move(sifter)), replica_(primary_) {}

  const std::string& complaint() const { return complaint_; }
  TimeMs now() const { return now_ms_; }
  void pass(TimeMs by_ms) { now_ms_ += by_ms; }

  void add(std::uint64_t number, TimeMs at_ms) {
    apply([&](Sifter& s) { return s.test_and_insert(key(number), now_ms_, at_ms); },
          [](ClaimAnswer s) { return changes(s); });
  }
  void add_many(std::uint64_t first, std::uint64_t count) {
    const std::vector<Digest> ids = keys(first, first + count);
    std::vector<ClaimAnswer> answers(count);
    bool changed = false;
    apply(
        [&](Sifter& s) {
          changed = s.test_and_insert(ids, now_ms_, answers);
          return answers;
        },
        [&](const auto&) { return changed; });
  }
  void insert(std::uint64_t number, TimeMs at_ms) {
    apply([&](Sifter& s) { return s.insert(key(number), now_ms_, at_ms); },
          [](ClaimAnswer s) { return s != ClaimAnswer::pending; });
  }
  void claim(std::uint64_t number, std::uint64_t owner, TimeMs until_ms) {
    apply([&](Sifter& s) { return s.claim(key(number), owner, until_ms, now_ms_); },
          [](ClaimAnswer s) { return changes(s); });
  }
  void commit(std::uint64_t number, std::uint64_t owner) {
    apply([&](Sifter& s) { return s.commit(key(number), owner, now_ms_); },
          [](ClaimAnswer c) { return changes(c); });
  }
  void release(std::uint64_t number, std::uint64_t owner) {
    apply([&](Sifter& s) { return s.release(key(number), owner, now_ms_); },
          [](ClaimAnswer c) { return changes(c); });
  }

  void claim_many(const std::vector<Digest>& ids, std::uint64_t owner, TimeMs until_ms) {
    apply_many(ids,
               [&](Sifter& s, auto answers) { s.claim(ids, owner, until_ms, now_ms_, answers); });
  }
  void commit_many(const std::vector<Digest>& ids, std::uint64_t owner) {
    apply_many(ids, [&](Sifter& s, auto answers) { s.commit(ids, owner, now_ms_, answers); });
  }
  void release_many(const std::vector<Digest>& ids, std::uint64_t owner) {
    apply_many(ids, [&](Sifter& s, auto answers) { s.release(ids, owner, now_ms_, answers); });
  }

  // Reads, at a time that may be later than any write.
  void read(std::uint64_t number, TimeMs now_ms) {
    const Bytes before = encoded(primary_);
    const ClaimAnswer answer = primary_.test(key(number), now_ms);
    demand(answer == replica_.test(key(number), now_ms), "another answer to a read");
    demand(primary_.ids(now_ms) == replica_.ids(now_ms), "another cardinality");
    demand(encoded(primary_) == before, "a read left a trace");
    Sifter later = primary_;
    const ClaimAnswer added = later.test_and_insert(key(number), now_ms);
    demand(answer == ClaimAnswer::fresh ? changes(added) : added == answer,
           "not what the test foretold");
  }

  // Restarts the replica with the bytes of its primary.
  void resync() {
    Result<Sifter> copy = Sifter::decode(encoded(primary_));
    demand(copy.has_value() && *copy == primary_, "its bytes are another sifter");
    if (copy) replica_ = *std::move(copy);
  }

  void compare() { demand(encoded(primary_) == encoded(replica_), "other bytes"); }

 private:
  template <class Do, class Changed>
  void apply(Do run, Changed changed) {
    const Bytes before = encoded(primary_);
    const auto answer = run(primary_);
    if (changed(answer)) {
      demand(run(replica_) == answer, "another answer");
    } else {
      demand(encoded(primary_) == before, "a call that changed nothing left a trace");
    }
  }
  template <class Do>
  void apply_many(const std::vector<Digest>& ids, Do run) {
    std::vector<ClaimAnswer> answers(ids.size());
    apply(
        [&](Sifter& s) {
          run(s, std::span(answers));
          return answers;
        },
        [](const auto& all) { return std::any_of(all.begin(), all.end(), changes); });
  }
  void demand(bool holds, const char* what) {
    if (!holds && complaint_.empty()) complaint_ = what;
  }

  Sifter primary_, replica_;
  TimeMs now_ms_ = primary_.now();
  std::string complaint_;
};

struct Step {
  int kind;
  std::uint64_t number, owner;
  int amount;
};
std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << "{" << step.kind << ", " << step.number << ", " << step.owner << ", " << step.amount
             << "}";
}

std::string run_history(const Sifter::Goal& goal, TimeMs start_ms,
                        const std::vector<Step>& history) {
  Replicated pair(sifter_of(goal, start_ms));
  for (const Step& step : history) {
    const TimeMs until_ms = pair.now() + 20 * (step.amount - 3);
    const TimeMs at_ms = pair.now() - 60 * (step.amount - 3);
    const std::vector<Digest> some =
        keys(step.number, step.number + static_cast<std::uint64_t>(step.amount) / 3);
    switch (step.kind) {
      case 0:
      case 1:
        pair.pass(9 * step.amount);
        break;
      case 2:
        pair.pass(step.amount < 20 ? 80 * step.amount : -step.amount);
        break;
      case 3:
      case 4:
        pair.add(step.number, Sifter::kAtCall);
        break;
      case 5:
        pair.add(step.number, at_ms);
        break;
      case 6:
        pair.add_many(1000 * step.number, 2 * static_cast<std::uint64_t>(step.amount));
        break;
      case 7:
        pair.insert(step.number, step.amount < 12 ? Sifter::kAtCall : at_ms);
        break;
      case 8:
        pair.read(step.number, pair.now() + 40 * step.amount);
        break;
      case 9:
        pair.release(step.number, step.owner);
        break;
      case 10:
        if (step.amount < 8) pair.resync();
        break;
      case 11:
      case 12:
        pair.commit(step.number, step.owner);
        break;
      case 13:
        pair.claim_many(some, step.owner, until_ms + 50);
        break;
      case 14:
        pair.commit_many(some, step.owner);
        break;
      case 15:
        pair.release_many(some, step.owner);
        break;
      default:
        pair.claim(step.number, step.owner, until_ms);
        break;
    }
    pair.compare();
    if (!pair.complaint().empty()) return pair.complaint();
  }
  return "";
}

// Runs without a cap, and with one that is soon reached.
std::string run_everywhere(TimeMs start_ms, const std::vector<Step>& history) {
  std::string complaints;
  for (const Window::Structure structure : kStructures) {
    const Sifter::Goal goal = goal_of(structure, 4);
    complaints += run_history(goal, start_ms, history);
    for (const OnFull on_full : {OnFull::refuse, OnFull::forget}) {
      Sifter::Goal capped = goal;
      capped.max_bytes = structure == Window::Structure::timers ? 12'000 : 8'192;
      capped.on_full = on_full;
      complaints += run_history(capped, start_ms, history);
    }
  }
  return complaints;
}

TEST(SifterReplay, IsTheSameInEveryCopyThroughAnyHistory) {
  EXPECT_TRUE(rc::check([] {
    const TimeMs start_ms =
        *rc::gen::element<TimeMs>(0, -3, kNow, std::numeric_limits<TimeMs>::min() + 100'000,
                                  std::numeric_limits<TimeMs>::max() / 2);
    const auto history = *rc::gen::container<std::vector<Step>>(
        rc::gen::construct<Step>(rc::gen::inRange(0, 18), rc::gen::inRange<std::uint64_t>(0, 8),
                                 rc::gen::inRange<std::uint64_t>(0, 3), rc::gen::inRange(0, 24)));
    RC_ASSERT(run_everywhere(start_ms, history) == "");
  }));
}

TEST(SifterReplay, IsTheSameInEveryCopyThroughLongHistories) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    std::vector<Step> history(600);
    for (Step& step : history) {
      step = {static_cast<int>(random.below(18)), random.below(8), random.below(3),
              static_cast<int>(random.below(24))};
    }
    ASSERT_EQ(run_everywhere(kNow, history), "") << "seed " << seed;
  }
}

// Lanes of so large a table are cleared in many pieces. The progress is not encoded.
TEST(SifterReplay, IsTheSameInACopyMadeWhileALaneIsCleared) {
  Sifter::Goal goal = goal_of(Window::Structure::forgetful, 1'000'000);
  goal.fpr = 1e-3;
  Sifter sifter = sifter_of(goal);
  ASSERT_GT(sifter.bytes(), 2u << 20);
  std::uint64_t n = 0;
  TimeMs now_ms = kNow;
  const auto pass = [&](Sifter& to) {
    EXPECT_EQ(to.test_and_insert(key(n), now_ms), ClaimAnswer::fresh);
  };
  for (; n < 40; ++n, now_ms += 60) pass(sifter);
  Result<Sifter> copy = Sifter::decode(encoded(sifter));
  ASSERT_TRUE(copy);
  for (; n < 80; ++n, now_ms += 60) {
    pass(sifter);
    pass(*copy);
  }
  EXPECT_EQ(encoded(sifter), encoded(*copy));
}

}  // namespace
}  // namespace semel
