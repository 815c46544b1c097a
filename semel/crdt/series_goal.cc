#include "semel/crdt/series_goal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "semel/core/assert.h"
#include "semel/core/internal/error_rate.h"

namespace semel {
namespace {

const Error kTooMany{Errc::limit, "a link for more than 2^64 keys"};

constexpr int kCentre = 18;             // in doublings
constexpr double kSlack = 1 - 0x1p-40;  // keeps the rounded sum of all shares below fpr

// Walks over the links of a chain that is apart, one after the other.
class Walk {
 public:
  explicit Walk(const SeriesGoal& goal)
      : goal_(goal),
        centre_(std::max(kCentre, doublings(goal.first_keys))),
        keys_(goal.first_keys) {}

  std::uint64_t keys() const { return keys_; }
  double weight() const {
    const int distance = first_ ? 0 : std::abs(doublings(keys_) - centre_);
    return 1.0 / ((1 + distance) * (1 + distance));
  }
  // Fails like SeriesGoal::capacity.
  Result<void> next() {
    constexpr std::uint64_t kLarge = 1 << 17;
    if (goal_.growth == 0) return Error{Errc::full, "a series without growth has one link"};
    if (__builtin_add_overflow(before_, keys_, &before_)) return kTooMany;
    first_ = false;
    if (goal_.growth == 1 || before_ >= kLarge) {
      keys_ = std::max(goal_.first_keys, before_ / 2);
    } else {
      keys_ *= goal_.growth;  // at most 2^17 * 2^32
    }
    return {};
  }

 private:
  static int doublings(std::uint64_t keys) { return static_cast<int>(std::bit_width(keys)) - 1; }

  const SeriesGoal& goal_;
  int centre_;
  bool first_ = true;
  std::uint64_t keys_;
  std::uint64_t before_ = 0;  // the capacity of all links before this one
};

}  // namespace

Result<void> SeriesGoal::check() const {
  if (!is_error_rate(fpr)) return error_rate_refused();
  if (first_keys == 0) return Error{Errc::invalid, "first_keys must be at least 1"};
  if (sites == 0 || sites > kMostSites)
    return Error{Errc::invalid, "a series has 1 to 65,536 sites"};
  if (chains > SeriesChains::apart) return Error{Errc::invalid, "chains are own or apart"};
  if (growth == 0 && chains != SeriesChains::apart)
    return Error{Errc::invalid, "growth is at least 1, or 0 if chains are apart"};
  if (!hash.valid()) return Error{Errc::invalid, "a series with a hash of unknown kind"};
  return {};
}

double SeriesGoal::share(std::uint8_t link) const {
  SEMEL_ASSERT(link > 0);
  if (chains == SeriesChains::apart) {
    Walk walk(*this);
    double all = 0, wanted = 0;
    for (unsigned i = 1; i <= kMostLinks; ++i) {
      all += walk.weight();
      if (i == link) wanted = walk.weight();
      if (!walk.next()) break;
    }
    SEMEL_ASSERT(wanted > 0);
    return fpr * (wanted / all) * kSlack;
  }
  const double i = link;
  return fpr * 6 / (sites * std::numbers::pi * std::numbers::pi * i * i);
}

Result<std::uint64_t> SeriesGoal::capacity(std::uint8_t link) const {
  SEMEL_ASSERT(link > 0);
  if (chains == SeriesChains::apart) {
    Walk walk(*this);
    for (std::uint8_t i = 1; i < link; ++i) {
      SEMEL_TRY(walk.next());
    }
    return walk.keys();
  }
  if (std::has_single_bit(growth)) {  // the usual case
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
