// Lives: where two histories of a site touch, and bytes that describe no lives.
#include "semel/crdt/internal/lives.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/encoded.h"

namespace semel {

using crdt_internal::LifeRun;
using crdt_internal::Lives;

namespace {

std::uint64_t dot(SiteId site, std::uint64_t counter) { return Dot{site, counter}.packed(); }

// Returns a state whose site 3 made so many dots in each of these lives, one after another.
Lives state_of(const std::vector<std::pair<std::uint64_t, int>>& lives) {
  Lives state;
  std::uint64_t counter = 0;
  for (const auto& [life, dots] : lives) {
    for (int i = 0; i < dots; ++i) state.advance({3, ++counter}, life);
  }
  return state;
}

// Returns a delta of one dot of a state.
Lives delta_of(const Lives& state, std::uint64_t counter) {
  Lives delta;
  delta.insert(state.upto(dot(3, counter)));
  return delta;
}

bool clash(const Lives& a, const Lives& b) {
  EXPECT_EQ(a.clash(b), b.clash(a));
  return a.clash(b).has_value();
}

TEST(Lives, AreRunsOfConsecutiveDots) {
  Lives state = state_of({{7, 2}, {8, 1}, {7, 3}});
  EXPECT_EQ(state.runs().size(), 3u);
  EXPECT_EQ(state.runs()[2], (LifeRun{dot(3, 4), dot(3, 6), 7, 8}));
  state.advance({1, 1}, 7);  // before the others
  state.advance({3, 7}, 7);
  state.advance({1, 2}, 7);
  EXPECT_EQ(state.runs().size(), 4u);
  EXPECT_EQ(state.runs(1).front(), (LifeRun{dot(1, 1), dot(1, 2), 7, 0}));
  EXPECT_EQ(state.runs(3).back().last, dot(3, 7));
  EXPECT_TRUE(state.runs(2).empty());
}

TEST(Lives, ClashExactlyWhereHistoriesDiffer) {
  const Lives lost = state_of({{1, 5}, {2, 4}}), restored = state_of({{1, 5}, {3, 9}});
  EXPECT_EQ(lost.clash(restored), SiteId{3});
  EXPECT_TRUE(clash(state_of({{1, 6}}), restored));
  EXPECT_TRUE(clash(state_of({{1, 4}, {2, 1}}), restored));
  EXPECT_FALSE(clash(state_of({{1, 5}}), restored));
  EXPECT_FALSE(clash(state_of({{1, 2}}), restored));
  EXPECT_FALSE(clash(state_of({{1, 5}, {3, 1}}), restored));
  EXPECT_FALSE(clash(Lives(), restored));
  EXPECT_EQ(lost.common(restored, 3), 5u);
  EXPECT_EQ(lost.common(state_of({{1, 2}}), 3), 2u);
  EXPECT_EQ(lost.common(state_of({{9, 2}}), 3), 0u);
  EXPECT_EQ(lost.common(lost, 3), 9u);
}

// A delta with only later dots still belongs to the other history, even if as many dots were lost
// as it skips.
TEST(Lives, ADeltaClashesWithAHistoryThatItDoesNotFollow) {
  const Lives lost = state_of({{1, 5}, {2, 4}}), restored = state_of({{1, 5}, {3, 4}, {4, 1}});
  EXPECT_TRUE(clash(lost, delta_of(restored, 10)));
  EXPECT_TRUE(clash(lost, delta_of(restored, 7)));
  EXPECT_FALSE(clash(lost, delta_of(restored, 4)));
  EXPECT_FALSE(clash(restored, delta_of(restored, 10)));
  EXPECT_TRUE(clash(delta_of(lost, 7), delta_of(restored, 6)));
  EXPECT_TRUE(clash(delta_of(lost, 9), delta_of(restored, 10)));
  EXPECT_FALSE(clash(delta_of(lost, 6), delta_of(restored, 10)));  // the two do not touch
}

TEST(Lives, ComeBackFromTheirBytes) {
  Lives state = state_of({{7, 2}, {8, 1}, {7, 3}});
  state.advance({9, 1}, 0);
  VersionVector context;
  context.advance({3, 6});
  context.advance({9, 1});
  Bytes bytes;
  state.encode(bytes);
  Reader in(bytes);
  EXPECT_EQ(*Lives::decode(in, context), state);
  EXPECT_EQ(in.rest(), 0u);

  Bytes all;
  const Lives delta = delta_of(state, 5);
  delta.encode_all(all);
  Reader again(all);
  EXPECT_EQ(*Lives::decode_all(again), delta);
}

bool reads_state(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& runs) {
  VersionVector context;
  context.advance({3, 6});
  context.advance({9, 2});
  Bytes bytes;
  Writer w(bytes);
  w.u64(runs.size());
  for (const auto& [first, life] : runs) w.u64(first), w.u64(life);
  Reader in(bytes);
  return Lives::decode(in, context).has_value();
}

TEST(Lives, RefuseRunsThatAreNotThoseOfTheContext) {
  const std::pair<std::uint64_t, std::uint64_t> three{dot(3, 1), 1}, nine{dot(9, 1), 1};
  EXPECT_TRUE(reads_state({three, nine}));
  EXPECT_TRUE(reads_state({three, {dot(3, 6), 2}, nine, {dot(9, 2), 2}}));
  EXPECT_FALSE(reads_state({}));
  EXPECT_FALSE(reads_state({three}));
  EXPECT_FALSE(reads_state({nine}));
  EXPECT_FALSE(reads_state({nine, three}));
  EXPECT_FALSE(reads_state({three, three, nine}));
  EXPECT_FALSE(reads_state({three, {dot(5, 1), 1}, nine}));
  EXPECT_FALSE(reads_state({three, nine, {dot(10, 1), 1}}));
  EXPECT_FALSE(reads_state({{dot(3, 2), 1}, nine}));
  EXPECT_FALSE(reads_state({{dot(3, 0), 1}, nine}));
  EXPECT_FALSE(reads_state({three, {dot(3, 7), 2}, nine}));
  EXPECT_FALSE(reads_state({three, {dot(3, 4), 1}, nine}));
  EXPECT_FALSE(reads_state({three, {dot(3, 4), 2}, {dot(3, 4), 3}, nine}));
  EXPECT_FALSE(reads_state({three, {dot(3, 4), 2}, {dot(3, 3), 3}, nine}));
  EXPECT_FALSE(reads_state({three, {dot(9, 2), 2}}));
  Bytes lying;
  Writer(lying).u64(std::uint64_t{1} << 60);
  Reader in(lying);
  EXPECT_FALSE(Lives::decode(in, VersionVector()));
  Reader again(lying);
  EXPECT_FALSE(Lives::decode_all(again));
}

bool reads_delta(const std::vector<LifeRun>& runs) {
  Bytes bytes;
  Writer w(bytes);
  w.u64(runs.size());
  for (const LifeRun& run : runs)
    w.u64(run.first), w.u64(run.last), w.u64(run.life), w.u64(run.before);
  Reader in(bytes);
  return Lives::decode_all(in).has_value();
}

TEST(Lives, RefuseRunsOfADeltaThatCannotBe) {
  EXPECT_TRUE(reads_delta({}));
  EXPECT_TRUE(reads_delta({{dot(3, 1), dot(3, 4), 1, 0}, {dot(3, 5), dot(3, 5), 2, 1}}));
  EXPECT_TRUE(reads_delta({{dot(3, 1), dot(3, 2), 1, 0}, {dot(3, 5), dot(3, 5), 2, 9}}));
  EXPECT_FALSE(reads_delta({{dot(3, 0), dot(3, 4), 1, 0}}));
  EXPECT_FALSE(reads_delta({{dot(3, 1), dot(3, 4), 1, 7}}));
  EXPECT_FALSE(reads_delta({{dot(3, 2), dot(3, 4), 1, 1}}));
  EXPECT_FALSE(reads_delta({{dot(3, 4), dot(3, 2), 1, 5}}));
  EXPECT_FALSE(reads_delta({{dot(3, 1), dot(4, 2), 1, 0}}));
  EXPECT_FALSE(reads_delta({{dot(3, 1), dot(3, 4), 1, 0}, {dot(3, 4), dot(3, 5), 2, 1}}));
  EXPECT_FALSE(reads_delta({{dot(3, 1), dot(3, 4), 1, 0}, {dot(3, 5), dot(3, 5), 2, 9}}));
  EXPECT_FALSE(reads_delta({{dot(3, 5), dot(3, 5), 2, 9}, {dot(3, 1), dot(3, 4), 1, 0}}));
}

}  // namespace
}  // namespace semel
