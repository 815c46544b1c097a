// Universe: everything that can happen at a few sites with a few keys, one step after another.
//
// A breadth-first search from empty sites over all adds, removals and merges of one site into
// another. It goes on until no new state appears, because a site has a bounded number of adds, or
// for a bounded number of steps. States are identified by their bytes, and every path to known
// bytes must lead to an equal state. Each update is checked as it is found, with its delta applied
// to every state; then all pairs of states and all triples.
//
// States of different histories can meet only if a dot names the same add in all of them. So a
// script assigns a key to each name, and an add that contradicts it does not happen. The histories
// of all scripts together are all histories.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/laws/crdt_laws.h"
#include "tests/laws/history.h"

namespace semel {

struct UniverseSize {
  std::uint32_t sites;      // 2 or 3
  std::uint32_t adds = 0;   // of a site, in each link, where adds have names
  std::uint32_t links = 0;  // of a chain, where names have links
  std::uint32_t most_steps = std::numeric_limits<std::uint32_t>::max();
  // The number of different names.
  std::uint32_t names() const { return sites * adds * (links == 0 ? 1 : links); }
};

// Counts of the checks.
struct UniverseCounts {
  std::uint64_t scripts = 0, combinations = 0, states = 0, updates = 0, deltas = 0, pairs = 0,
                triples = 0;
};

inline std::string to_string(const UniverseCounts& counts) {
  std::string text;
  const auto say = [&](std::uint64_t count, const char* of) {
    text += std::to_string(count) + " " + of;
  };
  say(counts.scripts, "scripts, ");
  say(counts.combinations, "combinations of sites, ");
  say(counts.states, "states, ");
  say(counts.updates, "updates, ");
  say(counts.deltas, "deltas, ");
  say(counts.pairs, "pairs, ");
  say(counts.triples, "triples");
  return text;
}

template <class CrdtCase>
class Universe {
  using Type = typename CrdtCase::Type;
  using Delta = typename Type::Delta;
  static constexpr bool kRemoves = Type::kRemoves;

 public:
  // A script is a number in base `keys`, a digit for each name.
  Universe(const UniverseSize& size, std::uint64_t script, UniverseCounts& counts)
      : size_(size), script_(script) {
    explore();
    apply_deltas();
    check_pairs();
    check_triples();
    ++counts.scripts;
    counts.combinations += visited_.size();
    counts.states += states_.size();
    counts.updates += updates_;
    counts.deltas += changes_.size();
    counts.pairs += states_.size() * states_.size();
    counts.triples += states_.size() * states_.size() * states_.size();
  }

  const std::string& complaint() const { return complaint_.text(); }

 private:
  using Index = std::uint32_t;  // of a state
  using Names = std::map<Name, bool>;
  static constexpr std::uint32_t kIndexBits = 20;

  struct State {
    Type state;
    Names names;  // removed or not: what the state should be; nothing if !kRemoves
    Digest digest;
  };
  struct Change {
    Index before, after;  // where the delta came up first
    Delta delta;
    Names names;  // what the delta should be
  };

  void expect(bool holds, const char* law) { complaint_.expect(holds, law); }

  // The bytes, in a form that can be the key of a map.
  template <class Object>
  static std::string text_of(const Object& object) {
    const Bytes bytes = encoded(object);
    return {bytes.begin(), bytes.end()};
  }

  // Returns the number of a state. A new state is remembered.
  Index intern(const Type& state, const Names& names) {
    const auto [known, is_new] =
        index_.try_emplace(text_of(state), static_cast<Index>(states_.size()));
    if (is_new) {
      states_.push_back({state, names, digest_of(state)});
      check_membership(states_.back());
    } else {
      const State& there = states_[known->second];
      expect(there.names == names, "bytes are equal only if states are");
      expect(there.state == state && std::is_eq(*there.state.compare(state)) &&
                 there.digest == digest_of(state),
             "equal bytes are equal states");
    }
    return known->second;
  }

