// Sifter: every state of an id, beside an exact twin; what a full window does; and bytes.
//
// The filters here have errors of 1e-9 and some hundred ids: a false positive would be a surprise, and
// is taken for a fault.
#include "semel/sift/sifter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "semel/core/random.h"
#include "semel/window/exact_window.h"
#include "semel/window/forgetful_filter.h"
#include "semel/window/sliding_filter.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kKeep = 500;
constexpr std::uint64_t kAnn = 1, kBen = 2;

using ExactSifter = Sifter<ExactWindow>;
using ForgetfulSifter = Sifter<ForgetfulFilter>;

ExactSifter exact_sifter(const ExactWindow::Goal& goal = {.window_ms = 1000},
                         TimeMs now_ms = kNow) {
  return {*ExactWindow::make(goal, now_ms), kKeep};
}

ForgetfulSifter forgetful_sifter(TimeMs now_ms = kNow) {
  return {*ForgetfulFilter::make({.window_ms = 1000, .fpr = 1e-9, .ids = 200}, now_ms), kKeep};
}

// A claim that is on, one that is overdue, ids added and committed.
template <class Type>
Type with_content(Type sifter) {
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::fresh);
  EXPECT_EQ(sifter.claim(key(2), kBen, kNow + 900), Sighting::fresh);
  EXPECT_EQ(sifter.claim(key(3), kBen, kNow + 900), Sighting::fresh);
  sifter.advance(kNow + 200);
  EXPECT_EQ(sifter.commit(key(3), kBen), Commit::done);
  EXPECT_EQ(sifter.add(key(4)), Sighting::fresh);
  EXPECT_EQ(sifter.add(key(5), kNow - 100), Sighting::fresh);
  return sifter;
}

struct ExactBytes {
  using Type = ExactSifter;
  static constexpr std::size_t kHeaderSize = 12;
  static constexpr char kFile[] = "sifter_v1_exact.bin";
  static Type make() { return with_content(exact_sifter()); }
};
struct ForgetfulBytes {
  using Type = ForgetfulSifter;
  static constexpr char kFile[] = "sifter_v1_forgetful.bin";
  static Type make() {
    return with_content(ForgetfulSifter(
        *ForgetfulFilter::make({.window_ms = 1000, .fpr = 0.01, .ids = 8, .past_lanes = 1}, kNow),
        kKeep));
  }
};
using GoldenCases = ::testing::Types<ExactBytes, ForgetfulBytes>;
INSTANTIATE_TYPED_TEST_SUITE_P(Sifter, HostileBytes, ExactBytes);
INSTANTIATE_TYPED_TEST_SUITE_P(Sifter, Golden, GoldenCases);

template <class Type>
class AnySifter : public ::testing::Test {
 protected:
  static Type make() {
    if constexpr (std::same_as<Type, ExactSifter>) {
      return exact_sifter();
    } else if constexpr (std::same_as<Type, ForgetfulSifter>) {
      return forgetful_sifter();
    } else {
      return {*SlidingFilter::make({.window_ms = 1000, .fpr = 1e-9, .ids = 200}, kNow), kKeep};
    }
  }
};
using Sifters = ::testing::Types<ExactSifter, ForgetfulSifter, Sifter<SlidingFilter>>;
TYPED_TEST_SUITE(AnySifter, Sifters);

TYPED_TEST(AnySifter, TakesAnIdOnceInOneStep) {
  TypeParam sifter = this->make();
  EXPECT_EQ(sifter.test(key(1)), Sighting::fresh);
  EXPECT_EQ(sifter.add(key(1)), Sighting::fresh);
  EXPECT_EQ(sifter.add(key(1)), Sighting::seen);
  EXPECT_EQ(sifter.test(key(1)), Sighting::seen);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::seen);
  EXPECT_EQ(sifter.add(key(2), kNow - 2000), Sighting::stale);
  sifter.advance(kNow + 1000);
  EXPECT_EQ(sifter.add(key(1)), Sighting::seen);
  sifter.advance(kNow + 3000);
  EXPECT_EQ(sifter.add(key(1)), Sighting::fresh);
}

TYPED_TEST(AnySifter, TakesAClaimedIdAtItsCommitAndNotBefore) {
  TypeParam sifter = this->make();
  const auto empty = sifter.window();
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::fresh);
  EXPECT_EQ(sifter.window(), empty);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::fresh);  // a retry
  EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 100), Sighting::pending);
  EXPECT_EQ(sifter.add(key(1)), Sighting::pending);
  EXPECT_EQ(sifter.test(key(1)), Sighting::pending);
  EXPECT_EQ(sifter.commit(key(1), kBen), Commit::lost);
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::done);
  EXPECT_EQ(sifter.claims().size(), 0u);
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::seen);  // a retry
  EXPECT_EQ(sifter.commit(key(1), kBen), Commit::seen);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::seen);
  EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 100), Sighting::seen);
  EXPECT_EQ(sifter.add(key(1)), Sighting::seen);
}

