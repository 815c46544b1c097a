// 'Idempotent distributed counters', figure 14: counters at ten sites, of which some operations are
// retried, and the same with a site that dies.
//
// Prints TSV: two data sets of sums over time, without and with the death of a site, and one of the
// counts at the end. tally_cluster.h describes the run.
// Ends with status 1 if a counter of a table has a wrong value at any replica.
#include <cstdio>
#include <string>

#include "bench/papers/tally_cluster.h"

namespace semel::bench {
namespace {

using Count = unsigned long long;

void print_row(const char* counted_by, std::int64_t counted, std::uint64_t expected) {
  const auto off = counted - static_cast<std::int64_t>(expected);
  std::printf("%s\t%lld\t%+lld\t%+.2f\n", counted_by, static_cast<long long>(counted),
              static_cast<long long>(off),
              100 * static_cast<double>(off) / static_cast<double>(expected));
}

void print_end(const char* title, const ClusterOutcome& outcome) {
  const ClusterSums& sums = outcome.sums;
  std::printf("# %s: of %llu retries %llu elsewhere, %llu of them before it had heard\n", title,
              static_cast<Count>(outcome.retries), static_cast<Count>(outcome.elsewhere),
              static_cast<Count>(outcome.before_heard));
  if (outcome.repeated > 0) {
    std::printf("# repeated after the death of the site: %llu, %llu of them before it had heard\n",
                static_cast<Count>(outcome.repeated), static_cast<Count>(outcome.taken_again));
  }
  std::printf("# expected under-count, by the filters' own account: %.2g\n",
              outcome.expected_undercount);
  std::printf("counted by\tsum\toff\tpercent\n");
  print_row("expected", static_cast<std::int64_t>(sums.expected), sums.expected);
  print_row("table", sums.table, sums.expected);
  print_row("shards, ids exchanged", sums.shards_exchanged, sums.expected);
  print_row("shards, own ids", sums.shards_own, sums.expected);
  print_row("shards", sums.shards, sums.expected);
  std::printf("\n\n");
}

int print_all() {
  std::printf(
      "# paper: the counter with recognition is exact, also when a node is replaced; the one "
      "without\n"
      "#   has an error of 6 %%.\n");
  ClusterOutcome outcomes[2];
  for (const bool kill : {false, true}) {
    std::printf("# %s\ns\texpected\ttable\tshards\tshards_own\tshards_exchanged\n",
                kill ? "a site dies" : "all sites live");
    outcomes[kill] = run_cluster({.kill = kill}, [](TimeMs now_ms, const ClusterSums& sums) {
      std::printf("%.1f\t%llu\t%lld\t%lld\t%lld\t%lld\n", static_cast<double>(now_ms) / 1000,
                  static_cast<Count>(sums.expected), static_cast<long long>(sums.table),
                  static_cast<long long>(sums.shards), static_cast<long long>(sums.shards_own),
                  static_cast<long long>(sums.shards_exchanged));
    });
    std::printf("\n\n");
    std::fflush(stdout);
  }
  print_end("all sites live", outcomes[0]);
  print_end("a site dies", outcomes[1]);
  const std::uint64_t wrong = outcomes[0].wrong_values + outcomes[1].wrong_values;
  if (wrong == 0) return 0;
  std::fprintf(stderr, "tally_sites: %llu values of counters are wrong\n",
               static_cast<Count>(wrong));
  return 1;
}

}  // namespace
}  // namespace semel::bench

int main() { return semel::bench::print_all(); }
