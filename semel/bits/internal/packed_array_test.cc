#include "semel/bits/internal/packed_array.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace semel {
namespace {

std::uint64_t cut(std::uint64_t value, std::uint32_t width) {
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

// Covers every width. A write must not change the neighbouring entries.
TEST(PackedArray, AgreesWithAVectorAtEveryWidth) {
  for (std::uint32_t width = 0; width <= 64; ++width) {
    EXPECT_TRUE(rc::check([width](
                              const std::vector<std::pair<std::uint8_t, std::uint64_t>>& writes) {
      constexpr std::uint64_t kSize = 21;
      PackedArray array(kSize, width);
      std::vector<std::uint64_t> twin(kSize);
      for (const auto& [at, value] : writes) {
        array.set(at % kSize, cut(value, width));
        twin[at % kSize] = cut(value, width);
      }
      for (std::uint64_t i = 0; i < kSize; ++i) RC_ASSERT(array.get(i) == twin[i]);

      Bytes bytes;
      array.encode(bytes);
      RC_ASSERT(bytes.size() == (kSize * width + 7) / 8);
      Reader reader(bytes);
      RC_ASSERT(*PackedArray::decode(reader, kSize, width) == array);
    })) << width;
  }
}

TEST(PackedArray, RefusesBitsPastTheLastEntry) {
  const Bytes bytes = {0xff, 0xff};  // three numbers of 5 bits take 15
  Reader reader(bytes);
  EXPECT_EQ(PackedArray::decode(reader, 3, 5).error().code, Errc::corrupt);
  const Bytes good = {0xff, 0x7f};
  Reader again(good);
  EXPECT_EQ(PackedArray::decode(again, 3, 5)->get(2), 31u);
}

TEST(PackedArray, RefusesFewerBytesThanTheNumbersTake) {
  const Bytes bytes = {0xff, 0x7f};
  for (const std::uint64_t size : {std::uint64_t{4}, ~std::uint64_t{0}}) {
    Reader reader(bytes);
    EXPECT_EQ(PackedArray::decode(reader, size, 5).error().code, Errc::truncated);
  }
}

TEST(PackedArrayDeathTest, RefusesAValueThatIsTooWide) {
  PackedArray array(3, 5);
  EXPECT_DEATH(array.set(0, 32), "value <= mask_");
}

}  // namespace
}  // namespace semel
