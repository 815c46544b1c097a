// Sifter: every state of an id, beside an exact twin; full windows; and parts that do not fit.
// sifter_replay_test.cc tests the bytes.
//
// The filters here have errors of 1e-9 and some hundred ids. A false positive is so unlikely that
// the tests take it for a fault.
#include "semel/sift/sifter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/sealed.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kKeep = 500;
constexpr std::uint64_t kAnn = 1, kBen = 2;

using Structure = Window::Structure;
constexpr auto kStructures = {Structure::forgetful, Structure::timers, Structure::exact};
constexpr std::uint64_t kLeastBytes = 8192;  // of a small window with its claims

Sifter::Goal goal_of(Structure structure, std::uint64_t max_bytes = kNoCap,
                     OnFull on_full = OnFull::refuse) {
  return {{.structure = structure,
           .window_ms = 1000,
           .fpr = structure == Structure::exact ? 0 : 1e-9,
           .ids = 200,
           .max_bytes = max_bytes,
           .on_full = on_full},
          kKeep};
}

// A sifter that gets all its calls at the time that was last set.
class Timed {
 public:
  explicit Timed(const Sifter::Goal& goal, TimeMs now_ms = kNow)
      : sifter_(*Sifter::make(goal, now_ms)), now_ms_(now_ms) {}
  explicit Timed(Structure structure) : Timed(goal_of(structure)) {}

  ClaimAnswer add(Digest id) { return sifter_.test_and_insert(id, now_ms_); }
  ClaimAnswer add(Digest id, TimeMs at_ms) { return sifter_.test_and_insert(id, now_ms_, at_ms); }
  void add(std::span<const Digest> ids, std::span<ClaimAnswer> answers) {
    sifter_.test_and_insert(ids, now_ms_, answers);
  }
  ClaimAnswer test(Digest id) const { return sifter_.test(id, now_ms_); }
  ClaimAnswer claim(Digest id, std::uint64_t owner, TimeMs until_ms) {
    return sifter_.claim(id, owner, until_ms, now_ms_);
  }
  ClaimAnswer commit(Digest id, std::uint64_t owner) { return sifter_.commit(id, owner, now_ms_); }
  ClaimAnswer release(Digest id, std::uint64_t owner) {
    return sifter_.release(id, owner, now_ms_);
  }
  void advance(TimeMs now_ms) {
    now_ms_ = std::max(now_ms_, now_ms);
    sifter_.advance(now_ms);
  }

  TimeMs now() const { return sifter_.now(); }
  WindowPromise promise() const { return sifter_.promise(); }
  WindowCounts counts() const { return sifter_.counts(); }
  std::uint64_t claims() const { return sifter_.claims(); }
  std::uint64_t ids() const { return sifter_.ids(now_ms_); }
  std::uint64_t bytes() const { return sifter_.bytes(); }
  Sifter& sifter() { return sifter_; }
  bool operator==(const Timed&) const = default;

 private:
  Sifter sifter_;
  TimeMs now_ms_;
};

// Returns the part of a sifter's bytes that is its window (docs/formats/sifter_v1.md).
Bytes window_bytes(const Sifter& sifter) {
  const Bytes all = encoded(sifter);
  Reader r(ByteView(all).subspan(kSealedHeader));
  (void)r.u64();  // the cap
  const std::uint64_t of_claims = r.u64();
  (void)r.view(of_claims);
  const ByteView window = r.view(r.rest() - kSealedTrailer);
  EXPECT_TRUE(r.ok() && Window::decode(window).has_value());
  return {window.begin(), window.end()};
}

