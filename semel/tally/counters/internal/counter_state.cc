#include "semel/tally/counters/internal/counter_state.h"

#include <algorithm>
#include <limits>

namespace semel::tally::internal {
namespace {

constexpr std::size_t kLeastShardBytes = 4;  // a byte for each field

bool sound(const Shard& shard) {
  const auto operations = static_cast<int128>(shard.operations);
  const int128 most = operations * (int128{1} << 63);
  return shard.clock >= 1 && shard.clock <= Dot::kLastCounter &&  //
         shard.operations >= 1 && shard.operations <= shard.clock && shard.sum >= -most &&
         shard.sum <= most - operations;
}

}  // namespace

int128 CounterState::sum() const {
  int128 sum = 0;
  for (const Shard& shard : shards_) sum = wrapping_add(sum, shard.sum);
  return sum;
}

void CounterState::add(const Shard& shard) {
  const auto found = std::lower_bound(shards_.begin(), shards_.end(), shard.site,
                                      [](const Shard& a, SiteId site) { return a.site < site; });
  if (found != shards_.end() && found->site == shard.site) {
    found->add(shard);
  } else {
    shards_.insert(found, shard);
  }
}

void CounterState::add(const CounterState& other) {
  for (const Shard& shard : other.shards_) add(shard);
}

void CounterState::encode(Sink out) const {
  Writer w(out);
  w.varint(shards_.size());
  for (const Shard& shard : shards_) {
    w.varint(shard.site);
    w.varint(shard.clock);
    w.varint(shard.operations);
    w.signed_varint(shard.sum);
  }
}

Result<CounterState> CounterState::decode(ByteView in) {
  Reader r(in);
  const std::uint64_t count = r.varint();
  if (!r.ok() || count > r.rest() / kLeastShardBytes) {
    return Error{Errc::corrupt, "counter: number of shards"};
  }
  CounterState state;
  state.shards_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t site = r.varint();
    if (site > std::numeric_limits<SiteId>::max() || (i > 0 && site <= state.shards_.back().site)) {
      return Error{Errc::corrupt, "counter: order of sites"};
    }
    Shard shard{.site = static_cast<SiteId>(site)};
    shard.clock = r.varint();
    shard.operations = r.varint();
    shard.sum = r.signed_varint();
    if (!r.ok() || !sound(shard)) return Error{Errc::corrupt, "counter: shard"};
    state.shards_.push_back(shard);
  }
  if (r.rest() != 0) return Error{Errc::corrupt, "counter: size"};
  return state;
}

}  // namespace semel::tally::internal
