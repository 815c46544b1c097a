// BitPath: checks all short keys of awkward bytes against bits that are written out one by one.
#include "semel/index/bit_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace semel {
namespace {

constexpr std::string_view kLetters("\0\1a\x80\xff", 5);

// Returns all keys of up to three of the letters, in order.
std::vector<std::string> keys() {
  std::vector<std::string> keys = {""};
  for (std::size_t i = 0; i < keys.size() && keys[i].size() < 3; ++i) {
    const std::string prefix = keys[i];
    for (const char letter : kLetters) keys.push_back(prefix + letter);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Returns the bits of a key as a string of zeros and ones.
std::string spelled(std::string_view key) {
  std::string bits;
  for (const char letter : key) {
    bits.push_back('1');
    for (int i = 7; i >= 0; --i) bits.push_back((letter >> i & 1) != 0 ? '1' : '0');
  }
  return bits + '0';
}

BitPath path_of(std::string_view bits) {
  BitPath path;
  for (const char bit : bits) path.push(bit == '1');
  return path;
}

std::string spelled(const BitPath& path) {
  std::string bits;
  for (std::size_t i = 0; i < path.size(); ++i) bits.push_back(path.bit(i) ? '1' : '0');
  return bits;
}

TEST(BitPath, ReadsAKeyAsNineBitsForEachByte) {
  EXPECT_EQ(spelled(BitPath::of_key("")), "0");
  EXPECT_EQ(spelled(BitPath::of_key("a")), "1011000010");
  for (const std::string& key : keys()) {
    EXPECT_EQ(spelled(BitPath::of_key(key)), spelled(key));
    EXPECT_EQ(BitPath::of_key(key), path_of(spelled(key)));
  }
  const std::string lengthy(100, '\xa5');
  EXPECT_EQ(spelled(BitPath::of_key(lengthy)), spelled(lengthy));
}

TEST(BitPath, RangeIsTheKeysThatBeginWithItsBits) {
  const std::vector<std::string> all = keys();
  for (const std::string& key : all) {
    const std::string bits = spelled(key);
    for (std::size_t size = 0; size <= bits.size(); ++size) {
      BitPath path = BitPath::of_key(key);
      path.truncate(size);
      ASSERT_TRUE(path.possible());
      const KeyRange range = path.range();
      EXPECT_EQ(range.first, path.first_key());
      EXPECT_TRUE(path.is_prefix_of_key(range.first));
      for (const std::string& other : all) {
        const bool below = spelled(other).starts_with(bits.substr(0, size));
        ASSERT_EQ(range.contains(other), below);
        ASSERT_EQ(path.is_prefix_of_key(other), below);
        ASSERT_EQ(path.is_prefix_of(BitPath::of_key(other)), below);
      }
    }
  }
  EXPECT_EQ(BitPath().range(), KeyRange::all());
  EXPECT_EQ(path_of("0").range(), (KeyRange{"", std::string(1, '\0')}));
  EXPECT_EQ(path_of("1").range(), (KeyRange{std::string(1, '\0'), std::nullopt}));
}

TEST(BitPath, OrderIsThatOfTheKeys) {
  const std::vector<std::string> all = keys();
  for (const std::string& a : all) {
    for (const std::string& b : all) {
      ASSERT_EQ(BitPath::of_key(a) <=> BitPath::of_key(b), a <=> b);
      const std::string bits_a = spelled(a), bits_b = spelled(b);
      const auto parted = std::mismatch(bits_a.begin(), bits_a.end(), bits_b.begin(), bits_b.end());
      const auto common = static_cast<std::size_t>(parted.first - bits_a.begin());
      ASSERT_EQ(common_bits(a, b), common);
      ASSERT_EQ(common_bits(BitPath::of_key(a), BitPath::of_key(b)), common);
    }
  }
  EXPECT_LT(BitPath(), path_of("0"));
  EXPECT_LT(path_of("1"), path_of("10"));
  EXPECT_LT(path_of("10"), path_of("11"));
  EXPECT_LT(path_of("10000000"), path_of("100000000"));
  EXPECT_EQ(common_bits(path_of("1010"), path_of("10")), 2u);
}

TEST(BitPath, IsPutTogetherFromPartsOfEverySize) {
  const std::string bits = spelled("\xa5\x3c\x0f");
  for (std::size_t first = 0; first <= bits.size(); ++first) {
    for (std::size_t second = 0; first + second <= bits.size(); ++second) {
      BitPath path = path_of(bits.substr(0, first));
      const BitPath more = path_of(bits.substr(first, second));
      path.append(more.bytes(), more.size());
      ASSERT_EQ(path, path_of(bits.substr(0, first + second))) << first << " " << second;
      path.truncate(first);
      ASSERT_EQ(path, path_of(bits.substr(0, first)));
      std::string dirty(more.bytes());
      if (second % 8 != 0) dirty.back() = static_cast<char>(dirty.back() | 1);
      ASSERT_EQ(BitPath::from_bytes(dirty, second), more);
    }
  }
}

TEST(BitPath, TellsBitsThatNoKeyBeginsWith) {
  EXPECT_TRUE(path_of("").possible());
  EXPECT_TRUE(path_of("0").possible());
  EXPECT_FALSE(path_of("00").possible());
  EXPECT_FALSE(path_of("01").possible());
  EXPECT_TRUE(path_of("1011000010").possible());
  EXPECT_FALSE(path_of("10110000100").possible());
}

TEST(BitPathDeathTest, HasNoRangeIfNoKeyBeginsWithIt) {
  EXPECT_DEATH((void)path_of("00").range(), "possible");
}

}  // namespace
}  // namespace semel
