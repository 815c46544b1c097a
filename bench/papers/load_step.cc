// Figure: the load steps up by 100 within one second, and later down again.
//
// Prints TSV: error and memory over time. The error is measured with 100,000 absent ids. The
// filters are ForgetfulFilter, which rotates by fill; papers::ForgetfulBloomFilter with Algorithm 3
// made safe; and the paper's filter with Algorithm 3 as printed. All are made for the load before
// the step and an error of 1e-3. `lost` counts the new ids that were taken for duplicates so far.
// Ends with status 1 if the error of `fill` is ever above the goal.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/papers/fbf_runs.h"
#include "bench/papers/paper_filter.h"

namespace semel::bench {
namespace {

constexpr double kGoal = 1e-3;
constexpr TimeMs kWindowMs = 60'000;
constexpr double kRate = 100;  // ids a second
constexpr double kStep = 100;
constexpr TimeMs kUpMs = 120'000, kRampMs = 1000, kDownMs = 240'000, kEndMs = 400'000;
constexpr double kHeadroom = 1.2;
constexpr std::size_t kMostFilters = 64;
constexpr std::uint64_t kAbsent = 100'000;

double rate_at(TimeMs now) {
  if (now < kUpMs || now >= kDownMs) return kRate;
  const double ramp = std::min(1.0, static_cast<double>(now - kUpMs) / double{kRampMs});
  return kRate * (1 + ramp * (kStep - 1));
}

// Samples ten times a second around the step, otherwise once.
bool sampled(TimeMs now) {
  return now % (now >= kUpMs - 1000 && now < kUpMs + 10'000 ? 100 : 1000) == 0;
}

constexpr double kIds = kHeadroom * kRate * kWindowMs / 1000;

LaneShape paper_shape() {
  return *papers::shape_for(3, CheckRule::pairs_or_oldest, static_cast<std::uint64_t>(kIds / 2),
                            kGoal);
}

ForgetfulBloomFilter safe_filter() {
  return *ForgetfulBloomFilter::make(
      {.window_ms = kWindowMs, .fpr = kGoal, .schedule = LaneSchedule::algorithm_3}, paper_shape(),
      0);
}

ForgetfulFilter fill_filter() {
  return *ForgetfulFilter::make(
      {.window_ms = kWindowMs, .fpr = kGoal, .ids = static_cast<std::uint64_t>(kIds)}, 0);
}

// The answers of one structure to new ids, and its error.
struct Record {
  std::uint64_t lost = 0;
  double highest = 0;

  void take(bool duplicate) { lost += duplicate ? 1 : 0; }
  void print(double error, std::uint64_t bytes) {
    highest = std::max(highest, error);
    std::printf("\t%.2e\t%.1f\t%llu", error, static_cast<double>(bytes) / 1000,
                static_cast<unsigned long long>(lost));
  }
  void print_summary(const char* name, std::uint64_t ids) const {
    std::printf("# %s: highest error %.2e; %llu of %llu new ids lost, %.4f %%\n", name, highest,
                static_cast<unsigned long long>(lost), static_cast<unsigned long long>(ids),
                100 * static_cast<double>(lost) / static_cast<double>(ids));
  }
};

int print_all() {
  std::printf(
      "# %g ids a second, %g from 120 to 240 s; window of 60 s, goal %g\n"
      "# Algorithm 3 adds filters of the old size, and reacts to an error that is already there: "
      "a\n"
      "#   filter of that size is full in a third of a second. Rotation by fill opens a table for "
      "the\n"
      "#   rate at hand before the next id is written.\n",
      kRate, kRate * kStep, kGoal);
  std::printf(
      "second\trate\tfill_says\tfill\tfill_kb\tfill_lost\tsafe\tsafe_kb\tsafe_lost\tprinted\t"
      "printed_kb\tprinted_lost\n");

  const LaneShape shape = paper_shape();
  ForgetfulFilter fill = fill_filter();
  ForgetfulBloomFilter safe = safe_filter();
  TimedPaperFilter printed(PaperFilter(shape.positions, shape.probes, 1), kWindowMs / 2,
                           {.target = kGoal, .most_filters = kMostFilters, .from_ms = kWindowMs});
  Record of_fill, of_safe, of_printed;
  std::uint64_t number = 0, most_bytes = 0;
  double owed = 0, highest_said = 0;
  for (TimeMs now = 0; now < kEndMs; ++now) {
    fill.advance(now);
    safe.advance(now);
    printed.advance(now);
    PaperFilter& paper = printed.filter();
    const auto printed_check = [&](Digest id) { return paper.printed_check(id); };
    owed += rate_at(now) / 1000;
    while (owed >= 1) {
      owed -= 1;
      const Digest id = id_of(1, number++);
      of_fill.take(fill.test_and_insert(id) == Verdict::duplicate);
      of_safe.take(safe.test_and_insert(id) == Verdict::duplicate);
      const bool known = printed_check(id);
      of_printed.take(known);
      if (!known) paper.insert(id);
    }
    most_bytes = std::max(most_bytes, fill.bytes());
    highest_said = std::max(highest_said, fill.false_positive_rate());
    if (!sampled(now)) continue;
    std::printf("%.1f\t%.0f\t%.2e", static_cast<double>(now) / 1000, rate_at(now),
                fill.false_positive_rate());
    of_fill.print(measure_window(fill, kAbsent), fill.bytes());
    of_safe.print(measure_window(safe, kAbsent), safe.bytes());
    of_printed.print(measure(kAbsent, printed_check), paper.bytes());
    std::printf("\n");
  }

  of_fill.print_summary("fill", number);
  of_safe.print_summary("safe", number);
  of_printed.print_summary("printed", number);
  std::printf("# fill: error %.2e at most by its own account, %.1f bits for an id in the window\n",
              highest_said,
              static_cast<double>(most_bytes) * 8 / (kRate * kStep * kWindowMs / 1000));
  const double allowed = kGoal + 5 * std::sqrt(kGoal / double{kAbsent});
  const bool holds = of_fill.highest <= allowed && highest_said <= kGoal;
  if (!holds) std::fprintf(stderr, "load_step: an error above the goal\n");
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all(); }
