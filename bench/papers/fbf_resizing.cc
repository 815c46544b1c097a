// 'Idempotent distributed counters using a Forgetful Bloom Filter', figure 13: dynamic resizing.
//
// Prints TSV, a row for each second of a load that rises, falls and rises: Algorithm 3 as printed
// (3 filters at first, m = 6250, k = 5, t = 11 s); papers::ForgetfulBloomFilter, which has
// Algorithm 3 made safe; and `fill`, which is ForgetfulFilter (8 lanes, as many bits at first). The
// errors are measured with 100,000 absent ids. `forgotten` counts the ids of the last 22 s that are
// not recognised: 22 s are the window of 3 filters of 11 s. Ends with status 1 if ours forgets one,
// or the error of `fill` is above the target.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "bench/papers/fbf_runs.h"
#include "bench/papers/paper_filter.h"

namespace semel::bench {
namespace {

constexpr std::uint64_t kBits = 6250;
constexpr std::uint32_t kProbes = 5;
constexpr TimeMs kPeriodMs = 11'000;
constexpr TimeMs kWindowMs = 2 * kPeriodMs;
constexpr double kTarget = 0.01;
constexpr std::size_t kMostFilters = 16;  // the paper has 8, and names no bound
constexpr std::size_t kManyFilters = 4096;
// Before this, the filter is nearly empty, and Algorithm 3 would make the period longer each
// second.
constexpr TimeMs kResizedFromMs = kPeriodMs + 1000;
constexpr TimeMs kEndMs = 70'000;
constexpr std::uint64_t kAbsent = 100'000;

// Operations a second, from the given second on.
struct Stretch {
  int from_s;
  int rate;
};
// Chosen so that Algorithm 3 acts when the paper says it does. The paper gives no numbers.
constexpr Stretch kLoad[] = {{0, 55},  {11, 59}, {16, 8},   {18, 60}, {19, 15},
                             {23, 15}, {28, 45}, {40, 600}, {56, 20}};

int rate_at(TimeMs second) {
  int rate = 0;
  for (const Stretch& stretch : kLoad) {
    if (stretch.from_s <= second) rate = stretch.rate;
  }
  return rate;
}

struct Accepted {
  Digest id;
  TimeMs at;
};

// The wrong answers of a structure.
class Record {
 public:
  double error(double measured) {
    highest_ = std::max(highest_, measured);
    return measured;
  }
  // Returns how many ids of the window the check does not recognise now.
  template <class Check>
  std::size_t see(const std::vector<Accepted>& ids, TimeMs now, Check check) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (now - ids[i].at > kWindowMs || check(ids[i].id)) continue;
      ++count;
      forgotten_.insert(i);
    }
    return count;
  }
  double highest() const { return highest_; }
  std::size_t ever() const { return forgotten_.size(); }

 private:
  double highest_ = 0;
  std::set<std::size_t> forgotten_;
};

ForgetfulBloomFilter safe_filter() {
  return *ForgetfulBloomFilter::make(
      {.window_ms = kWindowMs, .fpr = kTarget, .schedule = LaneSchedule::algorithm_3},
      {BloomLayout::plain, 3, kProbes, kBits}, 0);
}

ForgetfulFilter fill_filter() {
  ForgetfulFilter::Goal goal{.window_ms = kWindowMs, .fpr = kTarget};
  goal.layout = BloomLayout::plain;
  // The number of ids for which lanes have the paper's bits, if half of the error is kept for later
  // tables.
  const double ids = 50 * kWindowMs / 1000.0;
  const LaneShape shape = best_shape(CheckRule::newest, goal.lanes(), 3 * kBits, ids);
  goal.ids = papers::ids_for(shape, CheckRule::newest, kTarget / 2) * goal.past_lanes;
  return *ForgetfulFilter::make(goal, 0);
}

std::size_t lanes_of(const ForgetfulBloomFilter& filter) { return filter.lanes(); }
std::size_t lanes_of(const ForgetfulFilter& filter) {
  std::size_t lanes = 0;
  for (const auto& table : filter.tables()) lanes += table.lanes().size();
  return lanes;
}

void print_comments() {
  std::printf(
      "# paper: resizing at 16 s (3 to 6 filters, 10 s), 4 filters and 13 s at 19 s, again at 28 "
      "s\n"
      "#   (4 to 8 filters, 12 s), a drop at the refresh of 40 s; the error stays below the "
      "target\n"
      "# why ours differs: from 6 filters to 4 are two steps of Algorithm 3, from 10 s to 13 s "
      "three,\n"
      "#   and no refresh of these periods falls on 40 s. Load and target of the paper are not "
      "given;\n"
      "#   here the target is %g. The burst from 40 s on is ours.\n"
      "# What falls at 16 s and 28 s is equation 3: the new filters are empty, so that its term "
      "for\n"
      "#   the oldest is 0, and it takes neighbours for independent. The measured error does not\n"
      "#   fall: the same ids are in two neighbours.\n"
      "# Under a lasting burst the period shrinks to a second. With at most %zu filters these are "
      "fewer\n"
      "#   seconds than the window has: ids are forgotten. Without a bound the filters double "
      "each\n"
      "#   second.\n",
      kTarget, kMostFilters);
}

