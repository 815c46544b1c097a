#include "semel/tally/counters/internal/counters.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>

#include "semel/core/assert.h"
#include "semel/tally/counters/internal/arena.h"
#include "semel/tally/counters/internal/counter.h"
#include "semel/tally/counters/internal/counter_index.h"
#include "semel/tally/counters/internal/counter_tree.h"

namespace semel::tally::internal {

class Counters::Body {
 public:
  void add(std::span<const NamedShard> shards, int128* sums) {
    Group group;
    look_up(shards, &NamedShard::counter, group);
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const auto& [name, shard] = shards[i];
      Counter* counter = group.counters[i];
      // An earlier addition of the group may have made the counter.
      if (counter == nullptr) counter = find(group.hashes[i], name);
      if (counter == nullptr) {
        counter = make(group.hashes[i], name, shard);
      } else {
        add_to(*counter, shard);
      }
      if (sums != nullptr) sums[i] = counter->sum;
    }
  }

  void sums_of(std::span<const std::string_view> names, std::optional<int128>* sums) const {
    Group group;
    look_up(names, std::identity(), group);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Counter* const counter = group.counters[i];
      sums[i] = counter == nullptr ? std::nullopt : std::optional(counter->sum);
    }
  }

  void prefetch_place(std::string_view name) const { index_.touch(CounterIndex::hash_of(name)); }
  void prefetch(std::string_view name) const {
    const CounterIndex::Hash hash = CounterIndex::hash_of(name);
    index_.touch(hash);
    if (const Counter* const counter = index_.candidate(hash)) counter->touch();
  }
  void reserve(std::size_t counters, std::size_t name_bytes) {
    arena_.reserve(counters * kMostOfCounter + name_bytes + kOfTree);
    index_.reserve();
  }
  // The end of a piece stays unused if the next cut has no room there, so small pieces take twice
  // as much.
  bool fit(std::size_t bytes, std::uint64_t most) const {
    bytes += of_pages();
    if (most < index_.growth()) return false;
    return arena_.rest() >= bytes || arena_.next_piece(2 * bytes) + bytes <= most - index_.growth();
  }
  bool fits(std::string_view name, std::uint64_t most) const {
    const std::uint64_t growth = splits(name) ? index_.growth() : 0;
    return growth <= most && arena_.fits(cuts_for(name), most - growth);
  }
  void make_room(std::string_view name, std::uint64_t most) {
    arena_.make_room(cuts_for(name), most - std::min(most, index_.growth()));
    if (splits(name)) index_.reserve();
  }
  void expect(std::uint64_t bytes) { arena_.set_most_piece(bytes); }
  int128 add(std::string_view name, const Shard& shard) {
    const CounterIndex::Hash hash = CounterIndex::hash_of(name);
    Counter* counter = find(hash, name);
    if (counter == nullptr) {
      counter = make(hash, name, shard);
    } else {
      add_to(*counter, shard);
    }
    return counter->sum;
  }

  Counter* find(std::string_view name) const { return find(CounterIndex::hash_of(name), name); }
  Counter* find(CounterIndex::Hash hash, std::string_view name) const {
    Counter* const found = index_.find(hash, name);
    return found != nullptr || index_.complete() ? found : tree_.find(name);
  }

  bool remove(std::string_view name) {
    const CounterIndex::Hash hash = CounterIndex::hash_of(name);
    Counter* const counter = find(hash, name);
    if (counter == nullptr) return false;
    state_bytes_ -= counter->state_bytes();
    index_.erase(hash, counter);
    tree_.remove(counter);
    return true;
  }

  const CounterTree& tree() const { return tree_; }

  std::uint64_t bytes() const {
    return allocated(sizeof *this) + arena_.bytes() + index_.bytes() + state_bytes_;
  }

  std::uint64_t unused_bytes() const { return arena_.bytes() - arena_.used_bytes(); }

  // Several times the number of cache misses that the processor keeps under way.
  static constexpr std::size_t kGroup = 64;
  // The pages that one insertion may need.
  static constexpr std::size_t kOfTree = std::size_t{8} << 10;
  static_assert(kMostOfCounter == sizeof(Counter) + 64);

 private:
  struct Group {
    std::array<CounterIndex::Hash, kGroup> hashes;
    std::array<Counter*, kGroup> counters;
  };

  // Finds the counters of a group, nullptr where there is none. Each step is done for all of them
  // before the next step, so that its loads overlap.
  template <class Item, class NameOf>
  void look_up(std::span<Item> items, NameOf name_of, Group& group) const {
    for (std::size_t i = 0; i < items.size(); ++i) {
      group.hashes[i] = CounterIndex::hash_of(std::invoke(name_of, items[i]));
      index_.touch(group.hashes[i]);
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      group.counters[i] = index_.candidate(group.hashes[i]);
      if (group.counters[i] != nullptr) group.counters[i]->touch();
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string_view name = std::invoke(name_of, items[i]);
      Counter*& counter = group.counters[i];
      if (counter == nullptr ? !index_.complete() : counter->name() != name) {
        counter = find(group.hashes[i], name);
      }
    }
  }

  bool splits(std::string_view name) const { return index_.splits(CounterIndex::hash_of(name)); }
  // What must be left for pages where no removed counter has left memory. Some of it is for
  // counters that will come in place of removed ones.
  std::size_t of_pages() const { return kOfTree + arena_.used_bytes() / 32; }
  std::size_t cuts_for(std::string_view name) const {
    const std::size_t counter = Counter::cuts_for(name, arena_);
    if (counter != 0) return counter + of_pages();
    return tree_.cuts_for(name) + (splits(name) ? arena_.cut_for(CounterIndex::kSegmentBytes) : 0);
  }

  Counter* make(CounterIndex::Hash hash, std::string_view name, const Shard& shard) {
    Counter::Owner made = Counter::make(name, shard, arena_);
    index_.make_room(hash);
    Counter* const counter = tree_.insert(std::move(made));
    index_.put(hash, counter);  // last, because it cannot fail
    return counter;
  }

  void add_to(Counter& counter, const Shard& shard) {
    const std::uint64_t before = counter.state_bytes();
    counter.add(shard);
    state_bytes_ += counter.state_bytes() - before;
    tree_.add(counter, shard.sum);
  }

  Arena arena_;  // first, because the others live in it
  CounterIndex index_{arena_};
  CounterTree tree_{arena_};
  std::uint64_t state_bytes_ = 0;
};

