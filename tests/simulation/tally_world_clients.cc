#include "tests/simulation/tally_world_run.h"

namespace semel::simulation {

int World::begin_request() {
  Operations operations = {begin_intent()};
  const auto size = 1 + random_.below(static_cast<std::uint64_t>(weather_.most_in_batch));
  const auto may_be_in_batch = [this](std::size_t intent) {
    return truth_.intents[intent].kind == Operation::Kind::add && !asked_once(intent);
  };
  while (operations.size() < size && may_be_in_batch(operations.back())) {
    operations.push_back(begin_intent());
  }
  // An operation of another kind is sent in its own request.
  const auto at_ms = static_cast<TimeMs>(random_.below(kClientsStopMs));
  if (operations.size() > 1 && !may_be_in_batch(operations.back())) {
    agenda_.after(at_ms, [=, this] { ask({operations.back()}, kMostTries, any_served()); });
    operations.pop_back();
    begin_asking(operations, at_ms);
    return static_cast<int>(operations.size()) + 1;
  }
  begin_asking(operations, at_ms);
  return static_cast<int>(operations.size());
}

void World::begin_asking(Operations operations, TimeMs at_ms) {
  const auto begun = operations.size();
  if (begun > 1 && random_.below(2) == 0) {
    operations.push_back(operations[random_.below(begun)]);
    ++counts_.batches;
  }
  agenda_.after(at_ms, [=, this] { ask(operations, kMostTries, any_served()); });
  if (asked_once(operations.front()) || !happens(weather_.hasty)) return;
  agenda_.after(at_ms, [=, this] { ask(operations, 0, any_served()); });
}

std::size_t World::begin_intent() {
  const std::size_t number = truth_.intents.size();
  Intent intent;
  if (happens(weather_.changes)) {
    intent.kind = random_.below(2) == 0 ? Operation::Kind::reset : Operation::Kind::remove;
    intent.counter = weather_.digits ? digits_.any(random_) : shared_counter();
  } else if (weather_.digits) {
    const bool large = happens(weather_.large);
    const Digits::Place place = digits_.next(number, happens(weather_.negative), large);
    intent.counter = place.counter;
    intent.delta = place.delta;
  } else {
    intent.counter = shared_counter();
    intent.delta = 1 + static_cast<std::int64_t>(random_.below(1000));
    if (happens(weather_.negative)) intent.delta = -intent.delta;
  }
  intent.id = begin_id(number);
  truth_.intents.push_back(intent);
  answered_.push_back(false);
  ++counts_.operations;
  return number;
}

std::string World::shared_counter() {
  const auto counters = static_cast<std::uint64_t>(weather_.counters);
  return "counter-" + std::to_string(random_.below(counters));
}

OperationId World::begin_id(std::size_t number) {
  // Ids of the first act have left all windows, so they stand for new operations now.
  if (first_of_act_ > 0 && happens(weather_.reused)) {
    const std::size_t old = random_.below(first_of_act_);
    if (reused_.insert(old).second) return truth_.intents[old].id;
  }
  if (happens(weather_.numbered)) {
    const std::uint64_t client = random_.below(static_cast<std::uint64_t>(weather_.clients));
    // An odd factor maps every number to a different one, far from those of its neighbours.
    const std::uint64_t sequence = has(Feature::out_of_order) ? number * 0x9e37 % 0x10000 : number;
    return OperationId::numbered({mix(client), 7}, sequence);
  }
  if (happens(weather_.without_id)) return OperationId::none();
  return OperationId::opaque({mix(number), mix(number + 1)});
}

SiteId World::any_served() {
  const bool takes_over = agenda_.now_ms() >= takeover_ms_;
  if (standby_ != 0 && takes_over && happens(0.8)) return standby_;
  SiteId site = any_member().site->id();
  while (site == standby_ && !takes_over && members_.size() > 1) site = any_member().site->id();
  return site;
}

void World::ask(const Operations& operations, int tries, SiteId site) {
  if (closed_) return;
  for (const std::size_t intent : operations) truth_.intents[intent].asked = true;
  if (tries < kMostTries) counts_.retries += operations.size();
  const bool once = asked_once(operations.front());
  send(!once, [=, this] { serve(operations, site); });
  if (once || tries == 0) return;
  agenda_.after(100 + static_cast<TimeMs>(random_.below(1'500)), [=, this] {
    Operations rest = operations;
    std::erase_if(rest, [this](std::size_t intent) { return answered_[intent]; });
    if (rest.empty()) return;
    ask(random_.below(2) == 0 ? rest : operations, tries - 1,
        happens(weather_.same_site) ? site : any_served());
  });
}

void World::hear(const Acknowledged& told) {
  const auto [intent, dot] = told;
  tell("client: operation ", intent, " is acknowledged");
  answered_[intent] = true;
  truth_.intents[intent].acknowledged = true;
  if (dot.counter > 0 && random_.below(2) == 0) {
    agenda_.after(2 * weather_.gossip_ms, [=, this] { make_sure(intent, dot); });
  }
  if (asked_once(intent) || !happens(weather_.late)) return;
  const auto late_ms = static_cast<std::uint64_t>(weather_.late_ms);
  agenda_.after(static_cast<TimeMs>(random_.below(late_ms)),
                [=, this, number = intent] { ask({number}, 0, any_served()); });
}

void World::make_sure(std::size_t intent, Dot dot) {
  TallySite& site = *member(dot.site).site;
  if (!site.up() || !truth_.names(dot, intent)) return;
  const auto enough = static_cast<std::uint64_t>(
      1 + std::max(1, weather_.acts * (weather_.retirements + weather_.admissions)));
  if (site.table().holders(dot) >= enough) truth_.intents[intent].sure = true;
}

World::Operations World::within_window(Member& at, const Operations& asked) {
  Operations within = asked;
  const TimeMs site_ms = at.site->see(agenda_.now_ms());
  std::erase_if(within, [&](std::size_t intent) {
    const auto since = at.since.find(intent);
    if (since == at.since.end()) return false;
    const bool late = site_ms - since->second.site_ms > weather_.window_ms ||
                      agenda_.now_ms() - since->second.world_ms > weather_.window_ms * 98 / 100;
    counts_.late += late ? 1 : 0;
    return late;
  });
  return within;
}

void World::serve(const Operations& asked, SiteId id) {
  Member& at = member(id);
  if (!at.started || !at.site->up()) return;
  const Operations operations = within_window(at, asked);
  if (!operations.empty()) guarded(id, [&] { answer(at, operations); });
}

Result<void> World::call(TallySite& site, const Operations& operations, std::span<Answer> answers,
                         bool values) {
  const TimeMs now_ms = site.clock(agenda_.now_ms());
  const Intent& first = truth_.intents[operations.front()];
  if (first.kind == Operation::Kind::add) {
    std::vector<tally::Addition> additions;
    for (const std::size_t number : operations) {
      const Intent& intent = truth_.intents[number];
      additions.push_back({intent.counter, intent.delta, intent.id});
    }
    return site.table().add(additions, answers, now_ms,
                            values ? TallyStore::Values::yes : TallyStore::Values::no);
  }
  const Result<Answer> answer = first.kind == Operation::Kind::reset
                                    ? site.table().reset(first.counter, first.id, now_ms)
                                    : site.table().remove(first.counter, first.id, now_ms);
  if (!answer) return answer.error();
  answers.front() = *answer;
  return {};
}

void World::answer(Member& at, const Operations& operations) {
  TallySite& site = *at.site;
  const SiteId id = site.id();
  VersionVector held = site.held();
  const bool values = random_.below(2) == 0;
  std::vector<Answer> answers(operations.size(), Answer{tally::kUnanswered});
  const Result<void> done = call(site, operations, answers, values);
  if (!done) {
    const Errc code = done.error().code;
    if (code == Errc::io) {
      note_doubtful(at, operations, answers, held);
      throw DiskFailed{};
    }
    require(code == Errc::gap || code == Errc::outside, done.error().message());
    tell("site ", id, " refuses operation ", operations.front(), ": ", done.error().message());
    return;
  }
  site.note();
  std::vector<Acknowledged> acknowledged;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const std::optional<Acknowledged> told = judge(at, operations[i], answers[i], values, held);
    if (told) acknowledged.push_back(*told);
  }
  require(site.held() == held, "an operation without a dot");
  check_sometimes(at);
  if (acknowledged.empty()) return;
  send(true, [=, this] {
    for (const Acknowledged& each : acknowledged) hear(each);
  });
}

void World::note_doubtful(Member& at, const Operations& operations, std::span<const Answer> answers,
                          VersionVector held) {
  const SiteId id = at.site->id();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Intent& intent = truth_.intents[operations[i]];
    const bool changes = intent.kind != Operation::Kind::add;
    if (!changes && answers[i].outcome != Outcome::applied) continue;
    const Dot dot{id, held.at(id) + 1};
    VersionVector observed = held;
    held.advance(dot);
    at.doubtful.push_back(
        {dot, operations[i], intent.kind == Operation::Kind::remove ? held : std::move(observed)});
    at.since.emplace(operations[i], Since{at.site->see(agenda_.now_ms()), agenda_.now_ms()});
  }
}

