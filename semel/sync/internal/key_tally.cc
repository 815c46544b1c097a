#include "semel/sync/internal/key_tally.h"

#include <algorithm>
#include <utility>

namespace semel::sync_internal {

KeyTally::Counts KeyTally::take() {
  std::vector<Noted> noted = std::exchange(noted_, {});
  std::ranges::sort(noted, {}, &Noted::hash);
  Counts counts;
  for (std::size_t i = 0; i < noted.size();) {
    std::uint8_t sides = 0;
    const std::uint64_t hash = noted[i].hash;
    for (; i < noted.size() && noted[i].hash == hash; ++i) sides |= noted[i].sides;
    ++(sides == here ? counts.only_here : sides == there ? counts.only_there : counts.changed);
  }
  return counts;
}

}  // namespace semel::sync_internal
