// The parts in which the state of an ObservedCuckoo travels, and the new names of its dots.
#include <algorithm>
#include <utility>
#include <vector>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/observed_state.h"
#include "semel/crdt/observed_cuckoo.h"

namespace semel {

using crdt_internal::CuckooEntry;
using crdt_internal::CuckooPlaces;
using crdt_internal::EntryStore;
using crdt_internal::forked;
using crdt_internal::LifeRun;
using crdt_internal::Lives;
using crdt_internal::ObservedPart;
using crdt_internal::ObservedParts;
using crdt_internal::ObservedState;

namespace {

bool by_number(const CuckooEntry& a, const CuckooEntry& b) { return a.payload < b.payload; }

// Returns the runs, given with numbers instead of dots, that have dots after `from` up to `to`.
std::vector<LifeRun> between(std::span<const LifeRun> runs, std::uint64_t from, std::uint64_t to) {
  std::vector<LifeRun> some;
  for (LifeRun run : runs) {
    run.last = std::min(run.last, to);
    if (run.last > from && run.first <= to) some.push_back(run);
  }
  return some;
}

// Does the same with the runs of a site.
std::vector<LifeRun> numbered(std::span<const LifeRun> runs, std::uint64_t from, std::uint64_t to) {
  std::vector<LifeRun> all(runs.begin(), runs.end());
  for (LifeRun& run : all) {
    run.first = Dot::unpacked(run.first).counter;
    run.last = Dot::unpacked(run.last).counter;
  }
  return between(all, from, to);
}

// Returns the entry with its number instead of its dot.
CuckooEntry numbered(CuckooEntry entry, std::uint64_t number) {
  entry.payload = number;
  return entry;
}

// Calls visit(place, number) for the entries of a site with a number after `from` up to `last`.
// Reads the dots alone, one after another: that takes a nanosecond for each slot. `last` may shrink
// meanwhile. A free slot has the number 0 of site 0, or wraps around.
template <class Visit>
void for_each_number(const EntryStore& entries, SiteId site, std::uint64_t from,
                     const std::uint64_t& last, Visit visit) {
  const std::uint64_t none = Dot{site, 0}.packed();
  entries.for_each_place([&](std::uint64_t place, std::uint64_t dot) {
    const std::uint64_t number = dot - none;
    if (number - from - 1 < last - from) visit(place, number);
  });
}

// Returns true if these runs, with numbers instead of dots, are those of the dots after `from` up
// to `to`.
bool are_lives_between(std::span<const LifeRun> runs, std::uint64_t from, std::uint64_t to) {
  if (runs.empty() || runs.front().first > from + 1 || runs.back().last != to) return false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const LifeRun& run = runs[i];
    if (run.first == 0 || run.last <= from || run.first > run.last) return false;
    if (run.first == 1 ? run.before != 0 : run.before == run.life) return false;
    const bool follows =
        i == 0 || (runs[i - 1].last + 1 == run.first && runs[i - 1].life == run.before);
    if (!follows) return false;
  }
  return true;
}

// The inverse of numbered().
Lives lives_of(SiteId site, std::span<const LifeRun> runs) {
  Lives lives;
  for (LifeRun run : runs) {
    run.first = Dot{site, run.first}.packed();
    run.last = Dot{site, run.last}.packed();
    lives.insert(run);
  }
  return lives;
}

}  // namespace

bool ObservedPart::sound(const CuckooPlaces& shape) const {
  if (first >= last || last > Dot::kLastCounter) return false;
  std::uint64_t before = first;
  for (const CuckooEntry& entry : entries) {
    if (entry.payload <= before || entry.payload > last) return false;
    if (entry.fingerprint == 0 || entry.fingerprint >> shape.fingerprint_bits != 0) return false;
    if (!shape.is_pair(entry.pair, entry.fingerprint)) return false;
    before = entry.payload;
  }
  return are_lives_between(lives, first, last);
}

