#include "semel/sync/internal/probe.h"

#include <algorithm>
#include <cmath>

namespace semel::sync_internal::probe {

double Sample::keys_among(std::uint64_t all) const {
  if (slots == 0 || records == 0) return 0;
  const auto count = static_cast<double>(slots);
  // If all slots differ, the number of keys is unknown. Assume that half a slot is equal.
  const double share = std::min(static_cast<double>(differing), count - 0.5) / count;
  const double keys = -count * std::log1p(-share);
  return keys / static_cast<double>(records) * static_cast<double>(all);
}

bool is_doubtful(double total, bool reliable, double unknown) {
  constexpr double kFew = 8;
  return !reliable || unknown > kFew + total / 8;
}

double records_of(double keys, std::uint64_t here, std::uint64_t there) {
  const auto more = static_cast<double>(std::max(here, there) - std::min(here, there));
  return 2 * keys - std::min(keys, more);
}

Estimated with_error(double total, std::uint64_t seen) {
  return {total,
          total * std::sqrt(0.01 + 1 / static_cast<double>(std::max<std::uint64_t>(seen, 1)))};
}

}  // namespace semel::sync_internal::probe