TYPED_TEST(AnySifter, GivesAnIdToTheNextAfterTheDeadline) {
  TypeParam sifter = this->make();
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::fresh);
  sifter.advance(kNow + 100);
  EXPECT_EQ(sifter.test(key(1)), Sighting::fresh);
  EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 300), Sighting::fresh);
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::lost);
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 300), Sighting::pending);
  EXPECT_EQ(sifter.commit(key(1), kBen), Commit::done);
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::seen);
}

TYPED_TEST(AnySifter, TakesALateCommitWhileNobodyElseAsked) {
  TypeParam sifter = this->make();
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::fresh);
  EXPECT_EQ(sifter.claim(key(2), kAnn, kNow + 100), Sighting::fresh);
  sifter.advance(kNow + 100 + kKeep);
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::done);
  sifter.advance(kNow + 101 + kKeep);
  EXPECT_EQ(sifter.commit(key(2), kAnn), Commit::lost);
}

TYPED_TEST(AnySifter, AddsAnIdWhoseClaimIsOverdue) {
  for (const bool batch : {false, true}) {
    TypeParam sifter = this->make();
    EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::fresh);
    sifter.advance(kNow + 100);
    Sighting sighting = sifter.add(key(1), kNow - 2000);
    EXPECT_EQ(sighting, Sighting::stale);
    EXPECT_EQ(sifter.claims().size(), 1u);
    if (batch) {
      sifter.add(std::vector{key(1)}, std::span(&sighting, 1));
    } else {
      sighting = sifter.add(key(1));
    }
    EXPECT_EQ(sighting, Sighting::fresh);
    EXPECT_EQ(sifter.claims().size(), 0u);
    EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::seen);
  }
}

TYPED_TEST(AnySifter, FreesAReleasedIdAndLengthensARenewedClaim) {
  TypeParam sifter = this->make();
  EXPECT_FALSE(sifter.release(key(1), kAnn));
  EXPECT_FALSE(sifter.renew(key(1), kAnn, kNow + 900));
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100), Sighting::fresh);
  EXPECT_FALSE(sifter.release(key(1), kBen));
  EXPECT_FALSE(sifter.renew(key(1), kBen, kNow + 900));
  EXPECT_TRUE(sifter.renew(key(1), kAnn, kNow + 900));
  sifter.advance(kNow + 899);
  EXPECT_EQ(sifter.test(key(1)), Sighting::pending);
  EXPECT_TRUE(sifter.release(key(1), kAnn));
  EXPECT_EQ(sifter.test(key(1)), Sighting::fresh);
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::lost);
}

TYPED_TEST(AnySifter, RemembersACommitFromItsOwnTimeOn) {
  TypeParam sifter = this->make();
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 5000), Sighting::fresh);
  sifter.advance(kNow + 4000);
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::done);
  sifter.advance(kNow + 5000);
  EXPECT_EQ(sifter.test(key(1)), Sighting::seen);
}

TYPED_TEST(AnySifter, AddsManyAsItAddsOne) {
  TypeParam one = this->make();
  for (std::uint64_t n = 0; n < 2000; n += 5) {
    EXPECT_EQ(one.claim(key(n), kAnn, kNow + 50 + 100 * static_cast<TimeMs>(n % 2)),
              Sighting::fresh);
  }
  one.advance(kNow + 100);
  TypeParam many = one;
  std::vector<Digest> ids = keys(0, 1000);
  ids.insert(ids.end(), ids.begin(), ids.begin() + 500);
  std::vector<Sighting> expected, sightings(ids.size());
  for (const Digest& id : ids) expected.push_back(one.add(id));
  many.add(ids, sightings);
  EXPECT_EQ(sightings, expected);
  EXPECT_EQ(many, one);
  EXPECT_EQ(std::count(sightings.begin(), sightings.end(), Sighting::pending), 150);
  EXPECT_EQ(std::count(sightings.begin(), sightings.end(), Sighting::fresh), 900);
}

TYPED_TEST(AnySifter, CountsTheBytesOfBothParts) {
  TypeParam sifter = this->make();
  for (std::uint64_t n = 0; n < 1000; ++n) {
    EXPECT_EQ(sifter.claim(key(n), kAnn, kNow + 100), Sighting::fresh);
  }
  EXPECT_EQ(sifter.bytes(), sifter.window().bytes() + sifter.claims().bytes());
  EXPECT_GT(sifter.claims().bytes(), 1000 * 48u);
}

