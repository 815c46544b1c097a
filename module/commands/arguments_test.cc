// Arguments: what is a number, and what is not.
#include "module/commands/arguments.h"

#include <gtest/gtest.h>

#include <limits>

namespace semel::module {
namespace {

TEST(Arguments, NumbersAreReadWholeOrNotAtAll) {
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  for (const char* const text : {"", " 1", "1 ", "+1", "1.0", "0x1", "1e3", "one"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_count("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_count("-1"), std::nullopt);
  EXPECT_EQ(parse_number("1e-6"), 1e-6);
  for (const char* const text : {"", "nan", "inf", "-inf", "0.1x", "1e999"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(Arguments, ADurationHasAUnitOrIsOfMilliseconds) {
  EXPECT_EQ(parse_duration("250"), 250);
  EXPECT_EQ(parse_duration("250ms"), 250);
  EXPECT_EQ(parse_duration("30s"), 30'000);
  EXPECT_EQ(parse_duration("10m"), 600'000);
  EXPECT_EQ(parse_duration("2h"), 7'200'000);
  EXPECT_EQ(parse_duration("7d"), 604'800'000);
  for (const char* const text : {"", "s", "-1", "1.5s", "10 m", "1w", "106751991168d"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Arguments, WordsAreKnownInAnyCase) {
  EXPECT_TRUE(is_word("WINDOW", "WINDOW"));
  EXPECT_TRUE(is_word("wInDoW", "WINDOW"));
  EXPECT_FALSE(is_word("WINDOWS", "WINDOW"));
  EXPECT_FALSE(is_word("WINDO", "WINDOW"));
  EXPECT_FALSE(is_word("w\xC9ndow", "WINDOW"));
}

}  // namespace
}  // namespace semel::module
