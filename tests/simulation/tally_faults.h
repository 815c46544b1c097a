// Faults that are planted in a simulated table: the checker must find them. The code of the table
// stays as it is; its store, its messages or its settings do not.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/internal/operation_log.h"
#include "semel/tally/internal/recogniser.h"

namespace semel::simulation {

enum class TallyFault : std::uint8_t {
  none,
  id_before_effect,  // the ids of a write reach the disk before the rest of it
  no_second_rule,    // a site says what it holds of others, and not how far it had got itself
  short_window,      // ids are forgotten while they are still retried
  half_window,       // ids are forgotten after half of the window
  journal_dropped,   // records of the journal go with the window, with operations not yet shared
  acknowledged_while_full,  // a site says that it holds what it had no room to remember
  folded_not_kept,          // what is folded and still needed is in no entry
  retired_copied,           // a copy of a retired member becomes a site
  arrivals_without_time,    // what arrives is stamped with the time of the last tick
  recall_within_cap,        // a restart forgets the ids for which its windows have no room
  out_of_order_forgotten,   // a sequence that arrives after a higher one is not in the journal
  doubles_unnoticed,        // nobody is told what others know of a site, or of which table it is
};
inline constexpr std::array<std::string_view, 13> kFaultNames = {"none",
                                                                 "id-before-effect",
                                                                 "no-second-rule",
                                                                 "short-window",
                                                                 "half-window",
                                                                 "journal-dropped",
                                                                 "acknowledged-while-full",
                                                                 "folded-not-kept",
                                                                 "retired-copied",
                                                                 "arrivals-without-time",
                                                                 "recall-within-cap",
                                                                 "out-of-order-forgotten",
                                                                 "doubles-unnoticed"};

// IdFirstStore: writes the ids that a table remembers first, as a write of their own, so that a
// crash may come between.
class IdFirstStore final : public ForwardingStore {
 public:
  // REQUIRES: `below` outlives this, and is that of a table; `with_content`: of an exact one.
  IdFirstStore(OrderedStore& below, bool with_content)
      : ForwardingStore(below), with_content_(with_content) {}

  Result<void> write(std::span<const Write> writes) override;

 private:
  bool with_content_;
};

// ForgetfulStore: leaves out a part of what a table writes.
class ForgetfulStore final : public ForwardingStore {
 public:
  // REQUIRES: `below` outlives this, and is that of a table of this site; `with_content`: of an
  // exact one.
  ForgetfulStore(OrderedStore& below, SiteId site, TallyFault fault, bool with_content)
      : ForwardingStore(below), site_(site), fault_(fault), with_content_(with_content) {}

  Result<void> write(std::span<const Write> writes) override;

 private:
  Result<void> write_unkept(std::span<const Write> writes);
  Result<void> write_in_order(std::span<const Write> writes);

  SiteId site_;
  TallyFault fault_;
  bool with_content_;
  std::map<std::uint64_t, std::uint64_t> highest_;  // sequence of each client
};

// Removes the ids from a journal for which a recogniser of this goal has no room at a restart.
Result<void> forget_beyond_cap(OrderedStore& store, const tally::Recognition& goal);

// Turns the copy of a member's store into that of another site, even if the member is retired.
Result<void> become_blindly(OrderedStore& store, SiteId site);

// Returns the entries as a credulous site would see them: without what they know of its own log,
// and with heads and a group that agree with its own.
using Entries = std::vector<std::pair<std::string, std::string>>;
Entries believed(const Entries& entries, const tally::internal::OperationLog::State& state);

// Returns a view of `site` that says it has got only to `own` in its own log. REQUIRES: a sound
// view.
std::string understated(std::string_view view, SiteId site, std::uint64_t own);

// Returns a view that says its site holds `more` besides. REQUIRES: a sound view.
std::string overstated(std::string_view view, const VersionVector& more);

// Removes the records of a table's journal that are older than this.
Result<void> drop_journal(OrderedStore& store, TimeMs before_ms);

}  // namespace semel::simulation