TEST(Sifter, KeepsTheClaimWhenTheWindowIsFull) {
  ExactSifter sifter = exact_sifter({.window_ms = 1000, .max_bytes = ExactWindow::kLeastCap});
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 2000), Sighting::fresh);
  std::uint64_t n = 2;
  while (sifter.add(key(n)) == Sighting::fresh) ++n;
  EXPECT_EQ(sifter.add(key(n)), Sighting::full);
  const ExactSifter before = sifter;
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::full);
  EXPECT_EQ(sifter, before);
  EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 2000), Sighting::pending);
  sifter.advance(kNow + 1200);
  EXPECT_EQ(sifter.commit(key(1), kAnn), Commit::done);
}

TEST(Sifter, ForgetsTheOldestAtACommitIfTheWindowWasToldTo) {
  ExactSifter sifter = exact_sifter(
      {.window_ms = 1000, .max_bytes = ExactWindow::kLeastCap, .when_full = WhenFull::forget});
  std::uint64_t n = 0;
  for (; sifter.window().counts().forgotten_early == 0; ++n) {
    ASSERT_EQ(sifter.claim(key(n), kAnn, kNow + 2000), Sighting::fresh);
    ASSERT_EQ(sifter.commit(key(n), kAnn), Commit::done);
  }
  EXPECT_GT(sifter.promise().kept_from_ms, kNow - 1000);
  EXPECT_EQ(sifter.test(key(0)), Sighting::fresh);
  EXPECT_EQ(sifter.test(key(n - 1)), Sighting::seen);
}

// A filter that errs as much is sure to take a claimed id for one that it knows.
TEST(Sifter, NeverLosesAClaimToAFalsePositive) {
  ForgetfulSifter sifter(*ForgetfulFilter::make({.window_ms = 1000, .fpr = 0.5, .ids = 1000}, kNow),
                         kKeep);
  const std::vector<Digest> claimed = keys(0, 100);
  for (const Digest& id : claimed) {
    EXPECT_EQ(sifter.claim(id, kAnn, kNow + 900), Sighting::fresh);
  }
  for (const Digest& id : keys(1000, 2000)) (void)sifter.add(id);
  sifter.advance(kNow + 800);
  std::uint64_t false_positives = 0;
  for (const Digest& id : claimed) {
    false_positives += sifter.window().test(id) == Verdict::duplicate;
    EXPECT_EQ(sifter.claim(id, kBen, kNow + 900), Sighting::pending);
    EXPECT_EQ(sifter.claim(id, kAnn, kNow + 900), Sighting::fresh);
    EXPECT_EQ(sifter.commit(id, kBen), Commit::lost);
    EXPECT_EQ(sifter.commit(id, kAnn), Commit::done);
    EXPECT_EQ(sifter.test(id), Sighting::seen);
  }
  EXPECT_GT(false_positives, 0u);
  // Remembered from the commit on, not from what it was taken for.
  sifter.advance(kNow + 1800);
  for (const Digest& id : claimed) EXPECT_EQ(sifter.test(id), Sighting::seen);
}

TEST(Sifter, RefusesPartsThatDoNotGoTogether) {
  const ExactSifter sifter = with_content(exact_sifter());
  const auto refusal = [](const ClaimTable& claims, const auto& window) {
    Bytes bytes;
    Writer w(bytes);
    w.u32(0x31495353);
    const Bytes part = encoded(claims);
    w.u64(part.size());
    w.bytes(part);
    window.encode(bytes);
    w.u64(checksum(bytes));
    const Result<ExactSifter> read = ExactSifter::decode(bytes);
    return read ? std::string() : std::string(read.error().what);
  };
  EXPECT_EQ(refusal(sifter.claims(), sifter.window()), "");
  ClaimTable claims = sifter.claims();
  claims.advance(kNow + 201);
  EXPECT_EQ(refusal(claims, sifter.window()), "sifter: two times");
  claims = sifter.claims();
  EXPECT_TRUE(claims.commit(key(1), kAnn));
  EXPECT_EQ(refusal(claims, sifter.window()), "sifter: a commit among the claims");
  EXPECT_EQ(refusal(sifter.claims(), forgetful_sifter().window()), "exact window: magic");
}

// What a sifter is, in a map: when each id was taken, and who has claimed it.
template <class W>
class SifterTwin {
 public:
  SifterTwin(Sifter<W> sifter, bool may_be_full)
      : sifter_(std::move(sifter)), may_be_full_(may_be_full) {}

  TimeMs now() const { return sifter_.now(); }
  const std::string& complaint() const { return complaint_; }

  void advance(TimeMs now_ms) {
    sifter_.advance(now_ms);
    std::erase_if(claims_, [&](const auto& claim) {
      return older_than(claim.second.until_ms, kKeep, now());
    });
  }

