// Lives: records the life of its site in which each dot was made, so that reused dots are detected.
//
// A site restored from a backup gives out numbers again that others have seen with other entries.
// Two replicas that share an id do the same. So whoever opens a state to add to it draws a life at
// random. A life never goes back, so a dot and its life name one event, and all earlier events of
// the site too.
//
// Contract  Lives are runs of consecutive dots of one life, ascending. A state holds the runs of
//           all dots that it has seen. A delta and a part hold the runs that their dots lie in, up
//           to the last such dot. A run has the life of the dot before it. So a run that continues
//           another history is detected as soon as that dot is here.
// Merge     Union, if there is no clash. A clash is a dot with two lives.
// Cost      clash, merge: O(runs). advance: O(1) for the last site, O(log runs) for others.
// Memory    32 bytes for each run. A life that made no dot takes none.
// Format    Other formats contain it (docs/formats/observed_cuckoo_v1.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"

namespace semel::crdt_internal {

// Consecutive dots of one site that were made in one life.
struct LifeRun {
  std::uint64_t first;  // packed dots; in a part of a state only the numbers
  std::uint64_t last;   // the last dot known here: the run may be longer
  std::uint64_t life;
  std::uint64_t before;  // the life of the dot before the first; 0 if there is none
  bool operator==(const LifeRun&) const = default;
};

class Lives {
 public:
  // Allocates room for so many more runs, so that the changing calls cannot fail.
  void make_room(std::size_t runs) { runs_.reserve(runs_.size() + runs); }
  // Adds the next dot of a site, made in this life. REQUIRES: the dots before it are here.
  void advance(Dot dot, std::uint64_t life) {
    if (!runs_.empty() && runs_.back().last + 1 == dot.packed() && runs_.back().life == life) {
      ++runs_.back().last;
    } else {
      append(dot.packed(), life);
    }
  }
  // Adds a run up to one of its dots. REQUIRES: it does not clash with the runs here.
  void insert(const LifeRun& run);
  // Returns the run of a dot, up to that dot. REQUIRES: there is one.
  LifeRun upto(std::uint64_t packed_dot) const;

  // Returns a site that has a dot with two lives, if any.
  std::optional<SiteId> clash(const Lives& other) const;
  // REQUIRES: there is no clash.
  void merge(const Lives& other);
  // Returns the number of the last dot of a site up to which both have the same lives; 0 if there
  // is none.
  std::uint64_t common(const Lives& other, SiteId site) const;

  std::span<const LifeRun> runs() const { return runs_; }  // ascending
  std::span<const LifeRun> runs(SiteId site) const;

  // Writes the runs of a state: the first dot and the life of each.
  void encode(Sink out) const;
  // Errc::corrupt unless the runs cover exactly the dots of the context.
  static Result<Lives> decode(Reader& in, const VersionVector& context);
  // Writes the runs of a delta: all four numbers of each.
  void encode_all(Sink out) const;
  // Errc::corrupt if such runs are impossible.
  static Result<Lives> decode_all(Reader& in);

  bool operator==(const Lives&) const = default;

 private:
  void append(std::uint64_t packed_dot, std::uint64_t life);

  std::vector<LifeRun> runs_;  // ascending; the runs of a site are adjacent
};

// Returns Errc::forked with this site.
Error forked(SiteId site);

}  // namespace semel::crdt_internal