std::optional<World::Acknowledged> World::judge(Member& at, std::size_t number,
                                                const Answer& answer, bool values,
                                                VersionVector& held) {
  const SiteId id = at.site->id();
  const Intent& intent = truth_.intents[number];
  const bool adds = intent.kind == Operation::Kind::add;
  const bool knew = truth_.held(number, held);
  const std::string name =
      "site " + std::to_string(id) + ", operation " + std::to_string(number) + ": ";
  tell("site ", id, " answers operation ", number, " on ", intent.counter, " of ", intent.delta,
       ": ", static_cast<int>(answer.outcome));
  const bool counted = answer.outcome == Outcome::applied;
  if (adds && weather_.large > 0 && !at.retired && !knew &&
      (counted || answer.outcome == Outcome::overflow)) {
    const int128 sum = truth_.value(intent.counter, held).value_or(0) + intent.delta;
    require(TallyChecker::fits(sum) == counted, name + "an overflow is judged wrongly");
  }
  Dot dot{};
  switch (answer.outcome) {
    case Outcome::applied:
      require(!knew, name + "taken twice", Violation::Kind::doubled);
      dot = take(at, number, held);
      break;
    case Outcome::duplicate:
      // A retired site that has not heard of its retirement may keep operations for ever, and know
      // their ids.
      if (!knew && at.retired) return std::nullopt;
      require(knew, name + "taken for a retry, and not held", Violation::Kind::lost);
      break;
    case Outcome::stale:
      require(may_be_stale(intent), name + "a retry is stale within the window");
      ++counts_.stale;
      return std::nullopt;
    case Outcome::overflow:
      require(adds && weather_.large > 0, name + "an overflow without a reason");
      ++counts_.overflows;
      return std::nullopt;
    default:
      require(
          answer.outcome == Outcome::full && (settings_.max_unfolded < 100 || has(Feature::caps)),
          name + "a refusal without a reason");
      ++counts_.full;
      return std::nullopt;
  }
  if (adds && at.plain.insert(number).second) {
    ++counts_.plain_taken;
    if (plain_.insert(number).second) ++counts_.plain_distinct;
  }
  truth_.intents[number].acknowledged_by.insert(id);
  if (adds && values && !at.retired) {
    checker_.answer(*at.site, held, intent.counter, answer.value);
  }
  return Acknowledged{number, dot};
}

Dot World::take(Member& at, std::size_t number, VersionVector& held) {
  const SiteId id = at.site->id();
  const Dot dot{id, held.at(id) + 1};
  VersionVector observed = held;
  held.advance(dot);
  if (truth_.intents[number].kind == Operation::Kind::remove) observed = held;
  truth_.take(dot, number, std::move(observed));
  at.since.emplace(number, Since{at.site->see(agenda_.now_ms()), agenda_.now_ms()});
  require(settings_.durability != Durability::every_write || at.site->durable().contains(dot),
          "an answer before it was durable", Violation::Kind::lost);
  return dot;
}

bool World::may_be_stale(const Intent& intent) const {
  if (plan_.fault == TallyFault::short_window) return true;
  return weather_.window_ms < kRunMs && settings_.recognition->kind == Recognition::Kind::clients &&
         intent.id.kind == OperationId::Kind::numbered;
}

}  // namespace semel::simulation
