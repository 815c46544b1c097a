#include "tests/simulation/tally_world.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/core/arithmetic.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/responder.h"
#include "semel/tally/internal/entries.h"
#include "tests/simulation/agenda.h"
#include "tests/simulation/sync_network.h"
#include "tests/simulation/tally_checker.h"
#include "tests/simulation/tally_digits.h"
#include "tests/simulation/tally_truth.h"
#include "tests/simulation/tally_twins.h"

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
constexpr int kMostTries = 6;
constexpr int kMostRounds = 60;          // in which sites that hear each other have to come to rest
constexpr int kMostPointedCrashes = 24;  // in an act

class World {
 public:
  World(const TallyPlan& plan, std::ostream* trace)
      : plan_(plan),
        trace_(trace),
        random_(mix(plan.seed) + static_cast<std::uint64_t>(plan.sites)),
        weather_(weather_of(plan)),
        settings_(settings_of(plan, weather_)),
        link_(random_(), {.lost = weather_.lost / 4, .doubled = weather_.doubled, .reorder = 0.2}),
        checker_(truth_, digits_, weather_) {}

  TallyOutcome run() {
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
  using Operations = std::vector<std::size_t>;  // numbers of intents
  // When a site came to hold an operation: by the latest that its clock had shown, and in truth.
  struct Since {
    TimeMs site_ms;
    TimeMs world_ms;
  };
  // An operation that a site took while its disk failed: whether it did, the next start tells.
  struct Doubtful {
    Dot dot;
    std::size_t intent;
    VersionVector observed;
  };
  struct Member {
    std::unique_ptr<TallySite> site;
    bool started = true;
    bool gone = false;                 // for good
    bool retired = false;              // somebody has said so
    bool closed = false;               // retired in an earlier act: the truth has lost what it took
    std::set<std::size_t> plain = {};  // what plain shards have taken here
    std::map<std::size_t, Since> since = {};
    std::vector<Doubtful> doubtful = {};
    std::uint64_t quiet = 0;  // so many messages it takes before it publishes again
  };
  struct Acknowledged {
    std::size_t intent;
    Dot dot;  // of a duplicate none
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
  bool has(Feature feature) const { return weather_.features.has(feature); }
  bool asked_once(std::size_t intent) const {
    return truth_.intents[intent].id.kind == OperationId::Kind::none;
  }

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

  // All that happens between one rest and the next.
  void play() {
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

  bool all_ready() {
    return std::all_of(members_.begin(), members_.end(),
                       [](const Member& each) { return each.site->table().info().log.ready; });
  }

  // How many operations a client begins with one request.
  int begin_request() {
    Operations operations = {begin_intent()};
    const auto size = 1 + random_.below(static_cast<std::uint64_t>(weather_.most_in_batch));
    const auto may_be_in_batch = [this](std::size_t intent) {
      return truth_.intents[intent].kind == Operation::Kind::add && !asked_once(intent);
    };
    while (operations.size() < size && may_be_in_batch(operations.back())) {
      operations.push_back(begin_intent());
    }
    // What is not of its kind goes by itself.
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

  void begin_asking(Operations operations, TimeMs at_ms) {
    const auto begun = operations.size();
    if (begun > 1 && random_.below(2) == 0) {
      operations.push_back(operations[random_.below(begun)]);
      ++counts_.batches;
    }
    agenda_.after(at_ms, [=, this] { ask(operations, kMostTries, any_served()); });
    if (asked_once(operations.front()) || !happens(weather_.hasty)) return;
    agenda_.after(at_ms, [=, this] { ask(operations, 0, any_served()); });
  }

  std::size_t begin_intent() {
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

  std::string shared_counter() {
    const auto counters = static_cast<std::uint64_t>(weather_.counters);
    return "counter-" + std::to_string(random_.below(counters));
  }

  OperationId begin_id(std::size_t number) {
    // What was an operation of the first act, and has left all windows, is a new one now.
    if (first_of_act_ > 0 && happens(weather_.reused)) {
      const std::size_t old = random_.below(first_of_act_);
      if (reused_.insert(old).second) return truth_.intents[old].id;
    }
    if (happens(weather_.numbered)) {
      const std::uint64_t client = random_.below(static_cast<std::uint64_t>(weather_.clients));
      // An odd factor gives every number another one, far from those of its neighbours.
      const std::uint64_t sequence =
          has(Feature::out_of_order) ? number * 0x9e37 % 0x10000 : number;
      return OperationId::numbered({mix(client), 7}, sequence);
    }
    if (happens(weather_.without_id)) return OperationId::none();
    return OperationId::opaque({mix(number), mix(number + 1)});
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
    const auto tick_ms = static_cast<std::uint64_t>(weather_.tick_ms);
    agenda_.after(static_cast<TimeMs>(random_.below(tick_ms)), [=, this] { tick(site); });
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

  // A site that clients ask: of the standby none does until it takes over, then most do.
  SiteId any_served() {
    const bool takes_over = agenda_.now_ms() >= takeover_ms_;
    if (standby_ != 0 && takes_over && happens(0.8)) return standby_;
    SiteId site = any_member().site->id();
    while (site == standby_ && !takes_over && members_.size() > 1) site = any_member().site->id();
    return site;
  }

  void ask(const Operations& operations, int tries, SiteId site) {
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

  void hear(const Acknowledged& told) {
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

  // A client that wants to be sure asks how many hold its operation.
  void make_sure(std::size_t intent, Dot dot) {
    TallySite& site = *member(dot.site).site;
    if (!site.up() || !truth_.names(dot, intent)) return;
    const auto enough = static_cast<std::uint64_t>(
        1 + std::max(1, weather_.acts * (weather_.retirements + weather_.admissions)));
    if (site.table().holders(dot) >= enough) truth_.intents[intent].sure = true;
  }

  // Sites.

  // A site whose disk fails is started again.
  template <class Act>
  void guarded(SiteId id, Act act) {
    try {
      act();
    } catch (const DiskFailed&) {
      tell("the disk of site ", id, " fails");
      ++counts_.io_errors;
      TallySite& site = *member(id).site;
      site.find_broken(agenda_.now_ms());
      shut_down(member(id));
    }
  }

  // Clients give up when the window is over: what they ask later is not promised anything.
  Operations within_window(Member& at, const Operations& asked) {
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

  // Notes what a site holds now and did not before.
  void note_arrivals(Member& at, const VersionVector& before) {
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

  void serve(const Operations& asked, SiteId id) {
    Member& at = member(id);
    if (!at.started || !at.site->up()) return;
    const Operations operations = within_window(at, asked);
    if (!operations.empty()) guarded(id, [&] { answer(at, operations); });
  }

  Result<void> call(TallySite& site, const Operations& operations, std::span<Answer> answers,
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

  void answer(Member& at, const Operations& operations) {
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
      require(code == Errc::gap || code == Errc::outside, done.error().what);
      tell("site ", id, " refuses operation ", operations.front(), ": ", done.error().what);
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

  // A call of which nothing is known: if it did anything, it did it in this order.
  void note_doubtful(Member& at, const Operations& operations, std::span<const Answer> answers,
                     VersionVector held) {
    const SiteId id = at.site->id();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Intent& intent = truth_.intents[operations[i]];
      const bool changes = intent.kind != Operation::Kind::add;
      if (!changes && answers[i].outcome != Outcome::applied) continue;
      const Dot dot{id, held.at(id) + 1};
      VersionVector observed = held;
      held.advance(dot);
      at.doubtful.push_back({dot, operations[i],
                             intent.kind == Operation::Kind::remove ? held : std::move(observed)});
      at.since.emplace(operations[i], Since{at.site->see(agenda_.now_ms()), agenda_.now_ms()});
    }
  }

  // What a site said of one operation, when it held this; `held` is what it holds afterwards.
  std::optional<Acknowledged> judge(Member& at, std::size_t number, const Answer& answer,
                                    bool values, VersionVector& held) {
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
        // A retired site that has not heard of it may keep operations for ever, and know their ids.
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
        require(answer.outcome == Outcome::full &&
                    (settings_.log.most_operations < 100 || has(Feature::caps)),
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

  Dot take(Member& at, std::size_t number, VersionVector& held) {
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

  // A number below one that its client has been forgotten for.
  bool may_be_stale(const Intent& intent) const {
    if (plan_.fault == TallyFault::short_window) return true;
    return weather_.window_ms < kRunMs && settings_.recogniser->kind == Recogniser::Kind::clients &&
           intent.id.kind == OperationId::Kind::numbered;
  }

  void tick(SiteId id) {
    if (closed_ || member(id).gone || id == standby_) return;
    if (member(id).site->up()) {
      guarded(id, [&] { member(id).site->tick(agenda_.now_ms()); });
    }
    agenda_.after(weather_.tick_ms, [=, this] { tick(id); });
  }

  void gossip(SiteId id) {
    Member& at = member(id);
    if (closed_ || at.gone) return;
    agenda_.after(
        1 + static_cast<TimeMs>(random_.below(static_cast<std::uint64_t>(2 * weather_.gossip_ms))),
        [=, this] { gossip(id); });
    const SiteId to = any_member().site->id();
    if (to == id || !at.site->up()) return;
    guarded(id, [&] { gossip(at, to); });
  }

  void gossip(Member& at, SiteId to) {
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

  void arrive(SiteId to, SiteId from, const Entries& entries) {
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

  void take_entries(Member& at, const Entries& entries, bool join) {
    const VersionVector before = at.site->held();
    try {
      at.site->take(entries, join, agenda_.now_ms());
    } catch (const DiskFailed&) {
      note_arrivals(at, before);  // of what the disk may have all the same
      throw;
    }
    note_arrivals(at, before);
  }

  // Whether a crash would come between a fold and the end of its group.
  bool between_folds(Member& at) {
    if (!has(Feature::crash_points)) return false;
    const tally::OperationLog::State log = at.site->table().info().log;
    return truth_.between(at.site->id(), log.held, log.folded);
  }

  void crash_here(Member& at, double probability) {
    if (!happens(probability) || ++pointed_crashes_ > kMostPointedCrashes) return;
    crash(at);
  }

  void sync(Member& here, Member& there) {
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
    note_arrivals(here, held_here);
    note_arrivals(there, held_there);
    check_values(here);
    check_values(there);
  }

  void crash(Member& at) {
    if (!closed_ && at.started && !at.gone && at.site->up()) shut_down(at);
  }

  void shut_down(Member& at) {
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

  void restart(SiteId id) {
    Member& at = member(id);
    if (at.gone || at.site->up()) return;
    const std::uint64_t last = at.site->restart(agenda_.now_ms());
    tell("site ", id, " is back, with ", last, " operations of its own");
    for (const std::size_t intent : truth_.lose(id, last)) {
      truth_.intents[intent].may_be_lost = true;
      // The client hears of the crash, and does not trust its answer.
      if (asked_once(intent) || random_.below(2) == 0) continue;
      answered_[intent] = false;
      agenda_.after(static_cast<TimeMs>(random_.below(2'000)),
                    [=, this] { ask({intent}, kMostTries - 1, any_served()); });
    }
    for (Doubtful& each : at.doubtful) {
      if (each.dot.counter <= last) truth_.take(each.dot, each.intent, std::move(each.observed));
    }
    at.doubtful.clear();
    // One that has just started hears of others before it speaks, perhaps.
    if (has(Feature::crash_points)) at.quiet = random_.below(8);
    const VersionVector held = at.site->held();
    std::erase_if(at.since, [&](const auto& each) { return !truth_.held(each.first, held); });
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
    if (closed_ || by.gone || by.closed || !by.started || !by.site->up()) return;
    // Nobody but the simulator knows that a site is retired which has not heard of it.
    if (!has(Feature::retired_copies) && (by.retired || !by.site->table().info().log.ready)) return;
    const SiteId old = by.site->id();
    const SiteId id = new_site().id();  // `by` is good no longer
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

  void start_copy(SiteId id, SiteId old) {
    Member& from = member(old);
    if (closed_ || from.gone || member(id).retired || !from.site->up()) return;
    if (!has(Feature::retired_copies)) {
      // It may have come too late for a fence, and be void already.
      if (from.retired || !from.site->table().info().log.members.active(id)) return;
    }
    tell("site ", id, " starts from a copy of site ", old);
    counts_.retired_copies += from.retired ? 1 : 0;
    from.site->fail_next(std::nullopt);
    member(id).site->fail_next(std::nullopt);
    const Result<void> started = member(id).site->open_as_copy_of(*from.site, agenda_.now_ms());
    if (!started) {
      tell("the copy is refused: ", started.error().what);
      const Errc code = started.error().code;
      require(has(Feature::retired_copies) &&
                  (code == Errc::outside || code == Errc::invalid || code == Errc::gap),
              "a copy of a member is refused");
      return;
    }
    member(id).started = true;
    // What is left of a window at the member is left of it here, whatever the clocks say.
    const TimeMs ahead_ms =
        member(id).site->see(agenda_.now_ms()) - from.site->see(agenda_.now_ms());
    member(id).since = from.since;
    for (auto& [intent, since] : member(id).since) since.site_ms += ahead_ms;
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
    bool told = false;
    guarded(by, [&] {
      const Result<void> retired = member(by).site->table().retire(id);
      // It may not have heard of a site that was admitted elsewhere.
      if (!retired && retired.error().code == Errc::invalid) return;
      told = true;
      require(retired, "retire");
    });
    // Even if the disk failed, it may have been said.
    if (told && !std::exchange(member(id).retired, true)) ++counts_.retired;
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
        take_entries(to, entries, false);
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
    // A table that is full takes in what others took a window's worth at a time.
    const int most_rounds = has(Feature::caps) ? 10 * kMostRounds : kMostRounds;
    for (int round = 0; !at_rest(); ++round) {
      if (round == most_rounds) tell_states();
      require(round < most_rounds, "the sites do not come to rest");
      exchange_all();
      find_void();
      // Where memory is full, there is room when ids have left the window.
      if (has(Feature::caps)) pass(weather_.window_ms / 8);
    }
    for (const SiteId id : survivors()) check_values(member(id));
  }

  void pass(TimeMs time_ms) {
    bool over = false;
    agenda_.after(time_ms, [&] { over = true; });
    while (!over) agenda_.step();
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

  // All values of many operations take their time.
  void check_sometimes(Member& at) {
    if (random_.below(weather_.operations < 100 ? 4 : 16) == 0) check_values(at);
  }

  void check_values(Member& at) {
    if (!at.retired) checker_.values(*at.site);
  }

  TallyPlan plan_;
  std::ostream* trace_;
  Random random_;
  Weather weather_;
  TallyStore::Settings settings_;
  Network link_;
  Digits digits_;
  Agenda agenda_;
  std::vector<Member> members_;  // by id, from 1 on
  std::vector<Cut> cuts_;
  TallyTruth truth_;
  TallyChecker checker_;
  std::size_t first_of_act_ = 0;  // of the intents
  std::set<std::size_t> reused_;  // whose ids have come again
  SiteId standby_ = 0;            // 0: none
  TimeMs takeover_ms_ = 0;
  int pointed_crashes_ = 0;
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
