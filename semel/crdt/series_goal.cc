#include "semel/crdt/series_goal.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "semel/core/assert.h"

namespace semel {

Result<void> SeriesGoal::check() const {
  if (!(fpr > 0 && fpr < 1)) return Error{Errc::invalid, "fpr must be within (0, 1)"};
  if (first_keys == 0) return Error{Errc::invalid, "a series begins with room for one key"};
  if (sites == 0 || sites > kMostSites) return Error{Errc::invalid, "1 to 65,536 sites"};
  if (chains != Chains::own && chains != Chains::shared) {
    return Error{Errc::invalid, "chains are own or shared"};
  }
  if (growth == 0) return Error{Errc::invalid, "links do not shrink to nothing"};
  if (!hash.valid()) return Error{Errc::invalid, "a series of unknown hash"};
  return {};
}

double SeriesGoal::share(std::uint8_t link) const {
  SEMEL_ASSERT(link > 0);
  if (chains == Chains::shared) return std::ldexp(fpr, -int{link});
  const double i = link;
  return fpr * 6 / (sites * std::numbers::pi * std::numbers::pi * i * i);
}

Result<std::uint64_t> SeriesGoal::capacity(std::uint8_t link) const {
  SEMEL_ASSERT(link > 0);
  constexpr Error kTooMany{Errc::limit, "a link for more than 2^64 keys"};
  if (std::has_single_bit(growth)) {  // as a rule
    const unsigned shift = static_cast<unsigned>(std::countr_zero(growth)) * (link - 1u);
    if (shift >= 64 || first_keys > std::numeric_limits<std::uint64_t>::max() >> shift) {
      return kTooMany;
    }
    return first_keys << shift;
  }
  std::uint64_t keys = first_keys;
  for (std::uint8_t i = 1; i < link; ++i) {
    if (__builtin_mul_overflow(keys, std::uint64_t{growth}, &keys)) {
      return kTooMany;
    }
  }
  return keys;
}

}  // namespace semel
