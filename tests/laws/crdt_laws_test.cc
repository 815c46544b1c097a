// The laws of replicated filters over random histories, and tests of the laws themselves.
#include "tests/laws/crdt_laws.h"

#include <gtest/gtest.h>

#include "tests/laws/crdt_cases.h"
#include "tests/support/site_life.h"

namespace semel {
namespace {

template <class CrdtCase>
class CrdtLaws : public ::testing::Test {};

TYPED_TEST_SUITE_P(CrdtLaws);

TYPED_TEST_P(CrdtLaws, HoldThroughAnyHistory) {
  EXPECT_TRUE(check_histories(
      [](const History& history) { return HistoryRun<TypeParam>(history).complaint(); }));
}

REGISTER_TYPED_TEST_SUITE_P(CrdtLaws, HoldThroughAnyHistory);

using Filters =
    ::testing::Types<ToyCase, GrowBloomCase<BloomLayout::plain, 2, 64>,
                     GrowBloomCase<BloomLayout::blocked, 4, 2048>, GrowCuckooCase<4, 8, 1>,
                     GrowCuckooCase<4, 12, 3>, ObservedCuckooCase<4, 8, 1>,
                     ObservedCuckooCase<4, 8, 3>, ObservedCuckooCase<8, 16, 40>>;
using AllSeries = ::testing::Types<
    GrowSeriesCase<GrowBloom, OwnCase, 2, 2>, GrowSeriesCase<GrowBloom, SharedCase, 2, 1>,
    GrowSeriesCase<GrowCuckoo, OwnCase, 2, 2>, GrowSeriesCase<GrowCuckoo, SharedCase, 2, 1>,
    ObservedSeriesCase<OwnCase, 2, 1>, ObservedSeriesCase<SharedCase, 2, 2>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Filters, CrdtLaws, Filters);
INSTANTIATE_TYPED_TEST_SUITE_P(Series, CrdtLaws, AllSeries);

TEST(CrdtLawsThemselves, FindEveryPlantedFault) {
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    planted_fault = static_cast<Fault>(fault);
    Random random(1);
    std::string complaint;
    for (int left = 300; left > 0 && complaint.empty(); --left) {
      complaint = HistoryRun<ToyCase>(random_history(random)).complaint();
    }
    EXPECT_EQ(complaint.empty(), planted_fault == Fault::none) << "fault " << fault;
  }
  planted_fault = Fault::none;
}

// Figure 3.4 of the thesis: e4 and e5 collide, both sites have both, and both remove at once.
class Figure34 : public ::testing::TestWithParam<bool> {
 protected:
  using Case = ObservedCuckooCase<4, 8, 3>;
  const Digest e4{0, 0}, e5{1, 1};
  const bool e5_first = GetParam();  // the dot of e5 is the lesser
  ObservedCuckoo a = Case::make(), b = Case::make();
  const Dot dot4 = *a.add(e4, at(e5_first ? 2 : 1));
  const Dot dot5 = *a.add(e5, at(e5_first ? 1 : 2));

  void SetUp() override {
    ASSERT_TRUE(b.merge(a));
    ASSERT_EQ(a.dots(e4), a.dots(e5));
    ASSERT_EQ(a.dots(e4).size(), 2u);
  }
};

INSTANTIATE_TEST_SUITE_P(EitherOrder, Figure34, ::testing::Bool());

TEST_P(Figure34, AnElementThatNobodyRemovedIsStillThereAfterTwoRemovalsOfAnother) {
  EXPECT_EQ(a.remove(e4), b.remove(e4));  // the same entry
  const ObservedCuckoo both = joined(a, b);
  EXPECT_EQ(both.cardinality(), 1u);
  EXPECT_TRUE(both.contains(e5));
}

TEST_P(Figure34, AnElementThatNobodyRemovedIsStillThereIfBothNameTheDotOfTheOther) {
  EXPECT_TRUE(*a.remove(e4, dot4) && *b.remove(e4, dot4));
  const ObservedCuckoo both = joined(a, b);
  EXPECT_EQ(both.dots(e5), std::vector<Dot>{dot5});
}

// The thesis's random choice can do this: each site removes another of the two entries.
TEST_P(Figure34, AChoiceByChanceWouldLoseIt) {
  EXPECT_TRUE(*a.remove(e4, dot4) && *b.remove(e4, dot5));
  EXPECT_FALSE(joined(a, b).contains(e5));
}

TEST_P(Figure34, RemovalsOfBothLeaveOneEntryIfUnnamedAndNoneIfNamed) {
  ObservedCuckoo named_a = a, named_b = b;
  EXPECT_EQ(a.remove(e4), b.remove(e5));
  const ObservedCuckoo unnamed = joined(a, b);  // a false positive of each, and no false negative
  EXPECT_EQ(unnamed.cardinality(), 1u);
  EXPECT_TRUE(unnamed.contains(e4) && unnamed.contains(e5));

  EXPECT_TRUE(*named_a.remove(e4, dot4) && *named_b.remove(e5, dot5));
  const ObservedCuckoo named = joined(named_a, named_b);
  EXPECT_EQ(named.cardinality(), 0u);
  EXPECT_FALSE(named.contains(e4) || named.contains(e5));
}

}  // namespace
}  // namespace semel
