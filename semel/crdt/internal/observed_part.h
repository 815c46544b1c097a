// ObservedPart: a part of the state of an observed-remove filter, so that a large state travels in
// pieces.
#pragma once

#include <cstdint>
#include <vector>

#include "semel/crdt/internal/lives.h"
#include "semel/filter/internal/cuckoo_shape.h"

namespace semel::crdt_internal {

using filter_internal::CuckooEntry;
using filter_internal::CuckooPlaces;

// The fate of consecutive dots of one site: those after number `first` up to number `last`.
// `entries` holds the entries that still exist, ascending by number (their payload). All other dots
// were removed.
struct ObservedPart {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::vector<CuckooEntry> entries;
  std::vector<LifeRun> lives;  // of these dots, by number; the first run may begin earlier
  // The number of entries of the whole state, if its other parts follow. A merge then makes room
  // for all of them at once. 0: unknown.
  std::uint64_t expected = 0;

  bool sound(const CuckooPlaces& shape) const;
  // Takes the first `most` entries out of the part, or all if there are fewer.
  // Returns them with the fate of their dots. REQUIRES: the part is sound, and most > 0.
  ObservedPart cut(std::size_t most);
  // Returns the part with its dots numbered from 1 on, for another site. REQUIRES: the part is
  // sound.
  ObservedPart from_one() const;
  bool operator==(const ObservedPart&) const = default;
};

}  // namespace semel::crdt_internal
