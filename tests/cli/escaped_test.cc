// Bytes as text and back, and the ranges that options name.
#include "cli/escaped.h"

#include <gtest/gtest.h>

#include "cli/store_options.h"
#include "semel/core/internal/random.h"

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

TEST(Printable, LeavesLettersAndEscapesTheRest) {
  EXPECT_EQ(printable("a\\b \xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"),
            "a\\b \xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\x1b[2J\r\n\t\x7f"), R"(\x1b[2J\x0d\x0a\x09\x7f)");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f\xc2\xa0"), "\\xc2\\x80\\xc2\\x9f\xc2\xa0");  // C1
  EXPECT_EQ(
      printable("\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f"),
      R"(\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f)");  // line separators, direction marks
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  for (const char* const wrong :
       {"\xff", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe4\xb8", "\xe4\xb8z"}) {
    for (const char c : printable(wrong)) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << escaped(wrong);
  }
}

TEST(Printable, LeavesNothingThatATerminalObeys) {
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (auto n = random.below(12); n > 0; --n) bytes += static_cast<char>(random.below(256));
    const std::string shown = printable(bytes);
    EXPECT_EQ(printable(shown), shown);
    for (std::size_t at = 0; at < shown.size(); ++at) {
      const auto byte = static_cast<unsigned char>(shown[at]);
      ASSERT_TRUE(byte >= 0x20 && byte != 0x7f) << escaped(bytes);
      const bool c1 = byte == 0xc2 && static_cast<unsigned char>(shown.at(at + 1)) < 0xa0;
      ASSERT_FALSE(c1) << escaped(bytes);
    }
  }
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
