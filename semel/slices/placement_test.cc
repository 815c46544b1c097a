// Placement: which shapes there are, and that ids spread as the formulas assume.
#include "semel/slices/placement.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel {
namespace {

constexpr std::uint64_t kIds = 100'000;

Placement placement_of(const Placement::Shape& shape) { return *Placement::make(shape); }

TEST(Placement, RefusesAnImpossibleShape) {
  using enum SliceLayout;
  for (const Placement::Shape& shape : {Placement::Shape{.layout = horizontal, .slices = 0},
                                        {.layout = horizontal, .slices = 4, .spread = 2},
                                        {.layout = vertical, .slices = 4, .parts = 2, .spread = 2},
                                        {.layout = vertical, .slices = 4, .spread = 0},
                                        {.layout = vertical, .slices = 4, .spread = 33},
                                        {.layout = h_v, .slices = 4, .parts = 0, .spread = 2},
                                        {.layout = static_cast<SliceLayout>(4), .slices = 4}}) {
    const Result<Placement> placement = Placement::make(shape);
    ASSERT_FALSE(placement);
    EXPECT_EQ(placement.error().code, Errc::invalid);
  }
  EXPECT_EQ(Placement::make({.layout = vertical, .slices = 65537, .spread = 2}).error().code,
            Errc::limit);
  EXPECT_EQ(Placement::make({.layout = v_h, .slices = ~0u, .parts = ~0u, .spread = 2}).error().code,
            Errc::limit);
  EXPECT_TRUE(Placement::make({.layout = v_h, .slices = 256, .parts = 256, .spread = 32}));
}

// Every function falls on every slice equally often, and independently of the function before it.
TEST(Placement, SpreadsIdsEvenlyAndEachFunctionOnItsOwn) {
  for (const Placement::Shape& shape :
       {Placement::Shape{.layout = SliceLayout::horizontal, .slices = 10},
        {.layout = SliceLayout::vertical, .slices = 10, .spread = 3},
        {.layout = SliceLayout::h_v, .slices = 4, .parts = 3, .spread = 3},
        {.layout = SliceLayout::v_h, .slices = 4, .parts = 3, .spread = 3}}) {
    const Placement placement = placement_of(shape);
    const auto slices = placement.slices();
    ASSERT_EQ(slices, std::size_t{shape.slices} * shape.parts);
    for (std::uint32_t function = 0; function < shape.spread; ++function) {
      std::vector<double> hits(slices);
      double with_last = 0;
      for (std::uint64_t n = 0; n < kIds; ++n) {
        const std::size_t slice = placement.probe(key(n), function).slice;
        ASSERT_LT(slice, slices);
        ++hits[slice];
        if (function > 0) with_last += slice == placement.probe(key(n), function - 1).slice;
      }
      const double share = 1 / static_cast<double>(slices);
      for (const double hit : hits) {
        EXPECT_NEAR(hit, kIds * share, five_deviations(kIds, share));
      }
      if (function == 0) continue;
      // Two functions meet in one slice of S. In h_v they meet in one of the group, in v_h only if
      // they meet in a group.
      const double meet = shape.layout == SliceLayout::h_v   ? 1.0 / shape.parts
                          : shape.layout == SliceLayout::v_h ? 1.0 / shape.slices
                                                             : share;
      EXPECT_NEAR(with_last, kIds * meet, five_deviations(kIds, meet));
    }
  }
}

TEST(Placement, KeepsAnIdInOneGroupOfHVAndInOneSliceOfEachGroupOfVH) {
  const Placement h_v =
      placement_of({.layout = SliceLayout::h_v, .slices = 7, .parts = 5, .spread = 8});
  const Placement v_h =
      placement_of({.layout = SliceLayout::v_h, .slices = 7, .parts = 5, .spread = 8});
  std::set<std::size_t> reached;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    std::vector<std::size_t> in_group(7, v_h.slices());
    for (std::uint32_t function = 0; function < 8; ++function) {
      EXPECT_EQ(h_v.probe(key(n), function).slice / 5, h_v.probe(key(n), 0).slice / 5);
      const std::size_t slice = v_h.probe(key(n), function).slice;
      reached.insert(slice);
      std::size_t& known = in_group[slice / 5];
      if (known == v_h.slices()) known = slice;
      EXPECT_EQ(known, slice);
    }
  }
  EXPECT_EQ(reached.size(), v_h.slices());
}

TEST(Placement, GivesEveryFunctionItsOwnKey) {
  for (const SliceLayout layout : {SliceLayout::vertical, SliceLayout::h_v, SliceLayout::v_h}) {
    const Placement placement = placement_of({.layout = layout, .slices = 2, .spread = 32});
    std::set<std::uint64_t> seen;
    for (std::uint64_t n = 0; n < 1000; ++n) {
      for (std::uint32_t function = 0; function < 32; ++function) {
        const Digest probe = placement.probe(key(n), function).key;
        seen.insert(probe.lo);
        seen.insert(probe.hi);
      }
    }
    EXPECT_EQ(seen.size(), 2 * 32 * 1000u);
  }
  const Placement whole = placement_of({.layout = SliceLayout::horizontal, .slices = 2});
  EXPECT_EQ(whole.probe(key(1), 0).key, key(1));
}

// Slices that another build filled give the same answers.
TEST(Placement, IsFrozen) {
  const auto place = [](const Placement::Shape& shape, std::uint32_t function) {
    return placement_of(shape).probe({0x0123456789abcdef, 0xfedcba9876543210}, function);
  };
  EXPECT_EQ(place({.layout = SliceLayout::horizontal, .slices = 1000}, 0).slice, 447u);
  const SliceProbe vertical =
      place({.layout = SliceLayout::vertical, .slices = 1000, .spread = 4}, 3);
  EXPECT_EQ(vertical.slice, 541u);
  EXPECT_EQ(vertical.key.lo, 0xa2d419334c4667ec);
  EXPECT_EQ(vertical.key.hi, 0xa3d6e123c8c3d35f);
  EXPECT_EQ(place({.layout = SliceLayout::h_v, .slices = 100, .parts = 100, .spread = 4}, 3).slice,
            4454u);
  EXPECT_EQ(place({.layout = SliceLayout::v_h, .slices = 100, .parts = 100, .spread = 4}, 3).slice,
            5440u);
}

}  // namespace
}  // namespace semel
