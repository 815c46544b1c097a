// Laws for dots that are used twice: a replica is restored from a backup, or several replicas use
// one site id.
//
// ForkRun drives replicas of a type through such a history, with every message encoded and decoded.
// Every add is an event of its own, whatever its name. The laws, after every step:
//
//   a state holds the events that it was given and that are not removed: no more, no less
//   a merge is refused exactly if one name would stand for two events, now or among what came
//   before a merge that is refused changes nothing, and names the site
//   with the dots of the forked sites renamed it succeeds, and then nothing is lost
//
// So either all sites agree with the oracle, or somebody was told. Types without names refuse
// nothing and lose nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/laws/crdt_laws.h"
#include "tests/laws/history.h"

namespace semel {

struct ForkStep {
  enum class Kind : std::uint8_t {
    add,
    remove,
    send_state,
    send_delta,
    send_interval,
    deliver,
    backup,
    restore,  // a backup of this replica
    clone,    // the state and the id of another replica
  };
  Kind kind;
  std::uint32_t replica;  // modulo the number of replicas
  std::uint32_t key;      // modulo the number of keys
  std::uint32_t choice;   // modulo whatever there is to choose from
};

struct ForkHistory {
  std::uint32_t replicas;  // 2 to 4
  std::uint32_t ids;       // 1 to replicas: fewer if some share an id from the beginning
  std::vector<ForkStep> steps;
};

std::string to_string(const ForkHistory& history);
ForkHistory random_fork_history(Random& random);
// Runs many histories, like check_histories().
bool check_fork_histories(const std::function<std::string(const ForkHistory&)>& complaint);

template <class CrdtCase>
class ForkRun {
  using Type = typename CrdtCase::Type;
  using Delta = typename Type::Delta;
  using Kind = ForkStep::Kind;
  static constexpr bool kRemoves = Type::kRemoves;

 public:
  explicit ForkRun(const ForkHistory& history) {
    for (std::uint32_t i = 0; i < history.replicas; ++i) {
      replicas_.emplace_back(CrdtCase::make(), static_cast<SiteId>(i % history.ids), ++lives_);
    }
    for (const ForkStep& step : history.steps) {
      take(step);
      if (!complaint_.none()) return;
    }
  }

  const std::string& complaint() const { return complaint_.text(); }
  std::uint64_t refusals() const { return refusals_; }
  std::uint64_t renamed() const { return renamed_; }  // merges that were refused first

 private:
  using Events = std::set<std::size_t>;
  struct Known {
    Events added, removed;
    void join(const Known& other) {
      added.insert(other.added.begin(), other.added.end());
      removed.insert(other.removed.begin(), other.removed.end());
    }
  };
  struct Event {
    std::uint32_t key;
    Name name;
    std::size_t before;  // the event of the name before it, where it was made; kNone for the first
  };
  struct Replica {
    Replica(Type bottom, SiteId site, std::uint64_t life)
        : state(std::move(bottom)), at{site, life} {}
    Type state;
    SiteLife at;
    Known known;
    Delta last = CrdtCase::delta();  // from the last update
    Known last_known;
    Delta interval = CrdtCase::delta();  // of all since the replica was made, or restored
    Known interval_known;
    std::vector<std::pair<Bytes, Known>> backups;
  };
  struct Message {
    bool is_state;
    Bytes bytes;
    Known known;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  void expect(bool holds, const char* law) { complaint_.expect(holds, law); }

  void take(const ForkStep& step) {
    Replica& replica = replicas_[step.replica % replicas_.size()];
    switch (step.kind) {
      case Kind::add:
        add(replica, step.key % static_cast<std::uint32_t>(keys_.size()));
        break;
      case Kind::remove:
        if constexpr (kRemoves) remove(replica, step.choice);
        break;
      case Kind::send_state:
        messages_.push_back({true, encoded(replica.state), replica.known});
        break;
      case Kind::send_delta:
        messages_.push_back({false, encoded(replica.last), replica.last_known});
        break;
      case Kind::send_interval:
        messages_.push_back({false, encoded(replica.interval), replica.interval_known});
        break;
      case Kind::deliver:
        if (!messages_.empty()) deliver(messages_[step.choice % messages_.size()], replica);
        break;
      case Kind::backup:
        replica.backups.emplace_back(encoded(replica.state), replica.known);
        break;
      case Kind::restore:
        if (!replica.backups.empty()) {
          const auto& [bytes, known] = replica.backups[step.choice % replica.backups.size()];
          begin(replica, bytes, known);
        }
        break;
      case Kind::clone: {
        const Replica& other = replicas_[step.choice % replicas_.size()];
        replica.at.site = other.at.site;
        begin(replica, encoded(other.state), Known(other.known));
        break;
      }
    }
    check(replica.state, replica.known);
  }

