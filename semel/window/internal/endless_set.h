// EndlessSet: a window without an end that keeps every digest whole.
//
// Contract  An IdWindow whose window is infinite: an accepted id is recognised forever. Nothing is
//           stale or full, and nothing is renewed, so insert() does what test_and_insert() does.
//           Two ids are taken for one only if all 128 bits of their digests agree. Among n ids that
//           nobody chose to collide, n^2 / 2^129 such pairs are expected: 1.5e-25 for ten million.
// Merge     The union of two sets with the same hash. Commutative, associative, idempotent.
// Cost      One cache miss on average; the batch forms load ahead. Growing passes over all ids.
// Memory    16 bytes a slot, of which 3/8 to 3/4 are taken: 21 to 43 bytes an id.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/endless_set_v1.md. Time and counts are no part of it: a window from bytes
//           begins at the smallest time, and time catches up with the first advance().
#pragma once

#include <cstdint>
#include <span>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/window/internal/digest_table.h"
#include "semel/window/internal/endless.h"
#include "semel/window/window.h"

namespace semel::window_internal {

class EndlessSet {
 public:
  using Id = Digest;

  // REQUIRES: hash.valid().
  EndlessSet(HashId hash, TimeMs now_ms);

  // REQUIRES for all ids: the digest was made by hash().
  Verdict test(Digest id) const {
    return table_.contains(id) ? Verdict::duplicate : Verdict::fresh;
  }
  Verdict test(Digest id, TimeMs) const { return test(id); }
  Verdict insert(Digest id) { return test_and_insert(id); }
  Verdict insert(Digest id, TimeMs) { return test_and_insert(id); }
  Verdict test_and_insert(Digest id);
  Verdict test_and_insert(Digest id, TimeMs) { return test_and_insert(id); }
  void test(std::span<const Digest> ids, std::span<Verdict> verdicts) const;
  void insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
    test_and_insert(ids, verdicts);
  }
  void test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts);

  void touch(Digest id) const { table_.touch(id); }

  void advance(TimeMs now_ms) { time_.advance(now_ms); }
  TimeMs now() const { return time_.now(); }
  WindowPromise promise() const { return kEndless; }
  WindowCounts counts() const { return {.backward_steps = time_.backward_steps()}; }
  double false_positive_rate() const { return 0; }
  std::uint64_t bytes() const { return table_.bytes(); }

  HashId hash() const { return hash_; }
  std::uint64_t ids() const { return table_.size(); }

  // Errc::mismatch, and no change, for another hash. The time becomes the later of both.
  Result<void> merge(const EndlessSet& other);

  // Appends the encoding. Equal sets give equal bytes.
  void encode(Sink out) const;
  static Result<EndlessSet> decode(ByteView in);

  // Compares the ids, not now() and counts().
  bool operator==(const EndlessSet& other) const;

 private:
  static DigestTable larger(const DigestTable& table, std::uint64_t room);

  HashId hash_;
  WindowTime time_;
  DigestTable table_;  // the next table has twice its room
};

}  // namespace semel::window_internal
