// CounterState: the folded part of one counter, with a shard for each site that counted.
//
// Contract  The value of the counter is the sum of the shards. No sum wraps: 2^16 sites with 2^48
//           operations of 64 bits each fit its 128 bits. add() adds two states that hold different
//           operations, in any order and grouping. The merge operator of the store uses it.
// Memory    48 bytes for each shard.
// Format    docs/formats/tally_entries_v1.md, 'A counter'.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"

namespace semel::tally::internal {

// These are modulo 2^128. Only forged sums can get that far.
constexpr int128 wrapping_add(int128 a, int128 b) {
  return static_cast<int128>(static_cast<uint128>(a) + static_cast<uint128>(b));
}
constexpr int128 wrapping_subtract(int128 a, int128 b) {
  return static_cast<int128>(static_cast<uint128>(a) - static_cast<uint128>(b));
}

struct Shard {
  SiteId site = 0;
  std::uint64_t clock = 0;       // the latest operation of the site in the shard
  std::uint64_t operations = 0;  // how many
  int128 sum = 0;

  // Adds the operations of another shard of the site.
  void add(const Shard& other) {
    clock = std::max(clock, other.clock);
    operations += other.operations;
    sum = wrapping_add(sum, other.sum);
  }
  bool operator==(const Shard&) const = default;
};

class CounterState {
 public:
  CounterState() = default;
  explicit CounterState(const Shard& shard) { add(shard); }

  std::span<const Shard> shards() const { return shards_; }  // ascending by site
  int128 sum() const;
  bool empty() const { return shards_.empty(); }

  void add(const Shard& shard);
  void add(const CounterState& other);

  void encode(Sink out) const;
  // Errors: Errc::corrupt unless the sites ascend and each shard is possible: the clock is that of
  // a dot, there are at least one operation and at most as many as the clock says, and they can
  // have this sum.
  static Result<CounterState> decode(ByteView in);
  std::uint64_t bytes() const { return shards_.capacity() * sizeof(Shard); }  // beside the object
  bool operator==(const CounterState&) const = default;

 private:
  std::vector<Shard> shards_;
};

}  // namespace semel::tally::internal