  void reload() {
    Result<Sifter<W>> copy = Sifter<W>::decode(encoded(sifter_));
    demand(copy.has_value() && *copy == sifter_, "its bytes are another sifter");
    sifter_ = *std::move(copy);
  }

  void add(std::uint64_t number, TimeMs at_ms) {
    const TimeMs taken_ms = std::min(at_ms, now());
    const Promise promise = sifter_.promise();
    const Memory memory = recall(number);
    const bool was_pending = pending(number);
    const Sighting sighting = sifter_.add(key(number), at_ms);
    if (was_pending) return demand(sighting == Sighting::pending, "adds what is pending");
    demand(sighting != Sighting::pending, "pending without a claim");
    demand_memory(memory, sighting == Sighting::seen);
    if (sighting == Sighting::stale) {
      demand(taken_ms < promise.kept_from_ms, "stale without cause");
    } else if (sighting == Sighting::full) {
      demand(may_be_full_, "full without cause");
    } else if (sighting == Sighting::fresh) {
      taken_[number] = taken_ms;
      claims_.erase(number);
    }
  }

  void test(std::uint64_t number) {
    const Sighting sighting = sifter_.test(key(number));
    demand((sighting == Sighting::pending) == pending(number), "pending or not");
    if (!pending(number)) demand_memory(recall(number), sighting == Sighting::seen);
  }

  void claim(std::uint64_t number, std::uint64_t owner, TimeMs until_ms) {
    const bool own = holds(number, owner), was_pending = pending(number);
    const Sighting sighting = sifter_.claim(key(number), owner, until_ms);
    until_ms = std::max(until_ms, now());
    if (own) {
      demand(sighting == Sighting::fresh, "takes a claim away");
      TimeMs& held_ms = claims_[number].until_ms;
      held_ms = std::max(held_ms, until_ms);
      return;
    }
    if (was_pending) return demand(sighting == Sighting::pending, "gives away what is claimed");
    demand(sighting == Sighting::fresh || sighting == Sighting::seen, "pending without a claim");
    demand_memory(recall(number), sighting == Sighting::seen);
    if (sighting == Sighting::fresh) claims_[number] = {owner, until_ms};
  }

  void commit(std::uint64_t number, std::uint64_t owner) {
    const bool own = holds(number, owner), others = claims_.contains(number) && !own;
    const Memory memory = recall(number);
    const Commit commit = sifter_.commit(key(number), owner);
    if (own && commit == Commit::full) return demand(may_be_full_, "full without cause");
    demand((commit == Commit::done) == own, "done without a claim, or not done with one");
    if (own) {
      taken_[number] = now();
      claims_.erase(number);
    } else if (others) {
      demand(commit == Commit::lost, "does not say that another has the claim");
    } else {
      demand(commit == Commit::lost || commit == Commit::seen, "full without a claim");
      demand_memory(memory, commit == Commit::seen);
    }
  }

  void release(std::uint64_t number, std::uint64_t owner) {
    const bool own = holds(number, owner);
    demand(sifter_.release(key(number), owner) == own, "releases what is not claimed");
    if (own) claims_.erase(number);
  }

  void renew(std::uint64_t number, std::uint64_t owner, TimeMs until_ms) {
    const bool own = holds(number, owner);
    demand(sifter_.renew(key(number), owner, until_ms) == own, "renews what is not claimed");
    if (!own) return;
    TimeMs& held_ms = claims_[number].until_ms;
    held_ms = std::max({held_ms, until_ms, now()});
  }

  void check() { demand(sifter_.claims().size() == claims_.size(), "holds other claims"); }

 private:
  enum class Memory { yes, no, maybe };
  struct Held {
    std::uint64_t owner;
    TimeMs until_ms;
  };

  Memory recall(std::uint64_t number) const {
    const auto taken = taken_.find(number);
    const Promise promise = sifter_.promise();
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

  Sifter<W> sifter_;
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

// What the sifter did wrong first; empty if nothing.
template <class W>
std::string run_history(SifterTwin<W> twin, const std::vector<SifterStep>& history) {
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
        twin.renew(step.number, step.owner, until_ms);
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
  using ExactTwin = SifterTwin<ExactWindow>;
  const ExactWindow::Goal capped{.window_ms = 1000, .max_bytes = ExactWindow::kLeastCap};
  return run_history(ExactTwin(exact_sifter({.window_ms = 1000}, start_ms), false), history) +
         run_history(ExactTwin(exact_sifter(capped, start_ms), true), history) +
         run_history(SifterTwin<ForgetfulFilter>(forgetful_sifter(start_ms), false), history);
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
