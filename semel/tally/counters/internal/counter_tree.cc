#include "semel/tally/counters/internal/counter_tree.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "semel/core/assert.h"

namespace semel::tally::internal {

constexpr std::size_t kFanout = 64;

struct TreeInner;

struct alignas(64) TreePage {
  explicit TreePage(bool is_leaf) : leaf(is_leaf) {}

  int128 sum = 0;
  std::uint64_t count = 0;
  TreeInner* parent = nullptr;
  std::uint32_t used = 0;
  bool leaf;
};

struct TreeLeaf : TreePage {
  TreeLeaf() : TreePage(true) {}
  std::array<Counter*, kFanout> counters;  // the first `used`
};

struct TreeInner : TreePage {
  TreeInner() : TreePage(false) {}
  std::array<TreePage*, kFanout> pages;
  std::array<Counter*, kFanout> firsts;  // the least counter below each page
};

namespace {

TreeLeaf& as_leaf(TreePage& page) { return static_cast<TreeLeaf&>(page); }
const TreeLeaf& as_leaf(const TreePage& page) { return static_cast<const TreeLeaf&>(page); }
TreeInner& as_inner(TreePage& page) { return static_cast<TreeInner&>(page); }
const TreeInner& as_inner(const TreePage& page) { return static_cast<const TreeInner&>(page); }

bool full(const TreePage& page) { return page.used == kFanout; }
Counter* first_of(const TreePage& page) {
  return page.leaf ? as_leaf(page).counters[0] : as_inner(page).firsts[0];
}

bool less(const Counter* counter, std::string_view name) { return counter->name() < name; }

// Returns the place of the first counter that is not less than the name.
std::size_t place_of(const TreeLeaf& leaf, std::string_view name) {
  const auto begin = leaf.counters.begin();
  return static_cast<std::size_t>(std::lower_bound(begin, begin + leaf.used, name, less) - begin);
}

// Returns the place of the page that the name belongs to.
std::size_t place_of(const TreeInner& inner, std::string_view name) {
  const auto begin = inner.firsts.begin() + 1;  // a name below all of them belongs to the first
  return static_cast<std::size_t>(
      std::upper_bound(begin, begin + (inner.used - 1), name,
                       [](std::string_view a, const Counter* b) { return a < b->name(); }) -
      begin);
}

template <class T>
std::size_t place_in(const std::array<T*, kFanout>& all, std::size_t used, const T* one) {
  const auto found = std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(used), one);
  return static_cast<std::size_t>(found - all.begin());
}

template <class T>
void open_gap(std::array<T*, kFanout>& all, std::size_t used, std::size_t at) {
  std::copy_backward(&all[at], &all[used], &all[used] + 1);
}

template <class T>
void close_gap(std::array<T*, kFanout>& all, std::size_t used, std::size_t at) {
  std::copy(&all[at] + 1, all.data() + used, &all[at]);
}

void add_up(TreePage* page, std::uint64_t count, int128 sum) {
  for (; page != nullptr; page = page->parent) {
    page->count += count;
    page->sum = wrapping_add(page->sum, sum);
  }
}

void add_to(RangeSum& total, std::uint64_t count, int128 sum) {
  total.count += count;
  total.sum = wrapping_add(total.sum, sum);
}

// Moves the count and sum of `right` out of `left`, which held them before.
void move_sums(TreePage& left, TreePage& right, std::uint64_t count, int128 sum) {
  right.count = count;
  right.sum = sum;
  left.count -= count;
  left.sum = wrapping_subtract(left.sum, sum);
}

// Updates the first counter of this page in the pages above.
void tell_first(TreePage& page) {
  Counter* const first = first_of(page);
  for (TreePage* child = &page; child->parent != nullptr; child = child->parent) {
    TreeInner& parent = *child->parent;
    const std::size_t at = place_in(parent.pages, parent.used, child);
    parent.firsts[at] = first;
    if (at != 0) return;
  }
}

// REQUIRES: there is room.
void attach(TreeInner& parent, std::size_t at, TreePage& page) {
  open_gap(parent.pages, parent.used, at);
  open_gap(parent.firsts, parent.used, at);
  parent.pages[at] = &page;
  parent.firsts[at] = first_of(page);
  page.parent = &parent;
  ++parent.used;
}

// Returns how many entries stay in a full page when it is split to insert at `at`.
std::size_t kept(std::size_t at) { return at == kFanout ? kFanout - 1 : kFanout / 2; }

void release(TreePage& page, Arena& arena) {
  if (page.leaf) {
    arena.destroy(&as_leaf(page));
  } else {
    arena.destroy(&as_inner(page));
  }
}

void release_all(TreePage& page, Arena& arena) {
  for (std::size_t i = 0; i < page.used; ++i) {
    if (page.leaf) {
      Counter::Release{&arena}(as_leaf(page).counters[i]);
    } else {
      release_all(*as_inner(page).pages[i], arena);
    }
  }
  release(page, arena);
}

bool scan_page(const TreePage& page, const NameRange& range, const CounterTree::Visit& visit) {
  if (page.leaf) {
    const TreeLeaf& leaf = as_leaf(page);
    for (std::size_t i = place_of(leaf, range.first); i < leaf.used; ++i) {
      const Counter& counter = *leaf.counters[i];
      if ((range.end && counter.name() >= *range.end) || !visit(counter)) return false;
    }
  } else {
    const TreeInner& inner = as_inner(page);
    for (std::size_t i = place_of(inner, range.first); i < inner.used; ++i) {
      if (!scan_page(*inner.pages[i], range, visit)) return false;
    }
  }
  return true;
}

}  // namespace