class EverySifter : public ::testing::TestWithParam<Structure> {
 protected:
  static Timed make() { return Timed(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Structures, EverySifter, ::testing::ValuesIn(kStructures));

TEST_P(EverySifter, TakesAnIdOnceInOneStep) {
  Timed sifter = make();
  EXPECT_EQ(sifter.test(key(1)), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.add(key(1)), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.add(key(1)), ClaimAnswer::seen);
  EXPECT_EQ(sifter.test(key(1)), ClaimAnswer::seen);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), ClaimAnswer::seen);
  EXPECT_EQ(sifter.add(key(2), kNow - 2000), ClaimAnswer::stale);
  sifter.advance(kNow + 1000);
  EXPECT_EQ(sifter.add(key(1)), ClaimAnswer::seen);
  sifter.advance(kNow + 3000);
  EXPECT_EQ(sifter.add(key(1)), ClaimAnswer::fresh);
}

TEST_P(EverySifter, TakesAClaimedIdAtItsCommitAndNotBefore) {
  Timed sifter = make();
  const Bytes empty = window_bytes(sifter.sifter());
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  EXPECT_EQ(window_bytes(sifter.sifter()), empty);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);  // a retry
  EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 100), ClaimAnswer::pending);
  EXPECT_EQ(sifter.add(key(1)), ClaimAnswer::pending);
  EXPECT_EQ(sifter.test(key(1)), ClaimAnswer::pending);
  EXPECT_EQ(sifter.commit(key(1), kBen), ClaimAnswer::lost);
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::done);
  EXPECT_EQ(sifter.claims(), 0u);
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::seen);  // a retry
  EXPECT_EQ(sifter.commit(key(1), kBen), ClaimAnswer::seen);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), ClaimAnswer::seen);
  EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 100), ClaimAnswer::seen);
  EXPECT_EQ(sifter.add(key(1)), ClaimAnswer::seen);
}

TEST_P(EverySifter, GivesAnIdToTheNextAfterTheDeadline) {
  Timed sifter = make();
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  sifter.advance(kNow + 100);
  EXPECT_EQ(sifter.test(key(1)), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 300), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 300), ClaimAnswer::pending);
  EXPECT_EQ(sifter.commit(key(1), kBen), ClaimAnswer::done);
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::seen);
}

TEST_P(EverySifter, TakesALateCommitWhileNobodyElseAsked) {
  Timed sifter = make();
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.claim(key(2), kAnn, kNow + 100), ClaimAnswer::fresh);
  sifter.advance(kNow + 100 + kKeep);
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::done);
  sifter.advance(kNow + 101 + kKeep);
  EXPECT_EQ(sifter.commit(key(2), kAnn), ClaimAnswer::lost);
}

TEST_P(EverySifter, AddsAnIdWhoseClaimIsOverdue) {
  for (const bool batch : {false, true}) {
    Timed sifter = make();
    EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
    sifter.advance(kNow + 100);
    ClaimAnswer answer = sifter.add(key(1), kNow - 2000);
    EXPECT_EQ(answer, ClaimAnswer::stale);
    EXPECT_EQ(sifter.claims(), 1u);
    if (batch) {
      sifter.add(std::vector{key(1)}, std::span(&answer, 1));
    } else {
      answer = sifter.add(key(1));
    }
    EXPECT_EQ(answer, ClaimAnswer::fresh);
    EXPECT_EQ(sifter.claims(), 0u);
    EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::seen);
  }
}

TEST_P(EverySifter, FreesAReleasedIdAndLengthensAClaimThatIsRepeated) {
  Timed sifter = make();
  EXPECT_EQ(sifter.release(key(1), kAnn), ClaimAnswer::lost);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.release(key(1), kBen), ClaimAnswer::lost);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 900), ClaimAnswer::fresh);
  sifter.advance(kNow + 899);
  EXPECT_EQ(sifter.test(key(1)), ClaimAnswer::pending);
  EXPECT_EQ(sifter.release(key(1), kAnn), ClaimAnswer::done);
  EXPECT_EQ(sifter.test(key(1)), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::lost);
}

TEST_P(EverySifter, RemembersACommitFromItsOwnTimeOn) {
  Timed sifter = make();
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 5000), ClaimAnswer::fresh);
  sifter.advance(kNow + 4000);
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::done);
  sifter.advance(kNow + 5000);
  EXPECT_EQ(sifter.test(key(1)), ClaimAnswer::seen);
}

