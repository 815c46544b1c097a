// for_each_in_order(): visits a hash table of digests in ascending order, as formats list them.
//
// Memory    A mebibyte, or 6 bytes for each entry if that is more. Less if memory is short.
#pragma once

#include <cstdint>

#include "semel/core/internal/ascending.h"
#include "semel/hash/digest.h"

namespace semel::inline hash_internal {

// Calls visit(digest, value) for every entry for which wanted(value) holds.
template <class Map, class Wanted, class Visit>
void for_each_in_order(const Map& map, Wanted wanted, Visit visit) {
  constexpr std::uint64_t kBytesForEach = 6;
  struct Place {
    Digest digest;
    const typename Map::mapped_type* value;
  };
  const ScratchRoom<Place> room(map.size(), kBytesForEach * map.size());
  for_each_ascending(
      room.span(), [](const Place& a, const Place& b) { return a.digest < b.digest; },
      [&](auto offer) {
        for (const auto& [digest, value] : map) {
          const Place place{digest, &value};
          if (offer.wants(place) && wanted(value)) offer(place);  // wanted() may miss the cache
        }
      },
      [&](const Place& place) { visit(place.digest, *place.value); });
}

}  // namespace semel::inline hash_internal
