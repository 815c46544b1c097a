// CounterTree: counters in the order of their names, with count and sum of any range.
//
// Contract  Owns its counters. Sums are modulo 2^128.
// Layout    A B+-tree: leaves of up to 64 counters, inner pages of up to 64 pages and the first
//           counter of each. Every page holds count and sum of what is below it, and knows its
//           parent, so that an addition walks from the counter to the root. A full page is split in
//           the middle, but if the new entry comes at its end, the page keeps all entries but the
//           last. So ascending names fill their pages. Removals may leave pages nearly empty. An
//           empty page is dropped, and so is a root with one page below.
//           The last few additions are not yet in the sums of the pages. They are added once the
//           pages have been loaded. before() and the other sums include them.
// Cost      add: one step for each level, 4 for a million counters. Searches compare 6 names in a
//           page. before: reads up to 63 pages or counters at each level.
// Memory    About 13 bytes a counter if names come at random, 9 if they ascend, and 576 if all but
//           one counter of each leaf have been removed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "semel/tally/counters/internal/arena.h"
#include "semel/tally/counters/internal/counter.h"
#include "semel/tally/counters/internal/counters.h"

namespace semel::tally::internal {

struct TreePage;

class CounterTree {
 public:
  explicit CounterTree(Arena& arena) : arena_(&arena) {}  // the arena outlives it
  ~CounterTree();
  CounterTree(const CounterTree&) = delete;
  CounterTree& operator=(const CounterTree&) = delete;

  RangeSum total() const;
  Counter* find(std::string_view name) const;
  // Returns what insert() cuts off the arena for its pages (Arena::fits()).
  std::size_t cuts_for(std::string_view name) const;
  // Returns the new counter. Changes nothing if memory runs out. REQUIRES: there is no counter of
  // that name.
  Counter* insert(Counter::Owner counter);
  // REQUIRES: the counter is in the tree, here and below.
  void remove(Counter* counter) noexcept;
  void add(Counter& counter, int128 delta) noexcept;

  RangeSum before(std::string_view name) const;  // the sum of all smaller names
  // Visits the counters in order, until `visit` returns false.
  using Visit = std::function<bool(const Counter&)>;
  void scan(const NameRange& range, const Visit& visit) const;

 private:
  class Spares;
  struct Pending {
    Counter* counter;
    int128 delta;
  };

  void settle() noexcept;

  TreeLeaf* leaf_of(std::string_view name) const;
  TreeLeaf& split_leaf(TreeLeaf& leaf, std::size_t keep, Spares& spares) noexcept;
  void make_room_above(TreePage& page, Spares& spares) noexcept;
  void drop_if_empty(TreePage& page) noexcept;
  void lower_root() noexcept;

  Arena* arena_;
  TreePage* root_ = nullptr;        // none while there is no counter
  std::array<Pending, 8> pending_;  // already in their counter, but not yet in its pages
  std::size_t pending_count_ = 0;
};

}  // namespace semel::tally::internal
