#include "semel/window/window.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
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

}  // namespace
}  // namespace semel
