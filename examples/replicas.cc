// Two sites block and unblock addresses, each on its own; deltas make them equal again.
#include <cstdio>

#include "semel/crdt/delta_log.h"
#include "semel/crdt/series.h"
#include "semel/hash/hasher.h"

using semel::DeltaLog;
using semel::ObservedCuckooSeries;

namespace {

// What a site sends to its peer and hears from it, over any network.
void send(const ObservedCuckooSeries& from, DeltaLog<ObservedCuckooSeries::Delta>& log,
          ObservedCuckooSeries& to, semel::PeerId peer) {
  const auto interval = log.interval_for(peer);
  using Kind = decltype(interval)::Kind;
  if (interval.kind == Kind::delta && to.merge(*interval.delta)) {
    log.acknowledge(peer, interval.upto);
  }
  if (interval.kind == Kind::state && to.merge(from)) log.acknowledge(peer, interval.upto);
}

}  // namespace

int main() {
  const semel::Hasher hash = semel::Hasher::fast(42);
  const auto blocked = ObservedCuckooSeries::make({.fpr = 0.001, .sites = 2, .hash = hash.id()});
  if (!blocked) return std::puts(blocked.error().what), 1;

  ObservedCuckooSeries paris = *blocked, tokyo = *blocked;
  DeltaLog<ObservedCuckooSeries::Delta> log(/*epoch=*/1, /*most_bytes=*/1 << 20,
                                            decltype(log)::Start::empty);

  ObservedCuckooSeries::Delta delta(paris.goal());
  const auto place = paris.add(hash("10.0.0.1"), /*site=*/1, delta);
  if (!place) return std::puts(place.error().what), 1;
  log.record(delta);
  send(paris, log, tokyo, /*peer=*/2);
  std::printf("tokyo blocks it: %d\n", tokyo.contains(hash("10.0.0.1")));

  // At the same time Paris unblocks it and Tokyo, for another reason, blocks it once more.
  if (!paris.remove(hash("10.0.0.1"), *place) || !tokyo.add(hash("10.0.0.1"), /*site=*/2)) return 1;
  if (!paris.merge(tokyo) || !tokyo.merge(paris)) return 1;
  std::printf("still blocked: %d  equal: %d  error now: %.2g\n", paris.contains(hash("10.0.0.1")),
              paris == tokyo, paris.live_fpr());
}
