// SiteView: the report of a site to the others: how much of every log it holds durably, and which
// members it knew at that moment. A view only grows.
//
// Sites of one table share its group, a number that the first admission makes. Tables that were
// made independently have different groups, whatever ids their sites have.
// Format    docs/formats/tally_entries_v1.md, 'A view'.
#pragma once

#include <cstdint>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/internal/log_heads.h"
#include "semel/tally/members.h"

namespace semel::tally::internal {

struct SiteView {
  VersionVector held;  // of every log: all operations up to a number, durably
  Members members;     // as known at that moment
  LogHeads heads;      // of what is held
  std::uint64_t group = 0;

  // Takes `held` from the later of the two, and the members of both. The view must be of the same
  // site. Views of two groups do not mix: the greater group stays, and sites of the other group
  // refuse it. Returns true if it changed anything.
  bool merge(const SiteView& other);

  void encode(Sink out) const;
  static Result<SiteView> decode(ByteView in);
  bool operator==(const SiteView&) const = default;
};

}  // namespace semel::tally::internal
