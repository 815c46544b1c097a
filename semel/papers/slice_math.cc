#include "semel/papers/slice_math.h"

#include <algorithm>
#include <cmath>

#include "semel/core/assert.h"

namespace semel::papers::slice_math {
namespace {

using slices_internal::slice_math::choose;

double log_choose(std::uint64_t n, std::uint64_t i) {
  double sum = 0;
  for (std::uint64_t j = 1; j <= i; ++j) {
    sum += std::log(static_cast<double>(n - i + j) / static_cast<double>(j));
  }
  return sum;
}

// Returns the share of bits that is set after `writes` random writes to `bits` bits.
double set_share(double bits, double writes) { return -std::expm1(writes * std::log1p(-1 / bits)); }

constexpr double kMostWhole = 0x1p53;

Result<std::uint64_t> slices_for(std::uint64_t failed, double most_share) {
  const double slices = std::ceil(static_cast<double>(failed) / most_share);
  if (!(slices <= kMostWhole)) return Error{Errc::limit, "more than 2^53 slices"};
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(slices));
}

}  // namespace

double vertical_fpr(double bits, std::uint32_t functions, double ids) {
  return std::pow(set_share(bits, functions * ids), functions);
}

double horizontal_fpr(double bits, std::uint32_t functions, double ids, double slices) {
  return vertical_fpr(bits / slices, functions, ids / slices);
}

double uneven_horizontal_fpr(double bits, std::uint32_t functions, std::uint64_t ids,
                             std::uint64_t slices) {
  SEMEL_ASSERT(slices > 0);
  const auto all = static_cast<double>(ids), parts = static_cast<double>(slices);
  if (slices == 1) return vertical_fpr(bits, functions, all);
  // A slice has a binomial number of ids. More than twelve deviations above the mean have no
  // weight.
  const double mean = all / parts;
  const auto last = std::min(ids, static_cast<std::uint64_t>(mean + 12 * std::sqrt(mean) + 12));
  double sum = 0;
  double log_weight = all * std::log1p(-1 / parts);
  for (std::uint64_t i = 0; i <= last; ++i) {
    const auto inside = static_cast<double>(i);
    sum += std::exp(log_weight) * vertical_fpr(bits / parts, functions, inside);
    log_weight += std::log((all - inside) / ((inside + 1) * (parts - 1)));
  }
  return sum;
}

double false_negatives(double failed_share, std::uint32_t functions, std::uint32_t needed) {
  double sum = 0;
  for (std::uint32_t alive = 0; alive < std::min(needed, functions + 1); ++alive) {
    sum += choose(functions, alive) * std::pow(1 - failed_share, alive) *
           std::pow(failed_share, functions - alive);
  }
  return sum;
}

double h_v_false_positives(double rate, std::uint32_t groups, std::uint32_t parts,
                           std::uint32_t failed, std::uint32_t functions, std::uint32_t needed) {
  const std::uint64_t all = std::uint64_t{groups} * parts;
  SEMEL_ASSERT(failed <= all);
  const std::uint64_t others = all - parts;
  double sum = 0;
  for (std::uint32_t inside = 0; inside <= std::min(failed, parts); ++inside) {
    if (failed - inside > others) continue;
    const double weight = std::exp(log_choose(parts, inside) + log_choose(others, failed - inside) -
                                   log_choose(all, failed));
    const double share = static_cast<double>(inside) / parts;
    sum += weight * false_positives(probe_rates(rate, share), functions, needed);
  }
  return sum;
}

double heuristic_false_positives(const ProbeRates& rates, std::uint32_t functions,
                                 std::uint32_t needed) {
  return false_positives({.set = rates.set, .failed = 1 - rates.set}, functions, needed);
}

double printed_false_positives(const ProbeRates& rates, std::uint32_t needed) {
  return std::pow(rates.set, needed);
}

double printed_false_negatives(double failed_share, std::uint32_t functions, std::uint32_t needed) {
  double sum = 0;
  for (std::uint32_t alive = 0; alive < std::min(needed, functions + 1); ++alive) {
    sum += std::pow(failed_share, functions - alive) * std::pow(1 - failed_share, alive);
  }
  return sum;
}

Result<std::uint64_t> slices_for_false_positives(std::uint64_t failed, double rate,
                                                 std::uint32_t functions, double most) {
  if (!(rate >= 0 && rate < 1) || functions == 0) {
    return Error{Errc::invalid, "the rate of a slice is within [0, 1)"};
  }
  if (!(most < 1 && std::pow(rate, functions) < most)) {
    return Error{Errc::invalid, "the wanted rate is not above that without failures"};
  }
  // (q + (1 - q)s)^k <= most, solved for q.
  const double share = (std::pow(most, 1.0 / functions) - rate) / (1 - rate);
  return slices_for(failed, share);
}

Result<std::uint64_t> slices_for_false_negatives(std::uint64_t failed, std::uint32_t functions,
                                                 std::uint32_t needed, double most) {
  if (needed == 0 || needed > functions) return Error{Errc::invalid, "needed: 1 to all slices"};
  if (!(most > 0 && most < 1)) return Error{Errc::invalid, "a rate is within (0, 1)"};
  // The rate grows with q, from 0 to 1, so bisection finds q.
  double low = 0, high = 1;
  for (int i = 0; i < 1100 && std::nextafter(low, high) < high; ++i) {
    const double middle = (low + high) / 2;
    (false_negatives(middle, functions, needed) <= most ? low : high) = middle;
  }
  return slices_for(failed, low);
}

}  // namespace semel::papers::slice_math
