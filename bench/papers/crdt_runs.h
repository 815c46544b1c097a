// Shared by the programs about 'Conflict-free replicated filters': the filters as the paper
// configures them, and sites that share a workload and merge now and then.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bench/keys.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/crdt/grow_bloom.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series.h"
#include "semel/papers/shared_series.h"

namespace semel::bench {

inline constexpr std::uint64_t kWorkload = 1 << 20;  // operations of the thesis
inline constexpr double kThesisFpr = 0.03125;        // of all its filters, by the formulas
inline constexpr std::uint64_t kNever = std::uint64_t{1} << 62;  // merged at the end only

// Returns key `number` of a run. It is another key in every run.
inline Digest added_key(std::uint64_t run, std::uint64_t number) {
  return digest_of(key_of(run << 40 | number));
}
// Returns keys that are never added.
inline Digest absent_key(std::uint64_t run, std::uint64_t number) {
  return digest_of(key_of(std::uint64_t{1} << 62 | run << 40 | number));
}

// Five hash functions at their best for the workload.
inline BloomShape gbf5() {
  const double bits = 5 * static_cast<double>(kWorkload) / std::log(2.0);
  return {BloomLayout::plain, 5, divide_up(static_cast<std::uint64_t>(bits), 64) * 64, {}};
}
// Buckets of four fingerprints of 8 bits, as many as there are operations.
inline CuckooShape gcf4() { return {4, 8, 0, kWorkload / 4, {}}; }
inline CuckooShape orcf4() { return {4, 8, Dot::kBits, kWorkload / 4, {}}; }
// The thesis' scalable filters: one chain, the first link for a quarter of the workload, no growth.
inline papers::SharedGoal scalable(double fpr) {
  return {.fpr = fpr, .first_keys = kWorkload / 4, .growth = 1, .hash = {}};
}

// Adds keys to a filter or a series of any kind. Returns how many were added before the first for
// which there was no room. The changes join `delta` if there is one.
template <class Type>
std::size_t add_some(Type& filter, std::span<const Digest> keys, SiteId site,
                     typename Type::Delta* delta) {
  constexpr std::size_t kMost = 512;
  SEMEL_ASSERT(keys.size() <= kMost);
  std::array<bool, kMost> added;
  const std::span<bool> answers = std::span(added).first(keys.size());
  constexpr bool kIsSeries = requires { filter.goal(); };
  if constexpr (kIsSeries && Type::kRemoves) {
    std::array<LinkDot, kMost> dots;
    return filter.add(keys, SiteLife{site, 1}, std::span(dots).first(keys.size()), delta);
  } else if constexpr (kIsSeries) {
    return filter.add(keys, site, answers, delta);
  } else if constexpr (Type::kRemoves) {
    return filter.add(keys, SiteLife{site, 1}, delta);
  } else {
    return filter.add(keys, answers, delta);
  }
}

// How the operations are distributed: one in `of` goes to each site but the first, or all sites
// take turns.
struct Split {
  const char* name;
  std::uint32_t sites;
  std::uint32_t of;  // 1: all local; 2: 50-50; 5: 80-20; 100: 99-1

  std::uint32_t site_of(std::uint64_t operation) const {
    if (sites == 1) return 0;
    if (of == sites) return static_cast<std::uint32_t>(operation % sites);
    if (operation % of != of - 1) return 0;
    return static_cast<std::uint32_t>(1 + operation / of % (sites - 1));
  }
};

// Sites that add a workload and merge at intervals, and once at the end. Frequent merges use
// deltas, which give the same result as states. A site whose filter is full adds no more, as in the
// thesis.
template <class Type>
class SharedWorkload {
  using Delta = typename Type::Delta;

 public:
  // `empty_delta` has the shape of `empty`.
  SharedWorkload(const Type& empty, const Delta& empty_delta, const Split& split,
                 std::uint64_t merge_every)
      : split_(split), by_deltas_(merge_every < kWorkload / 8), empty_(empty_delta) {
    for (std::uint32_t i = 0; i < split.sites; ++i)
      sites_.push_back({empty, empty_delta, {}, false});
    merge_every_ = merge_every;
  }

  void work(std::uint64_t run) {
    for (std::uint64_t first = 0; first < kWorkload; first += merge_every_) {
      const std::uint64_t last = std::min(kWorkload, first + std::min(merge_every_, kWorkload));
      for (std::uint64_t operation = first; operation < last; ++operation) {
        const std::uint32_t site = split_.site_of(operation);
        std::vector<Digest>& waiting = sites_[site].waiting;
        waiting.push_back(added_key(run, operation));
        if (waiting.size() == kBatch) flush(site);
      }
      for (std::uint32_t site = 0; site < sites_.size(); ++site) flush(site);
      merge(last == kWorkload);
    }
  }

  const Type& filter() const { return sites_.front().filter; }  // all are equal at the end
  std::uint64_t added() const { return added_; }                // operations that found room

 private:
  static constexpr std::size_t kBatch = 256;

  struct Site {
    Type filter;
    Delta delta;  // since the last merge
    std::vector<Digest> waiting;
    bool full;
  };

  void flush(std::uint32_t number) {
    Site& site = sites_[number];
    if (!site.full) {
      const std::size_t done = add_some(site.filter, site.waiting, static_cast<SiteId>(number),
                                        by_deltas_ ? &site.delta : nullptr);
      added_ += done;
      site.full = done < site.waiting.size();
    }
    site.waiting.clear();
  }

  // Everybody gets everything; at the end only the first site needs it.
  void merge(bool end) {
    for (std::uint32_t to = 0; to < (end ? 1 : sites_.size()); ++to) {
      for (std::uint32_t from = 0; from < sites_.size(); ++from) {
        if (from == to) continue;
        const Result<bool> merged = by_deltas_ ? sites_[to].filter.merge(sites_[from].delta)
                                               : sites_[to].filter.merge(sites_[from].filter);
        SEMEL_ASSERT(merged.has_value());
      }
    }
    for (Site& site : sites_) site.delta = empty_;
  }

  const Split split_;
  const bool by_deltas_;
  std::uint64_t merge_every_;
  const Delta empty_;
  std::vector<Site> sites_;
  std::uint64_t added_ = 0;
};

// Returns the share of `keys` absent keys that the filter claims to hold.
template <class Type>
double measured_fpr(const Type& filter, std::uint64_t run, std::uint64_t keys = kWorkload) {
  constexpr std::uint64_t kBatch = 512;
  std::array<Digest, kBatch> batch;
  std::array<bool, kBatch> found;
  std::uint64_t hits = 0;
  for (std::uint64_t first = 0; first < keys; first += kBatch) {
    const std::size_t n = std::min(kBatch, keys - first);
    for (std::size_t i = 0; i < n; ++i) batch[i] = absent_key(run, first + i);
    filter.contains(std::span<const Digest>(batch.data(), n), std::span(found).first(n));
    hits += static_cast<std::uint64_t>(std::count(found.begin(), found.begin() + n, true));
  }
  return static_cast<double>(hits) / static_cast<double>(keys);
}

}  // namespace semel::bench
