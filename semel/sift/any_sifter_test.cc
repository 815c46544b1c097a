// AnySifter: that what changes nothing leaves no trace, that copies which begin anywhere go on alike,
// and bytes. What a sifter answers is tested in sifter_test.cc.
#include "semel/sift/any_sifter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "semel/core/random.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kKeep = 300;
constexpr std::uint64_t kAnn = 1, kBen = 2;
constexpr auto kStructures = {SiftStructure::forgetful, SiftStructure::timers,
                              SiftStructure::exact};

SiftGoal goal_of(SiftStructure structure, std::uint64_t ids = 200) {
  return {.structure = structure,
          .window_ms = 1000,
          .fpr = structure == SiftStructure::exact ? 0 : 1e-9,
          .ids = ids,
          .hash = kTestHash,
          .keep_ms = kKeep};
}

AnySifter sifter_of(const SiftGoal& goal, TimeMs now_ms = kNow) {
  Result<AnySifter> sifter = AnySifter::make(goal, now_ms);
  EXPECT_TRUE(sifter) << sifter.error().what;
  return *std::move(sifter);
}

AnySifter with_content(AnySifter sifter) {
  EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100, kNow), Sighting::fresh);
  EXPECT_EQ(sifter.claim(key(2), kBen, kNow + 900, kNow), Sighting::fresh);
  EXPECT_EQ(sifter.claim(key(3), kBen, kNow + 900, kNow), Sighting::fresh);
  EXPECT_EQ(sifter.commit(key(3), kBen, kNow + 200), Commit::done);
  EXPECT_EQ(sifter.add(key(4), kNow + 200), Sighting::fresh);
  EXPECT_EQ(sifter.add(key(5), kNow + 200, kNow - 100), Sighting::fresh);
  return sifter;
}

template <SiftStructure kStructure>
struct SiftBytes {
  using Type = AnySifter;
  static constexpr std::size_t kHeaderSize = 56;
  static constexpr const char* kFile =
      kStructure == SiftStructure::forgetful ? "any_sifter_v1_forgetful.bin"
      : kStructure == SiftStructure::timers  ? "any_sifter_v1_doubling_timers.bin"
                                             : "any_sifter_v1_exact.bin";
  static Type make() {
    SiftGoal goal = goal_of(kStructure, 8);
    if (kStructure != SiftStructure::exact) goal.fpr = 0.1;
    goal.max_bytes = 64 << 10;
    return with_content(sifter_of(goal));
  }
};
using Forgetful = SiftBytes<SiftStructure::forgetful>;
using Timers = SiftBytes<SiftStructure::timers>;
using Exact = SiftBytes<SiftStructure::exact>;
using GoldenCases = ::testing::Types<Forgetful, Timers, Exact>;
INSTANTIATE_TYPED_TEST_SUITE_P(AnySifter, HostileBytes, Exact);
INSTANTIATE_TYPED_TEST_SUITE_P(AnySifter, Golden, GoldenCases);

