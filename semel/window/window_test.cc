#include "semel/window/window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "tests/laws/merge_laws.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

using Structure = Window::Structure;

constexpr TimeMs kNow = 1'000'000;
constexpr TimeMs kWindowMs = 1000;

Window::Goal goal_of(Structure structure, TimeMs window_ms) {
  return {.structure = structure,
          .window_ms = window_ms,
          .fpr = structure == Structure::exact ? 0 : 0.01,
          .ids = 200,
          .hash = kTestHash};
}

std::vector<Window::Goal> all_goals() {
  return {goal_of(Structure::forgetful, kWindowMs), goal_of(Structure::timers, kWindowMs),
          goal_of(Structure::exact, kWindowMs), goal_of(Structure::forgetful, kForever),
          goal_of(Structure::exact, kForever)};
}

// Decodes the bytes with another field of the goal, and a checksum that fits.
std::string refusal(Bytes bytes, std::size_t at, std::uint64_t field) {
  store_u64(bytes.data() + at, field);
  const std::size_t body = bytes.size() - 8;
  store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
  const Result<Window> read = Window::decode(bytes);
  return read ? "" : read.error().message();
}

TEST(Window, RefusesAGoalThatIsNotThatOfItsStructure) {
  constexpr std::size_t kSeed = 16, kWindow = 24, kError = 32, kIds = 40, kCap = 48;
  constexpr const char* kOtherGoal = "window: a structure of another goal";
  for (const Window::Goal& goal : all_goals()) {
    SCOPED_TRACE(static_cast<int>(goal.structure));
    Window window = *Window::make(goal, kNow);
    EXPECT_EQ(window.insert(key(1)), Verdict::fresh);
    const Bytes bytes = encoded(window);
    EXPECT_EQ(refusal(bytes, kWindow, static_cast<std::uint64_t>(goal.window_ms)), "");
    EXPECT_EQ(refusal(bytes, kSeed, kTestSeed + 1), kOtherGoal);
    EXPECT_EQ(refusal(bytes, kWindow, 0), "window: goal");
    EXPECT_EQ(refusal(bytes, kIds, 0), "window: goal");
    if (goal.structure == Structure::exact) {
      EXPECT_EQ(refusal(bytes, kError, std::bit_cast<std::uint64_t>(-0.0)), "window: goal");
    } else {
      EXPECT_EQ(refusal(bytes, kError, std::bit_cast<std::uint64_t>(0.5)), kOtherGoal);
    }
    if (goal.window_ms == kForever) {
      EXPECT_EQ(refusal(bytes, kCap, 1 << 20), "window: goal");
      // An endless set has no number of ids to compare.
      EXPECT_EQ(refusal(bytes, kIds, 201), goal.structure == Structure::exact ? "" : kOtherGoal);
    } else {
      EXPECT_EQ(refusal(bytes, kWindow, kWindowMs + 1), kOtherGoal);
      EXPECT_EQ(refusal(bytes, kCap, 1 << 20), kOtherGoal);
      // Filters of timers have the same shape for another number of ids.
      EXPECT_EQ(refusal(bytes, kIds, 201), goal.structure == Structure::timers ? "" : kOtherGoal);
    }
  }
}

TEST(Window, RefusesAGoalThatContradictsItself) {
  const auto code = [](const Window::Goal& goal) { return Window::make(goal, kNow).error().code; };
  for (const Window::Goal& sound : all_goals()) {
    Window::Goal goal = sound;
    goal.window_ms = 0;
    EXPECT_EQ(code(goal), Errc::invalid);
    goal = sound;
    goal.ids = 0;
    EXPECT_EQ(code(goal), Errc::invalid);
    goal = sound;
    goal.fpr = goal.structure == Structure::exact ? 0.01 : 0;
    EXPECT_EQ(code(goal), Errc::invalid);
    goal = sound;
    goal.punctual = true;  // only an exact window with an end can be
    EXPECT_EQ(Window::make(goal, kNow).has_value(),
              goal.structure == Structure::exact && goal.window_ms != kForever);
  }
  Window::Goal goal = goal_of(Structure::timers, kForever);
  EXPECT_EQ(code(goal), Errc::invalid);
  goal = goal_of(Structure::exact, kForever);
  goal.max_bytes = 1 << 20;
  EXPECT_EQ(code(goal), Errc::invalid);
  goal.max_bytes = kNoCap;
  goal.on_full = OnFull::forget;
  EXPECT_EQ(code(goal), Errc::invalid);
}

