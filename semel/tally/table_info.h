// TableInfo: the status of a table: its promise, its contents, and the member that it waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "semel/core/clock.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/members.h"
#include "semel/tally/recognition.h"
#include "semel/window/window.h"

namespace semel::tally {

struct TableInfo {
  // The way in which the table recognises retries.
  Recognition recognition;
  TimeMs now_ms = 0;  // the time of the last change
  WindowPromise promise = {};
  WindowCounts counts = {};
  double false_positive_rate = 0;  // now
  double expected_undercount = 0;  // operations lost as retries since the table was made or opened
  std::uint64_t recogniser_bytes = 0;

  // The content.
  SiteId site = 1;
  Members members = {};
  VersionVector held = {};     // of the log of each site: all operations up to a number
  VersionVector folded = {};   // those of them that are in the counters for good
  std::uint64_t unfolded = 0;  // operations that not all members are known to hold
  bool ready = true;           // false: the site is new, and does not yet hold what the others held
  // Others hold operations of this site that it does not hold: it was restored from an old
  // backup, or another site has its id. It must go on under another id.
  bool superseded = false;
  // Sites of whose log another member holds different operations than this one, as far as is known
  // since the table was opened.
  std::vector<SiteId> forked = {};
  std::optional<SiteId> waiting_for = {};  // the member that prevents folding
};

}  // namespace semel::tally
