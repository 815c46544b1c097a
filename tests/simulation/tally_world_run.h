// World: one run of the simulation of a table: its state, and everything that happens in it.
//
//   tally_world.cc           begins a run, lets it play, and ends it
//   tally_world_clients.cc   clients: operations, retries, and what answers must be
//   tally_world_traffic.cc   sites: ticks, messages and syncs between them, crashes and restarts
//   tally_world_members.cc   admissions and retirements
//   tally_world_rest.cc      the end: all sites agree, and what was acknowledged counts
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/agenda.h"
#include "tests/simulation/sync_network.h"
#include "tests/simulation/tally_checker.h"
#include "tests/simulation/tally_digits.h"
#include "tests/simulation/tally_truth.h"
#include "tests/simulation/tally_world.h"

namespace semel::simulation {

using tally::Answer;
using tally::Durability;
using tally::OperationId;
using tally::Outcome;
using tally::Recognition;
using tally::TallyStore;
using tally::internal::Operation;

inline constexpr TimeMs kRunMs = 20'000;
inline constexpr TimeMs kClientsStopMs = 14'000;
inline constexpr int kMostTries = 6;
inline constexpr int kMostRounds = 60;          // within which connected sites must come to rest
inline constexpr int kMostPointedCrashes = 24;  // in an act

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

  TallyOutcome run();

 private:
  using Operations = std::vector<std::size_t>;  // numbers of intents
  // When a site came to hold an operation: the latest time that its clock had shown, and the true
  // time.
  struct Since {
    TimeMs site_ms;
    TimeMs world_ms;
  };
  // An operation that a site may have taken while its disk failed. The next start shows whether it
  // did.
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
    std::uint64_t quiet = 0;  // messages to take before it publishes again
  };
  struct Acknowledged {
    std::size_t intent;
    Dot dot;  // none for a duplicate
  };
  // Messages from `from` to `to` are lost for a time. A `to` of 0 stands for all sites.
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
  bool asked_once(std::size_t intent) const;

  // The beginning.

  TallySite& new_site();
  void begin();
  // Runs everything until the next rest.
  void play();
  bool all_ready();
  // Begins the operations of one request, and returns their number.
  int begin_request();
  void begin_asking(Operations operations, TimeMs at_ms);
  std::size_t begin_intent();
  std::string shared_counter();
  OperationId begin_id(std::size_t number);
  void begin_cut();
  void start_timers(SiteId site);

  // The network.

  void send(bool may_double, const std::function<void()>& arrive);
  bool cut_off(SiteId from, SiteId to) const;

  // Clients.

  // Returns a site that clients ask. None asks the standby until it takes over; then most do.
  SiteId any_served();
  void ask(const Operations& operations, int tries, SiteId site);
  void hear(const Acknowledged& told);
  // Asks how many sites hold an operation, for a client that wants to be sure.
  void make_sure(std::size_t intent, Dot dot);

  // Sites.

  // Lets a site act. If its disk fails, the site is shut down and will start again.
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

  // Returns the operations that are still within the window. Clients give up the others, because
  // nothing is promised for them.
  Operations within_window(Member& at, const Operations& asked);
  // Notes the operations that a site holds now and did not hold before.
  void note_arrivals(Member& at, const VersionVector& before);
  void serve(const Operations& asked, SiteId id);
  Result<void> call(TallySite& site, const Operations& operations, std::span<Answer> answers,
                    bool values);
  void answer(Member& at, const Operations& operations);
  // Notes a call without a known result. Its changes, if any, came in this order.
  void note_doubtful(Member& at, const Operations& operations, std::span<const Answer> answers,
                     VersionVector held);
  // Checks a site's answer about one operation when it held `held`; `held` becomes what it holds
  // afterwards.
  std::optional<Acknowledged> judge(Member& at, std::size_t number, const Answer& answer,
                                    bool values, VersionVector& held);
  Dot take(Member& at, std::size_t number, VersionVector& held);
  // Returns true if a number may be below a forgotten one of its client.
  bool may_be_stale(const Intent& intent) const;
  void tick(SiteId id);
  void gossip(SiteId id);
  void gossip(Member& at, SiteId to);
  void arrive(SiteId to, SiteId from, const Entries& entries);
  void take_entries(Member& at, const Entries& entries, bool join);
  // Returns true if a crash would come between a fold and the end of its group.
  bool between_folds(Member& at);
  void crash_here(Member& at, double probability);
  void sync(Member& here, Member& there);
  void crash(Member& at);
  void shut_down(Member& at);
  void restart(SiteId id);

  // Members.

  std::vector<SiteId> survivors();
  void admit();
  void start_copy(SiteId id, SiteId old);
  // Returns another site that is ready: the last site of a table must not be retired.
  std::optional<SiteId> ready_site_besides(SiteId id);
  // Makes a site leave for good, or only seem to. Sooner or later another site retires it.
  void lose_site(SiteId id);
  void retire(SiteId id, SiteId by);

  // The end.

  void exchange_all();
  bool at_rest();
  void heal();
  void pass(TimeMs time_ms);
  void tell_states();
  // Finds sites that were admitted too late for a fence, and so were retired at once.
  void find_void();
  void check_end();
  // Checks all values, but only now and then, because it is slow with many operations.
  void check_sometimes(Member& at);
  void check_values(Member& at);

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
  std::set<std::size_t> reused_;  // the intents whose ids have come again
  SiteId standby_ = 0;            // 0: none
  TimeMs takeover_ms_ = 0;
  int pointed_crashes_ = 0;
  std::vector<bool> answered_;
  std::set<std::size_t> plain_;
  TallyCounts counts_;
  bool closed_ = false;
};

}  // namespace semel::simulation
