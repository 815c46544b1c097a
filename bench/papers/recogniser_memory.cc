// Table: bytes for a remembered operation, and the time to take one, of the three recognisers.
//
// Prints TSV, a data set for each sort of ids. A steady load has kOperations operations in a
// window, in batches; numbered ids are of kClients clients in turn. `bytes` is the mean over the
// third window, `most` the greatest of it. `lost` is the under-count that is expected of a million
// operations.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "bench/papers/fbf_runs.h"
#include "semel/tally/internal/recogniser.h"

namespace semel::bench {
namespace {

using tally::OperationId;
using tally::internal::Recogniser;
using Kind = Recogniser::Kind;

constexpr std::uint64_t kOperations = 1'000'000;
constexpr std::uint64_t kClients = 1000;
constexpr std::uint64_t kBatch = 500;
constexpr TimeMs kWindowMs = kOperations;  // an operation for each millisecond

enum class Ids { opaque, numbered };

double cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

OperationId id_at(Ids ids, std::uint64_t number) {
  if (ids == Ids::opaque) return OperationId::opaque(id_of(1, number));
  return OperationId::numbered(id_of(2, number % kClients), number / kClients);
}

void print_row(const char* name, Kind kind, Ids ids, double fpr) {
  Recogniser recogniser =
      *Recogniser::make({.kind = kind, .window_ms = kWindowMs, .fpr = fpr, .ids = kOperations}, 0);
  std::vector<Recogniser::Query> queries(kBatch);
  std::vector<tally::Outcome> answers(kBatch);
  double bytes = 0, most = 0, ns = 0;
  std::uint64_t looks = 0;
  for (std::uint64_t first = 0; first < 3 * kOperations; first += kBatch) {
    for (std::uint64_t i = 0; i < kBatch; ++i) {
      queries[i] = {id_at(ids, first + i), id_of(3, first + i)};
    }
    const double before = cpu_ns();
    recogniser.advance(static_cast<TimeMs>(first));
    recogniser.test_and_insert(queries, answers);
    if (first < 2 * kOperations) continue;
    ns += cpu_ns() - before;
    const double held = static_cast<double>(recogniser.bytes()) / double{kOperations};
    bytes += held;
    most = std::max(most, held);
    ++looks;
  }
  const double lost = recogniser.expected_undercount() / (3 * double{kOperations}) * 1e6;
  std::printf("%s\t%.2f\t%.2f\t%.2g\t%.0f\n", name, bytes / static_cast<double>(looks), most, lost,
              ns / double{kOperations});
  std::fflush(stdout);
}

void print_set(const char* title, Ids ids) {
  std::printf("# %s\nrecogniser\tbytes\tmost\tlost\tns\n", title);
  if (ids == Ids::numbered) {
    print_row("clients", Kind::clients, ids, 1e-6);
  } else {
    print_row("clients 1e-3", Kind::clients, ids, 1e-3);
    print_row("clients 1e-6", Kind::clients, ids, 1e-6);
  }
  print_row("filter 1e-3", Kind::filter, ids, 1e-3);
  print_row("filter 1e-6", Kind::filter, ids, 1e-6);
  print_row("exact", Kind::exact, ids, 1e-6);
  std::printf("\n\n");
}

}  // namespace
}  // namespace semel::bench

int main() {
  semel::bench::print_set("numbered ids: 1000 clients, 1000 operations each",
                          semel::bench::Ids::numbered);
  semel::bench::print_set("opaque ids", semel::bench::Ids::opaque);
}
