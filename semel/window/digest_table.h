// DigestTable: a set of digests in one array, open addressing, that takes a fixed number.
//
// Contract  Holds up to room() digests, each once. Two digests are told apart by all of their bits.
// Layout    Slots of 16 bytes, a third more than room, in lines of four; a digest lies in the first
//           free slot from line scale(lo, lines) on, around the end. {0, 0} marks a free slot, so
//           that digest lies apart.
// Cost      contains: one cache miss, seldom two next to each other. Making a table takes no time,
//           whatever its size (core/zeroed.h).
// Memory    64 / 3 bytes a digest when full.
// Limits    Whoever chooses digests can make probes as long as the table: ids from outside take the
//           keyed hash.
#pragma once

#include <cstdint>
#include <vector>

#include "semel/bits/lines.h"
#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/hash/digest.h"

namespace semel {

// The order in which formats list digests: that of slots, nearly.
constexpr bool comes_before(const Digest& a, const Digest& b) {
  return a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi;
}

class DigestTable {
 public:
  static constexpr std::uint64_t kRoomStep = 3;  // rooms are multiples of it, and slots whole lines
  static constexpr std::uint64_t slots_for(std::uint64_t room) { return room / kRoomStep * 4; }

  // REQUIRES: room > 0, and it is a multiple of kRoomStep.
  explicit DigestTable(std::uint64_t room);

  std::uint64_t room() const { return slots_.size() / 4 * kRoomStep; }
  std::uint64_t size() const { return size_; }
  bool full() const { return size_ == room(); }

  [[gnu::always_inline]] void touch(Digest digest) const { prefetch(&slots_[home(digest)]); }
  bool contains(Digest digest) const;
  // REQUIRES: !full(), and the digest is not inside.
  void insert(Digest digest);
  // Takes out the one that was inserted last.
  void take_back(Digest digest);
  // Inserts digests that ascend into an empty table: in one pass, whatever they are.
  // REQUIRES: size() == 0, digests.size() <= room(), and they ascend.
  void fill(const std::vector<Digest>& digests);
  void append_to(std::vector<Digest>& out) const;

 private:
  // The first slot of a cache line: most probes end within it.
  std::uint64_t home(Digest digest) const { return scale(digest.lo, slots_.size() / 4) * 4; }
  std::uint64_t next(std::uint64_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }
  bool free(std::uint64_t slot) const { return slots_[slot] == Digest{0, 0}; }

  LineArray<Digest> slots_;
  std::uint64_t size_ = 0;
  bool holds_zero_ = false;
};

}  // namespace semel
