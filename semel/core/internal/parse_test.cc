#include "semel/core/internal/parse.h"

#include <gtest/gtest.h>

#include <limits>

namespace semel {
namespace {

TEST(Parse, ReadsWholeNumbers) {
  EXPECT_EQ(parse_integer("-5"), -5);
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_unsigned("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* const bad :
       {"", " 1", "1 ", "+1", "0x1", "1.0", "1e3", "one", "18446744073709551616"}) {
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
    EXPECT_EQ(parse_unsigned(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_unsigned("-1"), std::nullopt);
}

TEST(Parse, ReadsFiniteNumbers) {
  EXPECT_EQ(parse_number("1e-6"), 1e-6);
  EXPECT_EQ(parse_number("-0.5"), -0.5);
  for (const char* const bad : {"", "inf", "-inf", "nan", "1e999", "0.1x", "0,1"}) {
    EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
  }
}

TEST(Parse, ReadsCountsInThousands) {
  EXPECT_EQ(parse_count("0"), 0u);
  EXPECT_EQ(parse_count("20M"), 20'000'000u);
  EXPECT_EQ(parse_count("3k"), 3'000u);
  EXPECT_EQ(parse_count("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* const bad : {"", "k", "M", "-1", "1K", "1m", "1kk", "1 k",
                                "18446744073709551616", "18446744073709552k"}) {
    EXPECT_EQ(parse_count(bad), std::nullopt) << bad;
  }
}

TEST(Parse, ReadsBytesInBothSystems) {
  EXPECT_EQ(parse_bytes("80"), 80u);
  EXPECT_EQ(parse_bytes("80B"), 80u);
  EXPECT_EQ(parse_bytes("2K"), 2048u);
  EXPECT_EQ(parse_bytes("2KiB"), 2048u);
  EXPECT_EQ(parse_bytes("2kB"), 2000u);
  EXPECT_EQ(parse_bytes("3MiB"), 3u << 20);
  EXPECT_EQ(parse_bytes("1T"), std::uint64_t{1} << 40);
  for (const char* const bad : {"", "K", "-1", "1KB", "1Ki", "2 K", "16777216T"}) {
    EXPECT_EQ(parse_bytes(bad), std::nullopt) << bad;
  }
}

TEST(Parse, ReadsDurationsWithAUnit) {
  EXPECT_EQ(parse_duration("250ms"), 250);
  EXPECT_EQ(parse_duration("10s"), 10'000);
  EXPECT_EQ(parse_duration("5m"), 300'000);
  EXPECT_EQ(parse_duration("1h"), 3'600'000);
  EXPECT_EQ(parse_duration("2d"), 172'800'000);
  EXPECT_EQ(parse_duration("1w"), 604'800'000);
  for (const char* const bad :
       {"", "10", "s", "-1s", "1.5h", "1h30m", "1y", "9223372036854775808ms"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(Parse, TakesANumberWithoutAUnitAsMillisecondsOnlyWhereAsked) {
  EXPECT_EQ(parse_duration_ms("250"), 250);
  EXPECT_EQ(parse_duration_ms("30s"), 30'000);
  EXPECT_EQ(parse_duration_ms("1w"), 604'800'000);
  for (const char* const bad :
       {"", "s", "-1", "-1s", "1.5", "1.5s", "10 m", "9223372036854775808", "106751991168d"}) {
    EXPECT_EQ(parse_duration_ms(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace semel
