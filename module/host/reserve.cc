#include "module/host/reserve.h"

#include <atomic>
#include <new>

namespace semel::host {
namespace {

// A server that saves in a thread of its own may spend it there.
constinit std::atomic<void*> reserve{nullptr};

}  // namespace

bool keep_reserve() {
  static_assert(kReserve > limits::kSmallBlock);  // or it would be spent on itself
  if (reserve.load(std::memory_order_relaxed) != nullptr) return true;
  void* const block = ::operator new(kReserve, std::nothrow);
  reserve.store(block, std::memory_order_release);
  return block != nullptr;
}

bool spend_reserve() {
  void* const block = reserve.exchange(nullptr, std::memory_order_acq_rel);
  if (block == nullptr) return false;
  ::operator delete(block);
  return true;
}

}  // namespace semel::host