  // Every program that opens a state draws a life.
  void begin(Replica& replica, const Bytes& bytes, const Known& known) {
    replica.state = *Type::decode(bytes);
    replica.known = known;
    replica.at.life = ++lives_;
    replica.last = replica.interval = CrdtCase::delta();
    replica.last_known = replica.interval_known = Known();
  }

  void add(Replica& replica, std::uint32_t key) {
    Delta delta = CrdtCase::delta();
    const auto added = CrdtCase::add(replica.state, keys_[key], replica.at, delta);
    if (!added) return;
    Event event{key, {}, kNone};
    if constexpr (kRemoves) {
      event.name = *added;
      Name before = event.name;
      --before.dot.counter;
      for (const std::size_t known : replica.known.added) {
        expect(events_[known].name != event.name, "a dot is given once");
        if (events_[known].name == before) event.before = known;
      }
    }
    Known known;
    known.added.insert(events_.size());
    events_.push_back(event);
    if (delta.empty()) {
      replica.known.join(known);  // it was there: states carry it, and no delta
    } else {
      update(replica, delta, known);
    }
  }

  // Returns any add that the replica knows, by its name.
  void remove(Replica& replica, std::uint32_t choice) {
    if (replica.known.added.empty()) return;
    auto chosen = replica.known.added.begin();
    std::advance(chosen, choice % replica.known.added.size());
    const Event& event = events_[*chosen];
    Delta delta = CrdtCase::delta();
    const Result<bool> removed =
        CrdtCase::remove(replica.state, keys_[event.key], event.name, delta);
    expect(removed && *removed == !replica.known.removed.contains(*chosen),
           "a dot is removed once");
    if (!removed || !*removed) return;
    Known known;
    known.added.insert(*chosen);
    known.removed.insert(*chosen);
    update(replica, delta, known);
  }

  void update(Replica& replica, const Delta& delta, const Known& known) {
    replica.known.join(known);
    replica.last = delta;
    replica.last_known = known;
    record(replica, delta, known);
  }

  void record(Replica& replica, const Delta& delta, const Known& known) {
    expect(replica.interval.merge(delta).has_value(), "deltas of one replica join");
    replica.interval_known.join(known);
  }

  void deliver(const Message& message, Replica& replica) {
    const Type before = replica.state;
    const bool forked = clash(replica.known.added, message.known.added);
    if (message.is_state) {
      const Type state = *Type::decode(message.bytes);
      const bool merged = settle(replica.state.merge(state), forked, message, replica);
      if (!merged) {
        expect(same(replica.state, before), "a refusal changes nothing");
        if constexpr (requires { before.renamed(state, 0, 1); })
          go_on(before, replica, state, message);
      } else {
        replica.interval = CrdtCase::delta();
        replica.interval_known = Known();
      }
      Type other_way = state;
      expect(other_way.merge(before).has_value() == merged, "both sides refuse or none");
      expect(before.compare(state).has_value() == merged, "what does not merge has no order");
      return;
    }
    const Delta delta = *Delta::decode(message.bytes);
    expect(
        replica.state.admits(delta).has_value() ==
            [&] {
              Type twin = before;
              return twin.merge(delta).has_value();
            }(),
        "admits says whether merge would succeed");
    if (settle(replica.state.merge(delta), forked, message, replica)) {
      if (kRemoves || message.known.added.size() > 0) record(replica, delta, message.known);
    } else {
      expect(same(replica.state, before), "a refusal changes nothing");
    }
    join_deltas(replica, delta, message);
  }

