#include "semel/bits/internal/bit_array.h"

#include <bit>

#include "semel/bits/internal/prefetch.h"

namespace semel::inline bits_internal {

BitArray::BitArray(std::uint64_t bits) : words_(bits / 64) {
  SEMEL_ASSERT(bits > 0 && bits % 64 == 0);
}

std::uint64_t count_ones(std::span<const std::uint64_t> words) {
  std::uint64_t ones = 0;
  for (const std::uint64_t word : words) ones += static_cast<unsigned>(std::popcount(word));
  return ones;
}

// Prefetches one page ahead, because the processor's own prefetching stops at the end of a page.
// Prefetches into the first-level cache, because a stream uses its lines soon. Together they make
// this a sixth faster.
bool unite(std::span<std::uint64_t> here, std::span<const std::uint64_t> there) {
  SEMEL_ASSERT(here.size() == there.size());
  constexpr std::size_t kLineWords = kLineBytes / 8, kAheadWords = 4096 / 8;
  std::uint64_t* const to = here.data();
  const std::uint64_t* const from = there.data();
  std::uint64_t fresh = 0;
  const auto unite_words = [&](std::size_t start, std::size_t end) {
    for (std::size_t i = start; i < end; ++i) {
      fresh |= from[i] & ~to[i];
      to[i] |= from[i];
    }
  };
  std::size_t at = 0;
  for (; at + kAheadWords < here.size(); at += kLineWords) {
    __builtin_prefetch(from + at + kAheadWords);
    prefetch_for_write(to + at + kAheadWords);
    unite_words(at, at + kLineWords);
  }
  unite_words(at, here.size());
  return fresh != 0;
}

}  // namespace semel::inline bits_internal
