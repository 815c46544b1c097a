// Shared by the programs about forgetful filters: ids, and the measurement of an error.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>

#include "bench/keys.h"
#include "semel/papers/forgetful_bloom_filter.h"
#include "semel/window/internal/forgetful_filter.h"

namespace semel::bench {

using papers::CheckRule;
using papers::ForgetfulBloomFilter;
using papers::LaneSchedule;
using papers::LaneShape;
using window_internal::ForgetfulFilter;

// Returns id `number` of a run. It is the same in every program, and another in every run.
inline Digest id_of(std::uint64_t run, std::uint64_t number) {
  return digest_of(key_of(run << 40 | number));
}

// Returns ids that no run has.
inline Digest absent_id(std::uint64_t number) {
  return digest_of(key_of(std::uint64_t{1} << 62 | number));
}

// Returns the share of `ids` absent ids that the check takes for known ones.
template <class Check>
double measure(std::uint64_t ids, Check check) {
  std::uint64_t hits = 0;
  for (std::uint64_t i = 0; i < ids; ++i) hits += check(absent_id(i)) ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(ids);
}

// Measures the same for a window, in batches.
template <class W>
double measure_window(const W& window, std::uint64_t ids) {
  constexpr std::uint64_t kBatch = 512;
  std::array<Digest, kBatch> batch;
  std::array<Verdict, kBatch> verdicts;
  std::uint64_t hits = 0;
  for (std::uint64_t first = 0; first < ids; first += kBatch) {
    const std::size_t n = std::min(kBatch, ids - first);
    for (std::size_t i = 0; i < n; ++i) batch[i] = absent_id(first + i);
    window.test(std::span<const Digest>(batch.data(), n), std::span(verdicts.data(), n));
    hits += static_cast<std::uint64_t>(
        std::count(verdicts.begin(), verdicts.begin() + n, Verdict::duplicate));
  }
  return static_cast<double>(hits) / static_cast<double>(ids);
}

// Returns the plain lanes with this total number of bits that have the least error with `ids` in a
// window.
inline LaneShape best_shape(CheckRule rule, std::uint32_t lanes, std::uint64_t bits, double ids) {
  const double lane_ids = ids / papers::periods_covered(rule, lanes);
  LaneShape best{BloomLayout::plain, lanes, 1, bits / lanes};
  for (LaneShape shape = best; shape.probes <= limits::kPlainProbes; ++shape.probes) {
    if (papers::full_rate(shape, rule, lane_ids) < papers::full_rate(best, rule, lane_ids)) {
      best = shape;
    }
  }
  return best;
}

// Returns a filter of this shape with a lane for each period, whatever the error becomes.
inline ForgetfulBloomFilter timed_filter(CheckRule rule, const LaneShape& shape, TimeMs window_ms) {
  const ForgetfulBloomFilter::Goal goal{.window_ms = window_ms,
                                        .fpr = 0.99,
                                        .past_lanes = shape.lanes - papers::spread_of(rule),
                                        .rule = rule};
  return *ForgetfulBloomFilter::make(goal, shape, 0);
}

}  // namespace semel::bench