// Timers in filters of equal size, as they were at first, are read and go on.
TEST(AnySifter, ReadsTimersInFiltersOfEqualSize) {
  std::ifstream file("tests/golden/data/any_sifter_v1_timers.bin", std::ios::binary);
  const Bytes golden((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Result<AnySifter> read = AnySifter::decode(golden);
  ASSERT_TRUE(read) << read.error().what;
  Bytes again;
  read->encode(again);
  EXPECT_EQ(again, golden);
  EXPECT_EQ(read->add(key(1'000'000), read->now() + 1), Sighting::fresh);
  EXPECT_EQ(read->add(key(1'000'000), read->now() + 1), Sighting::seen);
}

TEST(AnySifter, TakesAnIdOnceWhateverTheStructure) {
  for (const SiftStructure structure : kStructures) {
    AnySifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.test(key(1), kNow), Sighting::fresh);
    EXPECT_EQ(sifter.add(key(1), kNow + 1), Sighting::fresh);
    EXPECT_EQ(sifter.add(key(1), kNow + 2), Sighting::seen);
    EXPECT_EQ(sifter.test(key(1), kNow + 1001), Sighting::seen);
    EXPECT_EQ(sifter.test(key(1), kNow + 9000), Sighting::fresh);
    EXPECT_EQ(sifter.now(), kNow + 1);
    EXPECT_EQ(sifter.add(key(1), kNow + 9000), Sighting::fresh);
  }
}

TEST(AnySifter, ClaimsCommitsAndReleases) {
  for (const SiftStructure structure : kStructures) {
    AnySifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100, kNow), Sighting::fresh);
    EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 100, kNow + 50), Sighting::pending);
    EXPECT_EQ(sifter.add(key(1), kNow + 50), Sighting::pending);
    EXPECT_EQ(sifter.insert(key(1), kNow + 50), Sighting::pending);
    EXPECT_EQ(sifter.commit(key(1), kBen, kNow + 50), Commit::lost);
    EXPECT_FALSE(sifter.release(key(1), kBen, kNow + 50));
    EXPECT_EQ(sifter.now(), kNow);
    EXPECT_EQ(sifter.commit(key(1), kAnn, kNow + 60), Commit::done);
    EXPECT_EQ(sifter.commit(key(1), kAnn, kNow + 70), Commit::seen);
    EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 100, kNow + 70), Sighting::seen);
    EXPECT_EQ(sifter.claim(key(2), kBen, kNow + 100, kNow + 70), Sighting::fresh);
    EXPECT_TRUE(sifter.release(key(2), kBen, kNow + 80));
    EXPECT_EQ(sifter.claim(key(2), kAnn, kNow + 100, kNow + 90), Sighting::fresh);
    EXPECT_EQ(sifter.commit(key(2), kAnn, kNow + 101 + kKeep), Commit::lost);  // dropped by then
    EXPECT_EQ(sifter.now(), kNow + 90);
    EXPECT_EQ(sifter.add(key(2), kNow + 101 + kKeep), Sighting::fresh);
  }
}

TEST(AnySifter, RenewsWhatIsInserted) {
  for (const SiftStructure structure : kStructures) {
    AnySifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.insert(key(1), kNow), Sighting::fresh);
    EXPECT_EQ(sifter.insert(key(1), kNow + 900), Sighting::seen);
    EXPECT_EQ(sifter.test(key(1), kNow + 1900), Sighting::seen);
    EXPECT_EQ(sifter.insert(key(2), kNow + 900, kNow - 2000), Sighting::stale);
  }
}

TEST(AnySifter, EndsAnOverdueClaimOnWhatIsInserted) {
  for (const SiftStructure structure : kStructures) {
    AnySifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.claim(key(1), kAnn, kNow + 100, kNow), Sighting::fresh);
    EXPECT_EQ(sifter.insert(key(1), kNow + 100), Sighting::fresh);
    EXPECT_EQ(sifter.claims(), 0u);
    EXPECT_EQ(sifter.commit(key(1), kAnn, kNow + 100), Commit::seen);
  }
}

TEST(AnySifter, TakesATimeBeforeItsOwnForItsOwn) {
  for (const SiftStructure structure : kStructures) {
    AnySifter sifter = sifter_of(goal_of(structure));
    EXPECT_EQ(sifter.add(key(1), kNow - 5000), Sighting::fresh);
    EXPECT_EQ(sifter.now(), kNow);
    EXPECT_EQ(sifter.counts().backward_steps, 0u);
    EXPECT_EQ(sifter.test(key(1), kNow + 1000), Sighting::seen);
  }
}

