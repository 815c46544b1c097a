// What is wrong on purpose in a simulated table: the checker must find it. The code of the table stays
// as it is; its store, its messages and its settings do not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "semel/crdt/dot.h"
#include "semel/store/forwarding_store.h"

namespace semel::simulation {

enum class TallyFault : std::uint8_t {
  none,
  id_before_effect,  // the ids of a write reach the disk before the rest of it
  no_second_rule,    // a site says what it holds of others, and not how far it had got itself
  short_window,      // ids are forgotten while they are still retried
};

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

}  // namespace semel::simulation
