// The laws of replicated filters, over all histories of two and three sites in tiny universes.
#include <gtest/gtest.h>

#include "tests/laws/crdt_cases.h"
#include "tests/laws/universe.h"

namespace semel {
namespace {

// Two keys that collide in every cuckoo filter, and one that may lie beside them.
std::vector<Digest> three_keys() { return {{0, 0}, {1, 1}, {0, std::uint64_t{1} << 62}}; }
std::vector<Digest> two_keys() { return {{0, 0}, {1, 1}}; }
// Six fingerprints, two of them twice: too many for a bucket of four.
std::vector<Digest> eight_keys() {
  std::vector<Digest> keys = two_keys();
  for (std::uint64_t i = 1; i < 6; ++i) keys.push_back({0, i << 60});
  keys.push_back({1, (std::uint64_t{1} << 60) + 1});
  return keys;
}

template <class CrdtCase>
struct WithTwoKeys : CrdtCase {
  static std::vector<Digest> keys() { return two_keys(); }
};
template <class CrdtCase>
struct WithThreeKeys : CrdtCase {
  static std::vector<Digest> keys() { return three_keys(); }
};
template <class CrdtCase>
struct WithEightKeys : CrdtCase {
  static std::vector<Digest> keys() { return eight_keys(); }
};

TEST(AllHistories, OfAToySet) {
  check_universe<WithTwoKeys<ToyCase>>({.sites = 2, .adds = 2});
  check_universe<WithTwoKeys<ToyCase>>({.sites = 3, .adds = 1});
}

TEST(AllHistories, OfGrowBloom) {
  using Case = WithEightKeys<GrowBloomCase<BloomLayout::plain, 2, 64>>;
  check_universe<Case>({.sites = 2});
  check_universe<Case>({.sites = 3, .most_steps = 6});
}

// One bucket, which overflows when sites merge, and two, between which entries move.
TEST(AllHistories, OfGrowCuckoo) {
  check_universe<WithEightKeys<GrowCuckooCase<4, 8, 1>>>({.sites = 2});
  check_universe<WithEightKeys<GrowCuckooCase<4, 8, 2>>>({.sites = 2});
  check_universe<WithEightKeys<GrowCuckooCase<4, 8, 1>>>({.sites = 3, .most_steps = 7});
}

TEST(AllHistories, OfObservedCuckoo) {
  check_universe<WithTwoKeys<ObservedCuckooCase<4, 8, 1>>>({.sites = 2, .adds = 2});
  check_universe<WithThreeKeys<ObservedCuckooCase<4, 8, 2>>>({.sites = 3, .adds = 1});
  // Up to six entries for four slots.
  check_universe<WithTwoKeys<ObservedCuckooCase<4, 8, 1>>>({.sites = 2, .adds = 3}, 4);
}

// Links for one key each.
TEST(AllHistories, OfSeriesThatGrow) {
  check_universe<WithThreeKeys<GrowSeriesCase<GrowBloom, OwnCase, 1, 1>>>({.sites = 2});
  check_universe<WithThreeKeys<GrowSeriesCase<GrowCuckoo, OwnCase, 1, 1>>>({.sites = 2});
  check_universe<WithThreeKeys<GrowSeriesCase<GrowCuckoo, SharedCase, 1, 1>>>({.sites = 2});
  check_universe<WithTwoKeys<GrowSeriesCase<GrowCuckoo, OwnCase, 1, 1>>>({.sites = 3});
}

TEST(AllHistories, OfObservedSeries) {
  check_universe<WithTwoKeys<ObservedSeriesCase<OwnCase, 1, 1>>>(
      {.sites = 2, .adds = 1, .links = 2});
  check_universe<WithTwoKeys<ObservedSeriesCase<SharedCase, 1, 1>>>(
      {.sites = 2, .adds = 1, .links = 2}, 8);
}

}  // namespace
}  // namespace semel