TEST(AnySifter, LimitsClaimsToTheirPartOfTheMemory) {
  for (const SiftStructure structure : kStructures) {
    SiftGoal goal = goal_of(structure, 8);
    goal.max_bytes = 32 << 10;
    AnySifter sifter = sifter_of(goal);
    ASSERT_EQ(sifter.most_claims(), (32u << 10) / 8 / AnySifter::kClaimBytes);
    std::uint64_t n = 0;
    while (sifter.claim(key(n), kAnn, kNow + 100, kNow) == Sighting::fresh) ++n;
    EXPECT_EQ(n, sifter.most_claims());
    EXPECT_EQ(sifter.claim(key(n), kAnn, kNow + 100, kNow), Sighting::full);
    EXPECT_LE(sifter.bytes(), goal.max_bytes);
    // Those that are there can be held longer and taken over.
    EXPECT_EQ(sifter.claim(key(0), kAnn, kNow + 200, kNow), Sighting::fresh);
    EXPECT_EQ(sifter.claim(key(1), kBen, kNow + 200, kNow + 100), Sighting::fresh);
    EXPECT_TRUE(sifter.release(key(2), kAnn, kNow + 100));
    EXPECT_EQ(sifter.claim(key(n), kAnn, kNow + 100, kNow + 100), Sighting::fresh);
    EXPECT_TRUE(AnySifter::decode(encoded(sifter)));
  }
  EXPECT_EQ(sifter_of(goal_of(SiftStructure::exact)).most_claims(), kNoCap);
}

TEST(AnySifter, KeepsWithinItsBytes) {
  for (const SiftStructure structure : kStructures) {
    SiftGoal goal = goal_of(structure, 50);
    goal.max_bytes = 100'000;
    AnySifter sifter = sifter_of(goal);
    std::uint64_t n = 0;
    while (sifter.add(key(n), kNow) == Sighting::fresh) ++n;
    EXPECT_EQ(sifter.add(key(n), kNow), Sighting::full);
    EXPECT_GE(n, 50u);
    for (std::uint64_t m = n; m < n + sifter.most_claims(); ++m) {
      EXPECT_EQ(sifter.claim(key(m), kAnn, kNow + 100, kNow), Sighting::fresh);
    }
    EXPECT_LE(sifter.bytes(), goal.max_bytes);
    EXPECT_EQ(sifter.commit(key(n), kAnn, kNow), Commit::full);
  }
}

TEST(AnySifter, SaysHowManyItRemembers) {
  for (const SiftStructure structure : kStructures) {
    AnySifter sifter = sifter_of(goal_of(structure, 10'000));
    for (std::uint64_t n = 0; n < 5000; ++n) EXPECT_EQ(sifter.add(key(n), kNow), Sighting::fresh);
    for (std::uint64_t n = 0; n < 5000; ++n) (void)sifter.add(key(n), kNow + 1);
    for (std::uint64_t n = 5000; n < 8000; ++n) (void)sifter.add(key(n), kNow + 800);
    const double tolerance = structure == SiftStructure::timers ? 5 * std::sqrt(8000.0) : 0;
    EXPECT_NEAR(static_cast<double>(sifter.cardinality(kNow + 800)), 8000, tolerance);
    EXPECT_NEAR(static_cast<double>(sifter.cardinality(kNow + 1700)), 3000, tolerance);
    EXPECT_EQ(sifter.cardinality(kNow + 9000), 0u);
    EXPECT_EQ(sifter.now(), kNow + 800);
  }
}

TEST(AnySifter, RefusesAnImpossibleGoal) {
  const auto refusal = [](auto change) {
    SiftGoal goal = goal_of(SiftStructure::forgetful);
    change(goal);
    const Result<AnySifter> sifter = AnySifter::make(goal, kNow);
    return sifter ? Errc::full : sifter.error().code;
  };
  EXPECT_EQ(refusal([](SiftGoal&) {}), Errc::full);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.window_ms = 0; }), Errc::invalid);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.fpr = 0; }), Errc::invalid);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.fpr = 1; }), Errc::invalid);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.fpr = std::nan(""); }), Errc::invalid);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.ids = 0; }), Errc::invalid);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.keep_ms = -1; }), Errc::invalid);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.max_bytes = 500; }), Errc::limit);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.structure = SiftStructure::exact; }), Errc::invalid);
  EXPECT_EQ(refusal([](SiftGoal& g) { g.ids = ~std::uint64_t{0}; }), Errc::limit);
}

