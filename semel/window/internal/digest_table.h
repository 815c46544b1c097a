// DigestTable: a set of digests in one array with open addressing. Its capacity is fixed.
//
// Contract  Holds up to room() digests, each once. Two digests are told apart by all of their bits.
//           A timed table also has a time for each of them, in a second array.
// Layout    There are a third more slots of 16 bytes than room, in lines of four. A digest lies in
//           the first free slot from line scale(hi, lines) on, and the search wraps around the end.
//           So homes ascend with the digests. {0, 0} marks a free slot, so that digest is stored
//           separately.
// Cost      contains: one cache miss, rarely two adjacent ones. Making a table takes no time,
//           whatever its size (core/internal/zeroed.h).
// Memory    64 / 3 bytes a digest when full, 32 with times.
// Limits    Digests that were chosen to collide make probes as long as the table. Use the keyed
//           hash for untrusted ids.
#pragma once

#include <cstdint>

#include "semel/bits/internal/line_array.h"
#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/core/clock.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/hash/digest.h"
#include "semel/window/internal/slot_cursor.h"

namespace semel::window_internal {

class DigestTable {
 public:
  static constexpr std::uint64_t kRoomStep = 3;  // rooms are multiples of it: slots in whole lines
  static constexpr std::uint64_t slots_for(std::uint64_t room) { return room / kRoomStep * 4; }

  // REQUIRES: room > 0, and it is a multiple of kRoomStep.
  explicit DigestTable(std::uint64_t room, bool timed = false);

  std::uint64_t room() const { return slots_.size() / 4 * kRoomStep; }
  std::uint64_t size() const { return size_; }
  bool full() const { return size_ == room(); }
  std::uint64_t bytes() const {
    return slots_.size() * sizeof(Digest) + times_ms_.size() * sizeof(TimeMs);
  }

  [[gnu::always_inline]] void touch(Digest digest) const { prefetch(&slots_[home(digest)]); }
  [[gnu::always_inline]] void touch_for_write(Digest digest) const {
    prefetch_for_write(&slots_[home(digest)]);
  }
  bool contains(Digest digest) const;
  // Returns the time of a digest; nullptr if it is not in the table. REQUIRES: the table is timed.
  const TimeMs* time_of(Digest digest) const;
  TimeMs* time_of(Digest digest) {
    return const_cast<TimeMs*>(static_cast<const DigestTable*>(this)->time_of(digest));
  }
  // Inserts a digest; `at_ms` is kept only by a timed table. REQUIRES: !full(), and the digest is
  // not in the table.
  void insert(Digest digest, TimeMs at_ms = 0);
  // Inserts a digest unless it is in the table. Returns true if it was not. REQUIRES: !full().
  bool add(Digest digest);
  // Removes the digest that was inserted last. REQUIRES: it is this one.
  void take_back(Digest digest);

  // The position of append().
  struct End {
    std::uint64_t after = 0, after_wrap = 0;
  };
  // Inserts a digest into a table that was filled only by append(), each digest greater than all
  // before it. Appending many digests takes one pass, whatever their values. REQUIRES: !full().
  void append(End& end, Digest digest, TimeMs at_ms = 0);

  // Calls visit(digest) for each digest but {0, 0}, almost in ascending order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Digest& digest : slots_) {
      if (digest != Digest{0, 0}) visit(digest);
    }
  }
  bool holds_zero() const { return holds_zero_; }
  struct Home {
    const DigestTable* table;
    std::uint64_t operator()(Digest digest) const { return table->home(digest); }
  };
  // Returns a cursor over the digests in ascending order, without {0, 0}, which is the least of
  // all.
  SlotCursor<Home> ascending() const { return {{slots_.data(), slots_.size()}, Home{this}}; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  // Returns the slot of the digest; kNone if it is not in the table. REQUIRES: it is not {0, 0}.
  std::uint64_t slot_of(Digest digest) const;
  void set(std::uint64_t slot, Digest digest, TimeMs at_ms);

  // Returns the first slot of a cache line: most probes end within that line.
  std::uint64_t home(Digest digest) const { return scale(digest.hi, slots_.size() / 4) * 4; }
  std::uint64_t next(std::uint64_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }
  bool free(std::uint64_t slot) const { return slots_[slot] == Digest{0, 0}; }

  LineArray<Digest> slots_;
  LineArray<TimeMs> times_ms_;  // one for each slot of a timed table
  std::uint64_t size_ = 0;
  bool holds_zero_ = false;
  TimeMs zero_ms_ = 0;
};

}  // namespace semel::window_internal
