#include "tests/support/allocation.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "semel/core/internal/zeroed.h"

namespace {

std::atomic<std::size_t> largest{0};
std::atomic<std::size_t> live{0};
std::atomic<std::size_t> peak{0};
constexpr std::ptrdiff_t kNever = -1;
std::atomic<std::ptrdiff_t> good_ones{kNever};  // before the one that fails

// Returns the bytes of a block, with the word that the allocator adds.
std::size_t bytes_of(void* memory) { return malloc_usable_size(memory) + sizeof(std::size_t); }

void raise(std::atomic<std::size_t>& most, std::size_t bytes) {
  std::size_t seen = most.load();
  while (bytes > seen && !most.compare_exchange_weak(seen, bytes)) {
  }
}

void* counted(std::size_t bytes, std::size_t alignment) {
  raise(largest, bytes);
  if (good_ones.load() != kNever && good_ones-- == 0) throw std::bad_alloc();
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  raise(peak, live += bytes_of(memory));
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) live -= bytes_of(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

// In libstdc++ the operators for arrays call the others. The sanitizers have operators of their own
// that do not, so these are replaced too.
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return operator new(bytes, alignment);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

namespace semel {

// These replace the functions of semel/core/internal/zeroed.cc, so that their memory is counted.
// zeroed_test tests the originals.
void* core_internal::allocate_zeroed(std::size_t bytes, std::size_t align) {
  return std::memset(counted(bytes, align), 0, bytes);
}
void core_internal::release_zeroed(void* memory, std::size_t /*bytes*/,
                                   std::size_t /*align*/) noexcept {
  release(memory);
}

LargestAllocation::LargestAllocation() { largest = 0; }
std::size_t LargestAllocation::bytes() const { return largest; }

LiveAllocation::LiveAllocation() : before_(live) {}
std::size_t LiveAllocation::bytes() const { return live - before_; }

PeakAllocation::PeakAllocation() : before_(live) { peak = before_; }
std::size_t PeakAllocation::bytes() const { return peak - before_; }

FailingAllocation::FailingAllocation(std::size_t good) {
  good_ones = static_cast<std::ptrdiff_t>(good);
}
FailingAllocation::~FailingAllocation() { good_ones = kNever; }

}  // namespace semel
