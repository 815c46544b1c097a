// The laws of every replicated type, written once and instantiated for each (see CrdtCase below).
//
//   x | y == y | x                 (x | y) | z == x | (y | z)         x | x == x
//   x <= x | y, y <= x | y, and x | y <= w for every w above both
//   <= is a partial order that agrees with == and with |
//   an update inflates, and its delta takes the state before it to the state after it
//   equal states give equal digests and equal bytes, other states others
//   merge says that it changed something exactly if it did
//   a delta with a gap is refused, and changes nothing
//   a key that was added is found until it is removed
//
// HistoryRun takes sites of a type through a history, with every message encoded and decoded, and
// checks each step against the oracle. check_laws holds for any states that can meet.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/hasher.h"
#include "tests/laws/history.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel {

// A CrdtCase gives: `Type`, with its `Delta` and `kRemoves`; `static Type make()` and `static Delta
// delta()`, both empty; `static std::vector<Digest> keys()`, some of which collide;
// `kPartialDeltas`, whether the delta of an add leaves out what was there before, so that alone it
// does not bring the key; `kSafeRemovals`, whether causally safe removals lose no other key; and
//
//   static Result<bool> add(Type&, Digest, SiteLife, Delta&)     whether it was new, if !kRemoves
//   static Result<Name> add(Type&, Digest, SiteLife, Delta&)     if kRemoves, and then also
//   static std::optional<Name> remove(Type&, Digest, Delta&)
//   static Result<bool> remove(Type&, Digest, Name, Delta&)
//   static std::vector<Name> names(const Type&, Digest)        of what may be the key's

template <class Object>
Object sent(const Object& object) {
  return *Object::decode(encoded(object));
}

// A refused merge changes nothing. Then the law in question does not hold.
template <class Type, class Other>
Type joined(Type into, const Other& from) {
  static_cast<void>(into.merge(from));
  return into;
}

template <class Type>
bool below(const Type& x, const Type& y) {
  return std::is_lteq(*x.compare(y));
}

template <class Type>
Digest digest_of(const Type& state) {
  static const Hasher kHasher = Hasher::fast(1);
  return state.digest(kHasher);
}

// Returns true if every comparison finds the states equal.
template <class Type>
bool same(const Type& x, const Type& y) {
  return x == y && y == x && std::is_eq(*x.compare(y)) && encoded(x) == encoded(y) &&
         digest_of(x) == digest_of(y);
}

template <class Type>
void check_pair(const Type& x, const Type& y, Complaint& complaint) {
  const std::partial_ordering order = *x.compare(y);
  complaint.expect((0 <=> order) == *y.compare(x), "compare is the same from both sides");
  complaint.expect((x == y) == std::is_eq(order), "compare agrees with ==");
  complaint.expect((x == y) == (encoded(x) == encoded(y)), "bytes are equal if states are");
  complaint.expect((x == y) == (digest_of(x) == digest_of(y)), "digests are equal if states are");

  Type both = x;
  const Result<bool> changed = both.merge(y);
  complaint.expect(changed.has_value(), "merge succeeds");
  if (!changed) return;
  complaint.expect(*changed == (both != x), "merge says whether it changed anything");
  complaint.expect(same(both, joined(y, x)), "merge is commutative");
  complaint.expect(below(x, both) && below(y, both), "merge is an upper bound");
  complaint.expect(std::is_lteq(order) == (both == y), "x <= y exactly if x | y == y");
  complaint.expect(same(joined(both, y), both) && same(joined(both, x), both),
                   "merging again changes nothing");
}

template <class Type>
void check_triple(const Type& x, const Type& y, const Type& z, Complaint& complaint) {
  const Type both = joined(x, y);
  complaint.expect(joined(both, z) == joined(x, joined(y, z)), "merge is associative");
  if (below(x, z) && below(y, z))
    complaint.expect(below(both, z), "merge is the least upper bound");
  if (below(x, y) && below(y, z)) complaint.expect(below(x, z), "compare is transitive");
}