TEST_P(EverySifter, AddsManyAsItAddsOne) {
  Timed one = make();
  for (std::uint64_t n = 0; n < 2000; n += 5) {
    EXPECT_EQ(one.claim(key(n), kAnn, kNow + 50 + 100 * static_cast<TimeMs>(n % 2)),
              ClaimAnswer::fresh);
  }
  one.advance(kNow + 100);
  Timed many = one;
  std::vector<Digest> ids = keys(0, 1000);
  ids.insert(ids.end(), ids.begin(), ids.begin() + 500);
  std::vector<ClaimAnswer> expected, answers(ids.size());
  for (const Digest& id : ids) expected.push_back(one.add(id));
  many.add(ids, answers);
  EXPECT_EQ(answers, expected);
  EXPECT_EQ(many, one);
  EXPECT_EQ(std::count(answers.begin(), answers.end(), ClaimAnswer::pending), 150);
  EXPECT_EQ(std::count(answers.begin(), answers.end(), ClaimAnswer::fresh), 900);
}

TEST_P(EverySifter, CountsTheBytesOfBothParts) {
  Timed sifter = make();
  Window window = *Window::make(goal_of(GetParam()), kNow);  // the same as inside
  ClaimTable claims(kKeep, kNow);
  EXPECT_EQ(sifter.bytes(), window.bytes() + claims.bytes());
  for (std::uint64_t n = 0; n < 1000; ++n) {
    EXPECT_EQ(sifter.claim(key(n), kAnn, kNow + 100), ClaimAnswer::fresh);
    EXPECT_EQ(claims.claim(key(n), kAnn, kNow + 100), ClaimAnswer::fresh);
  }
  EXPECT_EQ(sifter.bytes(), window.bytes() + claims.bytes());
}

TEST(Sifter, KeepsTheClaimWhenTheWindowIsFull) {
  Timed sifter(goal_of(Structure::exact, kLeastBytes));
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 2000), ClaimAnswer::fresh);
  std::uint64_t n = 2;
  while (sifter.add(key(n)) == ClaimAnswer::fresh) ++n;
  EXPECT_EQ(sifter.add(key(n)), ClaimAnswer::full);
  const Timed before = sifter;
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::full);
  EXPECT_EQ(sifter, before);
  EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 2000), ClaimAnswer::pending);
  sifter.advance(kNow + 1250);
  EXPECT_EQ(sifter.commit(key(1), kAnn), ClaimAnswer::done);
}

TEST(Sifter, ForgetsTheOldestAtACommitIfTheWindowWasToldTo) {
  Timed sifter(goal_of(Structure::exact, kLeastBytes, OnFull::forget));
  std::uint64_t n = 0;
  for (; sifter.counts().forgotten_early == 0; ++n) {
    ASSERT_EQ(sifter.claim(key(n), kAnn, kNow + 2000), ClaimAnswer::fresh);
    ASSERT_EQ(sifter.commit(key(n), kAnn), ClaimAnswer::done);
  }
  EXPECT_GT(sifter.promise().kept_from_ms, kNow - 1000);
  EXPECT_EQ(sifter.test(key(0)), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.test(key(n - 1)), ClaimAnswer::seen);
}