// Ids that come now go through the batch calls of the structure, others one by one.
TEST(Window, JudgesManyIdsWithTimesAsOneAfterTheOther) {
  for (const Window::Goal& goal : all_goals()) {
    Window many = *Window::make(goal, kNow), one = many;
    Random random(1);
    for (TimeMs now_ms = kNow; now_ms < kNow + 5 * kWindowMs; now_ms += kWindowMs / 4) {
      many.advance(now_ms);
      one.advance(now_ms);
      std::vector<Digest> ids;
      std::vector<TimeMs> at_ms;
      for (int i = 0; i < 100; ++i) {
        ids.push_back(key(random.below(300)));
        const bool late = random.below(3) == 0;
        at_ms.push_back(now_ms - (late ? static_cast<TimeMs>(random.below(2 * kWindowMs)) : 0));
      }
      std::vector<Verdict> verdicts(ids.size());
      const bool renews = random.below(2) == 0;
      renews ? many.insert(ids, at_ms, verdicts) : many.test_and_insert(ids, at_ms, verdicts);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(verdicts[i],
                  renews ? one.insert(ids[i], at_ms[i]) : one.test_and_insert(ids[i], at_ms[i]));
      }
      ASSERT_EQ(many, one);
    }
  }
}

Window::Goal punctual_goal() {
  Window::Goal goal = goal_of(Structure::exact, kWindowMs);
  goal.punctual = true;
  return goal;
}

std::vector<Window::Goal> mergeable_goals() {
  std::vector<Window::Goal> goals = all_goals();
  std::erase_if(goals, [](const Window::Goal& goal) {
    return goal.structure == Structure::forgetful && goal.window_ms == kForever;
  });
  goals.push_back(punctual_goal());
  return goals;
}

// Expects that a merge is refused and changes neither window.
void expect_refused(Window& into, const Window& from, Errc why) {
  const Bytes before = encoded(into), other = encoded(from);
  const Result<void> merged = into.merge(from);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, why) << merged.error().message();
  EXPECT_EQ(encoded(into), before);
  EXPECT_EQ(encoded(from), other);
}

TEST(Window, MergesOnlyWithTheSameGoal) {
  using Change = void (*)(Window::Goal&);
  const Change changes[] = {
      [](Window::Goal& goal) { goal.window_ms += goal.window_ms == kForever ? -1 : 1; },
      [](Window::Goal& goal) { goal.fpr += goal.structure == Structure::exact ? 0 : 0.001; },
      [](Window::Goal& goal) { goal.ids += 1; },
      [](Window::Goal& goal) { goal.hash.seed += 1; },
      [](Window::Goal& goal) { goal.punctual = true; },
      [](Window::Goal& goal) {
        const bool exact = goal.structure == Structure::exact;
        goal.structure = exact ? Structure::forgetful : Structure::exact;
        goal.fpr = exact ? 0.01 : 0;
      },
  };
  for (const Window::Goal& goal : all_goals()) {
    Window window = *Window::make(goal, kNow);
    window.insert(key(1));
    for (const Change& change : changes) {
      Window::Goal other = goal;
      change(other);
      const Result<Window> from = Window::make(other, kNow + 1);
      if (other == goal || !from) continue;  // there is no such goal
      expect_refused(window, *from, Errc::mismatch);
    }
  }
}