// REQUIRES: the states can meet: a dot names the same add in all of them.
template <class Type>
void check_laws(std::span<const Type> states, Complaint& complaint) {
  for (const Type& x : states) {
    complaint.expect(same(joined(x, x), x), "merge is idempotent");
    complaint.expect(same(sent(x), x), "what is decoded is what was encoded");
    Type itself = x;
    const Result<bool> changed = itself.merge(itself);
    complaint.expect(changed && !*changed && same(itself, x), "merging itself changes nothing");
    for (const Type& y : states) {
      check_pair(x, y, complaint);
      for (const Type& z : states) check_triple(x, y, z, complaint);
    }
  }
}

template <class CrdtCase>
class HistoryRun {
  using Type = typename CrdtCase::Type;
  using Delta = typename Type::Delta;
  static constexpr bool kRemoves = Type::kRemoves;
  static constexpr bool kSafeRemovals = CrdtCase::kSafeRemovals;
  static constexpr std::size_t kMostSnapshots = 3;  // besides the states of the sites

 public:
  explicit HistoryRun(const History& history)
      : removals_(history.removals), sites_(history.sites, Site(CrdtCase::make())) {
    for (const Step& step : history.steps) {
      take(step);
      if (!complaint_.none()) return;
      if (step.choice % 16 == 0 && snapshots_.size() < kMostSnapshots) {
        const Site& site = sites_[step.site % sites_.size()];
        snapshots_.push_back({site.state, site.seen});
      }
    }
    finish();
  }

  // Returns the complaint about an update, a delivery or the final states; empty if all laws held.
  const std::string& complaint() const { return complaint_.text(); }

 private:
  struct Site {
    explicit Site(Type bottom) : state(bottom), base(std::move(bottom)) {}
    Type state;
    Seen seen;
    Delta last = CrdtCase::delta();  // of the last update
    Seen last_seen;
    Type base;                           // the state that the interval follows
    Delta interval = CrdtCase::delta();  // joined deltas of everything that happened since
    Seen interval_seen;
  };
  struct Message {
    bool is_state;
    Bytes bytes;
    Seen seen;
  };
  struct Snapshot {
    Type state;
    Seen seen;
  };

  void expect(bool holds, const char* law) { complaint_.expect(holds, law); }

  void take(const Step& step) {
    const auto id = static_cast<SiteId>(step.site % sites_.size());
    Site& site = sites_[id];
    const std::uint32_t number = step.key % keys_.size();
    switch (step.kind) {
      case Step::Kind::add:
        if (!oracle_.full()) add(site, id, number);
        break;
      case Step::Kind::remove:
        if constexpr (kRemoves) {
          if (!oracle_.full()) remove(site, number, step.choice);
        }
        break;
      case Step::Kind::send_state:
        messages_.push_back({true, encoded(site.state), site.seen});
        break;
      case Step::Kind::send_delta:
        messages_.push_back({false, encoded(site.last), site.last_seen});
        break;
      case Step::Kind::send_interval:
        messages_.push_back({false, encoded(site.interval), site.interval_seen});
        break;
      case Step::Kind::deliver:
        if (!messages_.empty()) deliver(messages_[step.choice % messages_.size()], site);
        break;
    }
    check_membership(site.state, site.seen);
  }

  void add(Site& site, SiteId id, std::uint32_t number) {
    const Type before = site.state;
    Delta delta = CrdtCase::delta();
    const auto added = CrdtCase::add(site.state, keys_[number], {id, 1}, delta);
    Type twin = before;
    Delta longer = site.interval;
    static_cast<void>(CrdtCase::add(twin, keys_[number], {id, 1}, longer));
    if (!added) {
      expect(added.error().code == Errc::full || added.error().code == Errc::limit,
             "an add fails for want of room only");
      expect(same(site.state, before) && delta.empty(), "an add that fails changes nothing");
      return;
    }
    Oracle::Operation operation{number, false, {}, site.seen};
    bool changed = true;
    if constexpr (kRemoves) {
      operation.name = *added;
      expect(!oracle_.names(site.seen).contains(operation.name), "a dot is given once");
    } else {
      operation.name = {.dot = {0, oracle_.operations().size() + 1}};  // nothing removes it
      expect(*added || before.contains(keys_[number]), "what is not new was there before");
      changed = *added;
    }
    note(site, before, delta, operation, changed);
    expect(longer == site.interval, "what changed joins the delta");
  }