  // Does what a user does after a refusal: gives the dots that were made here another site.
  void go_on(Type branch, const Replica& replica, const Type& trunk, const Message& message) {
    Type all = trunk;
    Result<bool> merged = all.merge(branch);
    for (SiteId to = 100; !merged && merged.error().code == Errc::forked; ++to) {
      const auto from = static_cast<SiteId>(merged.error().site);
      const Result<Type> next = branch.renamed(trunk, from, to);
      expect(next.has_value() && *next != branch, "a fork can be renamed");
      if (!complaint_.none()) return;
      branch = *next;
      merged = all.merge(branch);
    }
    if (!merged) {
      expect(merged.error().code == Errc::limit && same(all, trunk), "or there are too many sites");
      return;
    }
    ++renamed_;
    Known both = replica.known;
    both.join(message.known);
    check(all, both);
    expect(same(sent(all), all), "what is renamed is sound");
    expect(same(joined(branch, trunk), all) && same(joined(trunk, all), all),
           "what is renamed merges like any other");
  }

  // Deltas of two replicas with one name join, or are refused.
  void join_deltas(const Replica& replica, const Delta& delta, const Message& message) {
    Delta both = replica.last;
    const Result<void> joined = both.merge(delta);
    Delta other_way = delta;
    expect(other_way.merge(replica.last).has_value() == joined.has_value(),
           "both deltas refuse or none");
    if (!joined) {
      expect(joined.error().code == Errc::forked && both == replica.last,
             "deltas that clash are refused");
      expect(clash(replica.last_known.added, message.known.added), "only what clashes is refused");
    } else {
      expect(both == other_way, "deltas join in any order");
      expect(!same_name_twice(replica.last_known.added, message.known.added),
             "deltas of one name and two events do not join");
    }
  }

  // Returns true if the merge was done. Complains if it should not have been.
  bool settle(const Result<bool>& merged, bool forked, const Message& message, Replica& replica) {
    if (merged) {
      expect(!forked, "a name of two events is found out");
      replica.known.join(message.known);
      return true;
    }
    if (merged.error().code == Errc::forked) {
      ++refusals_;
      expect(forked, "only a name of two events is refused");
      expect(clashing_sites(replica.known.added, message.known.added)
                 .contains(static_cast<SiteId>(merged.error().site)),
             "a refusal names the site");
    } else {
      expect(merged.error().code == Errc::gap && !message.is_state, "a state has no gaps");
      // The laws of one history check whether there is one (crdt_laws.h).
    }
    return false;
  }

  // Returns an event and all events that came before it at the place where it was made.
  std::map<Name, std::set<std::size_t>> past(const Events& events) const {
    std::map<Name, std::set<std::size_t>> all;
    for (std::size_t event : events) {
      for (; event != kNone; event = events_[event].before) all[events_[event].name].insert(event);
    }
    return all;
  }
  std::set<SiteId> clashing_sites(const Events& a, const Events& b) const {
    std::set<SiteId> sites;
    if constexpr (kRemoves) {
      const auto mine = past(a);
      for (const auto& [name, events] : past(b)) {
        const auto there = mine.find(name);
        if (there != mine.end() && there->second != events) sites.insert(name.dot.site);
      }
    }
    return sites;
  }
  bool clash(const Events& a, const Events& b) const { return !clashing_sites(a, b).empty(); }
  bool same_name_twice(const Events& a, const Events& b) const {
    if constexpr (!kRemoves) return false;
    std::map<Name, std::size_t> names;
    for (const std::size_t event : a) names[events_[event].name] = event;
    return std::any_of(b.begin(), b.end(), [&](std::size_t event) {
      const auto there = names.find(events_[event].name);
      return there != names.end() && there->second != event;
    });
  }

  void check(const Type& state, const Known& known) {
    std::uint64_t live = 0;
    for (const std::size_t event : known.added) {
      if (known.removed.contains(event)) continue;
      ++live;
      if (CrdtCase::kPartialDeltas) continue;  // an add may have come without what was there before
      expect(state.contains(keys_[events_[event].key]), "no element is lost");
    }
    if constexpr (kRemoves) {
      expect(state.cardinality() == live, "as many entries as adds that are not removed");
    }
  }

  const std::vector<Digest> keys_ = CrdtCase::keys();
  std::vector<Replica> replicas_;
  std::vector<Message> messages_;
  std::vector<Event> events_;
  std::uint64_t lives_ = 0;
  std::uint64_t refusals_ = 0;
  std::uint64_t renamed_ = 0;
  Complaint complaint_;
};

}  // namespace semel