// How much memory a site gives is its own affair.
TEST(Window, MergesAcrossCapsAndKeepsItsOwn) {
  for (const Window::Goal& goal : mergeable_goals()) {
    if (goal.window_ms == kForever) continue;  // it has no cap
    Window::Goal other_goal = goal;
    other_goal.max_bytes = 1 << 20;
    other_goal.on_full = OnFull::forget;
    Window one = *Window::make(goal, kNow), other = *Window::make(other_goal, kNow);
    one.insert(key(1));
    other.insert(key(2));
    const Window before = one;
    ASSERT_TRUE(one.merge(other));
    ASSERT_TRUE(other.merge(before));
    EXPECT_EQ(one.goal(), goal);
    EXPECT_EQ(other.goal(), other_goal);
    for (const Window* window : {&one, &other}) {
      EXPECT_EQ(window->test(key(1)), Verdict::duplicate);
      EXPECT_EQ(window->test(key(2)), Verdict::duplicate);
      const Result<Window> read = Window::decode(encoded(*window));
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(*read, *window);
    }
  }
}

TEST(Window, AMergeBeyondTheCapChangesNothing) {
  Window::Goal goal = goal_of(Structure::exact, kWindowMs);
  goal.max_bytes = 16'000;
  Window one = *Window::make(goal, kNow), other = one;
  for (std::uint64_t n = 0; n < 400; ++n) {
    ASSERT_EQ(one.insert(key(n)), Verdict::fresh);
    ASSERT_EQ(other.insert(key(1000 + n)), Verdict::fresh);
  }
  other.advance(kNow + 1);  // a merge that fails leaves the time, too
  expect_refused(one, other, Errc::full);
  expect_refused(other, one, Errc::full);
  one.set_max_bytes(100'000);
  ASSERT_TRUE(one.merge(other));
  EXPECT_EQ(one.ids(), 800U);
}

TEST(Window, IsReadFromItsBytesAfterItsCapWasLowered) {
  for (const Window::Goal& goal : mergeable_goals()) {
    if (goal.window_ms == kForever) continue;  // it has no cap
    for (const std::uint64_t cap : {std::uint64_t{0}, std::uint64_t{5000}}) {
      Window window = *Window::make(goal, kNow);
      for (std::uint64_t n = 0; n < 1000; ++n) ASSERT_NE(window.insert(key(n)), Verdict::full);
      ASSERT_GT(window.bytes(), 5000U);
      window.set_max_bytes(cap);
      Result<Window> read = Window::decode(encoded(window));
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(*read, window);
      EXPECT_EQ(read->goal(), window.goal());
      EXPECT_GE(window.goal().max_bytes, cap);
      for (std::uint64_t n = 0; n < 1000; ++n) ASSERT_EQ(read->test(key(n)), Verdict::duplicate);
      std::uint64_t refused = 0;
      for (std::uint64_t n = 1000; n < 3000; ++n) refused += read->insert(key(n)) == Verdict::full;
      EXPECT_GT(refused, 1000U);
      read->set_max_bytes(kNoCap);
      EXPECT_EQ(read->goal(), goal);
      EXPECT_NE(read->insert(key(3000)), Verdict::full);
    }
  }
}

// Returns windows of this goal whose lanes agree.
std::vector<Window> sites_in_step(const Window::Goal& goal, std::size_t sites) {
  std::vector<Window> windows(sites, *Window::make(goal, kNow - 4 * goal.window_ms));
  for (Window& window : windows) {
    for (TimeMs now_ms = window.now(); now_ms <= kNow; now_ms += 50) window.advance(now_ms);
  }
  return windows;
}

// Gives each site `ids` ids of its own, and merges all into the first.
Window merged_after(const Window::Goal& goal, std::size_t sites, std::uint64_t ids,
                    TimeMs lasting_ms) {
  std::vector<Window> windows = sites_in_step(goal, sites);
  for (std::size_t s = 0; s < sites; ++s) {
    for (std::uint64_t n = 0; n < ids; ++n) {
      windows[s].advance(kNow + lasting_ms * static_cast<TimeMs>(n) / static_cast<TimeMs>(ids));
      windows[s].insert(key(100'000 * s + n));
    }
    windows[s].advance(kNow + lasting_ms);
    if (s == 0) continue;
    const Result<void> merged = windows[0].merge(windows[s]);
    EXPECT_TRUE(merged) << merged.error().message();
  }
  return windows[0];
}

// A merge fills lanes and cells beyond what inserts would fill. No cap is reached by that.
TEST(Window, AMergeOfFullFiltersLeavesRoomForNewIds) {
  for (const Structure structure : {Structure::forgetful, Structure::timers}) {
    for (const OnFull on_full : {OnFull::refuse, OnFull::forget}) {
      for (const std::uint64_t max_bytes : {std::uint64_t{1} << 20, kNoCap}) {
        Window::Goal goal = goal_of(structure, kWindowMs);
        goal.fpr = 1e-6;
        goal.on_full = on_full;
        goal.max_bytes = max_bytes;
        Window merged = merged_after(goal, 3, goal.ids, 0);
        for (std::uint64_t n = 0; n < 1000; ++n) {
          ASSERT_NE(merged.test_and_insert(key(1'000'000 + n)), Verdict::full) << n;
        }
        EXPECT_EQ(merged.counts(), WindowCounts{});
        EXPECT_EQ(merged.promise().kept_from_ms, kNow - kWindowMs);
        for (std::uint64_t s = 0; s < 3; ++s) {
          for (std::uint64_t n = 0; n < goal.ids; ++n) {
            ASSERT_EQ(merged.test(key(100'000 * s + n)), Verdict::duplicate);
          }
        }
        EXPECT_LE(merged.bytes(), max_bytes);
      }
    }
  }
}

TEST(Window, AMergeOfFullFiltersKeepsToItsCap) {
  for (const Structure structure : {Structure::forgetful, Structure::timers}) {
    for (const OnFull on_full : {OnFull::refuse, OnFull::forget}) {
      Window::Goal goal = goal_of(structure, kWindowMs);
      goal.fpr = 1e-6;
      goal.on_full = on_full;
      goal.max_bytes = Window::make(goal, kNow)->bytes();
      // So many ids that one site has room for them. With a cap a lane cannot end early.
      const std::uint64_t ids = structure == Structure::forgetful ? goal.ids / 8 : goal.ids;
      Window merged = merged_after(goal, 3, ids, 0);
      EXPECT_EQ(merged.counts(), WindowCounts{});
      for (std::uint64_t n = 0; n < 5000; ++n) {
        const bool taken = merged.test_and_insert(key(1'000'000 + n)) != Verdict::full;
        ASSERT_EQ(merged.test(key(1'000'000 + n)) == Verdict::duplicate, taken);
      }
      EXPECT_EQ(merged.counts().refused > 0, on_full == OnFull::refuse);
      EXPECT_EQ(merged.counts().forgotten_early > 0, on_full == OnFull::forget);
      EXPECT_EQ(merged.promise().kept_from_ms > kNow - kWindowMs, on_full == OnFull::forget);
      EXPECT_LE(merged.bytes(), goal.max_bytes);
    }
  }
}

// Returns how often the window takes an id for a duplicate that nobody gave to it.
double measured_rate(const Window& window, std::uint64_t ids) {
  double found = 0;
  for (std::uint64_t n = 0; n < ids; ++n) {
    found += window.test(key(10'000'000 + n)) == Verdict::duplicate;
  }
  return found / static_cast<double>(ids);
}

// The numbers are those of window.h and docs/replicas.md.
TEST(Window, AMergedFilterErrsAsItSays) {
  constexpr std::uint64_t kAsked = 200'000;
  for (const Structure structure : {Structure::forgetful, Structure::timers}) {
    for (const double fpr : {1e-3, 1e-6}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(structure)) + " " + std::to_string(fpr));
      Window::Goal goal = goal_of(structure, kWindowMs);
      goal.fpr = fpr;
      goal.ids = 7000;
      EXPECT_LE(merged_after(goal, 2, goal.ids / 2, kWindowMs).false_positive_rate(), fpr);
      EXPECT_LE(merged_after(goal, 2, goal.ids / 14, 0).false_positive_rate(), fpr);
      const Window half = merged_after(goal, 2, goal.ids / 2, 0);
      EXPECT_EQ(half.false_positive_rate() <= fpr, structure == Structure::timers);
      EXPECT_LE(half.false_positive_rate(), fpr == 1e-3 ? 0.03 : 0.001);

      Window merged = merged_after(goal, 2, goal.ids, 0);
      const double rate = merged.false_positive_rate();
      EXPECT_LE(rate, fpr == 1e-3 ? 0.05 : 0.003);
      EXPECT_GE(rate, fpr == 1e-3 ? 0.01 : 0.0002);
      const double deviation = std::sqrt(rate * (1 - rate) / kAsked);
      EXPECT_NEAR(measured_rate(merged, kAsked), rate, 5 * deviation + rate / 10);
      // The ids that follow add no more than the goal.
      for (std::uint64_t n = 0; n < 20'000; ++n) merged.insert(key(1'000'000 + n));
      EXPECT_LE(merged.false_positive_rate(), rate + fpr);
      for (TimeMs now_ms = kNow; now_ms <= kNow + 3 * kWindowMs; now_ms += 50) {
        merged.advance(now_ms);
      }
      EXPECT_LE(merged.false_positive_rate(), fpr);
    }
  }
}

// A lane of the first site is full before its time, and the second has no such lane.
TEST(Window, ABurstKeepsForgetfulOnesFromMerging) {
  Window::Goal goal = goal_of(Structure::forgetful, kWindowMs);
  goal.ids = 7000;
  for (const std::uint64_t burst : {1000, 1500}) {
    std::vector<Window> sites = sites_in_step(goal, 2);
    for (std::uint64_t n = 0; n < burst; ++n) sites[0].insert(key(n));
    if (burst == 1000) {
      EXPECT_TRUE(sites[0].merge(sites[1]));
    } else {
      expect_refused(sites[0], sites[1], Errc::mismatch);
    }
  }
}

TEST(Window, AFilterWithoutAnEndDoesNotMerge) {
  Window one = *Window::make(goal_of(Structure::forgetful, kForever), kNow), other = one;
  one.insert(key(1));
  other.insert(key(2));
  expect_refused(one, other, Errc::unsupported);
  // Whether it can is known before: an empty one does not merge either.
  expect_refused(one, *Window::make(one.goal(), kNow), Errc::unsupported);
}

TEST(Window, TheOneThatLagsCatchesUpWithTheOther) {
  for (const Window::Goal& goal : mergeable_goals()) {
    Window early = *Window::make(goal, kNow);
    early.insert(key(1), kNow);
    Window late = early;
    late.advance(kNow + 700);
    late.insert(key(2));
    for (const bool forward : {true, false}) {
      Window both = forward ? early : late;
      ASSERT_TRUE(both.merge(forward ? late : early));
      EXPECT_EQ(both.now(), kNow + 700);
      EXPECT_EQ(both.counts().backward_steps, 0U);
      EXPECT_EQ(both.test(key(1)), Verdict::duplicate);
      EXPECT_EQ(both.test(key(2)), Verdict::duplicate);
      both.advance(kNow + 2 * kWindowMs + 1);
      const bool forever = goal.window_ms == kForever;
      EXPECT_EQ(both.test(key(1)), forever ? Verdict::duplicate : Verdict::fresh);
    }
    EXPECT_EQ(early.now(), kNow);
  }
}

// The lanes of a forgetful window begin at multiples of a period. One that began earlier has more
// of them, until the oldest are forgotten.
TEST(Window, ForgetfulOnesMergeOnceBothAreOlderThanTwoWindows) {
  for (TimeMs apart_ms = 0; apart_ms < 2 * kWindowMs; apart_ms += 50) {
    Window first = *Window::make(goal_of(Structure::forgetful, kWindowMs), kNow);
    const TimeMs begin_ms = kNow + apart_ms;
    Window second = *Window::make(first.goal(), begin_ms);
    for (TimeMs now_ms = kNow; now_ms <= begin_ms + 2 * kWindowMs; now_ms += 10) {
      first.advance(now_ms);
      second.advance(now_ms);
      if (now_ms < begin_ms) continue;
      first.insert(key(static_cast<std::uint64_t>(now_ms)));
      if (now_ms == begin_ms && apart_ms > kWindowMs / 2) {
        expect_refused(first, second, Errc::mismatch);
      }
    }
    second.insert(key(1));
    const Result<void> merged = first.merge(second);
    ASSERT_TRUE(merged) << apart_ms << ": " << merged.error().message();
    EXPECT_EQ(first.test(key(1)), Verdict::duplicate);
  }
}

TEST(Window, MergesWithItself) {
  for (const Window::Goal& goal : mergeable_goals()) {
    Window window = *Window::make(goal, kNow);
    for (std::uint64_t n = 0; n < 100; ++n) window.insert(key(n), kNow - static_cast<TimeMs>(n));
    const Window before = window;
    const Window& same = window;
    ASSERT_TRUE(window.merge(same));
    EXPECT_EQ(window, before);
  }
}

// Sites with clocks that differ take ids on their own, and merge now and then in either direction.
// An id that one of them accepted is recognised by each window that the id has reached by merges.
TEST(Window, RecognisesWhatAnySiteAcceptedWithinTheWindow) {
  constexpr int kSites = 3;
  for (Window::Goal goal : mergeable_goals()) {
    SCOPED_TRACE(static_cast<int>(goal.structure));
    goal.ids = 2000;  // enough for all sites together
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      std::vector<Window> sites;
      std::vector<std::map<std::uint64_t, TimeMs>> known(kSites);  // the latest times of ids
      for (int s = 0; s < kSites; ++s) {
        sites.push_back(*Window::make(goal, kNow + static_cast<TimeMs>(random.below(50))));
      }
      for (int step = 0; step < 400; ++step) {
        const std::size_t at = random.below(kSites);
        Window& site = sites[at];
        site.advance(site.now() + static_cast<TimeMs>(random.below(20)));
        const std::uint64_t n = random.below(1'000'000);
        if (site.test_and_insert(key(n)) == Verdict::fresh) known[at][n] = site.now();
        if (random.below(8) != 0) continue;
        const std::size_t from = random.below(kSites);
        const Result<void> merged = site.merge(sites[from]);
        ASSERT_TRUE(merged) << merged.error().message();
        for (const auto& [id, at_ms] : known[from]) {
          TimeMs& latest = known[at].try_emplace(id, at_ms).first->second;
          latest = std::max(latest, at_ms);
        }
        EXPECT_LE(site.promise().kept_from_ms, site.now() - std::min(goal.window_ms, site.now()));
        for (const auto& [id, at_ms] : known[at]) {
          const bool inside = goal.window_ms == kForever || site.now() - at_ms <= goal.window_ms;
          if (inside) {
            ASSERT_EQ(site.test(key(id)), Verdict::duplicate);
          }
        }
      }
    }
  }
}

// Sites that are overrun differ in lanes, filters or memory. A merge gives the union or changes
// nothing.
TEST(Window, AMergeOfOverrunWindowsIsTheUnionOrChangesNothing) {
  int merged = 0, refused = 0;
  for (Window::Goal goal : mergeable_goals()) {
    goal.ids = 20;
    if (goal.window_ms != kForever) goal.max_bytes = 20'000;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Random random(seed);
      for (const OnFull on_full : {OnFull::refuse, OnFull::forget}) {
        if (goal.window_ms != kForever) goal.on_full = on_full;
        Window one = *Window::make(goal, kNow), other = one;
        for (int step = 0; step < 300; ++step) {
          Window& site = random.below(2) == 0 ? one : other;
          site.advance(site.now() + static_cast<TimeMs>(random.below(5)));
          for (std::uint64_t i = random.below(8); i > 0; --i)
            site.insert(key(random.below(10'000)));
          if (random.below(20) != 0) continue;
          const Window before = one;
          const Result<void> result = one.merge(other);
          if (!result) {
            ++refused;
            ASSERT_EQ(one, before);
            ASSERT_EQ(one.now(), before.now());
            continue;
          }
          ++merged;
          const TimeMs now_ms = one.now();
          for (std::uint64_t n = 0; n < 10'000; ++n) {
            const bool known = before.test(key(n), now_ms) == Verdict::duplicate ||
                               other.test(key(n), now_ms) == Verdict::duplicate;
            if (known) {
              ASSERT_EQ(one.test(key(n)), Verdict::duplicate);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(merged, 100);
  EXPECT_GT(refused, 100);
}

// A merge takes about as long as the inserts of the ids, whatever the sizes of the two. If ids came
// in their order to a table that is too small for them, it would take a hundred times as long.
TEST(Window, MergesExactWindowsOfManyIds) {
  using Clock = std::chrono::steady_clock;
  for (const TimeMs window_ms : {kWindowMs, kForever}) {
    constexpr std::uint64_t kMany = 200'000;
    Window one = *Window::make(goal_of(Structure::exact, window_ms), kNow), other = one;
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t n = 0; n < kMany; ++n) one.insert(key(n));
    for (std::uint64_t n = kMany / 2; n < 3 * kMany; ++n) other.insert(key(n));
    Window empty = *Window::make(one.goal(), kNow);
    const Clock::time_point inserted = Clock::now();
    ASSERT_TRUE(one.merge(other));
    EXPECT_EQ(one.ids(), 3 * kMany);
    ASSERT_TRUE(empty.merge(one));
    EXPECT_EQ(empty, one);
    const std::uint64_t bytes = one.bytes();
    ASSERT_TRUE(one.merge(other));  // nothing is new
    EXPECT_EQ(one.bytes(), bytes);
    EXPECT_LT(Clock::now() - inserted, 10 * (inserted - begin));
  }
}

template <Structure kStructure, TimeMs kFor, bool kPunctual>
struct LawsCase {
  using Type = Window;
  // The windows were made at different times and have different times now.
  static Type make(int replica) {
    Window::Goal goal = goal_of(kStructure, kFor);
    goal.ids = 2000;  // no lane is full before its time
    goal.punctual = kPunctual;
    const TimeMs begin_ms = kNow - 3 * kWindowMs + 10 * replica;
    Window window = *Window::make(goal, begin_ms);
    for (TimeMs now_ms = begin_ms; now_ms < kNow + 30 * replica; now_ms += 7) {
      window.advance(now_ms);
      if (now_ms % 5 >= replica) window.test_and_insert(key(id(replica, now_ms)));
      window.insert(key(static_cast<std::uint64_t>(now_ms % 3)));  // all of them have these
    }
    EXPECT_EQ(window.insert(key(id(replica, 1))), Verdict::fresh);
    return window;
  }
  static bool holds(const Type& window, int replica) {
    return window.test(key(id(replica, 1))) == Verdict::duplicate;
  }
  static std::uint64_t id(int replica, TimeMs now_ms) {
    return static_cast<std::uint64_t>(now_ms) + 10'000'000 * static_cast<unsigned>(replica + 1);
  }
};
using Laws = ::testing::Types<
    LawsCase<Structure::forgetful, kWindowMs, false>, LawsCase<Structure::timers, kWindowMs, false>,
    LawsCase<Structure::exact, kWindowMs, false>, LawsCase<Structure::exact, kWindowMs, true>,
    LawsCase<Structure::exact, kForever, false>>;

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Window, MergeLaws, Laws);

}  // namespace semel
