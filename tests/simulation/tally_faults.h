// Faults that are planted in a simulated table and that the checker must find. The code of the
// table stays the same; its store, its messages or its settings change.
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
  no_second_rule,    // a site says what it holds of others, but not how far it had got itself
  short_window,      // ids are forgotten while they are still retried
  half_window,       // ids are forgotten after half of the window
  journal_dropped,   // old records of the journal are removed, even with operations not yet shared
  acknowledged_while_full,  // a site claims to hold an operation that it had no room to remember
  folded_not_kept,          // a folded operation that is still needed is in no entry
  retired_copied,           // a copy of a retired member becomes a site
  arrivals_without_time,    // arriving entries get the time of the last tick
  recall_within_cap,        // a restart forgets the ids for which its windows have no room
  out_of_order_forgotten,   // a sequence that arrives after a higher one is not in the journal
  doubles_unnoticed,        // sites do not hear what others know of them, or their table
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

// IdFirstStore: writes the ids of a table first, as a separate write, so that a crash may come
// between.
class IdFirstStore final : public ForwardingStore {
 public:
  // REQUIRES: `below` outlives this, and holds a table; `with_content`: an exact one.
  IdFirstStore(OrderedStore& below, bool with_content)
      : ForwardingStore(below), with_content_(with_content) {}

  Result<void> write(std::span<const RecordWrite> writes) override;

 private:
  bool with_content_;
};

// ForgetfulStore: omits a part of a table's writes.
class ForgetfulStore final : public ForwardingStore {
 public:
  // REQUIRES: `below` outlives this, and holds a table of this site; `with_content`: an exact one.
  ForgetfulStore(OrderedStore& below, SiteId site, TallyFault fault, bool with_content)
      : ForwardingStore(below), site_(site), fault_(fault), with_content_(with_content) {}

  Result<void> write(std::span<const RecordWrite> writes) override;

 private:
  Result<void> write_unkept(std::span<const RecordWrite> writes);
  Result<void> write_in_order(std::span<const RecordWrite> writes);

  SiteId site_;
  TallyFault fault_;
  bool with_content_;
  std::map<std::uint64_t, std::uint64_t> highest_;  // sequence of each client
};

// Removes the ids from a journal for which a recogniser of this goal has no room at a restart.
Result<void> forget_beyond_cap(OrderedStore& store, const tally::Recognition& goal);

// Turns the copy of a member's store into that of another site, even if the member is retired.
Result<void> become_blindly(OrderedStore& store, SiteId site);

// Returns the entries as a credulous site would see them: without their knowledge of its own log,
// and with heads and a group that agree with its own.
using Entries = std::vector<std::pair<std::string, std::string>>;
Entries believed(const Entries& entries, const tally::internal::OperationLog::State& state);

// Returns a view in which `site`, whose view it is, has got only to `own` in its own log. REQUIRES:
// a sound view.
std::string understated(std::string_view view, SiteId site, std::uint64_t own);

// Returns a view in which `site`, whose view it is, also holds `more`. REQUIRES: a sound view.
std::string overstated(std::string_view view, SiteId site, const VersionVector& more);

// Removes the records of a table's journal that are older than this.
Result<void> drop_journal(OrderedStore& store, TimeMs before_ms);

}  // namespace semel::simulation
