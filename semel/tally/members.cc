#include "semel/tally/members.h"

#include <algorithm>

namespace semel::tally {

std::vector<Members::Member>::iterator Members::at_or_after(SiteId site) {
  return std::lower_bound(members_.begin(), members_.end(), site,
                          [](const Member& member, SiteId id) { return member.site < id; });
}

bool Members::contains(SiteId site) const {
  return std::any_of(members_.begin(), members_.end(),
                     [site](const Member& member) { return member.site == site; });
}

bool Members::admit(SiteId site) {
  const auto at = at_or_after(site);
  if (at != members_.end() && at->site == site) return false;
  members_.insert(at, {site, false});
  return true;
}

bool Members::retire(SiteId site) {
  const auto at = at_or_after(site);
  if (at == members_.end() || at->site != site) {
    members_.insert(at, {site, true});
    return true;
  }
  const bool changed = !at->retired;
  at->retired = true;
  return changed;
}

bool Members::merge(const Members& other) {
  bool changed = false;
  for (const Member& member : other.members_) {
    if (member.retired ? retire(member.site) : admit(member.site)) changed = true;
  }
  return changed;
}

bool Members::retired_all_of(const Members& other) const {
  return std::all_of(other.members_.begin(), other.members_.end(), [this](const Member& member) {
    return !member.retired || retired(member.site);
  });
}

void Members::encode(Sink out) const {
  Writer w(out);
  w.varint(members_.size());
  for (const Member& member : members_) {
    w.u16(member.site);
    w.boolean(member.retired);
  }
}

Result<Members> Members::decode(Reader& in) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.rest() / 3) return Error{Errc::corrupt, "members: too many"};
  Members members;
  members.members_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const SiteId site = in.u16();
    const bool retired = in.boolean();
    if (!in.ok() || (i > 0 && members.members_.back().site >= site)) {
      return Error{Errc::corrupt, "members: not in order"};
    }
    members.members_.push_back({site, retired});
  }
  return members;
}

}  // namespace semel::tally
