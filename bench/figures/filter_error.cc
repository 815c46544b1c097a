// Figure: the promised error against the measured error, for every structure.
//
// Prints TSV. `expected` is the formula for the shape and the number of keys, `live` what the
// filter itself says once it is full, `measured` the share of absent keys that it took for present
// ones. The deviations are in standard deviations of the number of hits, which is binomial. Ends
// with status 1 if a measured rate is more than five of them away from `expected`.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "bench/sets.h"
#include "semel/filter/bloom_filter.h"
#include "semel/filter/cuckoo_filter.h"

namespace semel::bench {
namespace {

constexpr std::uint64_t kKeys = 1'000'000;
constexpr std::array<double, 5> kGoals = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5};
constexpr double kWantedHits = 10'000;  // for a standard deviation of one percent
constexpr double kMostLookups = 2e8;
constexpr double kMostDeviations = 5;

double deviations(double hits, double lookups, double rate) {
  return (hits - lookups * rate) / std::sqrt(lookups * rate * (1 - rate));
}

// Prints one row. Returns true if the formula holds.
template <class Filter, class Shape>
bool measure(const char* structure, double goal, const Shape& shape) {
  Hashed<Filter> set(shape);
  fill(kKeys, set);

  const double expected = shape.expected_fpr(kKeys);
  const auto lookups = static_cast<std::uint64_t>(std::min(kMostLookups, kWantedHits / expected));
  std::uint64_t hits = 0;
  std::array<Key, kBatch> keys;
  for (std::uint64_t done = 0; done < lookups; done += kBatch) {
    for (std::size_t i = 0; i < kBatch; ++i) keys[i] = key_of(kKeys + done + i);
    const std::size_t count = std::min<std::uint64_t>(kBatch, lookups - done);
    hits += look_up_in_batches(set, std::span<const Key>(keys).first(count));
  }

  const auto n = static_cast<double>(lookups);
  const auto yes = static_cast<double>(hits);
  const double live = set.live_fpr();
  const double deviation = deviations(yes, n, expected);
  std::printf("%s\t%.0e\t%.3f\t%.4e\t%.4e\t%.4e\t%.2f\t%.2f\t%.0f\t%.0f\n", structure, goal,
              bits_per_key(set, kKeys), expected, live, yes / n, deviation,
              deviations(yes, n, live), n, yes);
  std::fflush(stdout);
  return std::abs(deviation) <= kMostDeviations;
}

// Fingerprints come in steps of bits. For an error below that of 16 bits at full load the next step
// is 32 bits, whose rate of 2e-9 no number of lookups can measure. So these filters have 16 bits
// and more buckets than needed.
CuckooShape cuckoo_shape(double goal, std::uint32_t bucket_size) {
  CuckooShape shape = *CuckooShape::for_goal(
      {.keys = kKeys, .fpr = std::max(goal, 1e-3), .bucket_size = bucket_size});
  const double excess = shape.expected_fpr(kKeys) / goal;
  if (excess > 1) {
    shape.buckets = static_cast<std::uint64_t>(excess * static_cast<double>(shape.buckets)) + 1;
  }
  return shape;
}

int run() {
  std::printf(
      "structure\tgoal\tbits_per_key\texpected\tlive\tmeasured\tfrom_expected\tfrom_live\t"
      "lookups\thits\n");
  bool holds = true;

  struct Layout {
    const char* name;
    BloomLayout layout;
  };
  for (const Layout& l : {Layout{"bloom-plain", BloomLayout::plain},
                          {"bloom-blocked", BloomLayout::blocked},
                          {"bloom-blocked2", BloomLayout::blocked2},
                          {"bloom-blocked3", BloomLayout::blocked3}}) {
    for (const double goal : kGoals) {
      holds &= measure<BloomFilter>(
          l.name, goal, *BloomShape::for_goal({.keys = kKeys, .fpr = goal, .layout = l.layout}));
    }
    std::printf("\n\n");  // gnuplot begins another data set
  }

  for (const std::uint32_t bucket_size : {4u, 8u}) {
    for (const double goal : kGoals) {
      holds &= measure<CuckooFilter>(bucket_size == 4 ? "cuckoo-4" : "cuckoo-8", goal,
                                     cuckoo_shape(goal, bucket_size));
    }
  }
  if (!holds) std::fprintf(stderr, "filter_error: more than five standard deviations away\n");
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::run(); }
