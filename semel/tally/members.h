// Members: the sites that count together.
//
// A site is admitted once and retired once, and its id is never used again. So the members known to
// two sites merge by union.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"

namespace semel::tally {

class SEMEL_API Members {
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

  // These return true if they change anything.
  bool admit(SiteId site);
  bool retire(SiteId site);  // admits it first if need be
  bool merge(const Members& other);

  // Returns true if all sites that are retired in `other` are retired here.
  bool retired_all_of(const Members& other) const;

  void encode(Sink out) const;
  static Result<Members> decode(Reader& in);
  bool operator==(const Members&) const = default;

 private:
  std::vector<Member>::iterator at_or_after(SiteId site);

  std::vector<Member> members_;  // ascending
};

}  // namespace semel::tally
