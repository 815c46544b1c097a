// Clock: the source of time. Structures and protocols never read a clock: their callers hand the
// time in. The command, the module and directories on disk (TallyDirectory) hold a Clock.
#pragma once

#include <chrono>
#include <cstdint>

#include "semel/core/assert.h"

namespace semel {

// Milliseconds since the Unix epoch. The time may step backwards; code that needs order clamps it
// and counts how often.
using TimeMs = std::int64_t;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeMs now_ms() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimeMs now_ms() const override {
    using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::system_clock;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  }
};

// A clock that moves only when told to, for tests and simulations.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimeMs start_ms) : now_ms_(start_ms) {}
  TimeMs now_ms() const override { return now_ms_; }
  void set(TimeMs now_ms) { now_ms_ = now_ms; }
  void advance(TimeMs by_ms) { now_ms_ += by_ms; }

 private:
  TimeMs now_ms_;
};

}  // namespace semel
