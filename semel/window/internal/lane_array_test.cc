#include "semel/window/internal/lane_array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/filter/bloom_math.h"
#include "tests/support/keys.h"
#include "tests/support/rate.h"

namespace semel::window_internal {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

LaneShape shape_of(std::uint32_t lanes, std::uint32_t lines, std::uint32_t probes) {
  LaneShape shape{static_cast<BloomLayout>(lines), lanes, probes, 977};
  if (lines != 0) {
    shape.positions = std::uint64_t{shape.line_positions()} * lines * 11;
    shape.probes = probes * lines;
  }
  return shape;
}

// Covers every width of a word, layout and number of probes, with numbers of lanes that fill the
// word and numbers that do not.
std::vector<LaneShape> shapes() {
  std::vector<LaneShape> all;
  for (const std::uint32_t lanes : {2u, 3u, 8u, 9u, 16u, 31u, 32u, 33u, 63u, 64u}) {
    for (const std::uint32_t lines : {0u, 1u, 2u, 3u, 4u}) {
      for (const std::uint32_t probes : {1u, 5u, 8u}) all.push_back(shape_of(lanes, lines, probes));
    }
    all.push_back(shape_of(lanes, 0, 32));
  }
  return all;
}

TEST(LaneArray, KnowsWhichShapesAreSound) {
  for (const LaneShape& shape : shapes()) EXPECT_TRUE(shape.valid());
  const auto valid = [](auto change) {
    LaneShape shape = shape_of(8, 2, 4);
    change(shape);
    return shape.valid();
  };
  EXPECT_FALSE(valid([](LaneShape& s) { s.lanes = 1; }));
  EXPECT_FALSE(valid([](LaneShape& s) { s.lanes = 65; }));
  EXPECT_FALSE(valid([](LaneShape& s) { s.probes = 0; }));
  EXPECT_FALSE(valid([](LaneShape& s) { s.probes = 7; }));   // not even on two lines
  EXPECT_FALSE(valid([](LaneShape& s) { s.probes = 18; }));  // nine in a line
  EXPECT_FALSE(valid([](LaneShape& s) { s.positions = 0; }));
  EXPECT_FALSE(valid([](LaneShape& s) { s.positions += 64; }));  // not even on two sections
  EXPECT_FALSE(valid([](LaneShape& s) { s.positions = kAll; }));
  EXPECT_FALSE(valid([](LaneShape& s) { s.layout = static_cast<BloomLayout>(5); }));
}

TEST(LaneArray, FindsEveryIdInItsLaneAndInFewOthers) {
  for (const LaneShape& shape : shapes()) {
    LaneArray array(shape);
    for (std::uint32_t lane = 0; lane < shape.lanes; ++lane) {
      for (std::uint64_t i = 0; i < 5; ++i) array.set(key(100 * lane + i), lane);
    }
    for (std::uint32_t lane = 0; lane < shape.lanes; ++lane) {
      for (std::uint64_t i = 0; i < 5; ++i) {
        const Digest id = key(100 * lane + i);
        EXPECT_NE(array.test(id, kAll) >> lane & 1, 0u);
        EXPECT_EQ(array.test(id, kAll) & (std::uint64_t{1} << lane),
                  array.test(id, std::uint64_t{1} << lane));
      }
    }
    EXPECT_EQ(array.test(key(1), 0), 0u);
  }
}

TEST(LaneArray, SaysHowManyBitsItSet) {
  for (const LaneShape& shape : shapes()) {
    LaneArray array(shape);
    std::vector<std::uint64_t> set(shape.lanes), ones(shape.lanes);
    for (std::uint64_t i = 0; i < 200; ++i) {
      const auto lane = static_cast<std::uint32_t>(i % shape.lanes);
      set[lane] += array.set(key(i), lane);
      EXPECT_EQ(array.set(key(i), lane), 0u);
    }
    array.count(ones);
    EXPECT_EQ(set, ones);
  }
}

TEST(LaneArray, BothKernelsAndTheBatchAgree) {
  for (const LaneShape& shape : shapes()) {
    LaneArray array(shape);
    Random random(1);
    for (std::uint64_t i = 0; i < 40 * shape.lanes; ++i) {
      array.set(key(i), static_cast<std::uint32_t>(random.below(shape.lanes)));
    }
    for (int sweeping = 0; sweeping < 2; ++sweeping) {
      const std::vector<Digest> ids = keys(0, 1200);
      std::vector<std::uint64_t> found(ids.size());
      array.test(ids, kAll, found);
      std::vector<std::uint64_t> portably(ids.size());
      array.test_portable(ids, kAll, portably);
      ASSERT_EQ(portably, found);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(array.test(ids[i], kAll), found[i]);
        ASSERT_EQ(array.test_portable(ids[i], kAll), found[i]);
      }
      if (sweeping == 0) array.begin_sweep(0b10);  // and again half-way through a sweep
      array.sweep(3);
    }
  }
}

