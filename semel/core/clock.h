// Clock: the source of time. Structures and protocols never read a clock: their callers hand the
// time in. The command, the module and tables on disk (TallyStore, TallyDirectory) hold a Clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

#include "semel/core/api.h"
#include "semel/core/assert.h"

namespace semel {

// Milliseconds since the Unix epoch. The time may step backwards; code that needs order clamps it
// and counts how often.
using TimeMs = std::int64_t;

// Returns true if `time_ms` lies before the window that ends at `now_ms`. Times are untrusted, so
// their difference must not overflow.
constexpr bool older_than(TimeMs time_ms, TimeMs window_ms, TimeMs now_ms) {
  TimeMs edge_ms = 0;
  return !__builtin_sub_overflow(now_ms, window_ms, &edge_ms) && time_ms < edge_ms;
}

// Returns the difference, or the earliest time that there is. REQUIRES: by_ms >= 0.
constexpr TimeMs earlier_by(TimeMs time_ms, TimeMs by_ms) {
  TimeMs difference_ms = 0;
  return __builtin_sub_overflow(time_ms, by_ms, &difference_ms) ? std::numeric_limits<TimeMs>::min()
                                                                : difference_ms;
}

// Returns the sum, or the latest time that there is. REQUIRES: by_ms >= 0.
constexpr TimeMs later_by(TimeMs time_ms, TimeMs by_ms) {
  TimeMs sum_ms = 0;
  return __builtin_add_overflow(time_ms, by_ms, &sum_ms) ? std::numeric_limits<TimeMs>::max()
                                                         : sum_ms;
}

// A time that never runs backwards, and counts the steps back that it was asked for.
class WindowTime {
 public:
  explicit WindowTime(TimeMs now_ms) : now_ms_(now_ms) {}

  TimeMs now() const { return now_ms_; }
  std::uint64_t backward_steps() const { return backward_steps_; }

  // Returns true if time moved.
  bool advance(TimeMs now_ms) {
    if (now_ms < now_ms_) ++backward_steps_;
    if (now_ms <= now_ms_) return false;
    now_ms_ = now_ms;
    return true;
  }

  bool operator==(const WindowTime&) const = default;

 private:
  TimeMs now_ms_;
  std::uint64_t backward_steps_ = 0;
};

class SEMEL_API Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeMs now_ms() const = 0;
};

class SEMEL_API SystemClock final : public Clock {
 public:
  TimeMs now_ms() const override {
    using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::system_clock;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  }
};

// A clock that moves only when told to, for tests and simulations.
class SEMEL_API ManualClock final : public Clock {
 public:
  explicit ManualClock(TimeMs start_ms) : now_ms_(start_ms) {}
  TimeMs now_ms() const override { return now_ms_; }
  void set(TimeMs now_ms) { now_ms_ = now_ms; }
  void advance(TimeMs by_ms) { now_ms_ += by_ms; }

 private:
  TimeMs now_ms_;
};

}  // namespace semel
