// ContainerBlocks: splices of every kind beside a plain list, and the bounds of blocks.
#include "semel/index/container_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "semel/core/random.h"

namespace semel {
namespace {

Container container_of(std::uint64_t number) {
  std::string key;
  for (int shift = 24; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift);
  return {BitPath::of_key(key), {number % 300 + 1, mix(number) % 100'000, {number, mix(number)}}};
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
    ContainerBlocks blocks;
    check(blocks, {});
    for (int round = 0; round < 15; ++round) {
      std::vector<Container> expected;
      ContainerBlocks::Splice splice(blocks);
      // Numbers that are left between neighbours make room for new ones.
      const auto add = [&](std::uint64_t number) {
        if (!expected.empty() && !(expected.back().path < container_of(number).path)) return;
        expected.push_back(container_of(number));
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
}  // namespace semel
