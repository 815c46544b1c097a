#include "tests/simulation/tally_world_run.h"

namespace semel::simulation {

void World::exchange_all() {
  for (Member& from : members_) {
    if (!from.started || from.gone || from.retired) continue;
    from.site->tick(agenda_.now_ms());
    from.site->publish();
    const Entries entries = from.site->entries(true);
    for (Member& to : members_) {
      if (&to == &from || !to.started || to.gone || to.retired) continue;
      take_entries(to, entries, false);
    }
  }
}

bool World::at_rest() {
  const std::vector<SiteId> sites = survivors();
  const VersionVector held = member(sites.front()).site->held();
  return std::all_of(sites.begin(), sites.end(), [&](SiteId id) {
    const TallyStore::Info info = member(id).site->table().info();
    return info.ready && info.held == held && info.unfolded == 0;
  });
}

void World::heal() {
  for (const SiteId id : survivors()) {
    if (!member(id).site->up()) restart(id);
  }
  // All sites must know all members before the missing ones are retired. First retirements spread,
  // then admissions: sites that have not heard of a retirement are not believed.
  for (int round = 0; round < 3; ++round) exchange_all();
  find_void();
  for (Member& each : members_) {
    // The site that knew of a retirement may itself be gone.
    const bool missing = !each.started || each.gone || each.retired;
    if (!missing) continue;
    const std::optional<SiteId> by = ready_site_besides(each.site->id());
    require(by.has_value(), "no site is left that works");
    retire(each.site->id(), *by);
  }
  // A full table takes in other sites' operations one window at a time.
  const int most_rounds = has(Feature::caps) ? 10 * kMostRounds : kMostRounds;
  for (int round = 0; !at_rest(); ++round) {
    if (round == most_rounds) tell_states();
    require(round < most_rounds, "the sites do not come to rest");
    exchange_all();
    find_void();
    // A full table has room again once ids have left the window.
    if (has(Feature::caps)) pass(weather_.window_ms / 8);
  }
  for (const SiteId id : survivors()) check_values(member(id));
}

void World::pass(TimeMs time_ms) {
  bool over = false;
  agenda_.after(time_ms, [&] { over = true; });
  while (!over) agenda_.step();
}

void World::tell_states() {
  for (const SiteId id : survivors()) {
    const TallyStore::Info info = member(id).site->table().info();
    std::string held;
    for (const VersionVector::Site& log : info.held.sites()) {
      held.append(" ").append(std::to_string(log.site));
      held.append(":").append(std::to_string(log.counter));
    }
    std::string members;
    for (const tally::Members::Member& each : info.members.all()) {
      members.append(" ").append(std::to_string(each.site));
      if (each.retired) members.append(" retired");
    }
    tell("site ", id, info.ready ? " is ready" : " is not ready", ", has not folded ",
         info.unfolded, ", holds", held, ", knows", members);
  }
}

void World::find_void() {
  for (const SiteId id : survivors()) {
    const tally::Members members = member(id).site->table().info().members;
    for (const tally::Members::Member& each : members.all()) {
      if (!each.retired || member(each.site).retired) continue;
      tell("site ", each.site, " is void");
      require(truth_.last_of(each.site) == 0, "a site that took operations is void",
              Violation::Kind::lost);
      member(each.site).retired = true;
    }
  }
}

void World::check_end() {
  const std::vector<SiteId> sites = survivors();
  const VersionVector held = member(sites.front()).site->held();
  for (Member& each : members_) {
    const SiteId id = each.site->id();
    each.closed = each.retired;
    if (!each.retired) {
      require(held.at(id) == truth_.last_of(id), "the end of a log is missing",
              Violation::Kind::lost);
    }
    for (const std::size_t intent : truth_.lose(id, held.at(id))) {
      truth_.intents[intent].may_be_lost = true;
    }
  }
  for (std::size_t i = 0; i < truth_.intents.size(); ++i) {
    const Intent& intent = truth_.intents[i];
    const bool counts = truth_.held(i, held);
    const std::string name = "operation " + std::to_string(i);
    require(counts || !intent.sure, name + " is lost, although enough sites held it",
            Violation::Kind::lost);
    require(counts || !intent.acknowledged || intent.may_be_lost,
            name + " was acknowledged and is lost", Violation::Kind::lost);
  }
  for (const SiteId id : sites) checker_.rest(*member(id).site, held, plan_.seed % 8 == 0);
}

void World::check_sometimes(Member& at) {
  if (random_.below(weather_.operations < 100 ? 4 : 16) == 0) check_values(at);
}

void World::check_values(Member& at) {
  if (!at.retired) checker_.values(*at.site);
}

}  // namespace semel::simulation
