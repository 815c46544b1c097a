// 'Nye's Trie and Floret Estimators', figure 14: the standard deviation by the number of counters.
//
// Prints TSV. First data set (14): 131,072 differing records, half of them on either side, and
// kTrials keys where the paper has 50: the standard deviation of the estimated total in percent of
// it, what the theory says, and the mean of the estimate over the truth, without and with the
// paper's factor n / (n - 1). Second: 1 KB as 1024 counters of 8 bits, as 512 of 16, and as 2048 of
// 4, by the number of differences: mean over truth, and standard deviation in percent. Fails if a
// standard deviation of 8 bits is not within five of its own from the theory.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/index/floret.h"

namespace semel::bench {
namespace {

constexpr int kTrials = 1000;

// Counters of `bits`, with differences that fall anywhere. This has the effect of hashing without
// its time. Half of the differences are on either side.
std::vector<std::int32_t> differences(std::uint64_t total, std::uint32_t counters, int bits,
                                      Random& random) {
  std::vector<std::int32_t> result(counters);
  for (std::uint64_t i = 0; i < total; ++i) {
    result[random.below(counters)] += i % 2 == 0 ? 1 : -1;
  }
  const std::int32_t range = 1 << bits;
  for (std::int32_t& difference : result) {
    difference = ((difference + range / 2) % range + range) % range - range / 2;
  }
  return result;
}

// The mean is 0, as the counts are known, or 1 for an odd total.
double estimated_total(const std::vector<std::int32_t>& differences, std::uint64_t total) {
  const auto counters = static_cast<double>(differences.size());
  const double mean = static_cast<double>(total % 2) / counters;
  double squares = 0;
  for (const std::int32_t difference : differences) {
    squares += (difference - mean) * (difference - mean);
  }
  return counters * squares / (counters - 1);
}

struct Accuracy {
  double mean;  // over the truth
  double deviation;
};

Accuracy measured(std::uint64_t total, std::uint32_t counters, int bits) {
  Random random(counters + total);
  double sum = 0, squares = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto all = differences(total, counters, bits, random);
    double ratio = estimated_total(all, total) / static_cast<double>(total);
    if (bits == 8) {  // by the library
      Bytes bytes(counters);
      std::copy(all.begin(), all.end(), bytes.begin());
      const std::uint64_t shared = 1'000'000'000;
      ratio = estimate(*Floret::of_bytes(bytes), shared + total % 2, Floret(counters), shared)
                  .total.value /
              static_cast<double>(total);
    }
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / kTrials;
  return {mean, std::sqrt(std::max(0.0, squares / kTrials - mean * mean))};
}

double theory(double total, double counters) {
  return std::sqrt(2 * (1 - 1 / total) / (counters - 1));
}

bool agrees(const Accuracy& accuracy, double expected) {
  return std::abs(accuracy.deviation - expected) <= 5 * expected / std::sqrt(2.0 * kTrials);
}

bool print_by_counters() {
  constexpr std::uint64_t kTotal = 131'072;
  bool kept = true;
  std::printf("counters\tdeviation\ttheory\tmean\tmean_by_paper\n");
  for (std::uint32_t counters = 16; counters <= 8192; counters *= 2) {
    // With few counters there are more differences than 8 bits can hold.
    const bool fits = kTotal / counters <= 1500;
    const Accuracy accuracy = measured(kTotal, counters, fits ? 8 : 24);
    const double expected = theory(kTotal, counters);
    kept = kept && agrees(accuracy, expected);
    std::printf("%u\t%.2f\t%.2f\t%.4f\t%.4f\n", counters, 100 * accuracy.deviation, 100 * expected,
                accuracy.mean, accuracy.mean * counters / (counters - 1));
    std::fflush(stdout);
  }
  return kept;
}

bool print_by_bits() {
  bool kept = true;
  std::printf("differences\tmean_8\tdeviation_8\tmean_16\tdeviation_16\tmean_4\tdeviation_4\n");
  for (std::uint64_t total = 1; total <= 1'000'000; total *= 10) {
    std::printf("%llu", static_cast<unsigned long long>(total));
    for (const int bits : {8, 16, 4}) {
      const auto counters = static_cast<std::uint32_t>(8192 / bits);
      const Accuracy accuracy = measured(total, counters, bits);
      const double expected = theory(static_cast<double>(total), counters);
      if (bits == 8 && total > 1) kept = kept && agrees(accuracy, expected);
      std::printf("\t%.4f\t%.2f", accuracy.mean, 100 * accuracy.deviation);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return kept;
}

bool print_all() {
  bool kept = print_by_counters();
  std::printf("\n\n");
  kept = print_by_bits() && kept;
  std::printf(
      "# paper: about 6 %% at 512 counters, 'a sketch size of about 1.5KB'\n"
      "# why: sqrt(2 / 512) is 6.25 %%. Counters of 8 bits take 512 bytes for it; 1.5 KB give 3.6 "
      "%%.\n");
  return kept;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all() ? 0 : 1; }
