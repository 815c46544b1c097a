#include "semel/sync/internal/budget.h"

#include <algorithm>
#include <cmath>

#include "semel/sync/internal/set_sketch.h"

namespace semel::sync_internal::budget {
namespace {

// The number of records in one sketch of a partition. More would take fewer bytes, but more time to
// decode.
constexpr double kPerSketch = 48;
constexpr double kSketchFailures = 0.003;  // expected, in one partition
constexpr double kMostExpected = 1e10;     // estimates are untrusted

// Returns the least capacity that a Poisson variable exceeds with at most this probability.
std::uint32_t poisson_capacity(double mean, double probability) {
  double term = std::exp(-mean);
  double below = term;
  std::uint32_t capacity = 0;
  while (1 - below > probability && capacity < SetSketch::kMostCapacity) {
    ++capacity;
    term *= mean / capacity;
    below += term;
  }
  return std::max(capacity, 1U);
}

}  // namespace

std::size_t walk_slots(double expected) {
  const double records = std::clamp(expected, 1.0, kMostExpected);
  const double each = std::clamp(4 - 1.8 * std::log10(records / 200), 2.2, 4.0);
  return static_cast<std::size_t>(std::max(6.0, each * records));
}

std::uint64_t detail(double expected) {
  constexpr double kRecords = 600'000;  // reading them takes some tenths of a second
  return static_cast<std::uint64_t>(
      std::clamp(kRecords / std::clamp(expected, 1.0, kMostExpected), 1024.0, 16384.0));
}

std::uint32_t slot_capacity(std::uint64_t expected, std::uint64_t differing) {
  if (differing == 0) return 0;
  const double mean = std::max(1.0, static_cast<double>(expected) / static_cast<double>(differing));
  // Scattered differences follow the Poisson distribution. More than a few in a slot mean clusters,
  // which a border between slots may cut anywhere.
  const double spread = mean < 3 ? mean + 4 * std::sqrt(mean) : 3 * mean + 2;
  const double capacity = std::ceil(spread);
  return capacity > SetSketch::kMostCapacity ? 0 : static_cast<std::uint32_t>(capacity);
}

double mean_of_capacity(double capacity) { return (capacity - 2) / 3; }

Partition partition(double expected) {
  const double records = std::clamp(expected, 1.0, kMostExpected);
  const double partitions = std::ceil(records / kPerSketch);
  return {static_cast<std::uint32_t>(partitions),
          poisson_capacity(records / partitions, kSketchFailures / partitions)};
}

}  // namespace semel::sync_internal::budget