ObservedPart ObservedPart::cut(std::size_t most) {
  if (entries.size() <= most) {
    const std::uint64_t end = last;
    return std::exchange(*this, {end, end, {}, {}});
  }
  const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(most);
  const std::uint64_t to = std::prev(middle)->payload;
  ObservedPart front{first, to, {entries.begin(), middle}, between(lives, first, to), expected};
  lives = between(lives, to, last);
  entries.erase(entries.begin(), middle);
  first = to;
  return front;
}

ObservedPart ObservedPart::from_one() const {
  ObservedPart part = *this;
  part.first = 0;
  part.last -= first;
  for (CuckooEntry& entry : part.entries) entry.payload -= first;
  for (LifeRun& run : part.lives) {
    run.first = std::max(run.first, first + 1) - first;
    run.last -= first;
  }
  part.lives.front().before = 0;
  return part;
}

const Lives& ObservedParts::lives(const ObservedCuckoo& filter) { return filter.state_->lives; }

ObservedPart ObservedParts::between(const ObservedCuckoo& filter, SiteId site, std::uint64_t from,
                                    std::uint64_t to) {
  const ObservedState& state = *filter.state_;
  SEMEL_ASSERT(from < to && to <= state.context.at(site));
  ObservedPart part{from, to, {}, {}};
  for_each_number(state.entries, site, from, to, [&](std::uint64_t place, std::uint64_t number) {
    part.entries.push_back(numbered(state.entries.entry_at(place), number));
  });
  std::sort(part.entries.begin(), part.entries.end(), by_number);
  part.lives = numbered(state.lives.runs(site), from, to);
  return part;
}

ObservedPart ObservedParts::next(const ObservedCuckoo& filter, SiteId site, std::uint64_t from,
                                 std::uint64_t most) {
  const ObservedState& state = *filter.state_;
  SEMEL_ASSERT(most >= ObservedPart::kStep && from <= state.context.at(site));
  const std::uint64_t end = state.context.at(site);
  ObservedPart part{from, end, {}, {}};
  // Keeps the least numbers: at most twice as many entries as wanted.
  const auto collect = [&] {
    for_each_number(
        state.entries, site, from, part.last, [&](std::uint64_t place, std::uint64_t number) {
          part.entries.push_back(numbered(state.entries.entry_at(place), number));
          if (part.entries.size() < 2 * most) return;
          const auto last = part.entries.begin() + static_cast<std::ptrdiff_t>(most);
          std::nth_element(part.entries.begin(), last, part.entries.end(), by_number);
          part.last = last->payload / ObservedPart::kStep * ObservedPart::kStep;
          std::erase_if(part.entries, [&](const CuckooEntry& e) { return e.payload > part.last; });
        });
  };
  // Looks at the next numbers first. If most of these were removed, it looks at all.
  if (end - from > 2 * most) {
    part.last = (from + 2 * most) / ObservedPart::kStep * ObservedPart::kStep;
    collect();
    if (part.entries.size() < most / 2) {
      part.entries.clear();
      part.last = end;
    }
  }
  if (part.last == end) collect();
  std::sort(part.entries.begin(), part.entries.end(), by_number);
  if (part.entries.size() > most) {
    part.last = part.entries[most].payload / ObservedPart::kStep * ObservedPart::kStep;
    std::erase_if(part.entries, [&](const CuckooEntry& e) { return e.payload > part.last; });
  }
  part.lives = numbered(state.lives.runs(site), from, part.last);
  return part;
}

