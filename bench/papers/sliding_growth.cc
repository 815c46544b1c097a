// 'One is Enough', figures 10 and 11: growth under a burst.
//
// Prints TSV, a data set for each growth, burst and window: the number of filters and the sum of
// their errors over time, of papers::TimedSeries and of the paper's rule, by which each filter
// closes at an error of 0.02 for itself. The burst of 2 or 5 times the rate begins after a third of
// the time and lasts for a third; windows have 100, 500 and 1000 slots; one event a slot before and
// after the burst; k = 4. A filter has the cells for kIds ids: at 0.02 by the paper's rule, at half
// of it by ours. Ends with status 1 if the error of TimedSeries is ever above 0.02.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "bench/papers/one_is_enough.h"
#include "semel/papers/timed_series.h"

namespace semel::bench {
namespace {

constexpr std::uint32_t kProbes = 4;
constexpr std::uint64_t kRate = 1;    // events of a slot, except in the burst
constexpr double kIds = 150;          // of one filter; about 70, 250, 420 are in the windows
constexpr TimeMs kSlotMs = 1000;      // longer than the ticks of a window of 100 slots
constexpr std::int64_t kRows = 150;   // of a data set
constexpr std::uint64_t kProbed = 5;  // ids of a slot that never come up: they measure the error

struct Load {
  std::uint64_t burst;
  std::int64_t window;

  std::int64_t slots() const {
    return static_cast<std::int64_t>(3 * kEvents / (kRate * (2 + burst)));
  }
  std::uint64_t events_in(std::int64_t slot) const {
    return slot * 3 / slots() == 1 ? burst * kRate : kRate;
  }
};

// Section 5 of the paper, word by word; its timers are set at once, and never count down.
class PaperSeries {
 public:
  PaperSeries(papers::SeriesGrowth growth, std::int64_t window)
      : growth_(growth),
        window_(window),
        cells_(static_cast<std::uint64_t>(std::ceil(cells_for(kIds, kProbes, kTarget)))) {
    filters_.emplace_back(cells_);
  }

  // Begins a slot: drops empty filters, and holds the newest one to its threshold.
  void begin(std::int64_t slot) {
    error_ = 0;
    for (Filter& filter : filters_) {
      filter.share = filter.timers.live_share(slot);
      error_ += std::pow(filter.share, kProbes);
    }
    std::erase_if(filters_, [](const Filter& filter) { return filter.share == 0; });
    if (filters_.empty()) filters_.emplace_back(cells_);
    const Filter& newest = filters_.back();
    const bool full = growth_ == papers::SeriesGrowth::density
                          ? std::pow(newest.share, kProbes) > kTarget
                          : newest.ids > kIds;
    if (full) filters_.emplace_back(cells_);
  }
  bool test(Digest id, std::int64_t slot) const {
    return std::any_of(filters_.begin(), filters_.end(), [&](const Filter& filter) {
      return filter.timers.equal_timers(id, slot) > 0;
    });
  }
  bool test_and_set(Digest id, std::int64_t slot) {
    if (test(id, slot)) return true;
    filters_.back().timers.set(id, slot + window_);
    filters_.back().ids += 1;
    return false;
  }
  std::size_t filters() const { return filters_.size(); }
  double error() const { return error_; }

