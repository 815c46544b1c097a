// CounterState: the laws of adding, and bytes.
#include "semel/tally/counters/internal/counter_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <map>
#include <vector>

#include "tests/support/allocation.h"
#include "tests/support/encoded.h"

namespace semel::tally::internal {
namespace {

// Returns a shard into which `operations` of `delta` each were folded, the last of them with number
// `clock`.
Shard shard_of(SiteId site, std::uint64_t clock, std::uint64_t operations, std::int64_t delta) {
  return {site, clock, operations, static_cast<int128>(operations) * delta};
}

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

rc::Gen<CounterState> states() {
  return rc::gen::exec([] {
    CounterState state;
    const auto sites = *rc::gen::container<std::vector<SiteId>>(
        rc::gen::oneOf(rc::gen::inRange<SiteId>(0, 4), rc::gen::arbitrary<SiteId>()));
    for (const SiteId site : sites) {
      const auto operations = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
      const auto clock = *rc::gen::inRange<std::uint64_t>(1'000'000'000, Dot::kLastCounter + 1);
      const auto delta = *rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(),
                                         rc::gen::element(kLeast, std::int64_t{0}, kMost));
      state.add(shard_of(site, clock, operations, delta));
    }
    return state;
  });
}

CounterState sum_of(CounterState a, const CounterState& b) {
  a.add(b);
  return a;
}

RC_GTEST_PROP(CounterState, AddsUpInAnyOrderAndGrouping, ()) {
  const CounterState a = *states(), b = *states(), c = *states();
  RC_ASSERT(sum_of(a, b) == sum_of(b, a));
  RC_ASSERT(sum_of(sum_of(a, b), c) == sum_of(a, sum_of(b, c)));
  RC_ASSERT(sum_of(a, {}) == a);
  RC_ASSERT(sum_of(a, b).sum() == a.sum() + b.sum());
}

RC_GTEST_PROP(CounterState, HoldsOneShardForEachSiteInTheirOrder, ()) {
  const auto sites = *rc::gen::container<std::vector<SiteId>>(rc::gen::inRange<SiteId>(0, 6));
  CounterState state;
  std::map<SiteId, Shard> twin;
  for (const SiteId site : sites) {
    const auto clock = *rc::gen::inRange<std::uint64_t>(1, 100);
    const auto delta = *rc::gen::arbitrary<std::int64_t>();
    state.add({site, clock, 1, delta});
    Shard& shard = twin.emplace(site, Shard{.site = site}).first->second;
    shard.clock = std::max(shard.clock, clock);
    ++shard.operations;
    shard.sum += delta;
  }
  std::vector<Shard> expected;
  for (const auto& [site, shard] : twin) expected.push_back(shard);
  RC_ASSERT(
      std::equal(expected.begin(), expected.end(), state.shards().begin(), state.shards().end()));
  RC_ASSERT(state.empty() == expected.empty());
}

RC_GTEST_PROP(CounterState, DecodesWhatItEncoded, ()) {
  const CounterState state = *states();
  const Result<CounterState> decoded = CounterState::decode(encoded(state));
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(*decoded == state);
}

// Checks that decoding gives an error, or a state that stands for exactly these bytes.
void refused_or_sound(const Bytes& bytes) {
  const LargestAllocation largest;
  const Result<CounterState> state = CounterState::decode(bytes);
  // A shard takes sizeof(Shard) bytes, and its encoding at least four.
  EXPECT_LE(largest.bytes(), sizeof(Shard) / 4 * bytes.size() + 64);
  if (state) {
    EXPECT_EQ(encoded(*state), bytes);
  } else {
    EXPECT_EQ(state.error().code, Errc::corrupt);
  }
}

CounterState some_state() {
  CounterState state;
  state.add(shard_of(0, 1, 1, kLeast));
  state.add(shard_of(3, 300, 7, 42));
  state.add(shard_of(65'535, Dot::kLastCounter, Dot::kLastCounter, kLeast));
  return state;
}

TEST(CounterState, NeverTakesDamageForAnotherEncodingOfAState) {
  const Bytes good = encoded(some_state());
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes bytes = good;
      bytes[at] = static_cast<std::uint8_t>(value);
      refused_or_sound(bytes);
    }
    EXPECT_FALSE(CounterState::decode(ByteView(good).first(at)));
  }
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_FALSE(CounterState::decode(longer));
}

TEST(CounterState, AllocatesNothingOnTheWordOfANumberOfShards) {
  Bytes bytes;
  Writer(bytes).varint(std::uint64_t{1} << 60);
  bytes.resize(100, 1);
  refused_or_sound(bytes);
}

TEST(CounterState, RefusesShardsThatNoSiteCounted) {
  const auto refused = [](const std::vector<Shard>& shards) {
    Bytes bytes;
    Writer w(bytes);
    w.varint(shards.size());
    for (const Shard& shard : shards) {
      w.varint(shard.site);
      w.varint(shard.clock);
      w.varint(shard.operations);
      w.signed_varint(shard.sum);
    }
    return !CounterState::decode(bytes);
  };
  EXPECT_FALSE(refused({}));
  EXPECT_FALSE(refused({shard_of(1, 9, 9, kLeast), shard_of(2, 9, 9, kMost)}));
  EXPECT_TRUE(refused({shard_of(2, 9, 1, 1), shard_of(1, 9, 1, 1)}));
  EXPECT_TRUE(refused({shard_of(1, 9, 1, 1), shard_of(1, 9, 1, 1)}));
  EXPECT_TRUE(refused({{1, 9, 0, 0}}));
  EXPECT_TRUE(refused({{1, 9, 10, 0}}));
  EXPECT_TRUE(refused({{1, 0, 0, 0}}));
  EXPECT_TRUE(refused({{1, Dot::kLastCounter + 1, 1, 0}}));
  EXPECT_TRUE(refused({{1, 9, 2, int128{2} * kMost + 1}}));
  EXPECT_TRUE(refused({{1, 9, 2, int128{2} * kLeast - 1}}));
}

TEST(CounterState, HasTheBytesOfItsDocument) {
  CounterState state;
  state.add({2, 300, 3, -5});
  state.add({1, 1, 1, 1});
  EXPECT_EQ(encoded(state), (Bytes{2, 1, 1, 1, 2, 2, 0xac, 0x02, 3, 9}));
}

TEST(CounterState, HoldsTheGreatestSumsOfAllSites) {
  CounterState state;
  int128 expected = 0;
  for (std::uint32_t site = 0; site < 65'536; ++site) {
    const Shard shard =
        shard_of(static_cast<SiteId>(site), Dot::kLastCounter, Dot::kLastCounter, kLeast);
    state.add(shard);
    expected += shard.sum;
  }
  EXPECT_TRUE(state.sum() == expected && expected < 0);
  EXPECT_TRUE(CounterState::decode(encoded(state)));
}

}  // namespace
}  // namespace semel::tally::internal
