// Series of replicated filters: a chain of sub-filters for each site, against one that all share,
// as in the thesis.
//
// Prints TSV, a data set for each kind of chain: two and four sites, even and 99-1, that merge
// every so many operations and at the end; 2^20 keys, a goal of 1 %, the first sub-filter for 2^16
// keys, each of the next for twice as many. `rate` is measured with 2^20 absent keys, `live` what
// the series says of itself. `filters` are those that a lookup of an absent key asks. Bits for a
// key: in memory, in memory if every sub-filter were full, and serialised. Fails if a measured rate
// with chains of their own exceeds the goal.
#include <cstdio>

#include "bench/papers/crdt_runs.h"

namespace semel::bench {
namespace {

constexpr double kGoal = 0.01;
constexpr std::array kSplits = {Split{"even", 2, 2}, Split{"99-1", 2, 100}, Split{"even", 4, 4},
                                Split{"99-1", 4, 100}};

double bits_of(const BloomShape& shape) { return static_cast<double>(shape.bits); }
double bits_of(const CuckooShape& shape) {
  return static_cast<double>(shape.slots() * (shape.fingerprint_bits + shape.payload_bits));
}

// Of all sub-filters of the series, for a key of their capacity.
template <class Type>
double bits_if_full(const Type& series) {
  double bits = 0;
  for (const auto& [id, filter] : series.links()) bits += bits_of(filter.shape());
  return bits / static_cast<double>(series.capacity());
}

template <class Type>
bool print_rows(const char* filter, Chains chains) {
  bool kept = true;
  for (const Split& split : kSplits) {
    const SeriesGoal goal{.fpr = kGoal,
                          .first_keys = 1 << 16,
                          .sites = split.sites,
                          .chains = chains,
                          .growth = 2,
                          .hash = {}};
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

bool print_chains(const char* name, Chains chains) {
  std::printf("# %s chains\n", name);
  std::printf("filter\tsites\tsplit\tmerge_every\trate\tlive\tfilters\tbits\tbits_if_full\t");
  std::printf("bits_serialised\n");
  bool kept = print_rows<GrowBloomSeries>("GrowBloom", chains);
  kept = print_rows<GrowCuckooSeries>("GrowCuckoo", chains) && kept;
  kept = print_rows<ObservedCuckooSeries>("ObservedCuckoo", chains) && kept;
  std::printf("\n\n");
  return kept;
}

bool print_all() {
  const bool kept = print_chains("own", Chains::own);
  print_chains("shared", Chains::shared);
  return kept;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all() ? 0 : 1; }
