// OperationLog: its members, what each of them is known to hold, and the fences of retired ones.
#include <algorithm>
#include <limits>

#include "semel/core/assert.h"
#include "semel/tally/internal/operation_log.h"

namespace semel::tally::internal {

Result<void> OperationLog::check_group(const SiteView& view) const {
  const bool has_others = state_.group != 0;
  if (has_others && view.group == state_.group) return {};
  return Error{Errc::mismatch, "a view of another table: sites start from a copy of a member"};
}

void OperationLog::receive(SiteId from, const SiteView& view) {
  SEMEL_ASSERT(check_group(view).has_value());
  compare(view);
  if (from != site()) {
    const SiteView* said = view_of(from);
    const bool grows =
        said == nullptr || said->held.compare(view.held) != std::partial_ordering::unordered;
    if (grows) {
      merge_view(from, view);
    } else {
      mark_forked(from);
    }
    return;
  }
  // A site reports only what it holds durably. If it holds less now, it has lost something.
  VersionVector all = held();
  if (all.merge(view.held)) mark_forked(site());
}

// Marks the logs of which others hold different operations, within the range that both hold.
void OperationLog::compare(const SiteView& view) {
  for (const VersionVector::Site& log : view.held.sites()) {
    const Dot last{log.site, log.counter};
    if (contradicts(last, view.heads.at(log.site))) mark_forked(log.site);
  }
}

void OperationLog::merge_view(SiteId from, const SiteView& view) {
  Peer& peer = peers_[from];
  peer.latest.group = state_.group;
  peer.latest.merge(view);
  learn_members(from, view.members);
  if (!peer.next) peer.next = peer.latest;
  become_ready();
}

// This site admits a site that it did not know only on the word of a site that is not retired, and
// that knows all retirements known here. Otherwise a fence may have been found without the new
// site. A member that knew the new site before a retirement told both together, so no fence was
// found without it. If there is no such member, the new site hears of the retirement from a site
// that does not know it, and retires itself. It has taken nothing until then, because it is not
// ready before all members know it.
void OperationLog::learn_members(SiteId from, const Members& told) {
  const bool vouches = !told.retired(from) && !members().retired(from);
  const bool current = members().retired(site()) || told.retired_all_of(members());
  const bool vouched_for = vouches && told.contains(site());
  if (!state_.ready && !vouched_for && !members().retired_all_of(told)) {
    state_.members.retire(site());
  }
  for (const Members::Member& member : told.all()) {
    if (member.retired) {
      state_.members.retire(member.site);
    } else if (vouches && current) {
      state_.members.admit(member.site);
    }
  }
}

const SiteView* OperationLog::view_of(SiteId from) const {
  const auto at = peers_.find(from);
  return at == peers_.end() ? nullptr : &at->second.latest;
}

bool OperationLog::holds(const SiteView& view) const {
  const auto sites = view.held.sites();
  return std::all_of(sites.begin(), sites.end(), [&](const VersionVector::Site& log) {
    const Dot last{log.site, log.counter};
    return held().contains(last) && !contradicts(last, view.heads.at(log.site));
  });
}

// Rule 2: an acknowledgement counts once this site holds everything that the acknowledging site
// held. Until then it waits, even if later ones arrive.
void OperationLog::update_acknowledged(Peer& peer) const {
  while (peer.next && holds(*peer.next)) {
    if (!peer.acknowledged.merge(peer.next->held)) {
      peer.next.reset();
    } else {
      peer.next = peer.latest;
    }
  }
}

// Returns the end of the log of a retired site; nullopt while some member has not said what it
// holds.
std::optional<std::uint64_t> OperationLog::fence(SiteId retired) const {
  std::uint64_t most = held().at(retired);
  for (const Members::Member& member : members().all()) {
    if (member.retired || member.site == site()) continue;
    const SiteView* view = view_of(member.site);
    if (view == nullptr || !view->members.retired_all_of(members())) return std::nullopt;
    most = std::max(most, view->held.at(retired));
  }
  return most;
}

// Returns the number up to which the log of a site counts, as far as is known.
std::uint64_t OperationLog::last_of(SiteId log) const {
  if (!members().retired(log)) return Dot::kLastCounter;
  return fence(log).value_or(held().at(log));
}

bool OperationLog::fenced() const {
  for (const Members::Member& member : members().all()) {
    if (!member.retired) continue;
    const std::optional<std::uint64_t> last = fence(member.site);
    if (!last || held().at(member.site) < *last) return false;
  }
  return true;
}

std::uint64_t OperationLog::acknowledged(SiteId log) const {
  std::uint64_t least = held().at(log);
  for (const Members::Member& member : members().all()) {
    if (member.retired || member.site == site()) continue;
    const auto peer = peers_.find(member.site);
    least = std::min(least, peer == peers_.end() ? 0 : peer->second.acknowledged.at(log));
  }
  return least;
}

void OperationLog::become_ready() {
  if (state_.ready) return;
  for (const Members::Member& member : members().all()) {
    if (member.retired || member.site == site()) continue;
    const SiteView* view = view_of(member.site);
    if (view == nullptr || !view->members.contains(site())) return;
    VersionVector all = held();
    if (all.merge(view->held)) return;
  }
  state_.ready = true;
}

Result<void> OperationLog::admit(SiteId site, TimeMs now_ms) {
  if (Result<void> able = in_force(); !able) return able;
  if (members().contains(site)) {
    return Error{Errc::invalid, "the site is or was a member; its id cannot be used again"};
  }
  state_.members.admit(site);
  if (state_.group == 0) state_.group = new_group(now_ms);
  return {};
}

// Returns a number that differs for tables made independently: they differ in their operations, in
// their site, or in the time.
std::uint64_t OperationLog::new_group(TimeMs now_ms) const {
  Bytes bytes;
  members().encode(bytes);
  held().encode(bytes);
  const std::uint64_t seed = mix(static_cast<std::uint64_t>(now_ms)) + site();
  return std::max<std::uint64_t>(1, digest(text_of(bytes), seed).lo);
}

Result<void> OperationLog::retire(SiteId site) {
  if (Result<void> able = in_force(); !able) return able;
  if (!members().active(site)) return Error{Errc::invalid, "no such member"};
  if (site == this->site()) {
    return Error{Errc::invalid, "a site cannot retire itself; another one can"};
  }
  state_.members.retire(site);
  become_ready();
  return {};
}

Result<void> OperationLog::become(SiteId site) {
  if (Result<void> able = in_force(); !able) return able;
  if (!members().active(site) || held().at(site) != 0) {
    return Error{Errc::invalid, "the site has not been admitted, or has begun already"};
  }
  state_.site = site;
  state_.ready = false;
  peers_.erase(site);
  become_ready();
  return {};
}

std::optional<SiteId> OperationLog::waiting_for() const {
  if (unfolded_ == 0) return std::nullopt;
  std::optional<SiteId> slowest;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Members::Member& member : members().all()) {
    if (member.retired || member.site == site()) continue;
    const SiteView* view = view_of(member.site);
    std::uint64_t seen = 0;
    if (view != nullptr && view->members.retired_all_of(members())) {
      for (const VersionVector::Site& log : view->held.sites()) {
        seen += std::min(log.counter, held().at(log.site));
      }
    }
    if (seen < least) {
      least = seen;
      slowest = member.site;
    }
  }
  return slowest;
}

// A member that not all others know may turn out to be too late for a fence, so it does not count
// as a holder.
bool OperationLog::known_to_all(SiteId member) const {
  for (const Members::Member& other : members().all()) {
    if (other.retired || other.site == member || other.site == site()) continue;
    const SiteView* view = view_of(other.site);
    if (view == nullptr || !view->members.contains(member)) return false;
  }
  return true;
}

std::uint64_t OperationLog::holders(Dot dot) const {
  std::uint64_t holders = 0;
  for (const Members::Member& member : members().all()) {
    if (member.retired || !known_to_all(member.site)) continue;
    const SiteView* view = view_of(member.site);
    if (view != nullptr && view->held.contains(dot)) ++holders;
  }
  return holders;
}

}  // namespace semel::tally::internal