TEST(AnySifter, RefusesPartsThatDoNotGoTogether) {
  constexpr std::size_t kWindow = 8, kError = 16, kIds = 24, kCap = 32, kSeed = 40, kKept = 48;
  for (const SiftStructure structure : kStructures) {
    const Bytes sound = encoded(with_content(sifter_of(goal_of(structure))));
    const auto refusal = [&](std::size_t at, std::uint64_t field) {
      Bytes bytes = sound;
      store_u64(bytes.data() + at, field);
      const std::size_t body = bytes.size() - 8;
      store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
      const Result<AnySifter> read = AnySifter::decode(bytes);
      return read ? std::string() : std::string(read.error().what);
    };
    EXPECT_EQ(refusal(kWindow, 1000), "");
    EXPECT_EQ(refusal(kWindow, 1001), "sift: two goals");
    EXPECT_EQ(refusal(kCap, 1 << 20), "sift: two goals");
    EXPECT_EQ(refusal(kSeed, kTestSeed + 1), "sift: two goals");
    EXPECT_EQ(refusal(kKept, kKeep + 1), "sift: two goals");
    if (structure != SiftStructure::timers) {
      EXPECT_EQ(refusal(kIds, 201), "sift: two goals");
    }
    if (structure == SiftStructure::exact) {
      EXPECT_EQ(refusal(kError, std::uint64_t{1} << 63), "sift: goal");
    } else {
      EXPECT_EQ(refusal(kError, 0x3fe0000000000000), "sift: two goals");
    }
  }
}

// A primary takes all calls; a replica those that changed something. Both, and every copy that begins
// with the bytes of some moment, are to hold the same bytes.
class Replicated {
 public:
  explicit Replicated(AnySifter sifter) : primary_(std::move(sifter)), replica_(primary_) {}

  const std::string& complaint() const { return complaint_; }
  TimeMs now() const { return now_ms_; }
  void pass(TimeMs by_ms) { now_ms_ += by_ms; }

  void add(std::uint64_t number, TimeMs at_ms) {
    apply([&](AnySifter& s) { return s.add(key(number), now_ms_, at_ms); },
          [](Sighting s) { return changes(s); });
  }
  void add_many(std::uint64_t first, std::uint64_t count) {
    const std::vector<Digest> ids = keys(first, first + count);
    std::vector<Sighting> sightings(count);
    bool changed = false;
    apply(
        [&](AnySifter& s) {
          changed = s.add(ids, now_ms_, sightings);
          return sightings;
        },
        [&](const auto&) { return changed; });
  }
  void insert(std::uint64_t number, TimeMs at_ms) {
    apply([&](AnySifter& s) { return s.insert(key(number), now_ms_, at_ms); },
          [](Sighting s) { return s != Sighting::pending; });
  }
  void claim(std::uint64_t number, std::uint64_t owner, TimeMs until_ms) {
    apply([&](AnySifter& s) { return s.claim(key(number), owner, until_ms, now_ms_); },
          [](Sighting s) { return changes(s); });
  }
  void commit(std::uint64_t number, std::uint64_t owner) {
    apply([&](AnySifter& s) { return s.commit(key(number), owner, now_ms_); },
          [](Commit c) { return changes(c); });
  }
  void release(std::uint64_t number, std::uint64_t owner) {
    apply([&](AnySifter& s) { return s.release(key(number), owner, now_ms_); },
          [](bool released) { return released; });
  }

  // Reads, at a time that may be later than any write.
  void read(std::uint64_t number, TimeMs now_ms) {
    const Bytes before = encoded(primary_);
    const Sighting sighting = primary_.test(key(number), now_ms);
    demand(sighting == replica_.test(key(number), now_ms), "another answer to a read");
    demand(primary_.cardinality(now_ms) == replica_.cardinality(now_ms), "another cardinality");
    demand(encoded(primary_) == before, "a read left a trace");
    AnySifter later = primary_;
    const Sighting added = later.add(key(number), now_ms);
    demand(sighting == Sighting::fresh ? changes(added) : added == sighting,
           "not what the test foretold");
  }

