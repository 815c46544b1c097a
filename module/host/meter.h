// Meter: how much memory the server's allocator gives out, for MEMORY USAGE.
//
//   Meter meter;
//   std::unique_ptr<Value> value = make();
//   use(meter.bytes());
//
// Contract  bytes() is what this thread has allocated since the meter was made and not given back,
//           as the allocator rounds it. Memory that was allocated before and given back since then
//           counts against it. At most one meter lives at a time.
// Cost      While there is no meter, an allocation makes one more comparison.
// Threads   The thread that runs commands. Other threads may allocate meanwhile.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace semel::host {

class Meter {
 public:
  Meter() : thread_(pthread_self()) { running() = this; }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  ~Meter() { running() = nullptr; }

  std::uint64_t bytes() const { return bytes_ < 0 ? 0 : static_cast<std::uint64_t>(bytes_); }

  // The allocator calls this before it gives a block back, and after it allocated one. `size_of`
  // measures the block.
  template <class SizeOf>
  static void count(int sign, SizeOf size_of) {
    Meter* const meter = running().load(std::memory_order_relaxed);
    if (meter == nullptr || pthread_equal(meter->thread_, pthread_self()) == 0) return;
    meter->bytes_ += sign * static_cast<std::int64_t>(size_of());
  }

 private:
  static std::atomic<Meter*>& running() {
    static constinit std::atomic<Meter*> meter{nullptr};
    return meter;
  }

  const pthread_t thread_;
  std::int64_t bytes_ = 0;
};

}  // namespace semel::host
