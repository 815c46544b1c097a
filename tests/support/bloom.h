// Shapes of Bloom filters for tests, in every layout.
#pragma once

#include <cstdint>

#include "semel/filter/bloom_filter.h"
#include "tests/support/keys.h"

namespace semel {

inline constexpr BloomLayout kLayouts[] = {BloomLayout::plain, BloomLayout::blocked,
                                           BloomLayout::blocked2, BloomLayout::blocked3,
                                           BloomLayout::blocked4};

inline BloomShape shape_for(std::uint64_t keys, double fpr, BloomLayout layout,
                            std::uint64_t seed = kTestSeed) {
  return *BloomShape::for_goal({keys, fpr, layout, {HashKind::fast, seed}});
}

}  // namespace semel
