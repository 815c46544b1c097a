#include "semel/tally/internal/members.h"

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
    w.u8(member.retired ? 1 : 0);
  }
}

Result<Members> Members::decode(Reader& in) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.rest() / 3) return Error{Errc::corrupt, "members: too many"};
  Members members;
  members.members_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const SiteId site = in.u16();
    const std::uint8_t retired = in.u8();
    if (retired > 1 || (i > 0 && members.members_.back().site >= site)) {
      return Error{Errc::corrupt, "members: not in order"};
    }
    members.members_.push_back({site, retired == 1});
  }
  return members;
}

namespace {

// The later of two views of a site has the greater sum. Of equal sums, which are of two sites with one
// id, either will do.
bool is_later(const SiteView& one, const SiteView& other) {
  if (one.held.sum() != other.held.sum()) return one.held.sum() > other.held.sum();
  const auto bytes = [](const SiteView& view) {
    Bytes out;
    view.held.encode(out);
    view.heads.encode(out);
    return out;
  };
  return bytes(one) > bytes(other);
}

}  // namespace

bool SiteView::merge(const SiteView& other) {
  if (other.group != group) {
    if (other.group < group) return false;
    *this = other;
    return true;
  }
  const bool later = is_later(other, *this);
  if (later) {
    held = other.held;
    heads = other.heads;
  }
  return members.merge(other.members) || later;
}

void SiteView::encode(Sink out) const {
  held.encode(out);
  members.encode(out);
  heads.encode(out);
  Writer(out).u64(group);
}

Result<SiteView> SiteView::decode(ByteView in) {
  Reader r(in);
  Result<VersionVector> held = VersionVector::decode(r);
  if (!held) return held.error();
  Result<Members> members = Members::decode(r);
  if (!members) return members.error();
  Result<LogHeads> heads = LogHeads::decode(r);
  if (!heads) return heads.error();
  const std::uint64_t group = r.u64();
  if (!r.ok() || r.rest() != 0) return Error{Errc::corrupt, "view: of another length"};
  if (!heads->within(*held)) return Error{Errc::corrupt, "view: the head of an empty log"};
  return SiteView{std::move(*held), std::move(*members), std::move(*heads), group};
}

}  // namespace semel::tally
