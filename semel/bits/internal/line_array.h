// Memory in whole cache lines: arrays that begin on a line, and huge pages where they pay.
//
// Random reads from a table of many megabytes: 92 M lines/s with huge pages, 63 M/s without.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "semel/bits/internal/huge_pages.h"
#include "semel/core/internal/zeroed.h"

namespace semel::inline bits_internal {

inline constexpr std::size_t kLineBytes = 64;

// Allocates zeroed memory for `size` elements that begins on a cache line, and releases it.
template <class T>
T* allocate_lines(std::size_t size) {
  if (size == 0) return nullptr;
  if (size > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
  const std::size_t bytes = size * sizeof(T);
  // The array is not aligned to a huge page. To align it, a host's allocator would take an extra
  // page and then round up the total. The huge pages inside are enough.
  void* const memory = allocate_zeroed(bytes, kLineBytes);
  if (bytes >= 2 * kHugePageBytes) advise_huge_pages(memory, bytes);
  return static_cast<T*>(memory);
}
template <class T>
void release_lines(T* memory, std::size_t size) noexcept {
  if (memory != nullptr) release_zeroed(memory, size * sizeof(T), kLineBytes);
}

// An array of fixed size that begins on a cache line. Its elements start as zero. A large array
// takes no time to create (core/internal/zeroed.h).
template <class T>
class LineArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kLineBytes);

 public:
  LineArray() = default;
  explicit LineArray(std::size_t size) : memory_(allocate_lines<T>(size)), size_(size) {}
  LineArray(const LineArray& other) : LineArray(other.size_) {
    std::copy(other.begin(), other.end(), begin());
  }
  LineArray(LineArray&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  LineArray& operator=(LineArray other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~LineArray() { release_lines(memory_, size_); }

  T* data() { return memory_; }
  const T* data() const { return memory_; }
  std::size_t size() const { return size_; }
  T* begin() { return memory_; }
  const T* begin() const { return memory_; }
  T* end() { return memory_ + size_; }
  const T* end() const { return memory_ + size_; }
  T& operator[](std::size_t i) { return memory_[i]; }
  const T& operator[](std::size_t i) const { return memory_[i]; }
  bool operator==(const LineArray& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  T* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace semel::inline bits_internal