 private:
  struct Filter {
    explicit Filter(std::uint64_t cells) : timers(cells, kProbes) {}
    TimerFilter timers;
    double ids = 0;
    double share = 1;  // of live cells, as this slot began
  };
  papers::SeriesGrowth growth_;
  std::int64_t window_;
  std::uint64_t cells_;
  std::vector<Filter> filters_;
  double error_ = 0;
};

papers::TimedSeries ours(papers::SeriesGrowth growth, std::int64_t window) {
  papers::TimedShape shape{.filter = {.window_ms = window * kSlotMs,
                                      .fpr = kTarget,
                                      .timer_bits = 8,
                                      .probes = kProbes,
                                      .lines = 0,
                                      .on_full = OnFull::refuse,
                                      .max_bytes = kNoCap,
                                      .hash = {}},
                           .growth = growth};
  const double cells = cells_for(kIds, kProbes, kTarget / 2);
  shape.filter.lines =
      std::max(static_cast<std::uint64_t>(std::ceil(cells / shape.filter.line_cells())),
               shape.filter.least_lines());
  return {shape, 0};
}

// Over the whole stream.
struct Summary {
  std::size_t most_filters = 0;
  double highest_error = 0;
  double filters = 0, changes = 0, probed = 0, positives = 0;
  std::size_t last = 1;
  void see(std::size_t now, double error) {
    most_filters = std::max(most_filters, now);
    highest_error = std::max(highest_error, error);
    filters += static_cast<double>(now);
    changes += now != last;
    last = now;
  }
  void probe(bool positive) {
    probed += 1;
    positives += positive;
  }
};

struct Both {
  Summary ours, paper;
};

Both run(papers::SeriesGrowth growth, const Load& load) {
  papers::TimedSeries filter = ours(growth, load.window);
  PaperSeries paper(growth, load.window);
  ZipfEvents events(1);
  std::uint64_t absent = kDomain;
  Both both;
  std::printf("time\tfilters\terror\tpaper_filters\tpaper_error\n");
  for (std::int64_t slot = 1; slot <= load.slots(); ++slot) {
    filter.advance(slot * kSlotMs);
    paper.begin(slot);
    for (std::uint64_t n = load.events_in(slot); n > 0; --n) {
      const Digest id = digest_of(events.next());
      filter.test_and_insert(id);
      paper.test_and_set(id, slot);
    }
    for (std::uint64_t n = 0; n < kProbed; ++n) {
      const Digest id = digest_of(absent++);
      both.ours.probe(filter.test(id) == Verdict::duplicate);
      both.paper.probe(paper.test(id, slot));
    }
    both.ours.see(filter.filters(), filter.false_positive_rate());
    both.paper.see(paper.filters(), paper.error());
    if (slot * kRows / load.slots() != (slot - 1) * kRows / load.slots()) {
      std::printf("%.4f\t%zu\t%.5f\t%zu\t%.5f\n",
                  static_cast<double>(slot) / static_cast<double>(load.slots()), filter.filters(),
                  filter.false_positive_rate(), paper.filters(), paper.error());
    }
  }
  return both;
}

void print_summary(const char* name, const Summary& summary, std::int64_t slots) {
  std::printf(
      "# %s: at most %zu filters, %.2f on average, %.0f changes; error at most %.4f, measured "
      "mean "
      "%.4f\n",
      name, summary.most_filters, summary.filters / static_cast<double>(slots), summary.changes,
      summary.highest_error, summary.positives / summary.probed);
}

int print_all() {
  std::printf(
      "# paper: further filters are created for the peak and dropped after it; by cardinality "
      "their\n"
      "#   number fluctuates more than by density; the longer the window, the more, and the "
      "longer\n"
      "#   they live. The target of 0.02 is that of each filter.\n"
      "# ours: the same, with the sum over all filters below 0.02. The sum of the paper's rule "
      "grows\n"
      "#   with each filter; ours pays with a lower threshold for each further one, and has more.\n"
      "#   Cardinality fluctuates where one filter is enough by density (window of 100); where "
      "several\n"
      "#   are needed both change alike.\n"
      "# why they differ: the paper gives neither the rate nor the size of a filter, and its "
      "numbers\n"
      "#   of cells for the web log (14300, 105000, 89000) fit 16,900 ids, with a zero added to "
      "the first.\n");
  bool holds = true;
  for (const auto growth : {papers::SeriesGrowth::density, papers::SeriesGrowth::cardinality}) {
    for (const std::uint64_t burst : {2, 5}) {
      for (const std::int64_t window : {100, 500, 1000}) {
        std::printf("# by %s, burst of %llu, window of %lld\n",
                    growth == papers::SeriesGrowth::density ? "density" : "cardinality",
                    static_cast<unsigned long long>(burst), static_cast<long long>(window));
        const Load load{burst, window};
        const Both both = run(growth, load);
        print_summary("ours", both.ours, load.slots());
        print_summary("the paper's rule", both.paper, load.slots());
        std::printf("\n\n");
        holds = holds && both.ours.highest_error <= kTarget;
      }
    }
  }
  if (!holds) std::fprintf(stderr, "sliding_growth: an error above the goal\n");
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all(); }
