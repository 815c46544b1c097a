// Shared by the figures of 'One is Enough': its synthetic events, and its filter exactly as
// printed, with a timer of any length in every cell.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/random.h"
#include "semel/hash/digest.h"

namespace semel::bench {

inline constexpr std::uint64_t kEvents = 100'000;
inline constexpr std::uint64_t kDomain = 4600;  // of which about 4500 come up
inline constexpr double kTarget = 0.02;

// Ids by Zipf's law with the exponent 1: id r has a share in proportion to 1 / (r + 1).
class ZipfEvents {
 public:
  explicit ZipfEvents(std::uint64_t seed, std::uint64_t domain = kDomain) : random_(seed) {
    double sum = 0;
    for (std::uint64_t rank = 1; rank <= domain; ++rank) {
      sum += 1 / static_cast<double>(rank);
      up_to_.push_back(sum);
    }
  }
  std::uint64_t next() {
    const auto found =
        std::lower_bound(up_to_.begin(), up_to_.end(), random_.unit() * up_to_.back());
    return static_cast<std::uint64_t>(found - up_to_.begin());
  }

 private:
  Random random_;
  std::vector<double> up_to_;
};

inline Digest digest_of(std::uint64_t id) { return {mix(2 * id + 1), mix(2 * id + 2)}; }

// The cells that bring `ids` to an error of kTarget: the paper's equation 1, solved.
inline double cells_for(double ids, std::uint32_t probes, double error) {
  return -ids * probes / std::log1p(-std::pow(error, 1.0 / probes));
}

class TimerFilter {
 public:
  TimerFilter(std::uint64_t cells, std::uint32_t probes) : expiries_(cells), probes_(probes) {}

  // Returns the size of the largest group of equal timers; 0 if one of the timers has run out.
  std::uint32_t equal_timers(Digest id, std::int64_t now) const {
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < probes_; ++i) {
      const std::int64_t expiry = expiries_[cell_of(id, i)];
      if (expiry < now) return 0;
      std::uint32_t equal = 0;
      for (std::uint32_t j = 0; j < probes_; ++j) equal += expiries_[cell_of(id, j)] == expiry;
      most = std::max(most, equal);
    }
    return most;
  }
  void set(Digest id, std::int64_t expiry) {
    for (std::uint32_t i = 0; i < probes_; ++i) expiries_[cell_of(id, i)] = expiry;
  }
  double live_share(std::int64_t now) const {
    const auto live = std::count_if(expiries_.begin(), expiries_.end(),
                                    [&](std::int64_t expiry) { return expiry >= now; });
    return static_cast<double>(live) / static_cast<double>(expiries_.size());
  }

 private:
  std::uint64_t cell_of(Digest id, std::uint32_t probe) const {
    return scale(mix(id.lo + probe * id.hi), expiries_.size());
  }

  std::vector<std::int64_t> expiries_;  // the last slot of each timer; times begin at 1
  std::uint32_t probes_;
};

// When each id was last called distinct, which is the truth that a filter is held to.
class Delivered {
 public:
  explicit Delivered(std::int64_t window) : window_(window), last_(kDomain, -window - 1) {}
  bool within_window(std::uint64_t id, std::int64_t now) const {
    return now - last_[id] <= window_;
  }
  std::int64_t last(std::uint64_t id) const { return last_[id]; }
  void deliver(std::uint64_t id, std::int64_t now) { last_[id] = now; }
  double count(std::int64_t now) const {
    return static_cast<double>(std::count_if(
        last_.begin(), last_.end(), [&](std::int64_t last) { return now - last <= window_; }));
  }

 private:
  std::int64_t window_;
  std::vector<std::int64_t> last_;
};

}  // namespace semel::bench
