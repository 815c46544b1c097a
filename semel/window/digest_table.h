// DigestTable: a set of digests in one array, open addressing, that takes a fixed number.
//
// Contract  Holds up to room() digests, each once. Two digests are told apart by all of their bits.
//           A timed table has a time with each of them, in an array beside.
// Layout    Slots of 16 bytes, a third more than room, in lines of four; a digest lies in the first
//           free slot from line scale(lo, lines) on, around the end. {0, 0} marks a free slot, so
//           that digest lies apart.
// Cost      contains: one cache miss, seldom two next to each other. Making a table takes no time,
//           whatever its size (core/zeroed.h).
// Memory    64 / 3 bytes a digest when full, 32 with times.
// Limits    Whoever chooses digests can make probes as long as the table: ids from outside take the
//           keyed hash.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "semel/bits/lines.h"
#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/clock.h"
#include "semel/hash/digest.h"
#include "semel/window/digest_order.h"
#include "semel/window/internal/slot_cursor.h"

namespace semel {

class DigestTable {
 public:
  static constexpr std::uint64_t kRoomStep = 3;  // rooms are multiples of it, and slots whole lines
  static constexpr std::uint64_t slots_for(std::uint64_t room) { return room / kRoomStep * 4; }

  // REQUIRES: room > 0, and it is a multiple of kRoomStep.
  explicit DigestTable(std::uint64_t room, bool timed = false);

  std::uint64_t room() const { return slots_.size() / 4 * kRoomStep; }
  std::uint64_t size() const { return size_; }
  bool full() const { return size_ == room(); }

  [[gnu::always_inline]] void touch(Digest digest) const { prefetch(&slots_[home(digest)]); }
  bool contains(Digest digest) const;
  // The time of a digest; nullptr if it is not inside. REQUIRES: the table is timed.
  const TimeMs* time_of(Digest digest) const;
  TimeMs* time_of(Digest digest) {
    return const_cast<TimeMs*>(static_cast<const DigestTable*>(this)->time_of(digest));
  }
  // REQUIRES: !full(), and the digest is not inside. The time is that of a timed table.
  void insert(Digest digest, TimeMs at_ms = 0);
  // Takes out the one that was inserted last.
  void take_back(Digest digest);
  // Inserts digests that ascend into an empty table: in one pass, whatever they are.
  // REQUIRES: size() == 0, digests.size() <= room(), and they ascend; as many times if it is timed.
  void fill(const std::vector<Digest>& digests, std::span<const TimeMs> times_ms = {});

  // Ascending; without {0, 0}, which comes before all others.
  bool holds_zero() const { return holds_zero_; }
  struct Home {
    const DigestTable* table;
    std::uint64_t operator()(Digest digest) const { return table->home(digest); }
  };
  SlotCursor<Home> ascending() const { return {{slots_.data(), slots_.size()}, Home{this}}; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  // Where the digest is; kNone if it is not inside. REQUIRES: it is not {0, 0}.
  std::uint64_t slot_of(Digest digest) const;
  void set(std::uint64_t slot, Digest digest, TimeMs at_ms);

  // The first slot of a cache line: most probes end within it.
  std::uint64_t home(Digest digest) const { return scale(digest.lo, slots_.size() / 4) * 4; }
  std::uint64_t next(std::uint64_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }
  bool free(std::uint64_t slot) const { return slots_[slot] == Digest{0, 0}; }

  LineArray<Digest> slots_;
  LineArray<TimeMs> times_ms_;  // of the slots, if there are any
  std::uint64_t size_ = 0;
  bool holds_zero_ = false;
  TimeMs zero_ms_ = 0;
};

}  // namespace semel
