// Counter: one counter of a Counters, in one piece of memory that never moves. The name follows it.
//
// A counter with a name of up to 20 bytes fills one cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "semel/core/internal/arithmetic.h"
#include "semel/tally/counters/internal/arena.h"
#include "semel/tally/counters/internal/counter_state.h"

namespace semel::tally::internal {

struct TreeLeaf;

class Counter {
 public:
  struct Release {
    Arena* arena;
    void operator()(Counter* counter) const noexcept;
  };
  using Owner = std::unique_ptr<Counter, Release>;

  // REQUIRES: the clock is at most Dot::kLastCounter, here and below.
  static Owner make(std::string_view name, const Shard& shard, Arena& arena);
  // Returns what make() cuts off the arena (Arena::fits()).
  static std::size_t cuts_for(std::string_view name, const Arena& arena) {
    return arena.cut_for(size_for(name.size()));
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  std::string_view name() const {
    return {reinterpret_cast<const char*>(this) + kNameOffset, name_size_};
  }
  CounterState state() const { return many_ ? *states_ : CounterState(only()); }
  // Calls visit(state), without a copy if there are many shards.
  template <class Visit>
  auto with_state(Visit visit) const {
    return many_ ? visit(*states_) : visit(CounterState(only()));
  }
  // Begins to load the counter, and its name unless that is long.
  [[gnu::always_inline]] void touch() const {
    __builtin_prefetch(this, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + 63, 1);
  }
  // Adds to everything but the sum. Changes nothing if memory runs out.
  void add(const Shard& shard);
  std::uint64_t state_bytes() const {
    return many_ ? bytes_of(*states_) : 0;
  }  // outside of the arena

  int128 sum;                // of all shards
  TreeLeaf* leaf = nullptr;  // the leaf that holds it

 private:
  static constexpr std::size_t kNameOffset = 44;

  Counter(std::string_view name, const Shard& shard);
  ~Counter();

  static std::size_t size_for(std::size_t name_size);
  static std::uint64_t bytes_of(const CounterState& state) {
    return allocated(sizeof state) + allocated(state.bytes());
  }
  Shard only() const;

  // One site is the common case: its shard is here. With more sites, all shards are in `*states_`.
  std::uint64_t dot_;  // one site: the site and the clock
  union {
    std::uint64_t operations_;  // one site
    CounterState* states_;      // several sites; owned
  };
  std::uint32_t many_ : 1;
  std::uint32_t name_size_ : 31;
};

}  // namespace semel::tally::internal