  void remove(Site& site, std::uint32_t number, std::uint32_t choice) {
    if (removals_ == Removals::named) {
      remove_named(site, number, choice);
    } else if (removals_ == Removals::any || oracle_.safe(number, site.seen)) {
      const Type before = site.state;
      Delta delta = CrdtCase::delta();
      const std::vector<Name> candidates = CrdtCase::names(before, keys_[number]);
      const std::optional<Name> removed = CrdtCase::remove(site.state, keys_[number], delta);
      expect(removed.has_value() == !candidates.empty(),
             "a removal takes an entry if there is one");
      expect(removed || removals_ == Removals::any || !kSafeRemovals,
             "a safe removal finds an entry");
      if (!removed) {
        expect(same(site.state, before) && delta.empty(), "no removal, no change");
        return;
      }
      expect(*removed == *std::min_element(candidates.begin(), candidates.end(), is_removed_before),
             "a removal takes the entry whose turn it is");
      Type twin = before;
      Delta longer = site.interval;
      static_cast<void>(CrdtCase::remove(twin, keys_[number], longer));
      note(site, before, delta, {number, true, *removed, site.seen}, true);
      expect(longer == site.interval, "what changed joins the delta");
    }
  }

  // Returns any add of the key, even one that this site has not seen.
  void remove_named(Site& site, std::uint32_t number, std::uint32_t choice) {
    std::vector<Name> adds;
    for (const Oracle::Operation& operation : oracle_.operations()) {
      if (operation.key == number && !operation.removal) adds.push_back(operation.name);
    }
    if (adds.empty()) return;
    const Name name = adds[choice % adds.size()];
    const std::map<Name, bool> known = oracle_.names(site.seen);
    const auto here = known.find(name);
    const Type before = site.state;
    Delta delta = CrdtCase::delta();
    const Result<bool> removed = CrdtCase::remove(site.state, keys_[number], name, delta);
    if (here == known.end()) {
      expect(!removed && removed.error().code == Errc::gap, "a dot from the future is a gap");
    } else {
      expect(removed.has_value() && *removed == !here->second, "a dot is removed once");
    }
    const bool changed = removed.has_value() && *removed;
    if (changed) {
      note(site, before, delta, {number, true, name, site.seen}, true);
    } else {
      expect(same(site.state, before) && delta.empty(), "no removal, no change");
    }
  }

  void note(Site& site, const Type& before, const Delta& delta, const Oracle::Operation& operation,
            bool changed) {
    expect(below(before, site.state), "an update inflates");
    expect((site.state != before) == changed,
           "an update that changes something is a greater state");
    expect(delta.empty() == !changed, "an update yields a delta if it changes something");
    expect(same(joined(before, sent(delta)), site.state), "state | delta is the state after it");
    expect(same(joined(site.state, delta), site.state), "a delta twice is a delta once");

    const std::size_t number = oracle_.note(operation);
    site.seen.set(number);
    if (!changed) return;  // states carry the operation from here on, an empty delta does not
    deltas_.push_back(delta);
    site.last = delta;
    site.last_seen = Seen().set(number);
    record(site, delta, site.last_seen);
  }

  void record(Site& site, const Delta& delta, const Seen& seen) {
    Delta other_way = delta;
    expect(site.interval.merge(delta).has_value(), "deltas join");
    site.interval_seen |= seen;
    expect(other_way.merge(site.interval) && other_way == site.interval,
           "deltas join in any order, any number of times");
    expect(same(joined(site.base, sent(site.interval)), site.state),
           "state | joined deltas is the state after them");
  }

  void deliver(const Message& message, Site& site) {
    const Type before = site.state;
    if (message.is_state) {
      const Result<bool> merged = site.state.merge(*Type::decode(message.bytes));
      expect(merged.has_value(), "a state merges");
      expect(merged.has_value() && *merged == (site.state != before), "merge says if it changed");
      site.seen |= message.seen;
      site.base = site.state;
      site.interval = CrdtCase::delta();
      site.interval_seen.reset();
    } else {
      const Delta delta = *Delta::decode(message.bytes);
      const bool admitted = site.state.admits(delta).has_value();
      const Result<bool> merged = site.state.merge(delta);
      expect(admitted == merged.has_value(), "admits says whether merge would succeed");
      if constexpr (kRemoves) {
        expect(admitted == Oracle::continues(oracle_.names(site.seen), oracle_.names(message.seen)),
               "a delta is refused exactly if there is a gap");
      } else {
        expect(admitted, "deltas of adds have no gaps");
      }
      if (merged) {
        expect(*merged == (site.state != before), "merge says if it changed");
        site.seen |= message.seen;
        record(site, delta, message.seen);
      } else {
        expect(merged.error().code == Errc::gap, "a gap is called so");
        expect(same(site.state, before), "a delta that is refused changes nothing");
      }
    }
    expect(below(before, site.state), "a merge inflates");
  }

