#include "tests/simulation/tally_world_run.h"

namespace semel::simulation {

std::vector<SiteId> World::survivors() {
  std::vector<SiteId> sites;
  for (const Member& each : members_) {
    if (each.started && !each.gone && !each.retired) sites.push_back(each.site->id());
  }
  return sites;
}

void World::admit() {
  Member& by = any_member();
  if (closed_ || by.gone || by.closed || !by.started || !by.site->up()) return;
  // Only the simulator knows that a site is retired before the site has heard of it.
  if (!has(Feature::retired_copies) && (by.retired || !by.site->table().info().ready)) return;
  const SiteId old = by.site->id();
  const SiteId id = new_site().id();  // `by` is no longer valid
  members_.back().started = false;
  tell("site ", old, " admits site ", id);
  Result<void> admitted;
  guarded(old, [&] {
    admitted = member(old).site->table().admit(id);
    if (!admitted && admitted.error().code == Errc::io) throw DiskFailed{};
  });
  if (!admitted) {  // it is new, or has heard that it is void or retired; or its disk failed
    const Errc code = admitted.error().code;
    require(code == Errc::outside || code == Errc::gap || code == Errc::io, "admit");
    member(id).retired = true;
    return;
  }
  ++counts_.admitted;
  const bool retires = has(Feature::retired_copies) && random_.below(2) == 0;
  if (retires) lose_site(old);
  agenda_.after(static_cast<TimeMs>(random_.below(retires ? 8'000 : 1'000)),
                [=, this] { start_copy(id, old); });
}

void World::start_copy(SiteId id, SiteId old) {
  Member& from = member(old);
  if (closed_ || from.gone || member(id).retired || !from.site->up()) return;
  if (!has(Feature::retired_copies)) {
    // It may have come too late for a fence, and already be void.
    if (from.retired || !from.site->table().info().members.active(id)) return;
  }
  tell("site ", id, " starts from a copy of site ", old);
  counts_.retired_copies += from.retired ? 1 : 0;
  from.site->fail_next(std::nullopt);
  member(id).site->fail_next(std::nullopt);
  const Result<void> started = member(id).site->open_as_copy_of(*from.site, agenda_.now_ms());
  if (!started) {
    tell("the copy is refused: ", started.error().message());
    const Errc code = started.error().code;
    require(has(Feature::retired_copies) &&
                (code == Errc::outside || code == Errc::invalid || code == Errc::gap),
            "a copy of a member is refused");
    return;
  }
  member(id).started = true;
  // The rest of each window is as long here as at the member, whatever the clocks show.
  const TimeMs ahead_ms = member(id).site->see(agenda_.now_ms()) - from.site->see(agenda_.now_ms());
  member(id).since = from.since;
  for (auto& [intent, since] : member(id).since) since.site_ms += ahead_ms;
  check_values(member(id));
  start_timers(id);
  // This may happen before anybody else has heard of the site.
  if (weather_.retirements > 0) {
    agenda_.after(static_cast<TimeMs>(random_.below(1'000)), [=, this] { lose_site(old); });
  }
}

std::optional<SiteId> World::ready_site_besides(SiteId id) {
  std::vector<SiteId> sites;
  for (const SiteId each : survivors()) {
    TallySite& site = *member(each).site;
    if (each == id || !site.up()) continue;
    const TallyStore::Info log = site.table().info();
    if (log.ready && log.members.active(each)) sites.push_back(each);
  }
  if (sites.empty()) return std::nullopt;
  return sites[random_.below(sites.size())];
}

void World::lose_site(SiteId id) {
  Member& at = member(id);
  const bool lives = at.started && !at.gone && !at.retired;
  if (closed_ || !lives || !ready_site_besides(id)) return;
  if (random_.below(2) == 0) {
    tell("site ", id, " is gone for good");
    if (at.site->up()) at.site->crash(true, random_);
    at.gone = true;
  }
  agenda_.after(static_cast<TimeMs>(random_.below(4'000)), [=, this] {
    const std::optional<SiteId> by = ready_site_besides(id);
    if (!closed_ && by && !member(id).retired) retire(id, *by);
  });
}

void World::retire(SiteId id, SiteId by) {
  tell("site ", by, " retires site ", id);
  bool told = false;
  guarded(by, [&] {
    const Result<void> retired = member(by).site->table().retire(id);
    // It may not know a site that was admitted elsewhere.
    if (!retired && retired.error().code == Errc::invalid) return;
    told = true;
    require(retired, "retire");
  });
  // The message may have been sent even if the disk failed.
  if (told && !std::exchange(member(id).retired, true)) ++counts_.retired;
}

}  // namespace semel::simulation
