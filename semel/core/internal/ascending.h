// AscendingWindow: visits an unordered collection in ascending order, one window at a time.
//
// The collection need not be copied and sorted. Each window takes one pass over the collection, and
// its memory is that of the window alone.
//
// Cost      A pass compares each item once or twice. It sorts only the items of the window.
// Memory    The ScratchRoom: a mebibyte, or more for many items, so that few passes are needed. It
//           takes less if memory is short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <type_traits>

#include "semel/core/assert.h"

namespace semel::inline core_internal {

// Scratch memory for the items of a window.
template <class Item>
class ScratchRoom {
  static_assert(std::is_trivially_copyable_v<Item>);

 public:
  // Makes room for windows of a collection of `items` items. A mebibyte is used where that allows a
  // single pass. Otherwise the room grows up to `most_bytes`, to need as few passes as possible.
  // Throws only if there is no memory for kLeast items.
  ScratchRoom(std::uint64_t items, std::uint64_t most_bytes) : size_(wanted(items, most_bytes)) {
    for (; size_ > kLeast; size_ /= 2) {
      room_.reset(new (std::nothrow) Item[size_]);
      if (room_ != nullptr) return;
    }
    room_.reset(new Item[size_]);
  }

  std::span<Item> span() const { return {room_.get(), size_}; }

 private:
  static constexpr std::size_t kLeast = 1024;
  static constexpr std::uint64_t kUsualBytes = std::uint64_t{1} << 20;

  // A small collection gets room for two items more than it has. So it fits in one window, and the
  // room is never for fewer than two.
  static std::size_t wanted(std::uint64_t items, std::uint64_t most_bytes) {
    return std::min(std::max(kUsualBytes, most_bytes) / sizeof(Item), items + 2);
  }

  std::size_t size_;
  std::unique_ptr<Item[]> room_;
};

template <class Item, class Less>
class AscendingWindow {
 public:
  // REQUIRES: `room` holds at least two items and outlives the window.
  explicit AscendingWindow(std::span<Item> room, Less less = {}) : room_(room), less_(less) {
    SEMEL_ASSERT(room.size() >= 2);
  }

  // Loads the least items that come after `after`. scan(offer) must call offer(item) for every item
  // of the collection, in any order. It may skip an item for which offer.wants(item) is false.
  // REQUIRES: no two items are equal.
  template <class Scan>
  void load(const std::optional<Item>& after, Scan scan) {
    after_ = after;
    size_ = 0;
    more_ = false;
    scan(Offer{*this});
    std::sort(room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(size_), less_);
  }

  std::span<const Item> items() const { return room_.first(size_); }
  bool more() const { return more_; }  // true if more items follow the window

 private:
  struct Offer {
    AscendingWindow& window;
    bool wants(const Item& item) const { return window.wants(item); }
    void operator()(const Item& item) const {
      if (window.wants(item)) window.take(item);
    }
  };

  bool wants(const Item& item) const {
    if (more_ && less_(greatest_, item)) return false;
    return !after_ || less_(*after_, item);
  }
  // Adds an item. Drops the greater half of the items when the room is full.
  void take(const Item& item) {
    room_[size_++] = item;
    if (size_ < room_.size()) return;
    size_ /= 2;
    const auto middle = room_.begin() + static_cast<std::ptrdiff_t>(size_ - 1);
    std::nth_element(room_.begin(), middle, room_.end(), less_);
    greatest_ = *middle;
    more_ = true;
  }

  std::span<Item> room_;
  Less less_;
  std::size_t size_ = 0;
  std::optional<Item> after_;
  bool more_ = false;
  Item greatest_{};  // valid if more_: the greatest item that may still enter
};

// Calls visit(item) for every item of the collection in ascending order. load() describes `scan`.
template <class Item, class Less, class Scan, class Visit>
void for_each_ascending(std::span<Item> room, Less less, Scan scan, Visit visit) {
  AscendingWindow<Item, Less> window(room, less);
  std::optional<Item> last;
  do {
    window.load(last, scan);
    for (const Item& item : window.items()) visit(item);
    if (window.more()) last = window.items().back();
  } while (window.more());
}

}  // namespace semel::inline core_internal