Result<bool> ObservedParts::merge(ObservedCuckoo& filter, SiteId site, const ObservedPart& part) {
  SEMEL_ASSERT(part.sound(filter.shape()));
  ObservedState& state = *filter.state_;
  const std::uint64_t seen = state.context.at(site);
  if (part.first > seen)
    return Error{Errc::gap, "a part of a state before the one that precedes it"};
  const Lives lives = lives_of(site, part.lives);
  if (state.lives.clash(lives)) return forked(site);
  const auto find = [&](std::uint64_t number) -> const CuckooEntry* {
    const auto at =
        std::partition_point(part.entries.begin(), part.entries.end(),
                             [&](const CuckooEntry& entry) { return entry.payload < number; });
    return at != part.entries.end() && at->payload == number ? &*at : nullptr;
  };
  const std::uint64_t before = state.entries.size();
  if (part.first < seen) {
    bool sound = true;
    std::vector<CuckooEntry> doomed;  // those that were removed there
    for_each_number(
        state.entries, site, part.first, part.last, [&](std::uint64_t place, std::uint64_t number) {
          const CuckooEntry entry = state.entries.entry_at(place);
          const CuckooEntry* const there = find(number);
          if (there == nullptr) return doomed.push_back(entry);
          sound = sound && there->fingerprint == entry.fingerprint && there->pair == entry.pair;
        });
    if (!sound) return forked(site);
    for (const CuckooEntry& entry : doomed) {
      const CuckooPlaces& places = state.entries.shape();
      state.entries.remove(places.spot_of(entry.pair, entry.fingerprint), entry.payload);
    }
  }
  bool changed = state.entries.size() != before;
  if (part.last <= seen) return changed;
  state.context.make_room(1);
  state.lives.make_room(lives.runs().size());
  state.entries.expect(part.expected);
  const auto fresh =
      std::partition_point(part.entries.begin(), part.entries.end(),
                           [&](const CuckooEntry& entry) { return entry.payload <= seen; });
  std::uint64_t quota =
      EntryStore::quota_for(static_cast<std::uint64_t>(part.entries.end() - fresh));
  auto run = lives.runs().begin();
  const auto see = [&](Dot dot) {  // in order, so that this is always a valid state
    state.context.advance(dot);
    for (; run->last < dot.packed(); ++run) state.lives.insert(*run);
    state.lives.insert({run->first, dot.packed(), run->life, run->before});
  };
  const std::span<const CuckooEntry> added(fresh, part.entries.end());
  const CuckooPlaces& places = state.entries.shape();
  const auto spot_of = [&](std::size_t i) {
    return places.spot_of(added[i].pair, added[i].fingerprint);
  };
  for_each_ahead(
      added.size(), [&](std::size_t i) { state.entries.prefetch(spot_of(i)); },
      [&](std::size_t i) {
        const Dot dot{site, added[i].payload};
        state.entries.put(spot_of(i), dot.packed(), quota);
        see(dot);
      });
  see({site, part.last});
  return true;
}

std::optional<std::uint64_t> ObservedCuckoo::fork_from(const ObservedCuckoo& trunk,
                                                       SiteId site) const {
  SEMEL_ASSERT(shape() == trunk.shape());
  const std::uint64_t common = state_->lives.common(trunk.state_->lives, site);
  if (common == std::min(state_->context.at(site), trunk.state_->context.at(site)))
    return std::nullopt;
  return common;
}

Result<ObservedCuckoo> ObservedCuckoo::renamed(const ObservedCuckoo& trunk, SiteId from,
                                               SiteId to) const {
  if (shape() != trunk.shape()) {
    return Error{Errc::mismatch, "observed-remove cuckoo filters of different shapes"};
  }
  if (from == to || state_->context.at(to) != 0) {
    return Error{Errc::invalid, "dots are renamed to a site that has none yet"};
  }
  const std::optional<std::uint64_t> fork = fork_from(trunk, from);
  if (!fork) return *this;
  ObservedCuckoo split(shape());
  const auto take = [&](SiteId site, const ObservedPart& part) {
    const Result<bool> taken = ObservedParts::merge(split, site, part);
    SEMEL_ASSERT(taken);
  };
  for (const auto& [site, last] : state_->context.sites()) {
    if (site != from) take(site, ObservedParts::between(*this, site, 0, last));
  }
  if (*fork > 0) take(from, ObservedParts::between(*this, from, 0, *fork));
  const std::uint64_t last = state_->context.at(from);
  take(to, ObservedParts::between(*this, from, *fork, last).from_one());
  return split;
}

}  // namespace semel
