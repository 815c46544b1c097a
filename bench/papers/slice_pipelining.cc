// 'One is Enough', figure 7c: messages for a lookup, in parallel and pipelined.
//
// Prints TSV. Events are uniform; about 80, 50 and 20 % of them are distinct. They come one by one
// to vertical slices with k = 4, for an error of 0.02. `lookup` is the number of messages that test
// an event, `set` the number that set a fresh one. Both are means over all events.
#include <cstdio>

#include "bench/papers/slice_bits.h"

namespace semel::bench {
namespace {

constexpr std::uint32_t kSlices = 40;

// The domain of which kEvents uniform draws give this share of distinct ids.
std::uint64_t domain_for(double share) {
  double low = share * kEvents, high = 1e9;
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    const double distinct = -middle * std::expm1(-static_cast<double>(kEvents) / middle);
    (distinct < share * kEvents ? low : high) = middle;
  }
  return static_cast<std::uint64_t>(high);
}

struct Messages {
  double lookup = 0, set = 0;
};

Messages messages_of(Probing probing, double share) {
  SlicedBits filter(SliceLayout::vertical, kSlices, cells_for(share * kEvents, kFunctions, kTarget),
                    kFunctions, {.probing = probing});
  Random random(1);
  const std::uint64_t domain = domain_for(share);
  const auto sent = [&] { return filter.filter().load().total().messages; };
  std::uint64_t lookup = 0;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    const Digest id = digest_of(random.below(domain));
    Verdict verdict{};
    const std::uint64_t before = sent();
    filter.filter().test({&id, 1}, {&verdict, 1}, 0);
    lookup += sent() - before;
    if (verdict == Verdict::fresh) filter.filter().set({&id, 1}, {}, {&verdict, 1}, 0);
  }
  return {static_cast<double>(lookup) / kEvents, static_cast<double>(sent() - lookup) / kEvents};
}

void print_all() {
  std::printf("distinct\tparallel\tpipelined\tset\thorizontal\n");
  for (const double share : {0.8, 0.5, 0.2}) {
    const Messages parallel = messages_of(Probing::parallel, share);
    const Messages pipelined = messages_of(Probing::pipelined, share);
    std::printf("%.0f\t%.3f\t%.3f\t%.3f\t1\n", 100 * share, parallel.lookup, pipelined.lookup,
                parallel.set);
    std::fflush(stdout);
  }
  std::printf(
      "# paper: pipelining saves messages, the more the fewer duplicates there are; without it an\n"
      "#   event takes at most k = 4, and fewer where two functions choose one slice; horizontal: "
      "1.\n"
      "# ours: two of four functions often meet in 40 slices, so that 3.85 different ones are "
      "left.\n"
      "#   A new event is found out by the first slice or two; a duplicate has to ask them all.\n");
}

}  // namespace
}  // namespace semel::bench

int main() { semel::bench::print_all(); }
