#include "semel/slices/internal/slice_math.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "semel/core/assert.h"

namespace semel::slices_internal::slice_math {

double choose(std::uint32_t n, std::uint32_t i) {
  double ways = 1;
  for (std::uint32_t j = 1; j <= i; ++j) ways = ways * (n - i + j) / j;
  return ways;
}

double false_positives(const ProbeRates& rates, std::uint32_t functions, std::uint32_t needed) {
  double sum = 0;
  for (std::uint32_t set = needed; set <= functions; ++set) {
    sum +=
        choose(functions, set) * std::pow(rates.set, set) * std::pow(rates.failed, functions - set);
  }
  return sum;
}

double v_h_false_positives(std::span<const std::optional<double>> rates, std::uint32_t parts,
                           std::uint32_t functions, std::uint32_t needed) {
  SEMEL_ASSERT(parts > 0 && rates.size() % parts == 0);
  const std::size_t size = functions + 1;
  // ways[u * size + y]: u functions are in the groups so far, in any order, and y of them say
  // 'known'.
  std::vector<double> ways(size * size), next;
  ways[0] = 1;
  for (std::size_t first = 0; first < rates.size(); first += parts) {
    next = ways;
    double in_order = 1;
    for (std::uint32_t here = 1; here <= functions; ++here) {
      in_order *= here;
      double set = 0, failed = 0;
      for (const std::optional<double>& rate : rates.subspan(first, parts)) {
        (rate ? set : failed) += rate ? std::pow(*rate, here) : 1;
      }
      const double scale = 1 / (in_order * parts);
      for (std::size_t u = here; u < size; ++u) {
        for (std::size_t y = 0; y < size; ++y) {
          const double before = ways[(u - here) * size + y];
          next[u * size + y] += before * failed * scale;
          if (y + here < size) next[u * size + y + here] += before * set * scale;
        }
      }
    }
    ways.swap(next);
  }
  double sum = 0;
  for (std::size_t y = needed; y < size; ++y) sum += ways[functions * size + y];
  const std::size_t groups = rates.size() / parts;
  for (std::uint32_t i = 1; i <= functions; ++i) sum *= i / static_cast<double>(groups);
  return sum;
}

}  // namespace semel::slices_internal::slice_math
