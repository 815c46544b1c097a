// 'One is Enough', table 1: local filters, that is a Bloom tree of two levels.
//
// Prints TSV, a data set for each number of ids: hits and accesses by level, of the paper, of its
// algorithms as printed, and of BloomTree. 100,000 events of bench/papers/web_log.h; filters for an
// error of 0.02 with k = 4, the same for all nodes. Ends with status 1 if a duplicate is ever let
// through.
#include <cstdio>

#include "bench/papers/tree_runs.h"

namespace semel::bench {
namespace {

struct Row {
  const char* name;
  std::uint64_t hits[2], accesses[2];  // of the root, and of the leaves
};
constexpr Row kPaper[] = {{"dense, paper", {34'000, 49'000}, {50'000, 100'000}},
                          {"sparse, paper", {77'000, 5'000}, {111'000, 116'000}}};

void print(const Row& row) {
  std::printf("%s\t%llu\t%llu\t%llu\t%llu\n", row.name,
              static_cast<unsigned long long>(row.hits[0]),
              static_cast<unsigned long long>(row.hits[1]),
              static_cast<unsigned long long>(row.accesses[0]),
              static_cast<unsigned long long>(row.accesses[1]));
}
bool print(const char* name, const TreeOutcome& outcome) {
  const auto& levels = outcome.levels;
  print({name, {levels[0].hits, levels[1].hits}, {levels[0].accesses, levels[1].accesses}});
  return outcome.false_negatives == 0;
}

int print_all() {
  std::printf(
      "# paper: hits of a dense tree 34K at the root, 49K in the leaves; of a sparse one 77K and "
      "5K.\n"
      "#   Accesses 50K and 100K; 111K and 116K.\n"
      "# ours: with 16850 ids the same within 2K, by its algorithms. BloomTree asks and sets the "
      "root of\n"
      "#   a sparse tree in one call, and has 17K accesses less there; its dense tree sets only "
      "when the\n"
      "#   root has answered, an access more for each miss; `at once` is algorithm 1.\n"
      "# why they differ: the log is a model, chosen to fit the hits in the leaves (web_log.h). "
      "With 4300\n"
      "#   ids, which the text of the paper names, 96K events are duplicates; in its table it is "
      "82K to 83K.\n");
  bool sound = true;
  for (const LogSize& size : {kLogByTable, kLogByText}) {
    const std::uint64_t distinct = distinct_in(size);
    const BloomShape filter = tree_filter(static_cast<double>(distinct), kTarget);
    std::printf("# %s: %llu distinct, %llu bits\n", size.name,
                static_cast<unsigned long long>(distinct),
                static_cast<unsigned long long>(filter.bits));
    std::printf("tree\troot_hits\tleaf_hits\troot_accesses\tleaf_accesses\n");
    print(kPaper[0]);
    sound = print("dense, as printed", run_paper_tree(size, 2, true, 0, filter)) && sound;
    sound = print("at once", run_at_once_tree(size, 2, 0, filter)) && sound;
    sound = print("dense", run_bloom_tree(size, 2, {.kind = TreeKind::dense}, filter)) && sound;
    print(kPaper[1]);
    sound = print("sparse, as printed", run_paper_tree(size, 2, false, 0, filter)) && sound;
    sound = print("sparse", run_bloom_tree(size, 2, {.kind = TreeKind::sparse}, filter)) && sound;
    std::printf("\n\n");
  }
  if (!sound) std::fprintf(stderr, "tree_local: a duplicate was let through\n");
  return sound ? 0 : 1;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all(); }
