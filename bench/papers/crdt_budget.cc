// Series of replicated filters: a chain of sub-filters for each site, beside one chain that all
// share, as in the thesis.
//
// Prints TSV, a data set for each kind of chain. Two or four sites share 2^20 keys evenly or 99 to
// 1, and merge at intervals and at the end. The goal is 1 %. The first sub-filter is for 2^16 keys,
// each of the next for twice as many. `rate` is measured with 2^20 absent keys, `live` is the rate
// that the series computes. `filters` is the number of filters that a lookup of an absent key
// reads. Bits for a key are given in memory, in memory if every sub-filter were full, and
// serialised. Fails if a measured rate with own chains exceeds the goal.
#include <cstdio>

#include "bench/papers/crdt_runs.h"

namespace semel::bench {
namespace {

constexpr double kGoal = 0.01;
constexpr std::array kSplits = {Split{"even", 2, 2}, Split{"99-1", 2, 100}, Split{"even", 4, 4},
                                Split{"99-1", 4, 100}};

// Returns the bits of all sub-filters of the series per key of their capacity.
template <class Type>
double bits_if_full(const Type& series) {
  double bits = 0;
  for (const auto& [id, filter] : series.links())
    bits += 8 * static_cast<double>(filter.shape().bytes());
  return bits / static_cast<double>(series.capacity());
}

SeriesGoal goal_for(const Split& split, const SeriesGoal& /*kind*/) {
  return {.fpr = kGoal, .first_keys = 1 << 16, .sites = split.sites, .growth = 2, .hash = {}};
}
papers::SharedGoal goal_for(const Split& /*split*/, const papers::SharedGoal& /*kind*/) {
  return {.fpr = kGoal, .first_keys = 1 << 16, .growth = 2, .hash = {}};
}

template <class Type>
bool print_rows(const char* filter) {
  bool kept = true;
  for (const Split& split : kSplits) {
    const auto goal = goal_for(split, typename Type::Goal{});
    for (const std::uint64_t every : {std::uint64_t{1'000}, std::uint64_t{10'000},
                                      std::uint64_t{100'000}, std::uint64_t{1'000'000}, kNever}) {
      SharedWorkload<Type> sites(*Type::make(goal), typename Type::Delta(goal), split, every);
      sites.work(1);
      const Type& series = sites.filter();
      const double rate = measured_fpr(series, 1);
      kept = kept && rate <= kGoal;
      const auto bits = static_cast<double>(8 * series.bytes());
      const auto keys = static_cast<double>(kWorkload);
      std::printf("%s\t%u\t%s\t", filter, split.sites, split.name);
      if (every == kNever) {
        std::printf("never");
      } else {
        std::printf("%llu", static_cast<unsigned long long>(every));
      }
      std::printf("\t%.5f\t%.5f\t%zu\t%.1f\t%.1f\t%.1f\n", rate, series.live_fpr(),
                  series.links().size(), bits / keys, bits_if_full(series),
                  static_cast<double>(8 * encoded_size(series)) / keys);
      std::fflush(stdout);
    }
  }
  return kept;
}

template <template <class> class Kind>
bool print_chains(const char* name) {
  std::printf("# %s chains\n", name);
  std::printf("filter\tsites\tsplit\tmerge_every\trate\tlive\tfilters\tbits\tbits_if_full\t");
  std::printf("bits_serialised\n");
  bool kept = print_rows<Kind<GrowBloom>>("GrowBloom");
  kept = print_rows<Kind<GrowCuckoo>>("GrowCuckoo") && kept;
  kept = print_rows<Kind<ObservedCuckoo>>("ObservedCuckoo") && kept;
  std::printf("\n\n");
  return kept;
}

bool print_all() {
  const bool kept = print_chains<Series>("own");
  print_chains<papers::SharedSeries>("shared");
  return kept;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all() ? 0 : 1; }
