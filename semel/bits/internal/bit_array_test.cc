#include "semel/bits/internal/bit_array.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <set>

#include "semel/bits/internal/prefetch.h"

namespace semel {
namespace {

BitArray array_of(const std::set<std::uint64_t>& bits) {
  BitArray array(256);
  for (const std::uint64_t bit : bits) array.set(bit % 256);
  return array;
}

RC_GTEST_PROP(BitArray, HoldsExactlyTheBitsThatWereSet, (std::set<std::uint8_t> bits)) {
  BitArray array(256);
  for (const std::uint8_t bit : bits) array.set(bit);
  for (unsigned i = 0; i < 256; ++i) {
    RC_ASSERT(array.test(i) == bits.contains(static_cast<std::uint8_t>(i)));
  }
  RC_ASSERT(array.count() == bits.size());
}

RC_GTEST_PROP(BitArray, UnitesAsSetsDo, (std::set<std::uint64_t> a, std::set<std::uint64_t> b)) {
  const BitArray before = array_of(a);
  BitArray both = before;
  const bool changed = both.unite(array_of(b));
  a.insert(b.begin(), b.end());
  RC_ASSERT(both == array_of(a));
  RC_ASSERT(changed == (both != before));
  RC_ASSERT(!both.unite(before));
}

TEST(BitArray, LiesOnWholeLinesAlsoWhenItIsLarge) {
  for (const std::uint64_t bits : {64ull, 1ull << 12, 1ull << 28}) {
    const BitArray array(bits);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.words().data()) % kLineBytes, 0u) << bits;
    EXPECT_EQ(array.count(), 0u);
  }
}

TEST(BitArrayDeathTest, RefusesSizesThatAreNoWholeWords) {
  EXPECT_DEATH(BitArray(0), "bits > 0");
  EXPECT_DEATH(BitArray(100), "bits % 64");
}

TEST(ForEachAhead, VisitsEachOnceInOrderAndTouchesItBefore) {
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{1}, kAhead - 1, kAhead, kAhead + 1, 5 * kAhead}) {
    std::size_t touched = 0, visited = 0;
    for_each_ahead(
        n, [&](std::size_t i) { EXPECT_EQ(i, touched++); },
        [&](std::size_t i) {
          EXPECT_EQ(i, visited++);
          EXPECT_GT(touched, i);
        });
    EXPECT_EQ(touched, n);
    EXPECT_EQ(visited, n);
  }
}

}  // namespace
}  // namespace semel
