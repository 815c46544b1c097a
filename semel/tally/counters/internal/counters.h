// Counters: the counters of a table in memory, in the order of their names, with sums of any range.
//
// Contract  A map from name to CounterState. sum() of a range is exact, and of the present.
// Layout    A hash table of names (counter_index.h) to counters that never move (counter.h), and a
//           B+-tree over them (counter_tree.h) whose pages hold count and sum of what is below. All
//           of it lies in one arena of huge pages (arena.h).
// Cost      add reads the hash table once and walks up the tree, one step for each level. A million
//           counters: 95 ns in batches of 50 or more, 360 ns one by one. A thousand: 30 and 40 ns.
//           A new counter: 2 us at a million, because its place in the order is searched. sum:
//           O(log n), 3 us at a million. No call rebuilds a table. The longest pauses are those of
//           the system when it clears a huge page: 4 ms in a virtual machine, once for 25,000
//           counters.
// Memory    98 bytes for a counter of one site with a name of up to 20 bytes, at a million. 16 more
//           for every 16 bytes of name beyond that; 144 more with a second site, and 48 to 96 for
//           each further one. The memory of removed counters is used again, and given back with the
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

#include "semel/core/internal/arithmetic.h"
#include "semel/tally/counters/internal/counter_state.h"
#include "semel/tally/counters/name_range.h"

namespace semel::tally::internal {

// A shard to add to the state of a counter. Its clock is that of a dot.
struct NamedShard {
  std::string_view counter;
  Shard shard;
};

class Counter;

class Counters {
 public:
  Counters();
  ~Counters();
  Counters(Counters&&) noexcept;
  Counters& operator=(Counters&&) noexcept;

  // Adds to a counter, which is made if there is none. Returns the sum after it.
  int128 add(const NamedShard& shard);
  // Adds in order. If `sums` is not empty, it gets the sum of each counter after its addition. The
  // misses of the cache overlap. If memory runs out, the shards before are in, and the one that
  // failed has changed nothing. REQUIRES: `sums` is empty or of the size of `shards`.
  void add(std::span<const NamedShard> shards, std::span<int128> sums);
  // Allocates the large blocks that so many new counters will need, with names of so many bytes in
  // all. Adding to them asks for small blocks alone then (limits::kSmallBlock).
  void reserve(std::size_t counters, std::size_t name_bytes);
  // Returns how many bytes new counters use at most, with names of so many bytes in all. The memory
  // for counters of one size is cut for up to four of them at a time.
  static constexpr std::size_t most_used(std::size_t counters, std::size_t name_bytes) {
    return counters * kMostOfCounter + 4 * name_bytes;
  }
  // Returns true if it is certain that new counters that use so many bytes, as most_used() says,
  // take at most `most` further bytes of memory.
  bool fit(std::size_t bytes, std::uint64_t most) const;
  // These two say the same of one counter, and exactly: it may use the memory that removed counters
  // have left. If fits() is true, make_room() allocates what the counter needs, in large blocks of
  // at most `most` bytes. REQUIRES: there is no such counter.
  bool fits(std::string_view counter, std::uint64_t most) const;
  void make_room(std::string_view counter, std::uint64_t most);
  // Says how much memory further counters will take, so that no more is allocated for them at once.
  // nullopt: unknown again.
  void expect(std::optional<std::uint64_t> bytes);
  // These begin to load what is needed to find a counter, and the counter itself. A caller that
  // knows the name early does something else meanwhile.
  void prefetch_place(std::string_view counter) const;
  void prefetch(std::string_view counter) const;

  std::optional<int128> sum_of(std::string_view counter) const;  // nullopt: no such counter
  // Does the same for many; the misses of the cache overlap.
  void sums_of(std::span<const std::string_view> counters,
               std::span<std::optional<int128>> sums) const;
  std::optional<CounterState> find(std::string_view counter) const;
  bool remove(std::string_view counter);  // false if there is none

  std::uint64_t size() const;
  RangeSum sum(const NameRange& range) const;
  // REQUIRES: `visit` does not change the counters.
  void scan(const NameRange& range, const VisitCounter& visit) const;
  // Does the same with the whole states.
  using VisitState = std::function<bool(std::string_view counter, const CounterState& state)>;
  void scan_states(const NameRange& range, const VisitState& visit) const;

  std::uint64_t bytes() const;         // of memory
  std::uint64_t unused_bytes() const;  // of these: not yet used, or left by removed counters

 private:
  // A counter and its places in index and tree.
  static constexpr std::size_t kMostOfCounter = 112;

  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace semel::tally::internal
