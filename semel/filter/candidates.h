// Candidates: keys on their way through several filters, a batch at a time, until one knows them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "semel/hash/digest.h"

namespace semel {

struct Candidates {
  static constexpr std::size_t kChunk = 512;

  std::array<Digest, kChunk> keys;
  std::array<std::size_t, kChunk> place;  // where each came from
  std::array<bool, kChunk> answer;
  std::size_t size = 0;

  // Begins with the keys from `start` on, as many as there is room for.
  void take(std::span<const Digest> all, std::size_t start) {
    size = std::min(all.size() - start, kChunk);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(start), size, keys.begin());
    for (std::size_t i = 0; i < size; ++i) place[i] = start + i;
  }

  // Strikes out what the filter knows, and says so. Those that stay have no answer yet.
  template <class Filter>
  void strike_out(const Filter& filter, std::span<bool> out, bool known) {
    filter.contains({keys.data(), size}, {answer.data(), size});
    std::size_t kept = 0;
    while (kept < size && !answer[kept]) ++kept;
    for (std::size_t i = kept; i < size; ++i) {
      out[place[i]] = known;  // written again for those that stay
      keys[kept] = keys[i];
      place[kept] = place[i];
      kept += !answer[i];
    }
    size = kept;
  }

  void drop_front(std::size_t count) {
    std::copy(keys.begin() + static_cast<std::ptrdiff_t>(count),
              keys.begin() + static_cast<std::ptrdiff_t>(size), keys.begin());
    std::copy(place.begin() + static_cast<std::ptrdiff_t>(count),
              place.begin() + static_cast<std::ptrdiff_t>(size), place.begin());
    size -= count;
  }
};

}  // namespace semel
