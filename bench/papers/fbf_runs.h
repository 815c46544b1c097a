// What the programs about forgetful filters have in common: ids, and how an error is measured.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>

#include "bench/keys.h"
#include "semel/window/forgetful_filter.h"

namespace semel::bench {

// Id `number` of a run: the same in every program, and another in every run.
inline Digest id_of(std::uint64_t run, std::uint64_t number) {
  return digest_of(key_of(run << 40 | number));
}

// Ids that no run has.
inline Digest absent_id(std::uint64_t number) {
  return digest_of(key_of(std::uint64_t{1} << 62 | number));
}

// The share of `ids` absent ids that the check takes for known ones.
template <class Check>
double measure(std::uint64_t ids, Check check) {
  std::uint64_t hits = 0;
  for (std::uint64_t i = 0; i < ids; ++i) hits += check(absent_id(i)) ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(ids);
}

// The same of a window, in batches.
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

// The plain lanes with so many bits in all that have the least error with `ids` in a window.
inline LaneShape best_shape(LaneRule rule, std::uint32_t lanes, std::uint64_t bits, double ids) {
  const double lane_ids = ids / periods_covered(rule, lanes);
  LaneShape best{BloomLayout::plain, lanes, 1, bits / lanes};
  for (LaneShape shape = best; shape.probes <= limits::kPlainProbes; ++shape.probes) {
    if (forgetful_math::full_rate(shape, rule, lane_ids) <
        forgetful_math::full_rate(best, rule, lane_ids)) {
      best = shape;
    }
  }
  return best;
}

// A filter of this shape with a lane for each period, whatever the error becomes.
inline ForgetfulFilter timed_filter(LaneRule rule, const LaneShape& shape, TimeMs window_ms) {
  ForgetfulFilter::Goal goal{.window_ms = window_ms, .fpr = 0.99};
  goal.past_lanes = shape.lanes - spread_of(rule);
  goal.rule = rule;
  goal.layout = shape.layout;
  goal.schedule = LaneSchedule::time;
  return *ForgetfulFilter::make(goal, shape, 0);
}

}  // namespace semel::bench
