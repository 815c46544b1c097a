// Session: what all parts of an initiator share, such as the store, the settings, the open
// questions and the findings of the present pass.
//
// A sync goes through the range in stretches, so that memory is bounded. A stretch is compared in
// passes, until its difference is proved or the passes are used up. In each pass the Estimator says
// how much differs, the Search finds what differs, and the Repair fetches, stores and settles it.
#pragma once

#include <cstdint>

#include "semel/core/internal/random.h"
#include "semel/core/result.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/internal/exchange.h"
#include "semel/sync/internal/findings.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/internal/key_tally.h"
#include "semel/sync/internal/planner.h"
#include "semel/sync/internal/short_digest.h"
#include "semel/sync/sync.h"

namespace semel::sync_internal {

inline const Error kNotAsked{Errc::corrupt, "sync: the other end answers what was not asked"};

struct Session {
  Session(IndexedStore& store, SyncSettings how)
      : index(store),
        settings(std::move(how)),
        salts(settings.seed),
        exchange(frame::key_name(index.secret()), static_cast<std::uint32_t>(salts()),
                 settings.limits.frame_bytes),
        findings(keep()) {}

  // These derive from the settings.
  bool repairs() const { return settings.purpose == SyncPurpose::repair; }
  bool two_way() const {
    return settings.resolver.rule == SyncRule::join || settings.resolver.rule == SyncRule::newest;
  }
  bool here_is_source() const { return settings.resolver.role == SyncRole::initiator_is_source; }
  bool calls_back() const { return settings.resolver.rule == SyncRule::callback; }
  bool removes() const {
    return settings.resolver.rule == SyncRule::source && settings.resolver.remove_extra;
  }
  bool gives() const { return two_way() || (here_is_source() && !calls_back()); }
  bool takes() const { return two_way() || (!here_is_source() && !calls_back()); }
  bool writes_there() const { return repairs() && gives(); }
  bool writes_here() const { return repairs() && takes(); }
  // Returns how much must be known of a record that only the other end has. A plan predicts a
  // repair.
  frame::Content content() const;
  Travels travels() const;
  Findings::Keep keep() const;

  ShortDigest shorten(ShortDigest::Of of) const { return {index.secret(), of, salt}; }
  std::size_t room() const;  // bytes that the body of a part may have

  IndexedStore& index;
  SyncSettings settings;
  Random salts;
  Exchange exchange;
  SyncReport report;

  KeyRange stretch;
  KeyTally tally;  // keys of the stretch that differed, as noted when their records were stored

  // The present pass.
  std::uint32_t pass = 0;  // from 1 in each stretch
  std::uint16_t salt = 0;
  Aggregate here;
  Aggregate there;
  DifferenceEstimate estimate;
  Findings findings;
};

}  // namespace semel::sync_internal
