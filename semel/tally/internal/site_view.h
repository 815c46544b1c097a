// SiteView: what a site tells the others: how much of every log it holds, durably, and which
// members it knew at that moment. It only grows.
//
// Sites of one table have its group in common, a number that the first admission makes. Tables that
// were made apart have different groups, whatever they call their sites.
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
  Members members;     // known when that was so
  LogHeads heads;      // of what is held
  std::uint64_t group = 0;

  // Takes what is held from the later of the two, and the members of both. The view must be of the
  // same site. Views of two groups do not mix: the greater group stays, and is refused by sites of
  // the other. Returns true if it changed anything.
  bool merge(const SiteView& other);

  void encode(Sink out) const;
  static Result<SiteView> decode(ByteView in);
  bool operator==(const SiteView&) const = default;
};

}  // namespace semel::tally::internal
