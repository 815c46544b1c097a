#include "semel/index/indexed_store.h"
#include "semel/sync/responder.h"
#include "tests/simulation/tally_world_run.h"

namespace semel::simulation {

void World::begin_cut() {
  const auto sites = static_cast<std::uint64_t>(plan_.sites);
  Cut cut{};
  cut.from = static_cast<SiteId>(1 + random_.below(sites));
  cut.to = static_cast<SiteId>(random_.below(sites + 1));
  cut.both_ways = random_.below(2) == 0;
  cut.begin_ms = agenda_.now_ms() + moment();
  cut.end_ms = cut.begin_ms + static_cast<TimeMs>(random_.below(kRunMs / 2));
  cuts_.push_back(cut);
}

void World::start_timers(SiteId site) {
  const auto tick_ms = static_cast<std::uint64_t>(weather_.tick_ms);
  agenda_.after(static_cast<TimeMs>(random_.below(tick_ms)), [=, this] { tick(site); });
  agenda_.after(static_cast<TimeMs>(random_.below(static_cast<std::uint64_t>(weather_.gossip_ms))),
                [=, this] { gossip(site); });
}

void World::send(bool may_double, const std::function<void()>& arrive) {
  if (happens(weather_.lost)) return;
  const int copies = may_double && happens(weather_.doubled) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    // A few messages are very late.
    const double late = random_.unit() * random_.unit() * random_.unit();
    agenda_.after(1 + static_cast<TimeMs>(late * static_cast<double>(weather_.delay_ms)), arrive);
  }
}

bool World::cut_off(SiteId from, SiteId to) const {
  return std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
    if (agenda_.now_ms() < cut.begin_ms || agenda_.now_ms() >= cut.end_ms) return false;
    const auto along = [&](SiteId a, SiteId b) {
      return a == cut.from && (cut.to == 0 || b == cut.to);
    };
    return along(from, to) || (cut.both_ways && along(to, from));
  });
}

void World::note_arrivals(Member& at, const VersionVector& before) {
  const Since now{at.site->see(agenda_.now_ms()), agenda_.now_ms()};
  const VersionVector held = at.site->held();
  for (const VersionVector::Site& log : held.sites()) {
    for (std::uint64_t i = before.at(log.site) + 1; i <= log.counter; ++i) {
      if (const std::optional<std::size_t> intent = truth_.intent_of({log.site, i})) {
        at.since.emplace(*intent, now);
      }
    }
  }
}

void World::tick(SiteId id) {
  if (closed_ || member(id).gone || id == standby_) return;
  if (member(id).site->up()) {
    guarded(id, [&] { member(id).site->tick(agenda_.now_ms()); });
  }
  agenda_.after(weather_.tick_ms, [=, this] { tick(id); });
}

void World::gossip(SiteId id) {
  Member& at = member(id);
  if (closed_ || at.gone) return;
  agenda_.after(
      1 + static_cast<TimeMs>(random_.below(static_cast<std::uint64_t>(2 * weather_.gossip_ms))),
      [=, this] { gossip(id); });
  const SiteId to = any_member().site->id();
  if (to == id || !at.site->up()) return;
  guarded(id, [&] { gossip(at, to); });
}

void World::gossip(Member& at, SiteId to) {
  const SiteId id = at.site->id();
  if (at.quiet == 0 && happens(weather_.publishes)) at.site->publish();
  if (happens(weather_.syncs)) {
    sync(at, member(to));
    return;
  }
  Entries entries = at.site->entries(false);
  if (happens(weather_.partial)) {
    std::erase_if(entries, [this](const auto&) { return random_.below(2) == 0; });
  }
  ++counts_.messages;
  if (!cut_off(id, to)) {
    send(true, [=, this, entries = std::move(entries)] { arrive(to, id, entries); });
  }
  crash_here(at, weather_.crash_after_publish);
}

void World::arrive(SiteId to, SiteId from, const Entries& entries) {
  Member& at = member(to);
  if (!at.started || !at.site->up()) return;
  tell("site ", to, " takes ", entries.size(), " entries of site ", from);
  guarded(to, [&] {
    take_entries(at, entries, random_.below(2) == 0);
    check_sometimes(at);
    at.quiet -= at.quiet > 0 ? 1 : 0;
    if (!closed_) crash_here(at, between_folds(at) ? 0.5 : weather_.crash_after_arrival);
  });
}

