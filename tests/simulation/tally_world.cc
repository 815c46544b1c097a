#include "tests/simulation/tally_twins.h"
#include "tests/simulation/tally_world_run.h"

namespace semel::simulation {

TallyOutcome World::run() {
  TallyOutcome outcome;
  try {
    begin();
    for (int act = 0; act < weather_.acts; ++act) {
      // In the second all ids of the first have been forgotten.
      if (act > 0) agenda_.after(2 * weather_.window_ms + 10'000, [this] { exchange_all(); });
      while (!agenda_.empty()) agenda_.step();
      first_of_act_ = truth_.intents.size();
      play();
      heal();
      // Messages that are still on their way arrive now.
      while (!agenda_.empty()) agenda_.step();
      heal();
      check_end();
    }
  } catch (const Violation& violation) {
    tell("VIOLATION: ", violation.text);
    outcome.violation = violation;
  }
  counts_.repeated = truth_.repeated();
  outcome.counts = counts_;
  return outcome;
}

bool World::asked_once(std::size_t intent) const {
  return truth_.intents[intent].id.kind == OperationId::Kind::none;
}

TallySite& World::new_site() {
  const auto id = static_cast<SiteId>(members_.size() + 1);
  const Skew skew{static_cast<TimeMs>(random_.below(10'000)) - 5'000, (random_.unit() - 0.5) / 50};
  members_.push_back({std::make_unique<TallySite>(id, settings_, plan_.fault, skew)});
  return *members_.back().site;
}

void World::begin() {
  new_site().open(0);
  for (int i = 1; i < plan_.sites; ++i) {
    TallySite& site = new_site();
    TallySite& from = *members_[random_.below(members_.size() - 1)].site;
    require(from.table().admit(site.id()), "admit");
    require(site.open_as_copy_of(from, 0), "a copy of a member");
    for (int round = 0; !all_ready(); ++round) {
      require(round < kMostRounds, "new sites do not become ready");
      exchange_all();
    }
  }
  if (has(Feature::standbys)) {
    standby_ = members_.back().site->id();
    ++counts_.standbys;
    takeover_ms_ = 4'000 + static_cast<TimeMs>(random_.below(kClientsStopMs - 4'000));
  }
}

void World::play() {
  closed_ = false;
  cuts_.clear();
  const TimeMs end_ms = agenda_.now_ms() + kRunMs;
  for (const SiteId id : survivors()) start_timers(id);
  pointed_crashes_ = 0;
  for (int begun = 0; begun < weather_.operations;) begun += begin_request();
  for (int i = 0; i < weather_.crashes; ++i) {
    agenda_.after(moment(), [this] { crash(any_member()); });
  }
  for (int i = 0; i < weather_.io_errors; ++i) {
    agenda_.after(moment(), [this] {
      any_member().site->fail_next(static_cast<FailingStore::Failure>(random_.below(3)));
    });
  }
  for (int i = 0; i < weather_.cuts; ++i) begin_cut();
  for (int i = 0; i < weather_.steps; ++i) {
    agenda_.after(moment(), [this] {
      any_member().site->step_clock(static_cast<TimeMs>(random_.below(6'000)) - 3'000);
    });
  }
  for (int i = 0; i < weather_.admissions; ++i) agenda_.after(moment(), [this] { admit(); });
  for (int i = 0; i < weather_.retirements; ++i) {
    agenda_.after(moment(), [this] { lose_site(any_member().site->id()); });
  }
  while (!agenda_.empty() && agenda_.next_ms() < end_ms) agenda_.step();
  tell("all faults stop");
  for (const Member& each : members_) each.site->fail_next(std::nullopt);
  closed_ = true;
}

bool World::all_ready() {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& each) { return each.site->table().info().ready; });
}

void TallyCounts::add(const TallyCounts& other) {
  operations += other.operations;
  retries += other.retries;
  messages += other.messages;
  syncs += other.syncs;
  crashes += other.crashes;
  admitted += other.admitted;
  retired += other.retired;
  repeated += other.repeated;
  plain_taken += other.plain_taken;
  plain_distinct += other.plain_distinct;
  batches += other.batches;
  standbys += other.standbys;
  late += other.late;
  full += other.full;
  stale += other.stale;
  overflows += other.overflows;
  io_errors += other.io_errors;
  retired_copies += other.retired_copies;
  restored += other.restored;
  twins += other.twins;
  strangers += other.strangers;
  found_out += other.found_out;
}

TallyOutcome simulate(const TallyPlan& plan, std::ostream* trace) {
  if (weather_of(plan).features.has(Feature::twins)) return simulate_twins(plan, trace);
  return World(plan, trace).run();
}

}  // namespace semel::simulation