// This filter errs so often that it is sure to take a claimed id for a known one.
TEST(Sifter, NeverLosesAClaimToAFalsePositive) {
  Sifter::Goal goal = goal_of(Structure::forgetful);
  goal.fpr = 0.5;
  goal.ids = 1000;
  Timed sifter(goal);
  Window window = *Window::make(goal, kNow);  // the same as inside
  const std::vector<Digest> claimed = keys(0, 100);
  for (const Digest& id : claimed) {
    EXPECT_EQ(sifter.claim(id, kAnn, kNow + 900), ClaimAnswer::fresh);
  }
  for (const Digest& id : keys(1000, 2000)) {
    (void)sifter.add(id);
    (void)window.test_and_insert(id);
  }
  sifter.advance(kNow + 800);
  window.advance(kNow + 800);
  std::uint64_t false_positives = 0;
  for (const Digest& id : claimed) {
    false_positives += window.test(id) == Verdict::duplicate;
    EXPECT_EQ(sifter.claim(id, kBen, kNow + 900), ClaimAnswer::pending);
    EXPECT_EQ(sifter.claim(id, kAnn, kNow + 900), ClaimAnswer::fresh);
    EXPECT_EQ(sifter.commit(id, kBen), ClaimAnswer::lost);
    EXPECT_EQ(sifter.commit(id, kAnn), ClaimAnswer::done);
    EXPECT_EQ(sifter.test(id), ClaimAnswer::seen);
  }
  EXPECT_GT(false_positives, 0u);
  // The id is remembered from the commit on, not from the claim.
  sifter.advance(kNow + 1800);
  for (const Digest& id : claimed) EXPECT_EQ(sifter.test(id), ClaimAnswer::seen);
}