Counters::Counters() : body_(std::make_unique<Body>()) {}
Counters::~Counters() = default;
Counters::Counters(Counters&&) noexcept = default;
Counters& Counters::operator=(Counters&&) noexcept = default;

int128 Counters::add(const NamedShard& shard) { return body_->add(shard.counter, shard.shard); }

void Counters::add(std::span<const NamedShard> shards, std::span<int128> sums) {
  SEMEL_ASSERT(sums.empty() || sums.size() == shards.size());
  for (std::size_t first = 0; first < shards.size(); first += Body::kGroup) {
    const std::size_t size = std::min(Body::kGroup, shards.size() - first);
    body_->add(shards.subspan(first, size), sums.empty() ? nullptr : &sums[first]);
  }
}

void Counters::reserve(std::size_t counters, std::size_t name_bytes) {
  body_->reserve(counters, name_bytes);
}

bool Counters::fit(std::size_t bytes, std::uint64_t most) const { return body_->fit(bytes, most); }

bool Counters::fits(std::string_view counter, std::uint64_t most) const {
  return body_->fits(counter, most);
}

void Counters::make_room(std::string_view counter, std::uint64_t most) {
  body_->make_room(counter, most);
}

void Counters::expect(std::optional<std::uint64_t> bytes) {
  body_->expect(bytes.value_or(std::numeric_limits<std::uint64_t>::max()));
}

void Counters::prefetch_place(std::string_view counter) const { body_->prefetch_place(counter); }
void Counters::prefetch(std::string_view counter) const { body_->prefetch(counter); }

std::optional<int128> Counters::sum_of(std::string_view counter) const {
  const Counter* const found = body_->find(counter);
  return found == nullptr ? std::nullopt : std::optional(found->sum);
}

void Counters::sums_of(std::span<const std::string_view> counters,
                       std::span<std::optional<int128>> sums) const {
  SEMEL_ASSERT(sums.size() == counters.size());
  for (std::size_t first = 0; first < counters.size(); first += Body::kGroup) {
    const std::size_t size = std::min(Body::kGroup, counters.size() - first);
    body_->sums_of(counters.subspan(first, size), &sums[first]);
  }
}

std::optional<CounterState> Counters::find(std::string_view counter) const {
  const Counter* const found = body_->find(counter);
  return found == nullptr ? std::nullopt : std::optional(found->state());
}

bool Counters::remove(std::string_view counter) { return body_->remove(counter); }

std::uint64_t Counters::size() const { return body_->tree().total().count; }

RangeSum Counters::sum(const NameRange& range) const {
  if (range.end && *range.end <= range.first) return {};
  const RangeSum to_end = range.end ? body_->tree().before(*range.end) : body_->tree().total();
  const RangeSum to_first = body_->tree().before(range.first);
  return {to_end.count - to_first.count, wrapping_subtract(to_end.sum, to_first.sum)};
}

void Counters::scan(const NameRange& range, const VisitCounter& visit) const {
  body_->tree().scan(range,
                     [&](const Counter& counter) { return visit(counter.name(), counter.sum); });
}

void Counters::scan_states(const NameRange& range, const VisitState& visit) const {
  body_->tree().scan(range, [&](const Counter& counter) {
    return counter.with_state(
        [&](const CounterState& state) { return visit(counter.name(), state); });
  });
}

std::uint64_t Counters::bytes() const { return body_->bytes(); }
std::uint64_t Counters::unused_bytes() const { return body_->unused_bytes(); }

}  // namespace semel::tally::internal
