// Frontier: nodes that partition the records below some tops, with the first bits of their digests.
// One end sends it, and the other can tell where they differ.
//
// Contract  Every key below a top is in exactly one slot. A slot is a node, or the space beside a
//           compressed edge, where the end that made the frontier has no records.
// Cost      About 26.5 bits for each node, and some bytes for each top.
// Format    docs/formats/sync_frames_v1.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/sync/internal/region.h"
#include "semel/sync/internal/short_digest.h"

namespace semel::sync_internal {

class Frontier {
 public:
  static constexpr int kDigestBits = 24;

  struct Slot {
    Region region;
    Aggregate sum;  // at the end that made the frontier
  };

  // Makes a frontier. Splits the nodes with the most records first, until there are `slots` nodes,
  // or none has more than `enough` records. REQUIRES: the tops are in order, and none is below
  // another.
  static Result<Frontier> grow(const RangeView& view, std::span<const BitPath> tops,
                               std::size_t slots, std::uint64_t enough);

  const std::vector<Slot>& slots() const { return slots_; }
  void encode(const ShortDigest& shorten, Writer& out) const;

 private:
  struct Node {
    BitPath path;
    Aggregate sum;
    BitPath at;             // if split: where
    std::size_t child = 0;  // if split: the left one; the right one is the next
  };

  std::size_t tops_ = 0;
  std::vector<Node> nodes_;  // the tops first
  std::vector<Slot> slots_;  // in the order of sending

  Result<void> split(const RangeView& view, std::size_t node);
  template <class Visit>
  void visit_in_order(Visit visit) const;
};

// A frontier that came from the other end.
struct PeerSlot {
  Region region;
  std::uint32_t digest = 0;  // kDigestBits of it; 0 if the other end has nothing
  bool empty = false;        // beside an edge: the other end has nothing there
};
Result<std::vector<PeerSlot>> decode_frontier(Reader& in);

// Returns the bits of a slot's digest that are sent.
inline std::uint32_t node_bits(const ShortDigest& shorten, const Aggregate& sum) {
  return static_cast<std::uint32_t>(shorten(sum.digest) >> (64 - Frontier::kDigestBits));
}

}  // namespace semel::sync_internal