  void check_membership(const State& at) {
    std::uint64_t live = 0;
    for (const auto& [name, removed] : at.names) {
      live += !removed;
      if (!removed) expect(at.state.contains(keys_[key_of(name)]), "no false negatives");
    }
    if constexpr (kRemoves) {
      expect(at.state.cardinality() == live, "as many entries as adds that are not removed");
    }
    expect(same(sent(at.state), at.state), "what is decoded is what was encoded");
  }

  std::uint32_t key_of(const Name& name) const {
    const std::uint32_t link = name.link == 0 ? 0 : name.link - 1u;
    std::uint64_t digits = script_;
    for (std::uint64_t place = (std::uint64_t{link} * size_.sites + name.dot.site) * size_.adds +
                               name.dot.counter - 1;
         place > 0; --place) {
      digits /= keys_.size();
    }
    return static_cast<std::uint32_t>(digits % keys_.size());
  }
  bool fits_script(const Name& name, std::uint32_t key) const {
    return name.dot.counter <= size_.adds && name.link <= size_.links && key_of(name) == key;
  }

  void explore() {
    intern(CrdtCase::make(), {});
    std::deque<std::pair<std::uint64_t, std::uint32_t>> queue = {{0, 0}};  // sites, steps
    visited_.insert(0);
    while (!queue.empty() && complaint_.none()) {
      const std::uint64_t sites = queue.front().first;
      const std::uint32_t steps = queue.front().second;
      queue.pop_front();
      if (steps == size_.most_steps) continue;
      const auto go_to = [&](std::uint32_t site, Index next) {
        const std::uint64_t shift = std::uint64_t{site} * kIndexBits;
        const std::uint64_t there = (sites & ~(((std::uint64_t{1} << kIndexBits) - 1) << shift)) |
                                    std::uint64_t{next} << shift;
        if (visited_.insert(there).second) queue.emplace_back(there, steps + 1);
      };
      for (std::uint32_t site = 0; site < size_.sites; ++site) {
        const Index here = at(sites, site);
        for (const Index next : updates_of(here, static_cast<SiteId>(site))) go_to(site, next);
        for (std::uint32_t from = 0; from < size_.sites; ++from) {
          if (from != site) go_to(site, merged(here, at(sites, from)));
        }
      }
    }
  }

  static Index at(std::uint64_t sites, std::uint32_t site) {
    return static_cast<Index>(sites >> (site * kIndexBits) & ((1u << kIndexBits) - 1));
  }

  // Returns the states to which the updates of a site lead from a state.
  const std::vector<Index>& updates_of(Index from, SiteId site) {
    const auto [known, is_new] = updated_.try_emplace({from, site});
    if (!is_new) return known->second;
    std::vector<Index>& next = known->second;
    for (std::uint32_t key = 0; key < keys_.size(); ++key) {
      add(from, site, key, next);
      if constexpr (kRemoves) remove(from, key, next);
    }
    return next;
  }

  void add(Index from, SiteId site, std::uint32_t key, std::vector<Index>& next) {
    Type state = states_[from].state;
    Delta delta = CrdtCase::delta();
    const auto added = CrdtCase::add(state, keys_[key], {site, 1}, delta);
    Names news;
    if (!added) {
      expect(same(state, states_[from].state), "an add that fails changes nothing");
      return;
    }
    if constexpr (kRemoves) {
      if (!fits_script(*added, key)) return;
      expect(!states_[from].names.contains(*added), "a dot is given once");
      news = {{*added, false}};
    } else {
      expect(*added == !states_[from].state.contains(keys_[key]), "add says whether it is new");
      expect(state.contains(keys_[key]), "no false negatives");
    }
    note(from, state, delta, news, next);
  }