// Compares each array with one in which lanes are cleared at once: both must read the same at every
// moment.
TEST(LaneArray, BothKernelsSetTheSameBits) {
  for (const LaneShape& shape : shapes()) {
    LaneArray ours(shape), portable(shape);
    for (std::uint64_t n = 0; n < 500; ++n) {
      if (n == 300) {
        ours.begin_sweep(2);
        portable.begin_sweep(2);
      }
      if (n > 300) ours.sweep(1);
      const auto lane = static_cast<std::uint32_t>(n % shape.lanes);
      ASSERT_EQ(ours.set(key(n), lane), portable.set_portable(key(n), lane)) << n;
    }
    for (std::uint64_t j = 0; j < shape.positions; ++j) {
      ASSERT_EQ(ours.word(j), portable.word(j)) << j;
    }
  }
}

TEST(LaneArray, ALaneIsEmptyFromTheMomentItsSweepBegins) {
  for (const LaneShape& shape : shapes()) {
    LaneArray swept(shape), cleared(shape);
    Random random(2);
    std::uint64_t next = 0;
    for (int round = 0; round < 300; ++round) {
      const auto lane = static_cast<std::uint32_t>(random.below(shape.lanes));
      if (random.below(20) == 0 && !swept.sweeping()) {
        const std::uint64_t others = random() & random() & (kAll >> (64 - shape.lanes));
        const std::uint64_t lanes = std::uint64_t{1} << lane | others;
        swept.begin_sweep(lanes);
        cleared.begin_sweep(lanes);
        cleared.sweep(shape.array_lines());
        ASSERT_FALSE(cleared.sweeping());
      }
      const Digest id = key(next++);
      const auto one = swept.test_and_set(id, std::uint64_t{1} << lane, lane);
      const auto other = cleared.test_and_set(id, std::uint64_t{1} << lane, lane);
      ASSERT_EQ(one.found, other.found);
      ASSERT_EQ(one.set, other.set);
      swept.sweep(random.below(2));
      for (int i = 0; i < 5; ++i) {
        const Digest asked = key(random.below(next));
        ASSERT_EQ(swept.test(asked, kAll), cleared.test(asked, kAll));
      }
      if (round % 50 != 0) continue;
      for (std::uint64_t j = 0; j < shape.positions; ++j) {
        ASSERT_EQ(swept.word(j), cleared.word(j));
      }
    }
  }
}

// Lines and positions of an id are independent. So the mean rate of a lane over many arrays is
// exactly that of the formula, to the power of the lines.
TEST(LaneArray, BlockedLanesErrAsTheFormulaSays) {
  constexpr std::uint64_t kIds = 400;
  for (const std::uint32_t lanes : {8u, 16u, 64u}) {
    for (const std::uint32_t lines : {1u, 2u, 3u, 4u}) {
      LaneShape shape = shape_of(lanes, lines, 3);
      const std::uint64_t blocks = 1200 / shape.line_positions();
      shape.positions = blocks * shape.line_positions() * lines;
      const double rate = std::pow(
          bloom_math::blocked_expected_fpr(blocks, 3, kIds, shape.line_positions()), lines);
      std::vector<double> rates;
      for (std::uint64_t round = 0; round < 400; ++round) {
        LaneArray array(shape);
        Random random(1000 * lines + round);
        for (std::uint64_t i = 0; i < kIds; ++i) array.set({random(), random()}, 0);
        std::uint64_t wrong = 0;
        constexpr std::uint64_t kAsked = 2000;
        for (std::uint64_t i = 0; i < kAsked; ++i) wrong += array.test({random(), random()}, 1);
        rates.push_back(static_cast<double>(wrong) / kAsked);
      }
      const Mean mean = mean_of(rates);
      EXPECT_NEAR(mean.value, rate, 5 * mean.error) << lanes << " lanes, " << lines << " lines";
    }
  }
}

TEST(LaneArray, ASweepEndsAndLeavesTheOtherLanes) {
  const LaneShape shape = shape_of(8, 2, 4);
  LaneArray array(shape);
  for (std::uint64_t i = 0; i < 50; ++i) array.set(key(i), 3);
  for (std::uint64_t i = 0; i < 50; ++i) array.set(key(i), 5);
  array.begin_sweep(1 << 3);
  EXPECT_EQ(array.lines_left(), 22u);
  array.sweep(21);
  EXPECT_EQ(array.lines_left(), 1u);
  array.sweep(1000);
  EXPECT_FALSE(array.sweeping());
  EXPECT_EQ(array.lines_left(), 0u);
  array.sweep(1);  // nothing to do
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(array.test(key(i), 0b101000), 0b100000u);
}

}  // namespace
}  // namespace semel::window_internal
