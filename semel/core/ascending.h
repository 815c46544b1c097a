// AscendingWindow: the least items of a collection that has no order, a window of them at a time.
//
// A collection that is written in order need not be copied and sorted for that: each window takes
// one pass over the collection, and as much memory as the window has room for.
//
// Cost      A pass compares each item once or twice; those of the window are sorted.
// Memory    That of the room (ScratchRoom): a mebibyte, and more for many items, so that the passes
//           do not become too many. Less where there is no more.
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

namespace semel {

// Memory for items that nobody keeps.
template <class Item>
class ScratchRoom {
  static_assert(std::is_trivially_copyable_v<Item>);

 public:
  // For windows of a collection of so many items: one pass where a mebibyte is enough, and as few
  // as `most_bytes` allow where that is more. Throws only if there is no memory for kLeast items.
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

  // One more than there are, so that a small collection is one window; but no fewer than two.
  static std::size_t wanted(std::uint64_t items, std::uint64_t most_bytes) {
    return std::min(std::max(kUsualBytes, most_bytes) / sizeof(Item), items + 2);
  }

  std::size_t size_;
  std::unique_ptr<Item[]> room_;
};

template <class Item, class Less>
class AscendingWindow {
 public:
  // REQUIRES: room for two items or more, which outlives the window.
  explicit AscendingWindow(std::span<Item> room, Less less = {}) : room_(room), less_(less) {
    SEMEL_ASSERT(room.size() >= 2);
  }

  // scan(offer) calls offer(item) for every item of the collection, in any order; it may leave out
  // those that !offer.wants(item). The window is the least of those that come after `after`.
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
  bool more() const { return more_; }  // there are items after those of the window

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
  // Drops the greater half where there is no room left.
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
  Item greatest_{};  // that the window may still take, if more_
};

// Calls visit(item) for every item of the collection, ascending. `scan` as in load().
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

}  // namespace semel
