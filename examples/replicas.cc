// Two sites block and unblock addresses, each on its own; deltas make them equal again. Then one of
// them is restored from a backup.
#include <cstdio>
#include <random>

#include "semel/crdt/delta_log.h"
#include "semel/crdt/series.h"
#include "semel/hash/hasher.h"

using semel::ObservedCuckooSeries;

namespace {

// Drawn whenever a state is opened to add to it.
std::uint64_t new_life() {
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32 | entropy();
}

}  // namespace

int main() {
  const semel::Hasher hash = semel::Hasher::fast(42);
  const auto blocked = ObservedCuckooSeries::make({.fpr = 0.001, .sites = 3, .hash = hash.id()});
  if (!blocked) return std::puts(blocked.error().message().c_str()), 1;

  ObservedCuckooSeries paris = *blocked, tokyo = *blocked;
  const semel::SiteLife in_paris{/*site=*/1, new_life()}, in_tokyo{/*site=*/2, new_life()};
  semel::DeltaLog<ObservedCuckooSeries::Delta> log(/*epoch=*/1, /*most_bytes=*/1 << 20);

  ObservedCuckooSeries::Delta delta(paris.goal());
  const auto place = paris.add(hash("10.0.0.1"), in_paris, &delta);
  if (!place) return std::puts(place.error().message().c_str()), 1;
  log.record(delta);
  if (!log.send(/*peer=*/2, paris, tokyo)) return 1;  // over any network: log.interval_for(2)
  std::printf("tokyo blocks it: %d\n", tokyo.contains(hash("10.0.0.1")));

  // At the same time Paris unblocks it and Tokyo, for another reason, blocks it once more.
  if (!paris.remove(hash("10.0.0.1"), *place) || !tokyo.add(hash("10.0.0.1"), in_tokyo)) return 1;
  if (!paris.merge(tokyo) || !tokyo.merge(paris)) return 1;
  std::printf("still blocked: %d  equal: %d  error now: %.2g\n", paris.contains(hash("10.0.0.1")),
              paris == tokyo, paris.live_fpr());

  // Tokyo is restored from a backup that lacks what it sent to Paris, and does not know it.
  const ObservedCuckooSeries backup = tokyo;
  if (!tokyo.add(hash("10.0.0.2"), in_tokyo) || !paris.merge(tokyo)) return 1;
  tokyo = backup;
  if (!tokyo.add(hash("10.0.0.3"), {/*site=*/2, new_life()})) return 1;

  auto merged = paris.merge(tokyo);
  if (!merged && merged.error().code == semel::Errc::forked) {
    const auto site = static_cast<semel::SiteId>(merged.error().site);
    const auto branch = tokyo.renamed(/*trunk=*/paris, site, /*to=*/3);
    if (!branch) return std::puts(branch.error().message().c_str()), 1;
    tokyo = paris;
    merged = tokyo.merge(*branch);
  }
  if (!merged || !paris.merge(tokyo)) return 1;
  std::printf("nothing lost: %d  equal: %d\n",
              paris.contains(hash("10.0.0.2")) && paris.contains(hash("10.0.0.3")), paris == tokyo);
}
