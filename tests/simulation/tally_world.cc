#include "tests/simulation/tally_world.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/core/arithmetic.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/responder.h"
#include "semel/tally/entries.h"
#include "tests/simulation/agenda.h"
#include "tests/simulation/sync_network.h"
#include "tests/simulation/tally_truth.h"

namespace semel::simulation {
namespace {

using tally::Answer;
using tally::Durability;
using tally::Operation;
using tally::OperationId;
using tally::Outcome;
using tally::Recogniser;
using tally::TallyStore;

constexpr TimeMs kRunMs = 20'000;
constexpr TimeMs kClientsStopMs = 14'000;
constexpr TimeMs kTickMs = 500;
constexpr TimeMs kWindowMs = 600'000;
constexpr TimeMs kShortWindowMs = 200;
constexpr int kMostTries = 6;
constexpr int kMostRounds = 40;  // in which sites that hear each other have to come to rest

// What kind of run it is.
struct Weather {
  double lost = 0, doubled = 0;
  TimeMs delay_ms = 1;  // of a message, at most
  TimeMs gossip_ms = 100;
  double partial = 0;  // messages with some of the entries only
  double syncs = 0;    // in place of messages
  double same_site = 0.5;
  double hasty = 0;     // a client asks two sites at once
  double late = 0;      // a client that was answered asks again
  double changes = 0;   // resets and removals
  double negative = 0;  // deltas
  double numbered = 0.5;
  double without_id = 0;
  int clients = 1, counters = 1, operations = 1;
  int crashes = 0, cuts = 0, steps = 0, admissions = 0, retirements = 0;
  double power_fails = 0.7;
  int acts = 1;
};

double sometimes(Random& random, double most) {
  return random.below(2) == 0 ? 0 : most * random.unit();
}

Weather drawn(const TallyPlan& plan, Random& random) {
  Weather weather;
  weather.lost = sometimes(random, 0.4);
  weather.doubled = sometimes(random, 0.3);
  weather.delay_ms = TimeMs{1} << random.below(13);
  weather.gossip_ms = TimeMs{60} << random.below(7);
  weather.partial = sometimes(random, 0.6);
  weather.syncs = random.below(16) == 0 ? 0.3 : 0;
  weather.same_site = random.unit();
  weather.hasty = sometimes(random, 0.5);
  weather.late = sometimes(random, 0.5);
  weather.changes = sometimes(random, 0.4);
  weather.negative = random.below(3) == 0 ? 0.5 : 0;
  weather.numbered = random.unit();
  weather.without_id = sometimes(random, 0.1);
  weather.clients = 1 + static_cast<int>(random.below(4));
  weather.counters = 1 + static_cast<int>(random.below(4));
  weather.operations = 10 + static_cast<int>(random.below(40));
  weather.crashes = static_cast<int>(random.below(7));
  weather.cuts = static_cast<int>(random.below(4));
  weather.steps = static_cast<int>(random.below(3));
  weather.admissions = random.below(4) == 0 ? 1 + static_cast<int>(random.below(2)) : 0;
  weather.retirements = random.below(4) == 0 ? 1 + static_cast<int>(random.below(2)) : 0;
  weather.power_fails = random.unit();
  weather.acts = random.below(5) == 0 ? 2 : 1;
  // Faults show where nothing else is in the way.
  if (plan.fault == TallyFault::no_second_rule) weather.syncs = 0;
  return weather;
}

class World {
 public:
  World(const TallyPlan& plan, std::ostream* trace)
      : plan_(plan),
        trace_(trace),
        random_(mix(plan.seed) + static_cast<std::uint64_t>(plan.sites)),
        weather_(drawn(plan, random_)),
        link_(random_(), {.lost = weather_.lost / 4, .doubled = weather_.doubled, .reorder = 0.2}) {
    Recogniser::Goal goal;
    goal.kind = static_cast<Recogniser::Kind>(random_.below(3));
    goal.window_ms = plan.fault == TallyFault::short_window ? kShortWindowMs : kWindowMs;
    goal.fpr = 1e-9;
    goal.ids = 64;
    settings_.recogniser = goal;
    settings_.durability = static_cast<Durability>(random_.below(3));
    settings_.period_ms = TimeMs{100} << random_.below(5);
    if (random_.below(4) == 0) settings_.log.most_operations = 4 + random_.below(12);
  }

