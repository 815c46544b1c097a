// The twin of tests/oracle/window_twin.h for a window without an end: steps of time of any size
// change nothing, an accepted id is a duplicate for ever, and no age is too old.
#pragma once

#include "tests/oracle/window_twin.h"

namespace semel {

// A case as for WindowTwin. Asks until `wanted` ids that must be recognised were asked for.
template <class WindowCase>
void check_endless(int configuration, std::uint64_t seed, std::uint64_t wanted) {
  using Twin = WindowTwin<WindowCase>;
  using Call = typename Twin::Call;
  SCOPED_TRACE("configuration " + std::to_string(configuration) + ", seed " + std::to_string(seed));
  constexpr TimeMs kYear = 31'556'952'000;
  Random random(seed);
  Twin twin(configuration, -1'700'000'000'000, false);
  EXPECT_EQ(twin.window().promise().window_ms, std::numeric_limits<TimeMs>::max());
  std::uint64_t next = 0;
  std::vector<std::uint64_t> batch;
  while (twin.checked() < wanted && twin.complaint().empty()) {
    batch.clear();
    for (std::uint64_t left = random.below(200); left > 0; --left) {
      // Half of the ids are new. An id that a filter wrongly knew is never asked for again.
      const std::uint64_t known = next == 0 ? 0 : random.below(next);
      const bool again = random.below(2) == 0 && twin.accepted().contains(known);
      batch.push_back(again ? known : next++);
    }
    twin.call(random.below(2) == 0 ? Call::insert : Call::test_and_insert, batch);
    if (random.below(8) == 0) {
      twin.call(Call::test_and_insert, next++,
                twin.now() - static_cast<TimeMs>(random.below(kYear)));
      twin.call(Call::insert, next++, twin.now() + 1);
      const std::uint64_t known = random.below(next);
      if (twin.accepted().contains(known)) twin.call(Call::test, known);
    }
    if (random.below(4) == 0) {
      twin.advance(twin.now() + static_cast<TimeMs>(random.below(3 * kYear)) - kYear);
    }
  }
  twin.check_false_positives();
  EXPECT_EQ(twin.complaint(), "");
  EXPECT_EQ(twin.window().counts().stale, 0u);

  // A short history. Calls that must change nothing are checked.
  Twin strict(configuration, 0, true);
  for (int n = 0; n < 2000; ++n) {
    const auto call = static_cast<Call>(random.below(3));
    strict.call(call, random.below(150));
    if (random.below(8) == 0)
      strict.advance(strict.now() + static_cast<TimeMs>(random.below(kYear)));
  }
  EXPECT_EQ(strict.complaint(), "");

  auto window = WindowCase::make(configuration, std::numeric_limits<TimeMs>::max());
  EXPECT_EQ(window.insert(WindowCase::id(1), std::numeric_limits<TimeMs>::min()), Verdict::fresh);
  EXPECT_EQ(window.test(WindowCase::id(1)), Verdict::duplicate);
}

}  // namespace semel
