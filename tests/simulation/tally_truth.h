// TallyTruth: every operation of a simulated run, and what the counters must say of them.
//
// It knows an operation by the client that means it, not by its id, and computes a value from nothing
// but the operations taken and what a site holds: the definition in operation_log.h, with none of its
// structures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "semel/core/arithmetic.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/operation.h"

namespace semel::simulation {

// What a client wants once, however often it asks.
struct Intent {
  tally::Operation::Kind kind = tally::Operation::Kind::add;
  std::string counter = {};
  std::int64_t delta = 0;
  tally::OperationId id = {};

  bool asked = false;         // some site was sent it
  bool acknowledged = false;  // the client was told
  bool sure = false;          // the client was told that enough sites hold it
  bool may_be_lost = false;   // who took it lost it in a crash before a sync, or was retired
  std::set<SiteId> acknowledged_by = {};  // and have not lost anything since
};

class TallyTruth {
 public:
  std::vector<Intent> intents;

  // A site took an operation, which it calls `dot`; it held `observed` before that.
  void take(Dot dot, std::size_t intent, VersionVector observed);
  // A site has no more than `last` operations of its own left. Those whose operations these were.
  std::vector<std::size_t> lose(SiteId site, std::uint64_t last);

  std::uint64_t last_of(SiteId site) const;
  // The operation that a dot names; nullopt for a dot that is lost or not given out.
  std::optional<std::size_t> intent_of(Dot dot) const;
  // Whether this is still the name of this operation: a dot that is lost is given out again.
  bool names(Dot dot, std::size_t intent) const { return intent_of(dot) == intent; }
  // Whether one who holds this holds the operation.
  bool held(std::size_t intent, const VersionVector& held) const;

  // Whether of an operation that `site` took that is folded and another one is held that is not.
  bool between(SiteId site, const VersionVector& held, const VersionVector& folded) const;

  // The counters of one who holds this.
  using Values = std::map<std::string, int128>;
  Values values(const VersionVector& held) const;
  // One of them; nullopt if there is none.
  std::optional<int128> value(const std::string& counter, const VersionVector& held) const;

  struct Bounds {
    int128 least = 0;
    int128 most = 0;
  };
  // Of one counter at a site: what the site acknowledged counts, what was asked for may. Of additions
  // alone.
  Bounds bounds(const std::string& counter, SiteId site) const;

  // Operations beyond the first of an intent.
  std::uint64_t repeated() const;

 private:
  struct Taken {
    std::size_t intent;
    VersionVector observed;
  };
  using Resets = std::map<std::string, std::vector<const VersionVector*>>;  // by counter
  Resets resets(const VersionVector& held) const;
  // Whether the operation counts for one who holds this, and these resets; nullopt if it is not held.
  std::optional<bool> counts(std::size_t intent, const VersionVector& held,
                             const Resets& resets) const;

  std::map<Dot, Taken> log_;
  std::map<Dot, const Taken*> resets_;  // those in the log that undo others
  std::vector<std::vector<Dot>> dots_;  // of each intent
};

}  // namespace semel::simulation