  void check_membership(const Type& state, const Seen& seen) {
    const bool by_number = kRemoves && removals_ == Removals::safe;
    const bool needs_all = by_number || CrdtCase::kPartialDeltas;
    const bool promised =
        (!kRemoves || removals_ != Removals::any) && (!needs_all || oracle_.closed(seen));
    for (std::uint32_t number = 0; number < keys_.size(); ++number) {
      const bool inside = by_number ? oracle_.outnumbers(number, seen) : oracle_.live(number, seen);
      if (promised && inside) expect(state.contains(keys_[number]), "no false negatives");
    }
    if constexpr (kRemoves) {
      const std::map<Name, bool> names = oracle_.names(seen);
      const auto live =
          std::count_if(names.begin(), names.end(), [](const auto& name) { return !name.second; });
      expect(state.cardinality() == static_cast<std::uint64_t>(live),
             "as many entries as adds that are not removed");
      for (const Digest key : keys_) {
        for (const Name& name : CrdtCase::names(state, key)) {
          const auto known = names.find(name);
          expect(known != names.end() && !known->second, "what is removed stays removed");
        }
      }
    }
  }

  void finish() {
    std::vector<Type> states;
    std::vector<Seen> seen;
    for (const Site& site : sites_) {
      states.push_back(site.state);
      seen.push_back(site.seen);
    }
    for (const Snapshot& snapshot : snapshots_) {
      states.push_back(snapshot.state);
      seen.push_back(snapshot.seen);
    }
    check_laws<Type>(states, complaint_);
    check_batches(states.front());
    if constexpr (kRemoves) {
      for (std::size_t i = 0; i < states.size(); ++i) {
        for (std::size_t j = 0; j < states.size(); ++j) {
          expect(*states[i].compare(states[j]) ==
                     Oracle::compare(oracle_.names(seen[i]), oracle_.names(seen[j])),
                 "compare is the order of what was seen and what was removed");
        }
      }
    }
    converge(states);
  }

  void check_batches(const Type& state) {
    Answers found(keys_.size());
    state.contains(keys_, found.span());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      expect(found[i] == state.contains(keys_[i]), "a batch is answered as one by one");
    }
  }

  // Merges all states in either order, and all deltas in every order in which they are admitted.
  void converge(const std::vector<Type>& states) {
    Type forwards = CrdtCase::make(), backwards = CrdtCase::make(), by_deltas = CrdtCase::make();
    for (auto state = states.begin(); state != states.end(); ++state) {
      forwards = joined(forwards, sent(*state));
    }
    for (auto state = states.rbegin(); state != states.rend(); ++state) {
      backwards = joined(sent(*state), backwards);
    }
    std::vector<Delta> left(deltas_.rbegin(), deltas_.rend());
    for (std::size_t before = left.size() + 1; left.size() < before;) {
      before = left.size();
      std::erase_if(left, [&](const Delta& d) { return by_deltas.merge(d).has_value(); });
    }
    expect(left.empty(), "all deltas are admitted in the end");
    expect(same(forwards, backwards), "sites that have merged the same are equal");
    expect(same(forwards, by_deltas), "the join of deltas is the join of states");
    check_membership(forwards, all());
  }

  Seen all() const {
    Seen seen;
    for (std::size_t i = 0; i < oracle_.operations().size(); ++i) seen.set(i);
    return seen;
  }

  const std::vector<Digest> keys_ = CrdtCase::keys();
  const Removals removals_;
  std::vector<Site> sites_;
  std::vector<Message> messages_;
  std::vector<Snapshot> snapshots_;
  std::vector<Delta> deltas_;  // of all updates
  Oracle oracle_;
  Complaint complaint_;
};

}  // namespace semel