  void remove(Index from, std::uint32_t key, std::vector<Index>& next) {
    std::vector<Name> candidates = CrdtCase::names(states_[from].state, keys_[key]);
    for (const auto& [name, removed] : Names(states_[from].names)) {
      const bool candidate =
          std::find(candidates.begin(), candidates.end(), name) != candidates.end();
      if (removed) expect(!candidate, "what is removed stays removed");
      if (!removed && key_of(name) == key) expect(candidate, "a key has the dots of its adds");
      Type state = states_[from].state;
      Delta delta = CrdtCase::delta();
      const Result<bool> done = CrdtCase::remove(state, keys_[key], name, delta);
      if (removed) {
        expect(done && !*done, "a dot is removed once");
      } else if (!candidate) {
        expect(!done || !*done, "another key's dot is refused");
        expect(same(state, states_[from].state), "a refusal changes nothing");
      } else {
        expect(done && *done, "a dot that is there can be removed");
        note(from, state, delta, {{name, true}}, next);
      }
    }
    Type state = states_[from].state;
    Delta delta = CrdtCase::delta();
    const std::optional<Name> removed = CrdtCase::remove(state, keys_[key], delta);
    expect(removed.has_value() == !candidates.empty(), "a removal takes an entry if there is one");
    if (!removed) return;
    expect(*removed == *std::min_element(candidates.begin(), candidates.end(), is_removed_before),
           "a removal takes the entry whose turn it is");
    note(from, state, delta, {{*removed, true}}, next);
  }

  static Names joined_names(Names into, const Names& from) {
    for (const auto& [name, removed] : from) {
      bool& here = into.try_emplace(name, removed).first->second;
      here = here || removed;
    }
    return into;
  }

  void note(Index from, const Type& state, const Delta& delta, const Names& news,
            std::vector<Index>& next) {
    const Index after = intern(state, joined_names(states_[from].names, news));
    next.push_back(after);
    const Type& before = states_[from].state;
    expect(below(before, state), "an update inflates");
    expect(delta.empty() == (after == from), "an update yields a delta if it changes something");
    expect(same(joined(before, sent(delta)), state), "state | delta is the state after it");
    changes_.try_emplace(text_of(delta), Change{from, after, delta, news});
    ++updates_;
  }

  Index merged(Index into, Index from) {
    const auto [known, is_new] = merged_.try_emplace({into, from}, 0);
    if (!is_new) return known->second;
    Type both = states_[into].state;
    const Result<bool> changed = both.merge(states_[from].state);
    expect(changed.has_value(), "merge succeeds");
    known->second = intern(both, joined_names(states_[into].names, states_[from].names));
    expect(changed && *changed == (known->second != into), "merge says if it changed");
    return known->second;
  }

  // Each delta, and each two of them joined, into every state.
  void apply_deltas() {
    const std::size_t states = states_.size();  // of those that histories lead to
    for (const auto& [bytes, first] : changes_) {
      for (const auto& [other_bytes, second] : changes_) {
        Delta both = first.delta, other_way = second.delta;
        expect(both.merge(second.delta) && other_way.merge(first.delta) && both == other_way,
               "deltas join in any order");
        expect(joined(both, second.delta) == both, "a delta twice is a delta once");
        if (!complaint_.none()) return;
        for (Index to = 0; to < states; ++to) {
          if constexpr (kRemoves) {
            apply(both, joined_names(first.names, second.names), to);
          } else {
            const Index before = merged(merged(to, first.before), second.before);
            const Index after = merged(merged(to, first.after), second.after);
            Type state = states_[before].state;
            const Result<bool> changed = state.merge(both);
            expect(state == states_[after].state, "the join of deltas is the join of states");
            expect(changed && *changed == (before != after), "merge says if it changed");
          }
        }
      }
    }
  }

  void apply(const Delta& delta, const Names& names, Index to) {
    Type state = states_[to].state;
    const Result<bool> changed = state.merge(delta);
    const bool continues = Oracle::continues(states_[to].names, names);
    expect(changed.has_value() == continues, "a delta is refused exactly if there is a gap");
    if (!changed) {
      expect(changed.error().code == Errc::gap, "a gap is called so");
      expect(same(state, states_[to].state), "a delta that is refused changes nothing");
    } else {
      const Index there = intern(state, joined_names(states_[to].names, names));
      expect(*changed == (there != to), "merge says if it changed");
    }
  }