  // The replica begins anew, with the bytes of its primary.
  void resync() {
    Result<AnySifter> copy = AnySifter::decode(encoded(primary_));
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
  void demand(bool holds, const char* what) {
    if (!holds && complaint_.empty()) complaint_ = what;
  }

  AnySifter primary_, replica_;
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

std::string run_history(const SiftGoal& goal, TimeMs start_ms, const std::vector<Step>& history) {
  Replicated pair(sifter_of(goal, start_ms));
  for (const Step& step : history) {
    const TimeMs until_ms = pair.now() + 20 * (step.amount - 3);
    const TimeMs at_ms = pair.now() - 60 * (step.amount - 3);
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
        pair.add(step.number, AnySifter::kAtCall);
        break;
      case 5:
        pair.add(step.number, at_ms);
        break;
      case 6:
        pair.add_many(1000 * step.number, 2 * static_cast<std::uint64_t>(step.amount));
        break;
      case 7:
        pair.insert(step.number, step.amount < 12 ? AnySifter::kAtCall : at_ms);
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
      default:
        pair.claim(step.number, step.owner, until_ms);
        break;
    }
    pair.compare();
    if (!pair.complaint().empty()) return pair.complaint();
  }
  return "";
}

// Without a cap, and with one that is soon reached.
std::string run_everywhere(TimeMs start_ms, const std::vector<Step>& history) {
  std::string complaints;
  for (const SiftStructure structure : kStructures) {
    const SiftGoal goal = goal_of(structure, 4);
    complaints += run_history(goal, start_ms, history);
    for (const WhenFull when_full : {WhenFull::refuse, WhenFull::forget}) {
      SiftGoal capped = goal;
      capped.max_bytes = structure == SiftStructure::timers ? 12'000 : 8'192;
      capped.when_full = when_full;
      complaints += run_history(capped, start_ms, history);
    }
  }
  return complaints;
}

TEST(AnySifter, IsTheSameInEveryCopyThroughAnyHistory) {
  EXPECT_TRUE(rc::check([] {
    const TimeMs start_ms =
        *rc::gen::element<TimeMs>(0, -3, kNow, std::numeric_limits<TimeMs>::min() + 100'000,
                                  std::numeric_limits<TimeMs>::max() / 2);
    const auto history = *rc::gen::container<std::vector<Step>>(
        rc::gen::construct<Step>(rc::gen::inRange(0, 15), rc::gen::inRange<std::uint64_t>(0, 8),
                                 rc::gen::inRange<std::uint64_t>(0, 3), rc::gen::inRange(0, 24)));
    RC_ASSERT(run_everywhere(start_ms, history) == "");
  }));
}

TEST(AnySifter, IsTheSameInEveryCopyThroughLongHistories) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    std::vector<Step> history(600);
    for (Step& step : history) {
      step = {static_cast<int>(random.below(15)), random.below(8), random.below(3),
              static_cast<int>(random.below(24))};
    }
    ASSERT_EQ(run_everywhere(kNow, history), "") << "seed " << seed;
  }
}

// Lanes of a table this large are cleared in many pieces: how far that has come is not encoded.
TEST(AnySifter, IsTheSameInACopyMadeWhileALaneIsCleared) {
  SiftGoal goal = goal_of(SiftStructure::forgetful, 1'000'000);
  goal.fpr = 1e-3;
  AnySifter sifter = sifter_of(goal);
  ASSERT_GT(sifter.bytes(), 2u << 20);
  std::uint64_t n = 0;
  TimeMs now_ms = kNow;
  const auto pass = [&](AnySifter& to) { EXPECT_EQ(to.add(key(n), now_ms), Sighting::fresh); };
  for (; n < 40; ++n, now_ms += 60) pass(sifter);
  Result<AnySifter> copy = AnySifter::decode(encoded(sifter));
  ASSERT_TRUE(copy);
  for (; n < 80; ++n, now_ms += 60) {
    pass(sifter);
    pass(*copy);
  }
  EXPECT_EQ(encoded(sifter), encoded(*copy));
}

}  // namespace
}  // namespace semel
