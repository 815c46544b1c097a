// TallyTruth: knows every operation of a simulated run, and computes the values of the counters.
//
// It knows an operation by the client's intent, not by its id. It computes a value only from the
// operations that were taken and those that a site holds. This is the definition in
// operation_log.h, with none of its structures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/internal/logged_operation.h"

namespace semel::simulation {

// An operation that a client wants to count once, however often it sends it.
struct Intent {
  tally::internal::Operation::Kind kind = tally::internal::Operation::Kind::add;
  std::string counter = {};
  std::int64_t delta = 0;
  tally::OperationId id = {};

  bool asked = false;         // it was sent to some site
  bool acknowledged = false;  // the client was told
  bool sure = false;          // the client was told that enough sites hold it
  bool may_be_lost = false;   // the site that took it lost it in a crash, or was retired
  std::set<SiteId> acknowledged_by = {};  // sites that have not lost anything since
};

class TallyTruth {
 public:
  std::vector<Intent> intents;

  // Notes that a site took an operation as `dot`; it held `observed` before that.
  void take(Dot dot, std::size_t intent, VersionVector observed);
  // Notes that a site has only `last` operations of its own left. Returns the intents whose
  // operations were lost.
  std::vector<std::size_t> lose(SiteId site, std::uint64_t last);

  std::uint64_t last_of(SiteId site) const;
  // Returns the operation that a dot names; nullopt for a dot that is lost or was never given.
  std::optional<std::size_t> intent_of(Dot dot) const;
  // Returns true if this dot still names this operation. A lost dot is given again.
  bool names(Dot dot, std::size_t intent) const { return intent_of(dot) == intent; }
  // Returns true if a site that holds this holds the operation.
  bool held(std::size_t intent, const VersionVector& held) const;

  // Returns true if an operation that `site` took is folded, and another one with its id is held
  // but not folded.
  bool between(SiteId site, const VersionVector& held, const VersionVector& folded) const;

  // Returns the counters of a site that holds this.
  using Values = std::map<std::string, int128>;
  Values values(const VersionVector& held) const;
  // Returns one of these counters, or nullopt.
  std::optional<int128> value(const std::string& counter, const VersionVector& held) const;

  struct Bounds {
    int128 least = 0;
    int128 most = 0;
  };
  // Returns the bounds of one counter at a site, for additions only: acknowledged operations count,
  // and requested ones may count.
  Bounds bounds(const std::string& counter, SiteId site) const;

  // Returns how many operations there are besides the first of each intent.
  std::uint64_t repeated() const;

 private:
  struct Taken {
    std::size_t intent;
    VersionVector observed;
  };
  using Resets = std::map<std::string, std::vector<const VersionVector*>>;  // by counter
  Resets resets(const VersionVector& held) const;
  // Returns true if the operation counts at a site that holds this, with these resets; nullopt if
  // it is not held.
  std::optional<bool> counts(std::size_t intent, const VersionVector& held,
                             const Resets& resets) const;

  std::map<Dot, Taken> log_;
  std::map<Dot, const Taken*> resets_;  // those in the log that undo others
  std::vector<std::vector<Dot>> dots_;  // of each intent
};

}  // namespace semel::simulation
