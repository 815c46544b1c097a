// EndlessSet: a window without an end that keeps every digest whole.
//
// Contract  As in window.h, for a window longer than all time: what was accepted is recognised for
//           ever. Nothing is stale or full, and nothing is renewed, so that insert() does what
//           test_and_insert() does. Two ids are taken for one only if all 128 bits of their digests
//           agree. Among n ids that nobody chose to collide, n^2 / 2^129 such pairs are expected:
//           1.5e-25 for ten million.
// Layout    Open addressing in the order of digests: of 2^b slots, an id lies in the first free one
//           from that on which the b upper bits of `lo` name, around the end. So a table is written,
//           read and grown in one pass.
// Cost      One cache miss on average; the batch forms load ahead. Growing passes over all.
// Memory    16 bytes a slot, of which 3/8 to 3/4 are taken: 21 to 43 bytes an id.
// Threads   const members may run at once; any other call needs the object to itself.
// Limits    Whoever chooses digests can make probes as long as the table: ids from outside take the
//           keyed hash.
// Format    docs/formats/endless_set_v1.md. Time and counts are no part of it: a window from bytes
//           begins at the smallest time, and time catches up with the first advance().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "semel/bits/lines.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/window/internal/endless.h"
#include "semel/window/window.h"

namespace semel {

class EndlessSet {
 public:
  using Id = Digest;

  // REQUIRES: hash.valid().
  EndlessSet(HashId hash, TimeMs now_ms);

  // REQUIRES, of all that take an id: the digest was made by hash().
  Verdict test(Digest id) const;
  Verdict insert(Digest id) { return test_and_insert(id); }
  Verdict insert(Digest id, TimeMs) { return test_and_insert(id); }
  Verdict test_and_insert(Digest id);
  Verdict test_and_insert(Digest id, TimeMs) { return test_and_insert(id); }
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
    test_and_insert(ids, verdicts);
  }
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  void advance(TimeMs now_ms) { time_.advance(now_ms); }
  TimeMs now() const { return time_.now(); }
  Promise promise() const { return kEndless; }
  WindowCounts counts() const { return {.backward_steps = time_.backward_steps()}; }
  double false_positive_rate() const { return 0; }
  std::uint64_t bytes() const { return slots_.size() * sizeof(Digest); }

  HashId hash() const { return hash_; }
  std::uint64_t size() const { return size_; }

  // Appends the encoding to `out`. Equal sets give equal bytes.
  void encode(Sink out) const;
  // Reads one set that fills `in` exactly. `in` may come from an enemy.
  static Result<EndlessSet> decode(ByteView in);

  // Whether both hold the same. now() and counts() may differ.
  bool operator==(const EndlessSet& other) const;

 private:
  static constexpr std::uint64_t room_of(std::uint64_t slots) { return slots / 4 * 3; }

  std::uint64_t home(Digest id) const { return id.lo >> shift_; }
  std::uint64_t next(std::uint64_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  void make_slots(std::uint64_t count);  // REQUIRES: a power of two above 1
  // Where the id is, or the free slot where it would be.
  std::uint64_t find(Digest id) const;
  void grow();

  HashId hash_;
  WindowTime time_;
  unsigned shift_ = 0;
  LineArray<Digest> slots_;  // a digest of zeros marks a free slot,
  bool has_zero_ = false;    // so that one is kept here
  std::uint64_t size_ = 0;   // with that one; at most room_of(slots_.size())
};

}  // namespace semel
