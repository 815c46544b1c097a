// EntriesInOrder: visits the entries of a store in ascending order. The store keeps no order.
//
// Contract  for_each() visits the entries of a range. Ascending ranges take the fewest passes.
// Cost      One pass over the store for each window (core/internal/ascending.h). Up to 65,000
//           entries take one pass in all.
// Memory    A mebibyte, or an eighth of the size of a large store if there is memory for that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "semel/core/internal/ascending.h"
#include "semel/crdt/internal/entry_store.h"

namespace semel::crdt_internal {

// An order defines the items that are sorted, how to compare them, and how a store offers them.
// ByDot sorts by dot: an item is a dot and its place. A pass reads only the dots.
struct ByDot {
  struct Item {
    std::uint64_t dot;
    std::uint64_t place;
  };
  bool operator()(const Item& a, const Item& b) const { return a.dot < b.dot; }
  static CuckooEntry entry(const EntryStore& store, const Item& item) {
    return store.entry_at(item.place);
  }
  template <class Offer>
  static void scan(const EntryStore& store, Offer offer) {
    store.for_each_place([&](std::uint64_t place, std::uint64_t dot) {
      if (offer.wants({dot, place})) offer({dot, place});  // a free place has the dot 0
    });
  }
};
// ByPlace sorts by pair and fingerprint, for a store without payloads.
struct ByPlace {
  struct Item {
    std::uint64_t pair;
    std::uint64_t fingerprint;
  };
  bool operator()(const Item& a, const Item& b) const {
    return a.pair != b.pair ? a.pair < b.pair : a.fingerprint < b.fingerprint;
  }
  static CuckooEntry entry(const EntryStore& /*store*/, const Item& item) {
    return {item.pair, item.fingerprint, 0};
  }
  template <class Offer>
  static void scan(const EntryStore& store, Offer offer) {
    store.for_each([&](const CuckooSpot& spot, std::uint64_t) {
      offer({store.shape().pair_of(spot), spot.fingerprint});
    });
  }
};

template <class Order>
class EntriesInOrder {
 public:
  using Item = typename Order::Item;

  // REQUIRES: the store outlives the object and does not change.
  explicit EntriesInOrder(const EntryStore& store) : store_(store) {}

  // Calls visit(item) for the items after `after`, up to `last`. REQUIRES: no free place comes
  // after `after`.
  template <class Visit>
  void for_each(const Item& after, const Item& last, Visit visit) {
    if (!room_) window_.emplace(room_.emplace(store_.size(), store_.bytes() / kShare).span());
    if (!after_ || less_(after, *after_)) load(after);
    for (;;) {
      const auto items = window_->items();
      auto at = std::upper_bound(items.begin(), items.end(), after, less_);
      for (; at != items.end(); ++at) {
        if (less_(last, *at)) return;
        visit(*at);
      }
      if (!window_->more()) return;
      load(std::max(items.back(), after, less_));
    }
  }
  // Returns the entry of an item.
  CuckooEntry entry(const Item& item) const { return Order::entry(store_, item); }

 private:
  static constexpr std::uint64_t kShare = 8;

  void load(const Item& after) {
    after_ = after;
    window_->load(after, [&](auto offer) { Order::scan(store_, offer); });
  }

  const EntryStore& store_;
  std::optional<ScratchRoom<Item>> room_;
  std::optional<AscendingWindow<Item, Order>> window_;
  std::optional<Item> after_;  // the window holds the least items after this
  Order less_;
};

}  // namespace semel::crdt_internal
