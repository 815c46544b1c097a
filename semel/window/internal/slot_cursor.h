// SlotCursor: visits the digests of an open-addressing table in ascending order, without copying
// them.
//
// Contract  The table probes linearly, and homes ascend with the digests. A run is the taken slots
//           between two free ones. Its digests lie between those of the runs before and after it,
//           so each run is sorted by itself. A digest that lies before its home wrapped around the
//           end of the table and belongs to the last run.
// Cost      A run of a few slots is sorted at once. Only digests that were chosen to collide make a
//           long run, which takes a pass for every few dozen digests.
// Memory    One cursor of fixed size.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "semel/core/internal/ascending.h"
#include "semel/hash/digest.h"

namespace semel::window_internal {

// home(digest) is the slot where the search for it begins. {0, 0} marks a free slot.
template <class Home>
class SlotCursor {
 public:
  SlotCursor(std::span<const Digest> slots, Home home) : slots_(slots), home_(home) { find_run(); }

  bool valid() const { return at_ < size_; }
  // REQUIRES for both: valid().
  const Digest& operator*() const { return room_[at_]; }
  void next() {
    if (++at_ < size_) return;
    more_ ? load(room_[size_ - 1]) : find_run();
  }

 private:
  static constexpr std::size_t kRoom = 64;
  static constexpr Digest kFree = {0, 0};

  bool around(std::uint64_t slot) const { return slot < home_(slots_[slot]); }

  // Finds the next run with a digest of its own.
  void find_run() {
    at_ = size_ = 0;
    while (size_ == 0 && end_ < slots_.size()) {
      begin_ = end_;
      while (begin_ < slots_.size() && slots_[begin_] == kFree) ++begin_;
      end_ = begin_;
      while (end_ < slots_.size() && slots_[end_] != kFree) ++end_;
      load(std::nullopt);
    }
  }

  void load(const std::optional<Digest>& after) {
    AscendingWindow<Digest, std::less<>> window(room_);
    window.load(after, [&](auto offer) {
      for (std::uint64_t slot = begin_; slot < end_; ++slot) {
        if (!around(slot)) offer(slots_[slot]);
      }
      if (end_ < slots_.size()) return;
      for (std::uint64_t slot = 0; slot < begin_ && slots_[slot] != kFree; ++slot) {
        if (around(slot)) offer(slots_[slot]);
      }
    });
    at_ = 0;
    size_ = window.items().size();
    more_ = window.more();
  }

  std::span<const Digest> slots_;
  Home home_;
  std::uint64_t begin_ = 0, end_ = 0;  // of the run
  std::array<Digest, kRoom> room_;
  std::size_t at_ = 0, size_ = 0;
  bool more_ = false;  // in the run
};

}  // namespace semel::window_internal
