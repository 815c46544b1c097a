// LineProbe: the limit of the memory. It reads one or two random cache lines for a key and computes
// nothing. No structure of that size that touches as many lines can be faster.
//
// The table has the same pages as ours. Lines are prefetched kDistance keys ahead into the second
// level of the cache. It keeps more misses under way than the first: here it is a sixth faster.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "bench/harness.h"
#include "bench/keys.h"
#include "bench/sets.h"
#include "semel/bits/internal/line_array.h"
#include "semel/core/internal/arithmetic.h"

namespace semel::bench {

template <std::size_t kLines>
class LineProbe {
 public:
  explicit LineProbe(std::uint64_t bits) : lines_(divide_up(bits, 8 * kLineBytes)) {
    words_ = LineArray<std::uint64_t>(lines_ * kWords);
    std::fill(words_.begin(), words_.end(), 1);
  }

  void contains(std::span<const Digest> digests, std::span<bool> found) const {
    const std::size_t ahead = std::min(kDistance, digests.size());
    const std::size_t rest = digests.size() - ahead;
    for (std::size_t i = 0; i < ahead; ++i) touch(digests[i]);
    for (std::size_t i = 0; i < rest; ++i) {
      touch(digests[i + ahead]);
      found[i] = read(digests[i]);
    }
    for (std::size_t i = rest; i < digests.size(); ++i) found[i] = read(digests[i]);
  }

 private:
  static constexpr std::size_t kWords = kLineBytes / 8;
  static constexpr std::size_t kDistance = 48;

  const std::uint64_t* line(const Digest& digest, std::size_t i) const {
    return words_.data() + scale(i == 0 ? digest.lo : digest.hi, lines_) * kWords;
  }
  [[gnu::always_inline]] void touch(const Digest& digest) const {
    for (std::size_t i = 0; i < kLines; ++i) __builtin_prefetch(line(digest, i), 0, 2);
  }
  bool read(const Digest& digest) const {
    std::uint64_t all = 1;
    for (std::size_t i = 0; i < kLines; ++i) all &= *line(digest, i);
    return all != 0;
  }

  std::uint64_t lines_;
  LineArray<std::uint64_t> words_;
};

// `probe` must outlive the contender.
template <std::size_t kLines>
Contender limit_of_memory(const LineProbe<kLines>& probe) {
  return {"line-probe",
          [&probe](const Slice& slice) { return look_up_in_batches(probe, slice.digests); }};
}

}  // namespace semel::bench
