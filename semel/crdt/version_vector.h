// VersionVector: for each site, the number up to which all its events have been seen.
//
// Contract  It stands for the set of dots (s, 1) to (s, at(s)) of every site s, and only grows.
// Merge     Union: the greater number for each site. Commutative, associative, idempotent.
// Cost      at, contains: O(log sites). advance: O(sites) for a new site. merge, compare: O(sites).
// Memory    16 bytes for each site that has events.
// Format    Other formats contain it: the number of sites, then for each site, in ascending order,
//           its id and its number.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"

namespace semel {

class SEMEL_API VersionVector {
 public:
  struct Site {
    SiteId site;
    std::uint64_t counter;  // 1 to Dot::kLastCounter
    bool operator==(const Site&) const = default;
  };

  std::uint64_t at(SiteId site) const {  // 0: none seen
    return knows_only(site) ? sites_.front().counter : find(site);
  }
  bool contains(Dot dot) const { return dot.counter <= at(dot.site); }

  // Returns the dot of the next event of a site. Errc::limit if its numbers are used up.
  Result<Dot> next(SiteId site) const;
  // Allocates room for so many more sites, so that advance() and merge() cannot fail.
  void make_room(std::size_t sites) { sites_.reserve(sites_.size() + sites); }
  // Adds the events of a site up to this one. REQUIRES: 1 <= counter <= Dot::kLastCounter.
  void advance(Dot dot) {
    SEMEL_ASSERT(dot.counter >= 1 && dot.counter <= Dot::kLastCounter);
    if (knows_only(dot.site)) {
      sites_.front().counter = std::max(sites_.front().counter, dot.counter);
    } else {
      insert(dot);
    }
  }

  std::uint64_t sum() const;  // of all numbers

  bool merge(const VersionVector& other);  // Returns true if it changed.
  std::partial_ordering compare(const VersionVector& other) const;

  std::span<const Site> sites() const { return sites_; }  // ascending

  void encode(Sink out) const;
  // Errc::limit for more than `most_sites`. Errc::corrupt unless sites ascend and numbers are
  // sound.
  static Result<VersionVector> decode(Reader& in, std::size_t most_sites = 65'536);

  bool operator==(const VersionVector&) const = default;

 private:
  // Handles the common case in a few instructions.
  bool knows_only(SiteId site) const { return sites_.size() == 1 && sites_.front().site == site; }
  std::uint64_t find(SiteId site) const;
  void insert(Dot dot);

  std::vector<Site> sites_;  // ascending, none with number 0
};

}  // namespace semel
