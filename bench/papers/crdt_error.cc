// 'Conflict-free replicated filters', figure 6.1 a to f: false positives by how the adds are split
// between two sites and how often they merge.
//
// Prints TSV, a data set for each filter. A run makes 2^20 adds, then looks for 2^20 absent keys.
// The values are means of kRuns runs with different keys. `local` is a single site. `load` is the
// share of the adds whose entry is inside at the end. The thesis gives these figures as pictures
// only; the statements of its text stand below the data.
#include <cstdio>

#include "bench/papers/crdt_runs.h"

namespace semel::bench {
namespace {

constexpr std::uint64_t kRuns = 2;
constexpr std::array kSplits = {Split{"local", 1, 1}, Split{"50-50", 2, 2}, Split{"80-20", 2, 5},
                                Split{"99-1", 2, 100}};

template <class Type>
void print_figure(const char* figure, const Type& empty, const typename Type::Delta& empty_delta,
                  double expected) {
  std::printf("# figure 6.1%s, expected %.5f\n", figure, expected);
  std::printf("merge_every\tlocal\t50-50\t80-20\t99-1\t");
  std::printf("load_local\tload_50-50\tload_80-20\tload_99-1\n");
  std::array<std::pair<double, double>, kSplits.size()> means{};
  for (const std::uint64_t every : {1'000u, 10'000u, 100'000u, 1'000'000u, 10'000'000u}) {
    for (std::size_t i = 0; i < kSplits.size(); ++i) {
      if (i == 0 && every > 1000) continue;  // there is nobody to merge with
      means[i] = {0, 0};
      for (std::uint64_t run = 1; run <= kRuns; ++run) {
        SharedWorkload<Type> sites(empty, empty_delta, kSplits[i], i == 0 ? kNever : every);
        sites.work(run);
        means[i].first += measured_fpr(sites.filter(), run) / kRuns;
        means[i].second += static_cast<double>(sites.filter().cardinality()) / kWorkload / kRuns;
      }
    }
    std::printf("%llu", static_cast<unsigned long long>(every));
    for (const auto& [rate, load] : means) std::printf("\t%.5f", rate);
    for (const auto& [rate, load] : means) std::printf("\t%.4f", load);
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf("\n\n");
}

template <class Filter>
void print_series(const char* figure) {
  using Type = papers::SharedSeries<Filter>;
  const papers::SharedGoal goal = scalable(kThesisFpr);
  print_figure(figure, *Type::make(goal), typename Type::Delta(goal), kThesisFpr);
}

void print_all() {
  print_figure("a, GBF5", GrowBloom(gbf5()), BloomDelta(gbf5()), gbf5().expected_fpr(kWorkload));
  print_figure("b, GCF4", GrowCuckoo(gcf4()), CuckooDelta(gcf4()), kThesisFpr);
  print_figure("c, ORCF4", ObservedCuckoo(orcf4()), ObservedDelta(orcf4()), kThesisFpr);
  print_series<GrowBloom>("d, ScGBF5, one chain for all sites");
  print_series<GrowCuckoo>("e, ScGCF4, one chain for all sites");
  print_series<ObservedCuckoo>("f, ScORCF4, one chain for all sites");
  std::printf(
      "# thesis: GBF5 is as a Bloom filter, however the adds are split and however often merged.\n"
      "#   GCF4 and ORCF4: merged often, the error falls as the split becomes more even, because\n"
      "#   merges leave overflow and adds fail sooner; merged seldom, it rises, because each site\n"
      "#   holds its part before the merge. So it first falls, then rises as merges become rarer.\n"
      "#   The scalable ones: far above the expected error if merged seldom.\n"
      "# why GCF4 and ORCF4 differ: here entries are moved until they fit, so that no add fails, "
      "and\n"
      "#   neither the split nor the merges change what is in the filter.\n");
}

}  // namespace
}  // namespace semel::bench

int main() { semel::bench::print_all(); }
