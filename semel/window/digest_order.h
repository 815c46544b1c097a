// The order in which formats list digests: that of the slots of tables, nearly.
#pragma once

#include <cstdint>

#include "semel/core/ascending.h"
#include "semel/hash/digest.h"

namespace semel {

constexpr bool comes_before(const Digest& a, const Digest& b) {
  return a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi;
}

struct ComesBefore {
  bool operator()(const Digest& a, const Digest& b) const { return comes_before(a, b); }
};

// Calls visit(digest, value) for every entry of a hash table of digests for which wanted(value)
// holds, ascending. Of many entries it takes 6 bytes for each, if there is memory for that.
template <class Map, class Wanted, class Visit>
void for_each_in_order(const Map& map, Wanted wanted, Visit visit) {
  constexpr std::uint64_t kBytesForEach = 6;
  struct Place {
    Digest digest;
    const typename Map::mapped_type* value;
  };
  const ScratchRoom<Place> room(map.size(), kBytesForEach * map.size());
  for_each_ascending(
      room.span(), [](const Place& a, const Place& b) { return comes_before(a.digest, b.digest); },
      [&](auto offer) {
        for (const auto& [digest, value] : map) {
          const Place place{digest, &value};
          if (offer.wants(place) && wanted(value)) offer(place);  // a look at the value is a miss
        }
      },
      [&](const Place& place) { visit(place.digest, *place.value); });
}

}  // namespace semel
