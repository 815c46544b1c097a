// Reused dots are detected by every replicated type that has dots.
#include "tests/laws/fork_laws.h"

#include <gtest/gtest.h>

#include "tests/laws/crdt_cases.h"

namespace semel {
namespace {

template <class CrdtCase>
class ForkLaws : public ::testing::Test {};

TYPED_TEST_SUITE_P(ForkLaws);

TYPED_TEST_P(ForkLaws, NoElementIsLostWithoutAWord) {
  EXPECT_TRUE(check_fork_histories(
      [](const ForkHistory& history) { return ForkRun<TypeParam>(history).complaint(); }));
}

// Histories without a clash would prove nothing.
TYPED_TEST_P(ForkLaws, MeetDotsThatAreUsedAgain) {
  Random random(1);
  using Type = typename TypeParam::Type;
  constexpr bool kRenames = requires(const Type& state) { state.renamed(state, 0, 1); };
  std::uint64_t refusals = 0, renamed = 0;
  for (int left = 300; left > 0; --left) {
    const ForkRun<TypeParam> run(random_fork_history(random));
    ASSERT_EQ(run.complaint(), "");
    refusals += run.refusals();
    renamed += run.renamed();
  }
  EXPECT_EQ(refusals > 100, Type::kRemoves) << refusals;
  EXPECT_EQ(renamed > 100, kRenames) << renamed;
}

REGISTER_TYPED_TEST_SUITE_P(ForkLaws, NoElementIsLostWithoutAWord, MeetDotsThatAreUsedAgain);

TEST(ForkLawsThemselves, FindEveryPlantedFault) {
  const auto complaint_with = [](Fault fault) {
    planted_fault = fault;
    Random random(1);
    std::string complaint;
    for (int left = 2000; left > 0 && complaint.empty(); --left) {
      complaint = ForkRun<ToyCase>(random_fork_history(random)).complaint();
    }
    planted_fault = Fault::none;
    return complaint;
  };
  EXPECT_EQ(complaint_with(Fault::none), "");
  for (std::size_t fault = kFaults; fault < kFaults + kForkFaults; ++fault) {
    EXPECT_NE(complaint_with(static_cast<Fault>(fault)), "") << "fault " << fault;
  }
}

using Filters =
    ::testing::Types<ToyCase, GrowBloomCase<BloomLayout::plain, 2, 64>, GrowCuckooCase<4, 8, 1>,
                     GrowCuckooCase<4, 12, 3>, ObservedCuckooCase<4, 8, 1>,
                     ObservedCuckooCase<4, 8, 3>, ObservedCuckooCase<8, 16, 40>>;
using AllSeries =
    ::testing::Types<GrowSeriesCase<GrowBloom, OwnCase, 2, 2>,
                     GrowSeriesCase<GrowCuckoo, OwnCase, 2, 2>, ObservedSeriesCase<OwnCase, 2, 1>,
                     ObservedSeriesCase<SharedCase, 2, 2>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Filters, ForkLaws, Filters);
INSTANTIATE_TYPED_TEST_SUITE_P(Series, ForkLaws, AllSeries);

}  // namespace
}  // namespace semel
