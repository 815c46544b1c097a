// Turnstile: lets the holders of the numbers 0, 1, 2, ... through one after another, whatever
// thread each is on. A thread whose wait() ends sees all that the thread before it did before
// pass().
#pragma once

#include <atomic>
#include <cstdint>

namespace semel::cli {

// Polls for some 20 microseconds before it gives up. Waits are short here, and sleeping and waking
// would take longer.
template <class Done>
bool spin_until(Done done) {
  constexpr int kSpins = 500;
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return false;
}

class Turnstile {
 public:
  void wait(std::uint64_t number) const {
    if (spin_until([&] { return turn_.load(std::memory_order_acquire) == number; })) return;
    for (std::uint64_t turn = turn_.load(std::memory_order_acquire); turn != number;
         turn = turn_.load(std::memory_order_acquire)) {
      turn_.wait(turn, std::memory_order_acquire);
    }
  }
  // REQUIRES: wait() was for the number whose turn it is.
  void pass() {
    turn_.fetch_add(1, std::memory_order_release);
    turn_.notify_all();
  }

 private:
  std::atomic<std::uint64_t> turn_ = 0;
};

}  // namespace semel::cli
