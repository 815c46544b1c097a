// Slots of keys, and tags that spread them.
#include "client/slot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace semel::client {
namespace {

TEST(Slot, IsTheOneOfTheSpecification) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3u);  // the check value of CRC16 XMODEM; it is below 16384
  EXPECT_EQ(slot_of("foo"), 12182u);
  EXPECT_EQ(slot_of(""), 0u);
  EXPECT_EQ(slot_of("\xff\x00\x80"), slot_of("\xff\x00\x80"));
}

TEST(Slot, CountsOnlyTheTag) {
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("a{foo}{bar}"), slot_of("foo"));
  EXPECT_EQ(slot_of("a{{foo}}b"), slot_of("{foo"));
  // Neither an empty tag nor an unclosed one counts.
  EXPECT_NE(slot_of("a{}{bar}"), slot_of("bar"));
  EXPECT_NE(slot_of("a{bar"), slot_of("bar"));
  EXPECT_NE(slot_of("a}{bar"), slot_of("bar"));
}

TEST(SpreadTags, AreTheSameEachTimeAndDifferFromEachOther) {
  for (const std::size_t count : {1u, 2u, 16u, 1000u, 1024u}) {
    const auto tags = spread_tags(count);
    EXPECT_EQ(tags, spread_tags(count));
    EXPECT_EQ(std::set<std::string>(tags.begin(), tags.end()).size(), count);
  }
}

// Frozen: producers of other versions have to name the same keys.
TEST(SpreadTags, StayAsTheyAre) {
  const std::vector<std::string> expected = {"orders:{21418}", "orders:{8209}", "orders:{16418}"};
  EXPECT_EQ(spread_keys("orders", 3), expected);
}

TEST(SpreadTags, LieInTheMiddleOfEqualRanges) {
  for (std::size_t count = 1; count <= 1024; count += count < 64 ? 1 : 37) {
    const auto tags = spread_tags(count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(slot_of(tags[i]), (2 * i + 1) * kSlots / (2 * count));
      EXPECT_LE(tags[i].size(), 7u);
    }
  }
}

// Splits the slots as `redis-cli --cluster create` does, and also with sizes rounded down.
TEST(SpreadTags, GiveEveryPrimaryOfAnEvenSplitItsShare) {
  for (std::size_t count = 1; count <= 256; ++count) {
    std::vector<std::uint32_t> slots;
    for (const std::string& tag : spread_tags(count)) slots.push_back(slot_of(tag));
    for (std::size_t primaries = 1; primaries <= 64; ++primaries) {
      for (const bool nearest : {false, true}) {
        const auto begin = [&](std::size_t primary) {
          const double at = static_cast<double>(kSlots) / static_cast<double>(primaries) *
                            static_cast<double>(primary);
          return static_cast<std::uint32_t>(nearest ? std::lround(at) : std::floor(at));
        };
        for (std::size_t primary = 0; primary < primaries; ++primary) {
          const auto has = static_cast<std::size_t>(
              std::count_if(slots.begin(), slots.end(), [&](std::uint32_t slot) {
                return begin(primary) <= slot && slot < begin(primary + 1);
              }));
          ASSERT_GE(has, count / primaries) << count << " over " << primaries;
          ASSERT_LE(has, (count + primaries - 1) / primaries) << count << " over " << primaries;
        }
      }
    }
  }
}

}  // namespace
}  // namespace semel::client