void World::take_entries(Member& at, const Entries& entries, bool join) {
  const VersionVector before = at.site->held();
  try {
    at.site->take(entries, join, agenda_.now_ms());
  } catch (const DiskFailed&) {
    note_arrivals(at, before);  // for entries that the disk may have written anyway
    throw;
  }
  note_arrivals(at, before);
}

bool World::between_folds(Member& at) {
  if (!has(Feature::crash_points)) return false;
  const TallyStore::Info log = at.site->table().info();
  return truth_.between(at.site->id(), log.held, log.folded);
}

void World::crash_here(Member& at, double probability) {
  if (!happens(probability) || ++pointed_crashes_ > kMostPointedCrashes) return;
  crash(at);
}

void World::sync(Member& here, Member& there) {
  const SiteId a = here.site->id();
  const SiteId b = there.site->id();
  if (!there.started || !there.site->up() || cut_off(a, b) || cut_off(b, a)) return;
  there.site->fail_next(std::nullopt);
  if (random_.below(5) != 0) there.site->publish();
  if (random_.below(4) == 0) require(here.site->table().checkpoint(), "checkpoint");
  here.site->fail_next(std::nullopt);
  const VersionVector held_here = here.site->held();
  const VersionVector held_there = there.site->held();
  here.site->see(agenda_.now_ms());
  there.site->see(agenda_.now_ms());
  ++counts_.syncs;
  tell("site ", a, " syncs with site ", b);
  SyncSettings settings;
  settings.range = TallyStore::sync_rule().range;
  settings.resolver.join = TallyStore::sync_rule().join;
  settings.seed = random_();
  Responder::Terms terms;
  terms.range = settings.range;
  terms.resolver = settings.resolver;
  const Result<IndexedStore*> from = here.site->table().index();
  require(from, "index");
  const Result<IndexedStore*> with = there.site->table().index();
  require(with, "index");
  Responder responder(**with, terms);
  link_.clear();
  const Network::Outcome outcome =
      link_.run(**from, settings, responder, [this](Initiator&) { return !happens(0.01); });
  require(
      outcome.end == Network::Outcome::End::done || outcome.end == Network::Outcome::End::stopped,
      "a sync of tables fails: " + outcome.words);
  here.site->note();
  there.site->note();
  note_arrivals(here, held_here);
  note_arrivals(there, held_there);
  check_values(here);
  check_values(there);
}

void World::crash(Member& at) {
  if (!closed_ && at.started && !at.gone && at.site->up()) shut_down(at);
}

void World::shut_down(Member& at) {
  ++counts_.crashes;
  const bool power_fails = happens(weather_.power_fails);
  tell("site ", at.site->id(), power_fails ? " loses power" : " is killed");
  at.site->crash(power_fails, random_);
  const SiteId id = at.site->id();
  if (power_fails) {
    for (Intent& intent : truth_.intents) intent.acknowledged_by.erase(id);
  }
  const auto longest_ms = static_cast<std::uint64_t>(weather_.longest_down_ms);
  agenda_.after(static_cast<TimeMs>(random_.below(longest_ms)), [=, this] { restart(id); });
}

void World::restart(SiteId id) {
  Member& at = member(id);
  if (at.gone || at.site->up()) return;
  const std::uint64_t last = at.site->restart(agenda_.now_ms());
  tell("site ", id, " is back, with ", last, " operations of its own");
  for (const std::size_t intent : truth_.lose(id, last)) {
    truth_.intents[intent].may_be_lost = true;
    // The client hears of the crash, so it does not trust the answer.
    if (asked_once(intent) || random_.below(2) == 0) continue;
    answered_[intent] = false;
    agenda_.after(static_cast<TimeMs>(random_.below(2'000)),
                  [=, this] { ask({intent}, kMostTries - 1, any_served()); });
  }
  for (Doubtful& each : at.doubtful) {
    if (each.dot.counter <= last) truth_.take(each.dot, each.intent, std::move(each.observed));
  }
  at.doubtful.clear();
  // A site that has just started may receive from others before it sends.
  if (has(Feature::crash_points)) at.quiet = random_.below(8);
  const VersionVector held = at.site->held();
  std::erase_if(at.since, [&](const auto& each) { return !truth_.held(each.first, held); });
  check_values(at);
}

}  // namespace semel::simulation
