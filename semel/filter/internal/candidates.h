// Candidates: a batch of keys on its way through several filters, until one of them knows each key.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "semel/hash/digest.h"

namespace semel::filter_internal {

struct Candidates {
  static constexpr std::size_t kChunk = 512;

  std::array<Digest, kChunk> keys;
  std::array<std::size_t, kChunk> place;  // index of each key in the input
  std::array<bool, kChunk> answer;
  std::size_t size = 0;

  // Begins with the keys from `start` on, as many as fit.
  void take(std::span<const Digest> all, std::size_t start) {
    size = std::min(all.size() - start, kChunk);
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(start), size, keys.begin());
    for (std::size_t i = 0; i < size; ++i) place[i] = start + i;
  }

  // Removes the keys that the filter knows, and writes `known` to `out` for them. The keys that
  // stay have no answer yet.
  template <class Filter>
  void strike_out(const Filter& filter, std::span<bool> out, bool known) {
    filter.contains({keys.data(), size}, {answer.data(), size});
    std::size_t kept = 0;
    while (kept < size && !answer[kept]) ++kept;
    for (std::size_t i = kept; i < size; ++i) {
      out[place[i]] = known;  // written again later for keys that stay
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

}  // namespace semel::filter_internal
