// TieredVector: a vector beside it, in blocks of any small size, and its memory.
#include "semel/window/internal/tiered_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/support/allocation.h"

namespace semel::window_internal {
namespace {

template <std::size_t kBlock>
struct Blocks {
  using Tiered = TieredVector<std::uint64_t, kBlock>;
};

template <class Case>
class TieredVectorTwin : public ::testing::Test {};
using Cases = ::testing::Types<Blocks<1>, Blocks<2>, Blocks<4>, Blocks<16>, Blocks<2048>>;
TYPED_TEST_SUITE(TieredVectorTwin, Cases);

TYPED_TEST(TieredVectorTwin, IsAVectorWhateverIsInsertedAndErasedWhere) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    typename TypeParam::Tiered tiered;
    std::vector<std::uint64_t> twin;
    for (std::uint64_t step = 0; step < 1000; ++step) {
      const bool grow = twin.empty() || random.below(100) < (step / 200 % 2 == 0 ? 70 : 35);
      if (grow) {
        const std::uint64_t at = random.below(4) == 0 ? twin.size() : random.below(twin.size() + 1);
        twin.insert(twin.begin() + static_cast<std::ptrdiff_t>(at), step);
        at + 1 == twin.size() && random.below(2) == 0 ? tiered.push_back(step)
                                                      : tiered.insert(at, step);
      } else {
        const std::uint64_t at = random.below(twin.size());
        twin.erase(twin.begin() + static_cast<std::ptrdiff_t>(at));
        tiered.erase(at);
      }
      ASSERT_EQ(tiered.size(), twin.size());
      ASSERT_EQ(tiered.empty(), twin.empty());
      if (!twin.empty()) {
        ASSERT_EQ(tiered.back(), twin.back());
      }
      std::vector<std::uint64_t> found;
      for (const std::uint64_t thing : tiered) found.push_back(thing);
      ASSERT_EQ(found, twin) << seed << ' ' << step;
    }
    typename TypeParam::Tiered copy = tiered, straight;
    for (const std::uint64_t thing : twin) straight.push_back(thing);
    ASSERT_EQ(copy, tiered);
    ASSERT_EQ(straight, tiered);
    if (twin.empty()) continue;
    copy[twin.size() / 2] ^= 1;
    ASSERT_FALSE(copy == tiered);
  }
}

TYPED_TEST(TieredVectorTwin, ChangesNothingWhenMemoryRunsOut) {
  typename TypeParam::Tiered tiered;
  std::vector<std::uint64_t> twin;
  twin.reserve(200);
  for (std::uint64_t n = 0; n < 200; ++n) {
    const std::uint64_t at = n * 7 % (twin.size() + 1);
    bool done = false;
    try {
      const FailingAllocation failing(n % 4);
      tiered.insert(at, n);
      done = true;
    } catch (const std::bad_alloc&) {
      // Nothing has changed.
    }
    if (done) twin.insert(twin.begin() + static_cast<std::ptrdiff_t>(at), n);
    ASSERT_EQ(tiered.size(), twin.size());
    for (std::size_t i = 0; i < twin.size(); ++i) ASSERT_EQ(tiered[i], twin[i]);
  }
  EXPECT_GT(twin.size(), 50u);
}

// Full blocks leave nothing unused, whatever the order was.
TEST(TieredVector, TakesTheMemoryThatItsSizeSays) {
  using Tiered = TieredVector<std::uint64_t, 512>;
  Random random(1);
  for (const std::uint64_t size : {1u, 7u, 511u, 512u, 513u, 10'000u}) {
    const LiveAllocation live;
    Tiered tiered;
    for (std::uint64_t n = 0; n < size; ++n) tiered.insert(random.below(n + 1), n);
    EXPECT_NEAR(static_cast<double>(live.bytes()), static_cast<double>(Tiered::bytes_for(size)),
                120 + static_cast<double>(Tiered::bytes_for(size)) / 50)
        << size;
  }
  EXPECT_EQ(Tiered::bytes_for(0), 0u);
  for (std::uint64_t size = 0; size < 5000; ++size) {
    ASSERT_LE(Tiered::bytes_for(size), Tiered::bytes_for(size + 1));
  }
}

}  // namespace
}  // namespace semel::window_internal
