// The core: results, bytes, numbers, time.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/random.h"
#include "semel/core/result.h"

namespace semel {
namespace {

TEST(Result, HoldsAValueOrTheReasonThereIsNone) {
  const Result<int> good = 3;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 3);
  const Result<int> bad = Error{Errc::limit, "too large"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Errc::limit);
  EXPECT_EQ(bad.error().message(), "too large");
  EXPECT_TRUE(Result<void>());
  EXPECT_FALSE(Result<void>(Error{Errc::io, "gone"}));
}

TEST(Result, GivesUpAMoveOnlyValue) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  *result = std::make_unique<int>(6);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 6);
}

TEST(ResultDeathTest, StopsWhoeverReadsWhatIsNotThere) {
  const Result<int> bad = Error{Errc::limit, "too large"};
  EXPECT_DEATH((void)*bad, "has_value");
  const Result<int> good = 3;
  EXPECT_DEATH((void)good.error(), "has_value");
}

TEST(Error, HasWordsOfItsOwn) {
  EXPECT_EQ(Error(Errc::io, "cannot open").message(), "cannot open");
  EXPECT_EQ(Error(Errc::io, "cannot open", std::string("a/b")).message(), "cannot open: a/b");
  EXPECT_EQ(Error(Errc::io, std::string("no such file")).message(), "no such file");
  const Error about = Error(Errc::forked, "two histories", 7).about("table");
  EXPECT_EQ(about.message(), "table: two histories");
  EXPECT_EQ(about.code, Errc::forked);
  EXPECT_EQ(about.site, 7u);
}

TEST(Error, KeepsItsDetailFromThoseWhoShouldNotSeeIt) {
  EXPECT_EQ(Error(Errc::io, "cannot open", std::string("a/b")).without_detail(), "cannot open");
  EXPECT_EQ(Error(Errc::io, "cannot open").without_detail(), "cannot open");
  EXPECT_EQ(Error(Errc::io, std::string("no such file")).without_detail(), "no such file");
}

Result<int> half_of(int number) {
  if (number % 2 != 0) return Error{Errc::invalid, "odd"};
  return number / 2;
}

Result<void> must_be_even(int number) {
  SEMEL_TRY(half_of(number));
  return {};
}

Result<std::unique_ptr<int>> quarter_of(int number) {
  SEMEL_TRY(must_be_even(number));
  const int half = SEMEL_TRY(half_of(number));
  return std::make_unique<int>(SEMEL_TRY(half_of(half)));
}

TEST(Try, GivesTheValueOrPassesTheErrorOn) {
  const auto quarter = quarter_of(12);
  ASSERT_TRUE(quarter);
  EXPECT_EQ(**quarter, 3);
  EXPECT_EQ(quarter_of(7).error().message(), "odd");
  EXPECT_EQ(quarter_of(6).error().message(), "odd");
}

RC_GTEST_PROP(Codec, ReadsBackWhatItWrote,
              (std::uint8_t a, std::uint16_t b, std::uint32_t c, std::uint64_t d, Bytes e)) {
  Bytes bytes;
  Writer w(bytes);
  w.u8(a);
  w.u16(b);
  w.u32(c);
  w.u64(d);
  w.bytes(e);
  RC_ASSERT(bytes.size() == 15 + e.size());
  Reader r(bytes);
  RC_ASSERT(r.u8() == a && r.u16() == b && r.u32() == c && r.u64() == d);
  Bytes rest(r.rest());
  r.bytes(rest);
  RC_ASSERT(r.ok() && rest == e && r.rest() == 0u);
}

