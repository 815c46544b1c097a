// Waiting for what another process or thread does in its own time.
#pragma once

#include <chrono>
#include <thread>

namespace semel {

// Polls until so() is true. Returns false after a time that is longer than the busiest machine
// needs.
template <class So>
bool eventually(So so) {
  constexpr std::chrono::minutes kLongest{10};
  constexpr std::chrono::milliseconds kBetweenLooks{5};
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace semel
