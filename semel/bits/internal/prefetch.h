// Prefetching: loads cache lines before they are needed.
#pragma once

#include <cstddef>

namespace semel::inline bits_internal {

// prefetch() starts to load the line at `address` into the second-level cache. That cache keeps
// more misses in flight than the first: 9.9 ns a line against 11.9 ns, from a table of 128 MB.
// prefetch_for_write() loads a line that will be written soon.
//
// Both are always inlined. g++ 12 treats a call to a function that only prefetches as a call
// without effect, and drops it.
[[gnu::always_inline]] inline void prefetch(const void* address) {
  __builtin_prefetch(address, 0, 2);
}
[[gnu::always_inline]] inline void prefetch_for_write(const void* address) {
  __builtin_prefetch(address, 1);
}

// Calls visit(i) for i in [0, n) in order. Calls touch(i) kAhead steps earlier, to prefetch what
// visit(i) will need. The lines have then arrived and have not been evicted again. 32 to 64 steps
// were the best of 8 to 256, measured in tables of 100 MB to 1 GB.
inline constexpr std::size_t kAhead = 48;

template <class Touch, class Visit>
[[gnu::always_inline]] inline void for_each_ahead(std::size_t n, Touch touch, Visit visit) {
  const std::size_t ahead = n < kAhead ? n : kAhead;
  for (std::size_t i = 0; i < ahead; ++i) touch(i);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ahead < n) touch(i + ahead);
    visit(i);
  }
}

}  // namespace semel::inline bits_internal