TEST(Codec, IsLittleEndian) {
  Bytes bytes;
  Writer(bytes).u32(0x04030201);
  EXPECT_EQ(bytes, (Bytes{1, 2, 3, 4}));
  Bytes eight(8);
  store_u64(eight.data(), 0x0807060504030201);
  EXPECT_EQ(eight, (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(load_u64(eight.data()), 0x0807060504030201u);
}

RC_GTEST_PROP(Codec, ReadsBackVarintsOfEverySize, ()) {
  const auto numbers = *rc::gen::arbitrary<std::vector<std::uint64_t>>();
  Bytes bytes;
  Writer out(bytes);
  for (const std::uint64_t number : numbers) {
    for (int shift = 0; shift < 64; shift += 9) out.varint(number >> shift);
  }
  Reader in(bytes);
  for (const std::uint64_t number : numbers) {
    for (int shift = 0; shift < 64; shift += 9) RC_ASSERT(in.varint() == number >> shift);
  }
  RC_ASSERT(in.ok() && in.rest() == 0);
}

TEST(Codec, RefusesVarintsThatNoWriterWrites) {
  const std::vector<Bytes> wrong = {
      {},
      {0x80},
      {0x80, 0x00},                                                  // 0 in two bytes
      {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},  // 65 bits
      Bytes(20, 0xff),
  };
  for (const Bytes& bytes : wrong) {
    Reader in(bytes);
    EXPECT_EQ(in.varint(), 0U);
    EXPECT_FALSE(in.ok());
  }
}

constexpr int128 kGreatest = static_cast<int128>(~uint128{0} >> 1);

TEST(Codec, ReadsBackSignedVarintsOfEverySize) {
  std::vector<int128> numbers = {0, kGreatest, -kGreatest - 1};
  for (int bits = 0; bits < 127; ++bits) {
    const int128 power = int128{1} << bits;
    for (const int128 number : {power - 1, power, power + 1}) {
      numbers.push_back(number);
      numbers.push_back(-number);
    }
  }
  for (const int128 number : numbers) {
    Bytes bytes;
    Writer(bytes).signed_varint(number);
    Reader in(bytes);
    EXPECT_TRUE(in.signed_varint() == number && in.ok() && in.rest() == 0);
  }
}

TEST(Codec, WritesSmallNumbersOfEitherSignInFewBytes) {
  const auto written = [](int128 number) {
    Bytes bytes;
    Writer(bytes).signed_varint(number);
    return bytes;
  };
  EXPECT_EQ(written(0), Bytes{0});
  EXPECT_EQ(written(-1), Bytes{1});
  EXPECT_EQ(written(1), Bytes{2});
  EXPECT_EQ(written(-64), Bytes{0x7f});
  EXPECT_EQ(written(64), (Bytes{0x80, 0x01}));
  Bytes longest(18, 0xff);
  longest.push_back(0x03);
  EXPECT_EQ(written(-kGreatest - 1), longest);
}

TEST(Codec, RefusesSignedVarintsThatNoWriterWrites) {
  Bytes too_long(18, 0xff);
  too_long.push_back(0x04);  // 129 bits
  for (const Bytes& bytes : {Bytes{}, Bytes{0x80}, Bytes{0x81, 0x00}, too_long, Bytes(30, 0xff)}) {
    Reader in(bytes);
    EXPECT_TRUE(in.signed_varint() == 0 && !in.ok());
  }
}

TEST(Codec, FailsOnceAndForAll) {
  const Bytes bytes = {1, 2, 3};
  Reader r(bytes);
  EXPECT_EQ(r.u32(), 0u);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.u8(), 0u);  // although a byte is left
  Bytes into = {9};
  r.bytes(into);
  EXPECT_EQ(into, Bytes{9});
  EXPECT_FALSE(r.ok());
}

TEST(Arithmetic, ScalesToTheWholeRangeAndNoFurther) {
  EXPECT_EQ(scale(0, 10), 0u);
  EXPECT_EQ(scale(~0ull, 10), 9u);
  EXPECT_EQ(scale(~0ull, 1), 0u);
  EXPECT_EQ(scale(1ull << 63, 10), 5u);
  EXPECT_EQ(multiply(~0ull, ~0ull).high, ~0ull - 1);
  EXPECT_EQ(multiply(~0ull, ~0ull).low, 1u);
  EXPECT_EQ(divide_up(0, 8), 0u);
  EXPECT_EQ(divide_up(8, 8), 1u);
  EXPECT_EQ(divide_up(9, 8), 2u);
  EXPECT_EQ(divide_up(~0ull, 2), 1ull << 63);
}

// Seeds name runs and test data, so the sequence must never change.
TEST(Random, IsFrozen) {
  Random random(1);
  EXPECT_EQ(random(), 0x910a2dec89025cc1);
  EXPECT_EQ(random(), 0xbeeb8da1658eec67);
  EXPECT_EQ(random(), 0xf893a2eefb32555e);
}

TEST(Random, StaysBelowItsBoundAndReachesAllOfIt) {
  Random random(2);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(10));
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(*seen.rbegin(), 9u);
  for (int i = 0; i < 1000; ++i) {
    const double unit = random.unit();
    EXPECT_GE(unit, 0);
    EXPECT_LT(unit, 1);
  }
}

TEST(Clock, MovesWhenToldTo) {
  ManualClock clock(1000);
  clock.advance(5);
  EXPECT_EQ(clock.now_ms(), 1005);
  clock.set(3);  // backwards, as clocks do
  EXPECT_EQ(clock.now_ms(), 3);
  EXPECT_GT(SystemClock().now_ms(), 1'700'000'000'000);  // past 2023
}

}  // namespace
}  // namespace semel
