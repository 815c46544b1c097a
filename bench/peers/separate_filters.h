// SeparateFilters: a forgetful filter without interleaved lanes. It has one Bloom filter for each
// lane, and asks them one after the other until one says yes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/keys.h"
#include "bench/sets.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/filter/bloom_filter.h"

namespace semel::bench {

class SeparateFilters {
 public:
  // Makes filters for `keys` in all but the newest lane; `error` is that of all filters together.
  SeparateFilters(std::uint64_t keys, std::uint32_t lanes, double error, BloomLayout layout)
      : lane_keys_(divide_up(keys, lanes - 1)),
        filters_(lanes, BloomFilter(*BloomShape::for_goal(
                            {.keys = lane_keys_, .fpr = error / lanes, .layout = layout}))) {}

  void add(const Key& key) {
    filters_[added_ / lane_keys_ % filters_.size()].add(digest_of(key));
    ++added_;
  }

  bool contains(const Key& key) const { return contains(digest_of(key)); }
  bool contains(const Digest& digest) const {
    for (const BloomFilter& filter : filters_) {
      if (filter.contains(digest)) return true;
    }
    return false;
  }
  // Asks one filter after another, each with a batch of its own.
  void contains(std::span<const Key> keys, std::span<bool> found) const {
    std::array<Digest, kBatch> digests;
    std::transform(keys.begin(), keys.end(), digests.begin(), digest_of);
    contains(std::span<const Digest>(digests).first(keys.size()), found);
  }
  void contains(std::span<const Digest> digests, std::span<bool> found) const {
    std::array<bool, kBatch> here;
    std::fill(found.begin(), found.end(), false);
    for (const BloomFilter& filter : filters_) {
      filter.contains(digests, std::span(here).first(digests.size()));
      for (std::size_t i = 0; i < digests.size(); ++i) found[i] |= here[i];
    }
  }

  std::uint64_t bits() const { return filters_.size() * filters_[0].bytes() * 8; }

 private:
  std::uint64_t lane_keys_;
  std::vector<BloomFilter> filters_;
  std::uint64_t added_ = 0;
};

}  // namespace semel::bench