TimedPaperFilter printed_filter(std::size_t most_filters) {
  return {PaperFilter(kBits, kProbes, 1),
          kPeriodMs,
          {.target = kTarget, .most_filters = most_filters, .from_ms = kResizedFromMs}};
}

class Comparison {
 public:
  void advance(TimeMs now) {
    printed_.advance(now);
    unbounded_.advance(now);
    safe_.advance(now);
    fill_.advance(now);
    most_filters_ = std::max(most_filters_, unbounded_.filter().filters().size());
  }

  void insert(TimeMs now) {
    const Digest id = id_of(1, ids_.size());
    ids_.push_back({id, now});
    printed_.filter().insert(id);
    unbounded_.filter().insert(id);
    safe_.insert(id);
    fill_.insert(id);
  }

  void print_row(TimeMs now) {
    const PaperFilter& paper = printed_.filter();
    const auto printed_check = [&](Digest id) { return paper.printed_check(id); };
    const auto in = [](const auto& filter) {
      return [&filter](Digest id) { return filter.test(id) == Verdict::duplicate; };
    };
    by_corrected_.see(ids_, now, [&](Digest id) { return paper.corrected_check(id); });
    std::printf("%lld\t%d\t%.3e\t%.3e\t%zu\t%.0f\t%zu", static_cast<long long>(now / 1000),
                rate_at(now / 1000), by_printed_.error(measure(kAbsent, printed_check)),
                paper.equation_3(), paper.filters().size(), seconds(printed_.period_ms()),
                by_printed_.see(ids_, now, printed_check));
    std::printf("\t%.3e\t%zu\t%.1f\t%zu", by_safe_.error(measure_window(safe_, kAbsent)),
                lanes_of(safe_), seconds(safe_.period_ms()), by_safe_.see(ids_, now, in(safe_)));
    std::printf("\t%.3e\t%zu\t%.1f\t%zu\n", by_fill_.error(measure_window(fill_, kAbsent)),
                lanes_of(fill_), static_cast<double>(fill_.bytes()) * 8 / 1000,
                by_fill_.see(ids_, now, in(fill_)));
  }

  void print_summary() const {
    std::printf("# with a bound of %zu filters: up to %zu, %.0f times the memory\n", kManyFilters,
                most_filters_, static_cast<double>(most_filters_) / 3);
    std::printf(
        "# of %zu ids forgotten inside the window: %zu as printed, %zu with the check corrected, "
        "%zu safe, %zu by fill\n"
        "# highest error: %.4f as printed, %.4f safe, %.4f by fill; target %g\n",
        ids_.size(), by_printed_.ever(), by_corrected_.ever(), by_safe_.ever(), by_fill_.ever(),
        by_printed_.highest(), by_safe_.highest(), by_fill_.highest(), kTarget);
  }

  bool holds() const {
    const double allowed = kTarget + 5 * std::sqrt(kTarget / double{kAbsent});
    return by_safe_.ever() == 0 && by_fill_.ever() == 0 && by_fill_.highest() <= allowed;
  }

 private:
  static double seconds(TimeMs ms) { return static_cast<double>(ms) / 1000; }

  TimedPaperFilter printed_ = printed_filter(kMostFilters);
  TimedPaperFilter unbounded_ = printed_filter(kManyFilters);
  ForgetfulBloomFilter safe_ = safe_filter();
  ForgetfulFilter fill_ = fill_filter();
  std::vector<Accepted> ids_;
  Record by_printed_, by_corrected_, by_safe_, by_fill_;
  std::size_t most_filters_ = 0;
};

int print_all() {
  print_comments();
  std::printf(
      "second\trate\tprinted\tequation_3\tfilters\tperiod\tforgotten\tsafe\tsafe_lanes\t"
      "safe_period\tsafe_forgotten\tfill\tfill_lanes\tfill_kbit\tfill_forgotten\n");
  Comparison comparison;
  for (TimeMs now = 0; now <= kEndMs; ++now) {
    comparison.advance(now);
    if (now % 1000 == 0) comparison.print_row(now);
    const int rate = rate_at(now / 1000);
    const auto due = [&](TimeMs ms) { return ms % 1000 * rate / 1000; };
    if (now % 1000 == 0 || due(now) != due(now - 1)) comparison.insert(now);
  }
  comparison.print_summary();
  if (!comparison.holds()) std::fprintf(stderr, "fbf_resizing: a promise of ours is broken\n");
  return comparison.holds() ? 0 : 1;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all(); }