  void check_pairs() {
    for (Index x = 0; x < states_.size() && complaint_.none(); ++x) {  // merges may find more
      for (Index y = 0; y <= x; ++y) {
        expect(merged(x, y) == merged(y, x), "merge is commutative");
      }
      expect(merged(x, x) == x, "merge is idempotent");
    }
    const std::size_t n = states_.size();
    join_.resize(n * n);
    below_.resize(n * n);
    for (Index x = 0; x < n; ++x) {
      for (Index y = 0; y < n; ++y) {
        join_[x * n + y] = merged(x, y);
        const std::partial_ordering order = *states_[x].state.compare(states_[y].state);
        below_[x * n + y] = std::is_lteq(order);
        expect(std::is_eq(order) == (x == y), "compare agrees with ==");
        expect((states_[x].state == states_[y].state) == (x == y), "bytes agree with ==");
        expect((states_[x].digest == states_[y].digest) == (x == y), "digests agree with ==");
        if constexpr (kRemoves) {
          expect(order == Oracle::compare(states_[x].names, states_[y].names),
                 "compare is the order of what was seen and what was removed");
        } else {
          expect(*states_[y].state.compare(states_[x].state) == (0 <=> order),
                 "compare is the same from both sides");
        }
        expect(std::is_lteq(order) == (join_[x * n + y] == y), "x <= y exactly if x | y == y");
      }
    }
  }

  void check_triples() {
    if (!complaint_.none()) return;
    const std::size_t n = states_.size();
    bool associative = true, least = true, transitive = true;
    for (Index x = 0; x < n; ++x) {
      for (Index y = 0; y < n; ++y) {
        const Index both = join_[x * n + y];
        for (Index z = 0; z < n; ++z) {
          associative = associative && join_[both * n + z] == join_[x * n + join_[y * n + z]];
          const bool above_both = below_[x * n + z] != 0 && below_[y * n + z] != 0;
          least = least && above_both == (below_[both * n + z] != 0);
          const bool chain = below_[x * n + y] != 0 && below_[y * n + z] != 0;
          transitive = transitive && (!chain || below_[x * n + z] != 0);
        }
      }
    }
    expect(associative, "merge is associative");
    expect(least, "merge is the least upper bound");
    expect(transitive, "compare is transitive");
  }

  const UniverseSize size_;
  const std::uint64_t script_;
  const std::vector<Digest> keys_ = CrdtCase::keys();
  std::deque<State> states_;                      // stay where they are
  std::unordered_map<std::string, Index> index_;  // by their bytes
  std::map<std::pair<Index, SiteId>, std::vector<Index>> updated_;
  std::map<std::pair<Index, Index>, Index> merged_;
  std::map<std::string, Change> changes_;  // by their bytes
  std::uint64_t updates_ = 0;
  std::unordered_set<std::uint64_t> visited_;  // the states of all sites, kIndexBits each
  std::vector<Index> join_;                    // of each pair
  std::vector<std::uint8_t> below_;
  Complaint complaint_;
};

// With every script, or with `most_scripts` of them at equal distances.
template <class CrdtCase>
void check_universe(const UniverseSize& size, std::uint64_t most_scripts = 64) {
  std::uint64_t scripts = 1;
  if constexpr (CrdtCase::Type::kRemoves) {
    for (std::uint32_t i = 0; i < size.names(); ++i) scripts *= CrdtCase::keys().size();
  }
  const std::uint64_t step = divide_up(scripts, most_scripts);
  UniverseCounts counts;
  for (std::uint64_t script = 0; script < scripts; script += step) {
    ASSERT_EQ(Universe<CrdtCase>(size, script, counts).complaint(), "") << "script " << script;
  }
  std::printf("%s, of %llu scripts\n", to_string(counts).c_str(),
              static_cast<unsigned long long>(scripts));
}

}  // namespace semel
