// Figure: how long the longest call takes while lanes are refreshed, by the size of the filter.
//
// For each size, lanes take ids and rotate until every column has been used. Then calls are timed
// through three more periods: single inserts, and an advance() of time after every tenth insert.
// The longest call stands beside the time to clear a lane in one go, as a filter without
// incremental sweeps would. Time is the CPU time of the thread. The machine adds noise, but hardly
// ever to the same call twice: the same calls are made three times, and the least time of each call
// counts.
//
// Prints TSV: MiB, calls, ns of the median call, of the 99.9th percentile, of the longest, and of
// clearing at once.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/window/internal/forgetful_filter.h"

namespace semel::bench {
namespace {

constexpr TimeMs kPeriod = 10'000;
constexpr std::uint32_t kPastLanes = 7;
constexpr int kInsertsInStep = 10;

std::int64_t cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

template <class Call>
std::int64_t ns_of(Call call) {
  const std::int64_t before = cpu_ns();
  call();
  return cpu_ns() - before;
}

// The time of each call, in order.
std::vector<std::int64_t> timed_calls(const window_internal::ForgetfulFilter::Goal& goal) {
  auto filter = *window_internal::ForgetfulFilter::make(goal, 0);
  Random random(1);
  TimeMs now = 0;
  for (; now < 2 * goal.window_ms; now += 10) {
    filter.advance(now);
    for (int i = 0; i < kInsertsInStep; ++i) filter.insert({random(), random()});
  }
  std::vector<std::int64_t> calls;
  for (const TimeMs end = now + 3 * kPeriod; now < end; ++now) {
    calls.push_back(ns_of([&] { filter.advance(now); }));
    for (int i = 0; i < kInsertsInStep; ++i) {
      const Digest id = {random(), random()};
      calls.push_back(ns_of([&] { filter.test_and_insert(id); }));
    }
  }
  return calls;
}

void print_row(std::uint64_t mib) {
  constexpr double kBitsPerId = 23.5;
  const window_internal::ForgetfulFilter::Goal goal{
      .window_ms = kPeriod * kPastLanes,
      .fpr = 1e-3,
      .ids = static_cast<std::uint64_t>(static_cast<double>(mib << 23) / kBitsPerId),
      .past_lanes = kPastLanes,
      .grows = false};
  std::vector<std::int64_t> calls = timed_calls(goal);
  for (int again = 0; again < 2; ++again) {
    const std::vector<std::int64_t> others = timed_calls(goal);
    for (std::size_t i = 0; i < calls.size(); ++i) calls[i] = std::min(calls[i], others[i]);
  }
  std::sort(calls.begin(), calls.end());

  window_internal::LaneArray lanes(
      window_internal::ForgetfulFilter::make(goal, 0)->tables().back().shape());
  lanes.begin_sweep(1);
  const std::int64_t at_once = ns_of([&] { lanes.sweep(lanes.lines_left()); });
  std::printf("%llu\t%zu\t%lld\t%lld\t%lld\t%lld\n", static_cast<unsigned long long>(mib),
              calls.size(), static_cast<long long>(calls[calls.size() / 2]),
              static_cast<long long>(calls[calls.size() - calls.size() / 1000]),
              static_cast<long long>(calls.back()), static_cast<long long>(at_once));
  std::fflush(stdout);
}

}  // namespace
}  // namespace semel::bench

int main() {
  std::printf("mib\tcalls\tmedian\tp999\tlongest\tat_once\n");
  for (std::uint64_t mib = 4; mib <= 1024; mib *= 4) semel::bench::print_row(mib);
}
