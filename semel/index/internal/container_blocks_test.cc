// ContainerBlocks: checks splices of every kind against a plain list, and the bounds of blocks.
#include "semel/index/internal/container_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"

namespace semel::index_internal {
namespace {

Container container_of(std::uint64_t number, Measured measured) {
  std::string key;
  for (int shift = 24; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift);
  Container made{BitPath::of_key(key),
                 {number % 300 + 1, mix(number) % 100'000, {number, mix(number)}}};
  if (measured == Measured::yes) {
    made.sum.measure = static_cast<int128>(uint128{mix(number)} << number % 64);
    if (number % 3 == 0) made.sum.measure = -made.sum.measure;
  }
  return made;
}

std::vector<Container> all_of(const ContainerBlocks& blocks) {
  std::vector<Container> all;
  for (auto walk = blocks.at(0); walk.valid(); walk.next()) all.push_back(walk.container());
  return all;
}

void check(const ContainerBlocks& blocks, const std::vector<Container>& expected) {
  ASSERT_EQ(all_of(blocks), expected);
  ASSERT_EQ(blocks.containers(), expected.size());
  for (std::size_t block = 0; block < blocks.blocks(); ++block) {
    ASSERT_LE(blocks.count(block), ContainerBlocks::kMost);
    if (blocks.blocks() > 1) {
      ASSERT_GE(blocks.count(block), ContainerBlocks::kLeast);
    }
    ASSERT_FALSE(blocks.begins_by(block + 1, blocks.last_of(block)));
  }
  Aggregate before;
  for (const Container& container : expected) {
    const auto found = blocks.find(container.path, Side::related);
    ASSERT_TRUE(found.valid());
    ASSERT_EQ(found.container(), container);
    ASSERT_EQ(found.sum_before(), before);
    before += container.sum;
    ASSERT_EQ(blocks.find(container.path, Side::after).sum_before(), before);
  }
  ASSERT_EQ(blocks.total(), before);
}

TEST(ContainerBlocks, HoldsWhatIsSplicedInBlocksThatAreHalfFull) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Measured measured = seed % 2 == 0 ? Measured::no : Measured::yes;
    ContainerBlocks blocks(measured);
    check(blocks, {});
    for (int round = 0; round < 15; ++round) {
      std::vector<Container> expected;
      ContainerBlocks::Splice splice(blocks);
      // The numbers between neighbours are free for new containers.
      const auto add = [&](std::uint64_t number) {
        Container made = container_of(number, measured);
        if (!expected.empty() && !(expected.back().path < made.path)) return;
        expected.push_back(std::move(made));
        splice.add(expected.back());
      };
      if (blocks.blocks() == 0) {
        for (std::uint64_t n = random.below(400); n > 0; --n) add((1000 - n) << 16);
      }
      for (std::size_t block = 0; block < blocks.blocks(); ++block) {
        std::vector<Container> held;
        for (auto walk = blocks.at(block); walk.block() == block; walk.next()) {
          held.push_back(walk.container());
        }
        if (random.below(3) != 0) {
          expected.insert(expected.end(), held.begin(), held.end());
          splice.keep(block);
          continue;
        }
        const std::uint64_t share = random.below(4);  // of those that stay, and of new ones
        for (const Container& container : held) {
          if (random.below(4) < share) add(container.sum.digest.lo);
          if (random.below(8) < share) add(container.sum.digest.lo + 1 + random.below(200));
        }
      }
      splice.finish();
      blocks.take(std::move(splice));
      ASSERT_NO_FATAL_FAILURE(check(blocks, expected));
    }
  }
}

// Checks the bytes for one of thousands of containers, without measures and with the smallest ones.
TEST(ContainerBlocks, TakesRoomForMeasuresOnlyWhereThereAreSome) {
  constexpr std::uint64_t kContainers = 64 * 1000;
  const auto bytes_of = [](Measured measured) {
    ContainerBlocks blocks(measured);
    ContainerBlocks::Splice splice(blocks);
    for (std::uint64_t n = 0; n < kContainers; ++n) {
      Container made = container_of(n << 8, Measured::no);
      made.sum.measure = measured == Measured::yes ? -1 : 0;
      splice.add(std::move(made));
    }
    splice.finish();
    blocks.take(std::move(splice));
    return static_cast<double>(blocks.bytes()) / kContainers;
  };
  // Path bits, its two lengths, count and volume, digest, and the block in memory with its sum.
  constexpr double kUnmeasured = 2 + 2 + 2 + 3 + 16 + (16.0 + 32 + 16) / 64;
  EXPECT_LE(bytes_of(Measured::no), kUnmeasured);
  EXPECT_NEAR(bytes_of(Measured::yes) - bytes_of(Measured::no), 1 + 16.0 / 64, 0.01);
}

TEST(ContainerBlocks, TellsWhereAContainerLies) {
  const auto path = [](std::string_view bits) {
    BitPath made;
    for (const char bit : bits) made.push(bit == '1');
    return made;
  };
  const auto side = [&](std::string_view container, std::string_view node) {
    const BitPath bits = path(container);
    return side_of({bits.bytes(), bits.size()}, path(node));
  };
  EXPECT_EQ(side("10", "10"), Side::related);
  EXPECT_EQ(side("1", "10"), Side::related);
  EXPECT_EQ(side("101", "10"), Side::related);
  EXPECT_EQ(side("", "10"), Side::related);
  EXPECT_EQ(side("0", "10"), Side::before);
  EXPECT_EQ(side("11", "10"), Side::after);
}

}  // namespace
}  // namespace semel::index_internal
