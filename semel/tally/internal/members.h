// Members: which sites count together, and what one of them says of all logs.
//
// A site is admitted once and retired once, and its id is never used again: so the members that two
// sites know merge by union. A SiteView is what a site tells the others: how much of every log it
// holds for good, and which members it knew at that moment. It only grows.
// Sites of one table have its group in common: a number that the first admission makes. Tables that
// were made apart have others, whatever they call their sites.
// Format    docs/formats/tally_entries_v2.md, 'A view'.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/internal/log_heads.h"

namespace semel::tally {

class Members {
 public:
  struct Member {
    SiteId site;
    bool retired;
    bool operator==(const Member&) const = default;
  };

  bool contains(SiteId site) const;  // retired ones included
  bool retired(SiteId site) const {
    return std::any_of(members_.begin(), members_.end(), [site](const Member& member) {
      return member.site == site && member.retired;
    });
  }
  bool active(SiteId site) const { return contains(site) && !retired(site); }
  std::size_t active() const {
    return static_cast<std::size_t>(std::count_if(
        members_.begin(), members_.end(), [](const Member& member) { return !member.retired; }));
  }
  std::span<const Member> all() const { return members_; }  // ascending

  // True if it changed.
  bool admit(SiteId site);
  bool retire(SiteId site);  // admits it too
  bool merge(const Members& other);

  // Whether all that are retired in `other` are retired here.
  bool retired_all_of(const Members& other) const;

  void encode(Sink out) const;
  static Result<Members> decode(Reader& in);
  bool operator==(const Members&) const = default;

 private:
  std::vector<Member>::iterator at_or_after(SiteId site);

  std::vector<Member> members_;  // ascending
};

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
  // Reads what fills `in` exactly; `in` may come from an enemy.
  static Result<SiteView> decode(ByteView in);
  bool operator==(const SiteView&) const = default;
};

}  // namespace semel::tally