TEST(Sifter, RefusesPartsThatDoNotGoTogether) {
  const auto refusal = [](const ClaimTable& claims, const Window& window,
                          std::uint64_t max_bytes) -> std::string {
    Bytes bytes;
    seal(bytes, {"SIF", 1, "sifter"}, [&](Writer& w) {
      w.u64(max_bytes);
      w.u64(encoded_size(claims));
      claims.encode(w.sink());
      window.encode(w.sink());
    });
    const Result<Sifter> read = Sifter::decode(bytes);
    return read ? "" : read.error().message();
  };
  for (const Structure structure : kStructures) {
    Window::Goal goal = goal_of(structure);
    goal.max_bytes = 56'000;
    const Window window = *Window::make(goal, kNow);
    ClaimTable claims(kKeep, kNow);
    EXPECT_EQ(claims.claim(key(1), kAnn, kNow + 100), ClaimAnswer::fresh);
    EXPECT_EQ(refusal(claims, window, 64'000), "");
    EXPECT_EQ(refusal(claims, window, 64'001), "sifter: goal");
    EXPECT_EQ(refusal(claims, window, 56'000), "sifter: goal");
    EXPECT_EQ(refusal(claims, window, kNoCap), "sifter: goal");
    ClaimTable other = claims;
    other.advance(kNow + 1);
    EXPECT_EQ(refusal(other, window, 64'000), "sifter: two times");
    other = claims;
    EXPECT_EQ(other.commit(key(1), kAnn), ClaimAnswer::done);
    EXPECT_EQ(refusal(other, window, 64'000), "sifter: a commit among the claims");
    other = claims;
    for (std::uint64_t n = 0; n < 64; ++n) {
      EXPECT_EQ(other.claim(key(n), kAnn, kNow + 100), ClaimAnswer::fresh);
    }
    EXPECT_EQ(refusal(other, window, 64'000), "sifter: number of claims");
  }
  EXPECT_EQ(refusal(ClaimTable(0, std::numeric_limits<TimeMs>::min()),
                    *Window::decode(encoded(*Window::make({.fpr = 0.1}, kNow))), kNoCap),
            "sifter: goal");  // a window without an end
}

struct BatchStep {
  int kind;
  std::vector<std::uint64_t> numbers;
  std::uint64_t owner;
  int amount;
};
std::ostream& operator<<(std::ostream& out, const BatchStep& step) {
  out << "{" << step.kind << ", {";
  for (const std::uint64_t number : step.numbers) out << number << ", ";
  return out << "}, " << step.owner << ", " << step.amount << "}";
}

// Takes each step twice: `one` id by id, `many` in a batch. Returns the number of the first step
// after which they differ, or of none.
std::size_t first_difference(const Sifter::Goal& goal, const std::vector<BatchStep>& history) {
  Sifter one = *Sifter::make(goal, kNow), many = one;
  TimeMs now_ms = kNow;
  for (std::size_t at = 0; at < history.size(); ++at) {
    const BatchStep& step = history[at];
    now_ms += step.kind == 0 ? 40 * step.amount : step.amount / 12;
    const TimeMs until_ms = now_ms + 10 * step.amount;
    std::vector<Digest> ids;
    for (const std::uint64_t number : step.numbers) ids.push_back(key(number));
    std::vector<ClaimAnswer> expected, answers(ids.size());
    for (const Digest& id : ids) {
      if (step.kind < 2) {
        expected.push_back(one.test_and_insert(id, now_ms));
      } else if (step.kind < 5) {
        expected.push_back(one.claim(id, step.owner, until_ms, now_ms));
      } else if (step.kind < 7) {
        expected.push_back(one.commit(id, step.owner, now_ms));
      } else {
        expected.push_back(one.release(id, step.owner, now_ms));
      }
    }
    if (step.kind < 2) {
      many.test_and_insert(ids, now_ms, answers);
    } else if (step.kind < 5) {
      many.claim(ids, step.owner, until_ms, now_ms, answers);
    } else if (step.kind < 7) {
      many.commit(ids, step.owner, now_ms, answers);
    } else {
      many.release(ids, step.owner, now_ms, answers);
    }
    if (answers != expected || !(many == one) || encoded(many) != encoded(one)) return at;
  }
  return history.size();
}

TEST(Sifter, JudgesManyAsItJudgesOneAfterTheOther) {
  EXPECT_TRUE(rc::check([] {
    const auto history = *rc::gen::container<std::vector<BatchStep>>(rc::gen::construct<BatchStep>(
        rc::gen::inRange(0, 8),
        rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 40)),
        rc::gen::inRange<std::uint64_t>(0, 3), rc::gen::inRange(0, 24)));
    for (const Structure structure : kStructures) {
      RC_ASSERT(first_difference(goal_of(structure), history) == history.size());
    }
    const Sifter::Goal capped = goal_of(Structure::exact, kLeastBytes);
    RC_ASSERT(first_difference(capped, history) == history.size());
  }));
}

// The claims of an owner fill their part of the memory in the middle of a batch.
TEST(Sifter, RefusesTheClaimsOfABatchThatHaveNoRoom) {
  Sifter::Goal goal = goal_of(Structure::exact, kLeastBytes);
  Sifter sifter = *Sifter::make(goal, kNow);
  const std::uint64_t most = sifter.most_claims();
  const std::vector<Digest> ids = keys(0, most + 3);
  std::vector<ClaimAnswer> answers(ids.size());
  sifter.claim(ids, kAnn, kNow + 100, kNow, answers);
  EXPECT_EQ(
      static_cast<std::uint64_t>(std::count(answers.begin(), answers.end(), ClaimAnswer::fresh)),
      most);
  EXPECT_EQ(answers[most], ClaimAnswer::full);
  EXPECT_EQ(answers.back(), ClaimAnswer::full);
  sifter.commit(ids, kAnn, kNow, answers);
  EXPECT_EQ(answers[most - 1], ClaimAnswer::done);
  EXPECT_EQ(answers[most], ClaimAnswer::lost);
  EXPECT_EQ(sifter.claims(), 0u);
}

// A sifter beside two maps: the time when each id was taken, and the owner of each claim.
class SifterTwin {
 public:
  SifterTwin(const Sifter::Goal& goal, TimeMs now_ms)
      : sifter_(goal, now_ms), may_be_full_(goal.max_bytes != kNoCap) {}

  TimeMs now() const { return sifter_.now(); }
  const std::string& complaint() const { return complaint_; }

  void advance(TimeMs now_ms) {
    sifter_.advance(now_ms);
    std::erase_if(claims_, [&](const auto& claim) {
      return older_than(claim.second.until_ms, kKeep, now());
    });
  }

  void reload() {
    Result<Sifter> copy = Sifter::decode(encoded(sifter_.sifter()));
    demand(copy.has_value() && *copy == sifter_.sifter(), "its bytes are another sifter");
    sifter_.sifter() = *std::move(copy);
  }

  void add(std::uint64_t number, TimeMs at_ms) {
    const TimeMs taken_ms = std::min(at_ms, now());
    const WindowPromise promise = sifter_.promise();
    const Memory memory = recall(number);
    const bool was_pending = pending(number);
    const ClaimAnswer answer = sifter_.add(key(number), at_ms);
    if (was_pending) return demand(answer == ClaimAnswer::pending, "adds what is pending");
    demand(answer != ClaimAnswer::pending, "pending without a claim");
    demand_memory(memory, answer == ClaimAnswer::seen);
    if (answer == ClaimAnswer::stale) {
      demand(taken_ms < promise.kept_from_ms, "stale without cause");
    } else if (answer == ClaimAnswer::full) {
      demand(may_be_full_, "full without cause");
    } else if (answer == ClaimAnswer::fresh) {
      taken_[number] = taken_ms;
      claims_.erase(number);
    }
  }

  void test(std::uint64_t number) {
    const ClaimAnswer answer = sifter_.test(key(number));
    demand((answer == ClaimAnswer::pending) == pending(number), "pending or not");
    if (!pending(number)) demand_memory(recall(number), answer == ClaimAnswer::seen);
  }

  void claim(std::uint64_t number, std::uint64_t owner, TimeMs until_ms) {
    const bool own = holds(number, owner), was_pending = pending(number);
    const ClaimAnswer answer = sifter_.claim(key(number), owner, until_ms);
    until_ms = std::max(until_ms, now());
    if (own) {
      demand(answer == ClaimAnswer::fresh, "takes a claim away");
      TimeMs& held_ms = claims_[number].until_ms;
      held_ms = std::max(held_ms, until_ms);
      return;
    }
    if (was_pending) return demand(answer == ClaimAnswer::pending, "gives away what is claimed");
    if (answer == ClaimAnswer::full) return demand(may_be_full_, "full without cause");
    demand(answer == ClaimAnswer::fresh || answer == ClaimAnswer::seen, "pending without a claim");
    demand_memory(recall(number), answer == ClaimAnswer::seen);
    if (answer == ClaimAnswer::fresh) claims_[number] = {owner, until_ms};
  }

  void commit(std::uint64_t number, std::uint64_t owner) {
    const bool own = holds(number, owner), others = claims_.contains(number) && !own;
    const Memory memory = recall(number);
    const ClaimAnswer commit = sifter_.commit(key(number), owner);
    if (own && commit == ClaimAnswer::full) return demand(may_be_full_, "full without cause");
    demand((commit == ClaimAnswer::done) == own, "done without a claim, or not done with one");
    if (own) {
      taken_[number] = now();
      claims_.erase(number);
    } else if (others) {
      demand(commit == ClaimAnswer::lost, "does not say that another has the claim");
    } else {
      demand(commit == ClaimAnswer::lost || commit == ClaimAnswer::seen, "full without a claim");
      demand_memory(memory, commit == ClaimAnswer::seen);
    }
  }

  void release(std::uint64_t number, std::uint64_t owner) {
    const bool own = holds(number, owner);
    const ClaimAnswer expected = own ? ClaimAnswer::done : ClaimAnswer::lost;
    demand(sifter_.release(key(number), owner) == expected, "releases what is not claimed");
    if (own) claims_.erase(number);
  }

  void check() { demand(sifter_.claims() == claims_.size(), "holds other claims"); }

 private:
  enum class Memory { yes, no, maybe };
  struct Held {
    std::uint64_t owner;
    TimeMs until_ms;
  };

  Memory recall(std::uint64_t number) const {
    const auto taken = taken_.find(number);
    const WindowPromise promise = sifter_.promise();
    if (taken == taken_.end() || taken->second < promise.forgotten_before_ms) return Memory::no;
    return taken->second >= promise.kept_from_ms ? Memory::yes : Memory::maybe;
  }
  bool holds(std::uint64_t number, std::uint64_t owner) const {
    const auto claim = claims_.find(number);
    return claim != claims_.end() && claim->second.owner == owner;
  }
  bool pending(std::uint64_t number) const {
    const auto claim = claims_.find(number);
    return claim != claims_.end() && now() < claim->second.until_ms;
  }
  void demand_memory(Memory memory, bool seen) {
    if (memory != Memory::maybe) demand(seen == (memory == Memory::yes), "seen or not");
  }
  void demand(bool holds, const char* what) {
    if (!holds && complaint_.empty()) complaint_ = what;
  }

  Timed sifter_;
  const bool may_be_full_;
  std::map<std::uint64_t, TimeMs> taken_;
  std::map<std::uint64_t, Held> claims_;
  std::string complaint_;
};

struct SifterStep {
  int kind;
  std::uint64_t number, owner;
  int amount;
};
std::ostream& operator<<(std::ostream& out, const SifterStep& step) {
  return out << "{" << step.kind << ", " << step.number << ", " << step.owner << ", " << step.amount
             << "}";
}

// Returns the first thing that the sifter did wrong; empty if nothing.
std::string run_history(SifterTwin twin, const std::vector<SifterStep>& history) {
  for (const SifterStep& step : history) {
    const TimeMs until_ms = twin.now() + 20 * (step.amount - 3);
    switch (step.kind) {
      case 0:
        twin.advance(twin.now() + 4 * step.amount);
        break;
      case 1:
        twin.advance(twin.now() + (step.amount < 20 ? 50 * step.amount : -step.amount));
        break;
      case 2:
        twin.add(step.number, twin.now());
        break;
      case 3:
        twin.add(step.number, twin.now() - 60 * (step.amount - 3));
        break;
      case 4:
        twin.test(step.number);
        break;
      case 5:
        twin.release(step.number, step.owner);
        break;
      case 6:
        twin.claim(step.number, step.owner, until_ms + 100);
        break;
      case 7:
        for (int n = 0; n < step.amount; ++n) {  // enough to fill a window that has a cap
          twin.add(1000 * step.number + static_cast<unsigned>(n), twin.now());
        }
        break;
      case 8:
        if (step.amount < 8) twin.reload();
        break;
      case 9:
      case 10:
      case 11:
        twin.commit(step.number, step.owner);
        break;
      default:
        twin.claim(step.number, step.owner, until_ms);
        break;
    }
    twin.check();
    if (!twin.complaint().empty()) break;
  }
  return twin.complaint();
}

std::string run_everywhere(TimeMs start_ms, const std::vector<SifterStep>& history) {
  std::string complaints;
  for (const Structure structure : {Structure::forgetful, Structure::exact}) {
    complaints += run_history(SifterTwin(goal_of(structure), start_ms), history);
  }
  const Sifter::Goal capped = goal_of(Structure::exact, kLeastBytes);
  return complaints + run_history(SifterTwin(capped, start_ms), history);
}

TEST(Sifter, IsItsExactTwinThroughAnyHistory) {
  EXPECT_TRUE(rc::check([] {
    const TimeMs start_ms =
        *rc::gen::element<TimeMs>(0, -3, kNow, std::numeric_limits<TimeMs>::min() + 100'000,
                                  std::numeric_limits<TimeMs>::max() / 2);
    const auto history =
        *rc::gen::container<std::vector<SifterStep>>(rc::gen::construct<SifterStep>(
            rc::gen::inRange(0, 16), rc::gen::inRange<std::uint64_t>(0, 8),
            rc::gen::inRange<std::uint64_t>(0, 3), rc::gen::inRange(0, 24)));
    RC_ASSERT(run_everywhere(start_ms, history) == "");
  }));
}

TEST(Sifter, IsItsExactTwinThroughLongHistories) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    std::vector<SifterStep> history(2000);
    for (SifterStep& step : history) {
      step = {static_cast<int>(random.below(16)), random.below(8), random.below(3),
              static_cast<int>(random.below(24))};
    }
    ASSERT_EQ(run_everywhere(kNow, history), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace semel
