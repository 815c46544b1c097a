// 'Idempotent distributed counters using a Forgetful Bloom Filter', figure 11: the refresh period.
//
// Prints TSV. First data set: the error of basic FBFs with refresh periods of 5, 3, 2 and 1 s
// (m = 25,000, k = 5) while 5000 operations come at a rate that doubles every kDoublingS seconds
// from 10 a second; exact, from the bits that are set. Second: the ratio of the errors of 5 s and
// 1 s at the moment of 100 operations a second, by the time in which the rate doubles; and the same
// ratio at equal window and equal memory. Means over kPhases moments of a refresh.
#include <array>
#include <cmath>
#include <cstdio>

#include "bench/papers/fbf_runs.h"
#include "bench/papers/paper_filter.h"

namespace semel::bench {
namespace {

constexpr std::uint64_t kBits = 25'000;
constexpr std::uint32_t kProbes = 5;
constexpr double kOperations = 5000;
constexpr std::array<TimeMs, 4> kPeriodsMs = {5000, 3000, 2000, 1000};
constexpr double kFirstRate = 10;  // a second
constexpr double kDoublingS = 10;
constexpr double kRateOfTheClaim = 100;
constexpr std::uint64_t kPhases = 30;

// An exponential rise. Time begins at 0 ms.
struct Load {
  double first_rate;
  double doubling_s;  // infinite: a steady load

  double growth() const { return std::log(2) / doubling_s; }
  double rate(double s) const { return first_rate * std::exp2(s / doubling_s); }
  double operations_until(double s) const {
    return growth() == 0 ? first_rate * s : first_rate * std::expm1(growth() * s) / growth();
  }
  TimeMs time_of(double operation) const {
    const double s = growth() == 0 ? operation / first_rate
                                   : std::log1p(operation * growth() / first_rate) / growth();
    return static_cast<TimeMs>(s * 1000);
  }
};

void print_rise() {
  const Load load{kFirstRate, kDoublingS};
  std::array<TimedPaperFilter, 4> filters = {
      TimedPaperFilter(PaperFilter(kBits, kProbes, 1), kPeriodsMs[0]),
      TimedPaperFilter(PaperFilter(kBits, kProbes, 1), kPeriodsMs[1]),
      TimedPaperFilter(PaperFilter(kBits, kProbes, 1), kPeriodsMs[2]),
      TimedPaperFilter(PaperFilter(kBits, kProbes, 1), kPeriodsMs[3])};
  std::printf("rate\tt5\tt3\tt2\tt1\n");
  std::uint64_t number = 0;
  for (TimeMs now = 0; now <= load.time_of(kOperations); now += 250) {
    for (TimedPaperFilter& timed : filters) timed.advance(now);
    if (now != 0) {
      std::printf("%.2f", load.rate(static_cast<double>(now) / 1000));
      for (const TimedPaperFilter& timed : filters) {
        std::printf("\t%.3e", timed.filter().basic_rate());
      }
      std::printf("\n");
    }
    for (; load.time_of(static_cast<double>(number)) < now + 250; ++number) {
      for (TimedPaperFilter& timed : filters) timed.filter().insert(id_of(1, number));
    }
  }
}

// Runs the load up to the moment of the claim. In each phase that moment is in another part of a
// period.
template <class Insert>
void run_until_claim(const Load& load, std::uint64_t phase, Insert insert) {
  const double s = std::log2(kRateOfTheClaim / load.first_rate) * load.doubling_s;
  const double until_s = std::isfinite(s) ? s : 60;
  const auto last = static_cast<std::uint64_t>(load.operations_until(until_s));
  const auto shift_ms = static_cast<TimeMs>(phase * 30'000 / kPhases);
  for (std::uint64_t i = 0; i < last; ++i) {
    insert(id_of(phase, i), shift_ms + load.time_of(static_cast<double>(i)));
  }
}

double mean_rate(const Load& load, TimeMs period_ms) {
  double sum = 0;
  for (std::uint64_t phase = 0; phase < kPhases; ++phase) {
    TimedPaperFilter timed(PaperFilter(kBits, kProbes, 1), period_ms);
    run_until_claim(load, phase, [&](Digest id, TimeMs at) {
      timed.advance(at);
      timed.filter().insert(id);
    });
    sum += timed.filter().basic_rate();
  }
  return sum / kPhases;
}

// Returns the mean rate by the analysis, an upper bound. The total number of bits and the window of
// 10 s do not depend on the lanes.
double mean_rate_of(const Load& load, CheckRule rule, const LaneShape& shape) {
  double sum = 0;
  for (std::uint64_t phase = 0; phase < kPhases; ++phase) {
    ForgetfulBloomFilter filter = timed_filter(rule, shape, 2 * kPeriodsMs[0]);
    run_until_claim(load, phase, [&](Digest id, TimeMs at) {
      filter.advance(at);
      filter.insert(id);
    });
    sum += filter.false_positive_rate();
  }
  return sum / kPhases;
}

void print_ratios() {
  const LaneShape pairs{BloomLayout::plain, 11, kProbes, 3 * kBits / 11};
  const LaneShape newest = best_shape(CheckRule::newest, 8, 3 * kBits, 10 * kRateOfTheClaim);
  std::printf("doubling_s\tt5\tt1\tratio\tequal_window_t1\tratio\tequal_window_newest\tratio\n");
  for (const double doubling_s : {1.0, 2.0, 5.0, 10.0, 20.0, 40.0, HUGE_VAL}) {
    const Load load{std::isfinite(doubling_s) ? 1 : kRateOfTheClaim, doubling_s};
    const double slow = mean_rate(load, 5000), fast = mean_rate(load, 1000);
    const double fair = mean_rate_of(load, CheckRule::pairs_or_oldest, pairs);
    const double ours = mean_rate_of(load, CheckRule::newest, newest);
    std::printf("%g\t%.3e\t%.3e\t%.0f\t%.3e\t%.1f\t%.3e\t%.1e\n", doubling_s, slow, fast,
                slow / fast, fair, slow / fair, ours, slow / ours);
  }
}

void print_all() {
  std::printf(
      "# paper: at 100 operations a second the error with t = 5 s is 1000 times that with t = 1 s\n"
      "# ours: the ratio depends on how fast the rate rises, which the paper does not say; see "
      "the\n"
      "#   second data set. 1000 needs a rate that doubles every 20 to 30 s.\n"
      "# why: the error goes with the fifth power of the ids in a filter, and t = 1 s has a fifth "
      "of\n"
      "#   them. It also remembers for a fifth of the time: 2 s instead of 10 s. At equal window\n"
      "#   (10 s) and equal memory (75,000 bits) shorter periods gain far less.\n"
      "#   With t = 1 s the error at 100 a second is below 1e-7, which the paper's 200,000 absent "
      "ids\n"
      "#   cannot measure: its curve must come from its analysis.\n");
  print_rise();
  std::printf("\n\n");
  print_ratios();
}

}  // namespace
}  // namespace semel::bench

int main() { semel::bench::print_all(); }
