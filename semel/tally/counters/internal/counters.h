// Counters: the counters of a table in memory, in the order of their names, with sums of any range.
//
// Contract  A map from name to CounterState. sum() of a range is exact, and of the present.
// Layout    A hash table of names (counter_index.h) to counters that never move (counter.h), and a
//           B+-tree over them (counter_tree.h) whose pages hold count and sum of what is below; all
//           of it in one arena of huge pages (arena.h).
// Cost      add: one look at the hash table and a step up the tree for each level: 95 ns in batches
//           of 50 or more at a million counters, 360 one by one; 30 and 40 at a thousand. A new
//           counter: 2 us at a million, because its place in the order is searched. sum: O(log n),
//           3 us at a million. No call rebuilds a table; the longest pauses are those of the system
//           when it clears a huge page, 4 ms where that is a virtual machine's, once for 25,000
//           counters.
// Memory    98 bytes for a counter of one site with a name of up to 20 bytes, at a million; 16 more
//           for every 16 bytes of name beyond; 144 more with a second site, and 48 to 96 for each
//           further one. The memory of removed counters is used again, and given back with the
//           object.
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "semel/core/arithmetic.h"
#include "semel/tally/counters/internal/counter_state.h"

namespace semel::tally {

// The names from `first` to before `end` (nullopt: to the last).
struct NameRange {
  std::string_view first = {};
  std::optional<std::string_view> end = {};
};

struct RangeSum {
  std::uint64_t count = 0;
  int128 sum = 0;
  bool operator==(const RangeSum&) const = default;
};

class Counter;

class Counters {
 public:
  struct Addition {
    std::string_view counter;
    Shard shard;  // added to the state of the counter; its clock is that of a dot
  };

  Counters();
  ~Counters();
  Counters(Counters&&) noexcept;
  Counters& operator=(Counters&&) noexcept;

  // Makes the counter if there is none.
  void add(const Addition& addition) { add({&addition, 1}, {}); }
  // Takes what large blocks so many new counters will need, with names of so many bytes in all: then
  // adding to them asks for small ones alone (limits::kSmallBlock).
  void reserve(std::size_t counters, std::size_t name_bytes);
  // In order. `sums`, if not empty, is told the sum of each counter after its addition.
  // If memory runs out, those before are in, and the one that failed has changed nothing.
  // REQUIRES: `sums` is empty or of the size of `additions`. The misses of the cache overlap.
  void add(std::span<const Addition> additions, std::span<int128> sums);

  // One counter, in three steps; between them the caller does something else while the memory that
  // the next one needs is loaded. REQUIRES: a Seek of that name, and no change since.
  struct Seek {
    std::uint64_t hash;
    Counter* found;  // by the look of it; its name may be another
  };
  Seek seek(std::string_view counter) const;
  void approach(Seek& seek) const;
  int128 add(const Addition& addition, const Seek& seek);  // the sum after it
  std::optional<int128> sum_of(std::string_view counter, const Seek& seek) const;

  std::optional<int128> sum_of(std::string_view counter) const;  // nullopt: no such counter
  void sums_of(std::span<const std::string_view> counters,
               std::span<std::optional<int128>> sums) const;  // the same of many
  std::optional<CounterState> find(std::string_view counter) const;
  bool remove(std::string_view counter);  // false if there is none

  std::uint64_t size() const;
  RangeSum sum(const NameRange& range) const;
  // In the order of names, until `visit` says false.
  // REQUIRES: `visit` does not change the counters.
  using Visit = std::function<bool(std::string_view counter, int128 sum)>;
  void scan(const NameRange& range, const Visit& visit) const;
  // The same with the whole states.
  using VisitState = std::function<bool(std::string_view counter, const CounterState& state)>;
  void scan_states(const NameRange& range, const VisitState& visit) const;

  std::uint64_t bytes() const;  // of memory

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace semel::tally
