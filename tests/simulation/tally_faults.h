// What is wrong on purpose in a simulated table: the checker must find it. The code of the table stays
// as it is; its store, its messages and its settings do not.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "semel/core/clock.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/store/forwarding_store.h"

namespace semel::simulation {

enum class TallyFault : std::uint8_t {
  none,
  id_before_effect,  // the ids of a write reach the disk before the rest of it
  no_second_rule,    // a site says what it holds of others, and not how far it had got itself
  short_window,      // ids are forgotten while they are still retried
  half_window,       // ids are forgotten after half of the window
  journal_dropped,   // records of the journal go with the window, with operations not yet shared
  acknowledged_while_full,  // a site says that it holds what it had no room to remember
};
inline constexpr std::array<std::string_view, 7> kFaultNames = {
    "none",        "id-before-effect", "no-second-rule",         "short-window",
    "half-window", "journal-dropped",  "acknowledged-while-full"};

// Writes the ids that a table remembers first, as a write of their own: a crash may come between.
class IdFirstStore final : public ForwardingStore {
 public:
  // REQUIRES: `below` outlives this, and is that of a table; `with_content`: of an exact one.
  IdFirstStore(OrderedStore& below, bool with_content)
      : ForwardingStore(below), with_content_(with_content) {}

  Result<void> write(std::span<const Write> writes) override;

 private:
  bool with_content_;
};

// A view of `site` that says it has got only to `own` in its own log. REQUIRES: a sound view.
std::string understated(std::string_view view, SiteId site, std::uint64_t own);

// A view that says its site holds `more` besides. REQUIRES: a sound view.
std::string overstated(std::string_view view, const VersionVector& more);

// Removes the records of a table's journal that are older than this.
Result<void> drop_journal(OrderedStore& store, TimeMs before_ms);

}  // namespace semel::simulation
