// Waiting for what another process or thread does in its own time.
#pragma once

#include <chrono>
#include <thread>

namespace semel {

// Looks again and again until it is so. False only after longer than any machine takes, however
// busy: then it never comes.
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