  TallyOutcome run() {
    TallyOutcome outcome;
    try {
      begin();
      for (int act = 0; act < weather_.acts; ++act) {
        // In the second all ids of the first have been forgotten.
        if (act > 0) agenda_.after(2 * kWindowMs, [this] { exchange_all(); });
        while (!agenda_.empty()) agenda_.step();
        play();
        heal();
        // What is still on its way comes now.
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

 private:
  struct Member {
    std::unique_ptr<TallySite> site;
    bool started = true;
    bool gone = false;                 // for good
    bool retired = false;              // somebody has said so
    std::set<std::size_t> plain = {};  // what plain shards have taken here
  };
  // From a to b, from one time to another; b of 0 stands for all.
  struct Cut {
    SiteId from, to;
    bool both_ways;
    TimeMs begin_ms, end_ms;
  };

  template <class... Words>
  void tell(const Words&... words) {
    if (trace_ == nullptr) return;
    *trace_ << agenda_.now_ms() << " ms: ";
    (*trace_ << ... << words) << "\n";
  }

  bool happens(double probability) { return random_.unit() < probability; }
  TimeMs moment() { return static_cast<TimeMs>(random_.below(kRunMs)); }
  Member& any_member() { return members_[random_.below(members_.size())]; }
  Member& member(SiteId site) { return members_[site - 1U]; }
  static std::string counter(std::uint64_t number) { return "counter-" + std::to_string(number); }

  // Beginning.

  TallySite& new_site() {
    const auto id = static_cast<SiteId>(members_.size() + 1);
    const Skew skew{static_cast<TimeMs>(random_.below(10'000)) - 5'000,
                    (random_.unit() - 0.5) / 50};
    members_.push_back({std::make_unique<TallySite>(id, settings_, plan_.fault, skew)});
    return *members_.back().site;
  }

  void begin() {
    new_site().open(0);
    for (int i = 1; i < plan_.sites; ++i) {
      TallySite& site = new_site();
      TallySite& from = *members_[random_.below(members_.size() - 1)].site;
      require(from.table().admit(site.id()), "admit");
      site.open_as_copy_of(from, 0);
      for (int round = 0; !all_ready(); ++round) {
        require(round < kMostRounds, "new sites do not become ready");
        exchange_all();
      }
    }
  }

  // All that happens between one rest and the next.
  void play() {
    closed_ = false;
    cuts_.clear();
    const TimeMs end_ms = agenda_.now_ms() + kRunMs;
    for (const SiteId id : survivors()) start_timers(id);
    for (int i = 0; i < weather_.operations; ++i) begin_intent();
    for (int i = 0; i < weather_.crashes; ++i) {
      agenda_.after(moment(), [this] { crash(any_member()); });
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
    closed_ = true;
  }

  bool all_ready() {
    return std::all_of(members_.begin(), members_.end(),
                       [](const Member& each) { return each.site->table().info().log.ready; });
  }

  void begin_intent() {
    const std::size_t number = truth_.intents.size();
    Intent intent;
    intent.counter = counter(random_.below(static_cast<std::uint64_t>(weather_.counters)));
    if (happens(weather_.changes)) {
      intent.kind = random_.below(2) == 0 ? Operation::Kind::reset : Operation::Kind::remove;
    } else {
      intent.delta = 1 + static_cast<std::int64_t>(random_.below(1000));
      if (happens(weather_.negative)) intent.delta = -intent.delta;
    }
    if (happens(weather_.numbered)) {
      const std::uint64_t client = random_.below(static_cast<std::uint64_t>(weather_.clients));
      intent.id = OperationId::numbered({mix(client), 7}, number);
    } else if (!happens(weather_.without_id)) {
      intent.id = OperationId::opaque({mix(number), mix(number + 1)});
    }
    truth_.intents.push_back(intent);
    answered_.push_back(false);
    ++counts_.operations;
    const auto at_ms = static_cast<TimeMs>(random_.below(kClientsStopMs));
    agenda_.after(at_ms, [=, this] { ask(number, kMostTries, any_member().site->id()); });
    if (intent.id.kind == OperationId::Kind::none || !happens(weather_.hasty)) return;
    agenda_.after(at_ms, [=, this] { ask(number, 0, any_member().site->id()); });
  }

  void begin_cut() {
    const auto sites = static_cast<std::uint64_t>(plan_.sites);
    Cut cut{};
    cut.from = static_cast<SiteId>(1 + random_.below(sites));
    cut.to = static_cast<SiteId>(random_.below(sites + 1));
    cut.both_ways = random_.below(2) == 0;
    cut.begin_ms = agenda_.now_ms() + moment();
    cut.end_ms = cut.begin_ms + static_cast<TimeMs>(random_.below(kRunMs / 2));
    cuts_.push_back(cut);
  }

  void start_timers(SiteId site) {
    agenda_.after(static_cast<TimeMs>(random_.below(kTickMs)), [=, this] { tick(site); });
    agenda_.after(
        static_cast<TimeMs>(random_.below(static_cast<std::uint64_t>(weather_.gossip_ms))),
        [=, this] { gossip(site); });
  }

  // The network.

  void send(bool may_double, const std::function<void()>& arrive) {
    if (happens(weather_.lost)) return;
    const int copies = may_double && happens(weather_.doubled) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      // Few are very late.
      const double late = random_.unit() * random_.unit() * random_.unit();
      agenda_.after(1 + static_cast<TimeMs>(late * static_cast<double>(weather_.delay_ms)), arrive);
    }
  }

  bool cut_off(SiteId from, SiteId to) const {
    return std::any_of(cuts_.begin(), cuts_.end(), [&](const Cut& cut) {
      if (agenda_.now_ms() < cut.begin_ms || agenda_.now_ms() >= cut.end_ms) return false;
      const auto along = [&](SiteId a, SiteId b) {
        return a == cut.from && (cut.to == 0 || b == cut.to);
      };
      return along(from, to) || (cut.both_ways && along(to, from));
    });
  }

  // Clients.

  void ask(std::size_t intent, int tries, SiteId site) {
    if (closed_) return;
    truth_.intents[intent].asked = true;
    if (tries < kMostTries) ++counts_.retries;
    const bool once = truth_.intents[intent].id.kind == OperationId::Kind::none;
    send(!once, [=, this] { serve(intent, site); });
    if (once || tries == 0) return;
    agenda_.after(100 + static_cast<TimeMs>(random_.below(1'500)), [=, this] {
      if (answered_[intent]) return;
      ask(intent, tries - 1, happens(weather_.same_site) ? site : any_member().site->id());
    });
  }

  void hear(std::size_t intent, Dot dot) {
    tell("client: operation ", intent, " is acknowledged");
    answered_[intent] = true;
    truth_.intents[intent].acknowledged = true;
    if (dot.counter > 0 && random_.below(2) == 0) {
      agenda_.after(2 * weather_.gossip_ms, [=, this] { make_sure(intent, dot); });
    }
    const bool once = truth_.intents[intent].id.kind == OperationId::Kind::none;
    if (once || !happens(weather_.late)) return;
    agenda_.after(static_cast<TimeMs>(random_.below(8'000)),
                  [=, this] { ask(intent, 0, any_member().site->id()); });
  }

  // A client that wants to be sure asks how many hold its operation.
  void make_sure(std::size_t intent, Dot dot) {
    TallySite& site = *member(dot.site).site;
    if (!site.up() || !truth_.names(dot, intent)) return;
    const auto enough = static_cast<std::uint64_t>(
        1 + std::max(1, weather_.acts * (weather_.retirements + weather_.admissions)));
    if (site.table().holders(dot) >= enough) truth_.intents[intent].sure = true;
  }

  // Sites.

  void serve(std::size_t number, SiteId id) {
    Member& at = member(id);
    if (!at.started || !at.site->up()) return;
    TallySite& site = *at.site;
    const Intent& intent = truth_.intents[number];
    const VersionVector before = site.held();
    const TimeMs now_ms = site.clock(agenda_.now_ms());
    const bool values = random_.below(2) == 0;
    const bool adds = intent.kind == Operation::Kind::add;
    Result<Answer> answer =
        adds ? site.table().add({intent.counter, intent.delta, intent.id}, now_ms,
                                values ? TallyStore::Values::yes : TallyStore::Values::no)
        : intent.kind == Operation::Kind::reset
            ? site.table().reset(intent.counter, intent.id, now_ms)
            : site.table().remove(intent.counter, intent.id, now_ms);
    site.note();
    if (!answer) {
      const Errc code = answer.error().code;
      require(code == Errc::gap || code == Errc::outside, answer.error().what);
      tell("site ", id, " refuses operation ", number, ": ", answer.error().what);
      return;
    }
    if (adds && at.plain.insert(number).second) {
      ++counts_.plain_taken;
      if (plain_.insert(number).second) ++counts_.plain_distinct;
    }
    tell("site ", id, " answers operation ", number, " on ", intent.counter, " of ", intent.delta,
         ": ", static_cast<int>(answer->outcome));

    Dot dot{};
    const bool knew = truth_.held(number, before);
    if (answer->outcome == Outcome::applied) {
      require(!knew,
              "site " + std::to_string(id) + " takes twice operation " + std::to_string(number),
              Violation::Kind::doubled);
      dot = {id, before.at(id) + 1};
      require(site.held().at(id) == dot.counter, "an operation without a dot");
      VersionVector observed = before;
      if (intent.kind == Operation::Kind::remove) observed.advance(dot);
      truth_.take(dot, number, observed);
      require(settings_.durability != Durability::every_write || site.durable().contains(dot),
              "an answer before it was durable", Violation::Kind::lost);
    } else if (answer->outcome == Outcome::duplicate) {
      require(knew,
              "site " + std::to_string(id) + " takes for a retry operation " +
                  std::to_string(number) + ", which it does not hold",
              Violation::Kind::lost);
    } else if (answer->outcome == Outcome::stale) {
      require(plan_.fault == TallyFault::short_window, "a retry is stale within the window");
      return;
    } else {
      require(answer->outcome == Outcome::full && settings_.log.most_operations < 100,
              "a refusal without a reason");
      return;
    }
    truth_.intents[number].acknowledged_by.insert(id);
    if (adds && values) check_value(at, intent.counter, answer->value);
    if (random_.below(4) == 0) check_values(at);
    send(true, [=, this] { hear(number, dot); });
  }

  void tick(SiteId id) {
    if (closed_ || member(id).gone) return;
    if (member(id).site->up()) member(id).site->tick(agenda_.now_ms());
    agenda_.after(kTickMs, [=, this] { tick(id); });
  }

  void gossip(SiteId id) {
    Member& at = member(id);
    if (closed_ || at.gone) return;
    agenda_.after(
        1 + static_cast<TimeMs>(random_.below(static_cast<std::uint64_t>(2 * weather_.gossip_ms))),
        [=, this] { gossip(id); });
    const SiteId to = any_member().site->id();
    if (to == id || !at.site->up()) return;
    if (random_.below(5) != 0) at.site->publish();
    if (happens(weather_.syncs)) {
      sync(at, member(to));
      return;
    }
    Entries entries = at.site->entries(false);
    if (happens(weather_.partial)) {
      std::erase_if(entries, [this](const auto&) { return random_.below(2) == 0; });
    }
    ++counts_.messages;
    if (cut_off(id, to)) return;
    send(true, [=, this, entries = std::move(entries)] { arrive(to, id, entries); });
  }

  void arrive(SiteId to, SiteId from, const Entries& entries) {
    Member& at = member(to);
    if (!at.started || !at.site->up()) return;
    tell("site ", to, " takes ", entries.size(), " entries of site ", from);
    at.site->take(entries, random_.below(2) == 0, agenda_.now_ms());
    if (random_.below(4) == 0) check_values(at);
  }

  void sync(Member& here, Member& there) {
    const SiteId a = here.site->id();
    const SiteId b = there.site->id();
    if (!there.started || !there.site->up() || cut_off(a, b) || cut_off(b, a)) return;
    if (random_.below(5) != 0) there.site->publish();
    if (random_.below(4) == 0) require(here.site->table().checkpoint(), "checkpoint");
    ++counts_.syncs;
    tell("site ", a, " syncs with site ", b);
    const KeyRange shared{std::string(tally::kSharedFirst), std::string(tally::kSharedEnd)};
    SyncSettings settings;
    settings.range = shared;
    settings.resolver.join = tally::join_entries;
    settings.seed = random_();
    Responder::Terms terms;
    terms.range = shared;
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
    check_values(here);
    check_values(there);
  }

  void crash(Member& at) {
    if (closed_ || !at.started || at.gone || !at.site->up()) return;
    ++counts_.crashes;
    const bool power_fails = happens(weather_.power_fails);
    tell("site ", at.site->id(), power_fails ? " loses power" : " is killed");
    at.site->crash(power_fails, random_);
    const SiteId id = at.site->id();
    if (power_fails) {
      for (Intent& intent : truth_.intents) intent.acknowledged_by.erase(id);
    }
    agenda_.after(static_cast<TimeMs>(random_.below(3'000)), [=, this] { restart(id); });
  }

  void restart(SiteId id) {
    Member& at = member(id);
    if (at.gone || at.site->up()) return;
    const std::uint64_t last = at.site->restart(agenda_.now_ms());
    tell("site ", id, " is back, with ", last, " operations of its own");
    for (const std::size_t intent : truth_.lose(id, last)) {
      truth_.intents[intent].may_be_lost = true;
      // The client hears of the crash, and does not trust its answer.
      const bool once = truth_.intents[intent].id.kind == OperationId::Kind::none;
      if (once || random_.below(2) == 0) continue;
      answered_[intent] = false;
      agenda_.after(static_cast<TimeMs>(random_.below(2'000)),
                    [=, this] { ask(intent, kMostTries - 1, any_member().site->id()); });
    }
    check_values(at);
  }

  // Members.

  std::vector<SiteId> survivors() {
    std::vector<SiteId> sites;
    for (const Member& each : members_) {
      if (each.started && !each.gone && !each.retired) sites.push_back(each.site->id());
    }
    return sites;
  }

  void admit() {
    Member& by = any_member();
    if (closed_ || by.gone || by.retired || !by.site->up()) return;
    if (!by.site->table().info().log.ready) return;
    const SiteId old = by.site->id();
    TallySite& site = new_site();  // `by` is good no longer
    members_.back().started = false;
    tell("site ", old, " admits site ", site.id());
    const Result<void> admitted = member(old).site->table().admit(site.id());
    if (!admitted) {  // it has heard that it is void or retired
      require(admitted.error().code == Errc::outside, "admit");
      member(site.id()).retired = true;
      return;
    }
    ++counts_.admitted;
    agenda_.after(static_cast<TimeMs>(random_.below(1'000)),
                  [=, this, id = site.id()] { start_copy(id, old); });
  }

  void start_copy(SiteId id, SiteId old) {
    Member& from = member(old);
    if (closed_ || from.gone || from.retired || member(id).retired || !from.site->up()) return;
    // It may have come too late for a fence, and be void already.
    if (!from.site->table().info().log.members.active(id)) return;
    tell("site ", id, " starts from a copy of site ", old);
    member(id).site->open_as_copy_of(*from.site, agenda_.now_ms());
    member(id).started = true;
    check_values(member(id));
    start_timers(id);
    // Before anybody else has heard of it, perhaps.
    if (weather_.retirements > 0) {
      agenda_.after(static_cast<TimeMs>(random_.below(1'000)), [=, this] { lose_site(old); });
    }
  }

  // A site that is ready, and not this one: the table must not go with its last site.
  std::optional<SiteId> ready_site_besides(SiteId id) {
    std::vector<SiteId> sites;
    for (const SiteId each : survivors()) {
      TallySite& site = *member(each).site;
      if (each == id || !site.up()) continue;
      const tally::OperationLog::State log = site.table().info().log;
      if (log.ready && log.members.active(each)) sites.push_back(each);
    }
    if (sites.empty()) return std::nullopt;
    return sites[random_.below(sites.size())];
  }

  // A site is gone for good, or only seems to be; sooner or later another one retires it.
  void lose_site(SiteId id) {
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

  void retire(SiteId id, SiteId by) {
    tell("site ", by, " retires site ", id);
    // It may not have heard of a site that was admitted elsewhere.
    const Result<void> retired = member(by).site->table().retire(id);
    if (!retired && retired.error().code == Errc::invalid) return;
    require(retired, "retire");
    if (!std::exchange(member(id).retired, true)) ++counts_.retired;
  }

  // The end.

  void exchange_all() {
    for (Member& from : members_) {
      if (!from.started || from.gone || from.retired) continue;
      from.site->tick(agenda_.now_ms());
      from.site->publish();
      const Entries entries = from.site->entries(true);
      for (Member& to : members_) {
        if (&to == &from || !to.started || to.gone || to.retired) continue;
        to.site->take(entries, false, agenda_.now_ms());
      }
    }
  }

  bool at_rest() {
    const std::vector<SiteId> sites = survivors();
    const VersionVector held = member(sites.front()).site->held();
    return std::all_of(sites.begin(), sites.end(), [&](SiteId id) {
      const TallyStore::Info info = member(id).site->table().info();
      return info.log.ready && info.log.held == held && info.unfolded == 0;
    });
  }

  void heal() {
    for (const SiteId id : survivors()) {
      if (!member(id).site->up()) restart(id);
    }
    // All know of all members before the missing ones are retired: first retirements spread, then
    // admissions, which those who had not heard of a retirement are not believed.
    for (int round = 0; round < 3; ++round) exchange_all();
    find_void();
    for (Member& each : members_) {
      // Whoever retired a site may be gone with the knowledge.
      const bool missing = !each.started || each.gone || each.retired;
      if (!missing) continue;
      const std::optional<SiteId> by = ready_site_besides(each.site->id());
      require(by.has_value(), "no site is left that works");
      retire(each.site->id(), *by);
    }
    for (int round = 0; !at_rest(); ++round) {
      if (round == kMostRounds) tell_states();
      require(round < kMostRounds, "the sites do not come to rest");
      exchange_all();
      find_void();
    }
    for (const SiteId id : survivors()) check_values(member(id));
  }

  void tell_states() {
    for (const SiteId id : survivors()) {
      const TallyStore::Info info = member(id).site->table().info();
      std::string held;
      for (const VersionVector::Site& log : info.log.held.sites()) {
        held.append(" ").append(std::to_string(log.site));
        held.append(":").append(std::to_string(log.counter));
      }
      std::string members;
      for (const tally::Members::Member& each : info.log.members.all()) {
        members.append(" ").append(std::to_string(each.site));
        if (each.retired) members.append(" retired");
      }
      tell("site ", id, info.log.ready ? " is ready" : " is not ready", ", has not folded ",
           info.unfolded, ", holds", held, ", knows", members);
    }
  }

  // A site that was admitted while another was retired may have come to nothing.
  void find_void() {
    for (const SiteId id : survivors()) {
      const tally::Members members = member(id).site->table().info().log.members;
      for (const tally::Members::Member& each : members.all()) {
        if (!each.retired || member(each.site).retired) continue;
        tell("site ", each.site, " is void");
        require(truth_.last_of(each.site) == 0, "a site that took operations is void",
                Violation::Kind::lost);
        member(each.site).retired = true;
      }
    }
  }

  void check_end() {
    const std::vector<SiteId> sites = survivors();
    const VersionVector held = member(sites.front()).site->held();
    for (const Member& each : members_) {
      const SiteId id = each.site->id();
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
    for (const SiteId id : sites) check_rest(id, truth_.values(held));
  }

  // Of a site at rest: what it tells in other ways, and what it keeps.
  void check_rest(SiteId id, const TallyTruth::Values& expected) {
    TallySite& site = *member(id).site;
    TallyTruth::Values scanned;
    require(site.table().scan({},
                              [&](std::string_view name, int128 value) {
                                scanned.emplace(name, value);
                                return true;
                              }),
            "scan");
    require(scanned == expected, "a scan shows other values");
    if (plan_.seed % 8 == 0) {
      const Result<tally::RangeSum> sum = site.table().sum({});
      require(sum, "sum");
      tally::RangeSum all;
      for (const auto& [name, value] : expected) {
        ++all.count;
        all.sum += value;
      }
      require(*sum == all, "a sum is not that of the values");
    }
    for (const auto& [key, value] : site.entries(true)) {
      require(!tally::dot_of_key(key), "an operation is kept for ever");
    }
  }

  // Values.

  void check_value(Member& at, const std::string& name, std::optional<std::int64_t> value) {
    if (at.retired) return;
    const VersionVector held = at.site->held();
    compare(at, name, value, truth_.values(held));
  }

  void check_values(Member& at) {
    if (at.retired) return;
    const VersionVector held = at.site->held();
    const TallyTruth::Values expected = truth_.values(held);
    for (int i = 0; i < weather_.counters; ++i) {
      const std::string name = counter(static_cast<std::uint64_t>(i));
      const Result<std::optional<std::int64_t>> value = at.site->table().get(name);
      require(value, "get");
      compare(at, name, *value, expected);
    }
  }

  void compare(Member& at, const std::string& name, std::optional<std::int64_t> value,
               const TallyTruth::Values& expected) {
    const auto wanted = expected.find(name);
    const bool is_there = wanted != expected.end();
    const std::int64_t is = value.value_or(0);
    const auto is_to_be = is_there ? static_cast<std::int64_t>(wanted->second) : 0;
    const std::string where =
        "site " + std::to_string(at.site->id()) + " says " + std::to_string(is) + " of " + name;
    require(is == is_to_be, where + ", and it is " + std::to_string(is_to_be),
            std::abs(is) < std::abs(is_to_be) ? Violation::Kind::lost : Violation::Kind::doubled);
    require(value.has_value() == is_there, where + (is_there ? ": not there" : ": still there"));
    if (weather_.changes > 0) return;
    const TallyTruth::Bounds bounds = truth_.bounds(name, at.site->id());
    require(is >= bounds.least && is <= bounds.most, where + ": beyond what was attempted");
  }

  TallyPlan plan_;
  std::ostream* trace_;
  Random random_;
  Weather weather_;
  TallyStore::Settings settings_;
  Network link_;
  Agenda agenda_;
  std::vector<Member> members_;  // by id, from 1 on
  std::vector<Cut> cuts_;
  TallyTruth truth_;
  std::vector<bool> answered_;
  std::set<std::size_t> plain_;
  TallyCounts counts_;
  bool closed_ = false;
};

}  // namespace

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
}

TallyOutcome simulate(const TallyPlan& plan, std::ostream* trace) {
  return World(plan, trace).run();
}

}  // namespace semel::simulation
