// Bytes as text and back, and the ranges that options name.
#include "cli/escaped.h"

#include <gtest/gtest.h>

#include "cli/store_options.h"
#include "semel/core/random.h"

namespace semel::cli {
namespace {

TEST(Escaped, GivesBackAnyBytes) {
  Random random(1);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(unescaped(escaped(all)), all);
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes;
    for (auto n = random.below(6); n > 0; --n) bytes += R"(\x0a)"[random.below(4)];
    EXPECT_EQ(unescaped(escaped(bytes)), bytes);
  }
}

TEST(Escaped, IsPrintableAsciiOnOneLine) {
  EXPECT_EQ(escaped("a b\\c\n\t\x7f\xc3\xa9"), R"(a b\\c\x0a\x09\x7f\xc3\xa9)");
}

TEST(Escaped, TakesBytesThatNeedNoEscapeAsTheyAre) {
  EXPECT_EQ(unescaped("\xc3\xa9\n"), "\xc3\xa9\n");
  EXPECT_EQ(unescaped(R"(\xC3\xa9)"), "\xc3\xa9");
}

TEST(Escaped, RefusesAnyOtherBackslash) {
  for (const char* text : {"\\", "a\\", R"(\x)", R"(\x1)", R"(\x1g)", R"(\xg1)", R"(\n)", R"(\\\)",
                           R"(\x-1)", R"(\x 1)", R"(\x+1)"}) {
    EXPECT_EQ(unescaped(text), std::nullopt) << text;
  }
}

TEST(RangeOptions, OfAPrefixAreTheKeysThatBeginWithIt) {
  EXPECT_EQ(keys_with("ab"), (KeyRange{"ab", "ac"}));
  EXPECT_EQ(keys_with("a\xff\xff"), (KeyRange{"a\xff\xff", "b"}));
  EXPECT_EQ(keys_with("\xff"), (KeyRange{"\xff", std::nullopt}));
  EXPECT_EQ(keys_with("a\x7f"), (KeyRange{"a\x7f", "a\x80"}));
  EXPECT_EQ(keys_with(""), KeyRange::all());
}

TEST(RangeOptions, AllHoldAtOnce) {
  EXPECT_EQ(RangeOptions{}.range(), KeyRange::all());
  EXPECT_EQ((RangeOptions{"b", "d", std::nullopt}.range()), (KeyRange{"b", "d"}));
  EXPECT_EQ((RangeOptions{"b", "d", "c"}.range()), (KeyRange{"c", "d"}));
  EXPECT_EQ((RangeOptions{"cc", "d", "c"}.range()), (KeyRange{"cc", "d"}));
  EXPECT_EQ((RangeOptions{"b", "d", "e"}.range()), std::nullopt);
  EXPECT_EQ((RangeOptions{"b", "b", std::nullopt}.range()), std::nullopt);
}

}  // namespace
}  // namespace semel::cli