// Makes the pages that a split will need, before anything changes.
class CounterTree::Spares {
 public:
  Spares(const TreeLeaf& full_leaf, Arena& arena) : arena_(arena), leaf_(make<TreeLeaf>()) {
    const TreePage* page = &full_leaf;
    for (; page->parent != nullptr && full(*page->parent); page = page->parent) add_inner();
    if (page->parent == nullptr) add_inner();  // another root
  }
  TreeLeaf& take_leaf() { return *leaf_.release(); }
  TreeInner& take_inner() {
    TreeInner& taken = *inner_.back().release();
    inner_.pop_back();
    return taken;
  }

 private:
  struct Release {
    Arena* arena;
    void operator()(TreePage* page) const { release(*page, *arena); }
  };
  template <class Page>
  using Owner = std::unique_ptr<Page, Release>;

  template <class Page>
  Owner<Page> make() {
    return {arena_.make<Page>(), {&arena_}};
  }
  void add_inner() { inner_.push_back(make<TreeInner>()); }

  Arena& arena_;
  Owner<TreeLeaf> leaf_;
  std::vector<Owner<TreeInner>> inner_;
};

CounterTree::~CounterTree() {
  if (root_ != nullptr) release_all(*root_, *arena_);
}

RangeSum CounterTree::total() const {
  if (root_ == nullptr) return {};
  RangeSum total{root_->count, root_->sum};
  for (std::size_t i = 0; i < pending_count_; ++i) add_to(total, 0, pending_[i].delta);
  return total;
}

TreeLeaf* CounterTree::leaf_of(std::string_view name) const {
  TreePage* page = root_;
  while (page != nullptr && !page->leaf) {
    const TreeInner& inner = as_inner(*page);
    page = inner.pages[place_of(inner, name)];
  }
  return static_cast<TreeLeaf*>(page);
}

Counter* CounterTree::find(std::string_view name) const {
  const TreeLeaf* const leaf = leaf_of(name);
  if (leaf == nullptr) return nullptr;
  const std::size_t at = place_of(*leaf, name);
  return at < leaf->used && leaf->counters[at]->name() == name ? leaf->counters[at] : nullptr;
}

std::size_t CounterTree::cuts_for(std::string_view name) const {
  const TreePage* page = leaf_of(name);
  if (page != nullptr && !full(*page)) return 0;
  const std::size_t inner = arena_->cut_for(sizeof(TreeInner));
  std::size_t cuts = arena_->cut_for(sizeof(TreeLeaf));
  for (; page != nullptr && full(*page); page = page->parent) cuts += inner;
  return cuts;
}

Counter* CounterTree::insert(Counter::Owner counter) {
  settle();
  if (root_ == nullptr) root_ = arena_->make<TreeLeaf>();
  TreeLeaf* leaf = leaf_of(counter->name());
  std::size_t at = place_of(*leaf, counter->name());
  if (full(*leaf)) {
    Spares spares(*leaf, *arena_);
    const std::size_t keep = kept(at);
    TreeLeaf& right = split_leaf(*leaf, keep, spares);
    if (at > keep) {
      leaf = &right;
      at -= keep;
    }
  }
  open_gap(leaf->counters, leaf->used, at);
  leaf->counters[at] = counter.release();
  ++leaf->used;
  Counter& inserted = *leaf->counters[at];
  inserted.leaf = leaf;
  add_up(leaf, 1, inserted.sum);
  if (at == 0) tell_first(*leaf);
  return &inserted;
}

TreeLeaf& CounterTree::split_leaf(TreeLeaf& leaf, std::size_t keep, Spares& spares) noexcept {
  make_room_above(leaf, spares);
  TreeLeaf& right = spares.take_leaf();
  std::copy(&leaf.counters[keep], leaf.counters.data() + leaf.used, right.counters.begin());
  right.used = leaf.used - static_cast<std::uint32_t>(keep);
  leaf.used = static_cast<std::uint32_t>(keep);
  int128 sum = 0;
  for (std::size_t i = 0; i < right.used; ++i) {
    right.counters[i]->leaf = &right;
    sum = wrapping_add(sum, right.counters[i]->sum);
  }
  move_sums(leaf, right, right.used, sum);
  TreeInner& parent = *leaf.parent;
  attach(parent, place_in<TreePage>(parent.pages, parent.used, &leaf) + 1, right);
  return right;
}

