// Lives: in which life of its site each dot was made, so that a dot that is used again is found out.
//
// A site that is restored from a backup gives out numbers again that others have seen with other
// entries; so do two replicas that share an id. Whoever opens a state to add to it draws a life at
// random. A life goes forwards only, so that a dot and its life name one event, and all events of
// the site before it.
//
// Contract  Runs of consecutive dots of one life, ascending. A state holds the runs of all dots that
//           it has seen; a delta and a part hold those that their dots lie in, up to the last such
//           dot. A run knows the life before it, so that what follows on another history is found
//           out where the histories touch.
// Merge     Union, if there is no clash: a dot of two lives.
// Cost      clash, merge: O(runs). advance: O(1) for the last site, O(log runs) for others.
// Memory    32 bytes for each run; a life that made no dot leaves none.
// Format    A part of other formats (docs/formats/observed_cuckoo_v2.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"

namespace semel {

// Consecutive dots of one site that were made in one life.
struct LifeRun {
  std::uint64_t first;  // packed dots; in a part of a state numbers alone
  std::uint64_t last;   // the last one that is meant here: the run may be longer
  std::uint64_t life;
  std::uint64_t before;  // the life of the dot before the first; 0 if there is none
  bool operator==(const LifeRun&) const = default;
};

class Lives {
 public:
  // Allocates what so many more runs need, so that the calls that change it cannot fail.
  void make_room(std::size_t runs) { runs_.reserve(runs_.size() + runs); }
  // The next dot of a site, made in this life. REQUIRES: the dots before it are here.
  void advance(Dot dot, std::uint64_t life) {
    if (!runs_.empty() && runs_.back().last + 1 == dot.packed() && runs_.back().life == life) {
      ++runs_.back().last;
    } else {
      append(dot.packed(), life);
    }
  }
  // A run up to one of its dots. REQUIRES: it does not clash with those that are here.
  void insert(const LifeRun& run);
  // The run of a dot, up to that dot. REQUIRES: there is one.
  LifeRun upto(std::uint64_t packed_dot) const;

  // A site with a dot of two lives.
  std::optional<SiteId> clash(const Lives& other) const;
  // REQUIRES: there is no clash.
  void merge(const Lives& other);
  // The number of the last dot of a site up to which both have the same lives; 0 for none.
  std::uint64_t common(const Lives& other, SiteId site) const;

  std::span<const LifeRun> runs() const { return runs_; }  // ascending
  std::span<const LifeRun> runs(SiteId site) const;

  // The runs of a state: the first dot and the life of each.
  void encode(Sink out) const;
  // Errc::corrupt unless they cover the dots of the context and nothing else.
  static Result<Lives> decode(Reader& in, const VersionVector& context);
  // Runs of a delta: all four numbers of each.
  void encode_all(Sink out) const;
  // Errc::corrupt unless they can be.
  static Result<Lives> decode_all(Reader& in);

  bool operator==(const Lives&) const = default;

 private:
  void append(std::uint64_t packed_dot, std::uint64_t life);

  std::vector<LifeRun> runs_;  // ascending, those of a site one after another
};

// Errc::forked, about this site.
Error forked(SiteId site);

}  // namespace semel
