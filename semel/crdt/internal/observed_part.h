// ObservedPart: a part of the state of an observed-remove filter, so that a large state travels in
// pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "semel/crdt/internal/lives.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/filter/internal/cuckoo_shape.h"

namespace semel::crdt_internal {

using filter_internal::CuckooEntry;
using filter_internal::CuckooPlaces;

// The fate of consecutive dots of one site: those after number `first` up to number `last`.
// `entries` holds the entries that still exist, ascending by number (their payload). All other dots
// were removed.
struct ObservedPart {
  static constexpr std::uint64_t kStep = 1 << 16;

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

// Takes the state of a filter apart, and puts it together, for those who move it in pieces: series
// and the module.
struct ObservedParts {
  // Returns what became of the next dots of a site after number `from`. The part ends at the last
  // dot seen, or earlier so that it has nearly `most` entries; then its last number is a multiple
  // of ObservedPart::kStep. REQUIRES: most >= kStep; from <= filter.context().at(site).
  static ObservedPart next(const ObservedCuckoo& filter, SiteId site, std::uint64_t from,
                           std::uint64_t most);
  // Returns what became of the dots after number `from` up to number `to`, however many entries
  // that are. REQUIRES: from < to <= filter.context().at(site).
  static ObservedPart between(const ObservedCuckoo& filter, SiteId site, std::uint64_t from,
                              std::uint64_t to);
  // Joins a part of a state. Its dots become dots of `site`, which may have another id there.
  // Returns true if anything changed. Errc::gap if what came before the part is not seen here.
  // Errc::forked if a dot has different lives or entries here and there. Nothing changes then.
  // REQUIRES: part.sound(filter.shape()).
  static Result<bool> merge(ObservedCuckoo& filter, SiteId site, const ObservedPart& part);
  // Returns the lives of all dots seen.
  static const Lives& lives(const ObservedCuckoo& filter);
  // Returns a site that has reused its dots, here or there.
  static std::optional<SiteId> clash(const ObservedCuckoo& here, const ObservedCuckoo& there) {
    return lives(here).clash(lives(there));
  }
};

}  // namespace semel::crdt_internal