// Makes sure that the page has a parent with room for one more.
void CounterTree::make_room_above(TreePage& page, Spares& spares) noexcept {
  if (page.parent == nullptr) {
    TreeInner& root = spares.take_inner();
    root.count = page.count;
    root.sum = page.sum;
    attach(root, 0, page);
    root_ = &root;
    return;
  }
  TreeInner& parent = *page.parent;
  if (!full(parent)) return;
  make_room_above(parent, spares);
  TreeInner& right = spares.take_inner();
  const std::size_t keep = kept(place_in(parent.pages, parent.used, &page) + 1);
  std::copy(&parent.pages[keep], parent.pages.data() + parent.used, right.pages.begin());
  std::copy(&parent.firsts[keep], parent.firsts.data() + parent.used, right.firsts.begin());
  right.used = parent.used - static_cast<std::uint32_t>(keep);
  parent.used = static_cast<std::uint32_t>(keep);
  RangeSum moved;
  for (std::size_t i = 0; i < right.used; ++i) {
    right.pages[i]->parent = &right;
    add_to(moved, right.pages[i]->count, right.pages[i]->sum);
  }
  move_sums(parent, right, moved.count, moved.sum);
  TreeInner& above = *parent.parent;
  attach(above, place_in<TreePage>(above.pages, above.used, &parent) + 1, right);
}

void CounterTree::remove(Counter* counter) noexcept {
  settle();
  TreeLeaf& leaf = *counter->leaf;
  const std::size_t at = place_in(leaf.counters, leaf.used, counter);
  SEMEL_ASSERT(at < leaf.used);
  close_gap(leaf.counters, leaf.used, at);
  --leaf.used;
  add_up(&leaf, ~std::uint64_t{0}, wrapping_subtract(0, counter->sum));
  Counter::Release{arena_}(counter);
  if (leaf.used == 0) {
    drop_if_empty(leaf);
    lower_root();
  } else if (at == 0) {
    tell_first(leaf);
  }
}

// Drops an empty page, and the pages above that hold nothing else.
void CounterTree::drop_if_empty(TreePage& page) noexcept {
  if (page.used > 0) return;
  TreeInner* const parent = page.parent;
  std::size_t at = 0;
  if (parent == nullptr) {
    root_ = nullptr;
  } else {
    at = place_in(parent->pages, parent->used, &page);
    close_gap(parent->pages, parent->used, at);
    close_gap(parent->firsts, parent->used, at);
    --parent->used;
  }
  release(page, *arena_);
  if (parent == nullptr) return;
  if (parent->used == 0) {
    drop_if_empty(*parent);
  } else if (at == 0) {
    tell_first(*parent);
  }
}

void CounterTree::lower_root() noexcept {
  while (root_ != nullptr && !root_->leaf && root_->used == 1) {
    TreeInner* const old = &as_inner(*root_);
    root_ = old->pages[0];
    root_->parent = nullptr;
    release(*old, *arena_);
  }
}

void CounterTree::add(Counter& counter, int128 delta) noexcept {
  counter.sum = wrapping_add(counter.sum, delta);
  __builtin_prefetch(counter.leaf, 1);
  pending_[pending_count_++] = {&counter, delta};
  if (pending_count_ == pending_.size()) settle();
}

void CounterTree::settle() noexcept {
  for (std::size_t i = 0; i < pending_count_; ++i)
    add_up(pending_[i].counter->leaf, 0, pending_[i].delta);
  pending_count_ = 0;
}

RangeSum CounterTree::before(std::string_view name) const {
  RangeSum total;
  if (root_ == nullptr) return total;
  const TreePage* page = root_;
  while (!page->leaf) {
    const TreeInner& inner = as_inner(*page);
    const std::size_t at = place_of(inner, name);
    for (std::size_t i = 0; i < at; ++i) add_to(total, inner.pages[i]->count, inner.pages[i]->sum);
    page = inner.pages[at];
  }
  const TreeLeaf& leaf = as_leaf(*page);
  const std::size_t at = place_of(leaf, name);
  for (std::size_t i = 0; i < at; ++i) add_to(total, 1, leaf.counters[i]->sum);
  for (std::size_t i = 0; i < pending_count_; ++i) {
    const auto& [counter, delta] = pending_[i];
    if (counter->leaf != &leaf && less(counter, name)) add_to(total, 0, delta);
  }
  return total;
}

void CounterTree::scan(const NameRange& range, const Visit& visit) const {
  if (root_ != nullptr) scan_page(*root_, range, visit);
}

}  // namespace semel::tally::internal
