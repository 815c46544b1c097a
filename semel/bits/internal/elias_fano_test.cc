// Elias-Fano: round trips of every kind of sequence, the size of the code, and invalid bits.
#include "semel/bits/internal/elias_fano.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "semel/core/internal/arithmetic.h"

namespace semel {
namespace {

using Numbers = std::vector<std::uint64_t>;
constexpr std::uint64_t kGreatest = ~std::uint64_t{0};

Bytes encoded(const Numbers& values, std::uint64_t last) {
  Bytes bytes;
  elias_fano::encode(bytes, values, last);
  return bytes;
}

// Checks that decode() reads all bytes. REQUIRES: `bytes` has the size of a code of n numbers.
std::optional<Numbers> decoded(ByteView bytes, std::uint64_t n, std::uint64_t last) {
  Reader reader(bytes);
  Result<Numbers> values = elias_fano::decode(reader, n, last);
  if (!values) return std::nullopt;
  EXPECT_TRUE(reader.at_end());
  return *values;
}

bool round_trips(const Numbers& values, std::uint64_t last) {
  const Bytes bytes = encoded(values, last);
  return bytes.size() == elias_fano::byte_size(values.size(), last) &&
         decoded(bytes, values.size(), last) == values;
}

// Calls visit(values) for every ascending sequence of n numbers up to last.
void for_each_sequence(std::uint64_t n, std::uint64_t last, Numbers& values,
                       const std::function<void(const Numbers&)>& visit) {
  if (values.size() == n) return visit(values);
  for (std::uint64_t next = values.empty() ? 0 : values.back(); next <= last; ++next) {
    values.push_back(next);
    for_each_sequence(n, last, values, visit);
    values.pop_back();
  }
}

RC_GTEST_PROP(EliasFano, DecodesWhatItEncoded, (Numbers values, std::uint64_t room)) {
  const auto shift = *rc::gen::inRange(0, 64);
  for (std::uint64_t& value : values) value = mix(value) >> shift;
  std::sort(values.begin(), values.end());
  const std::uint64_t greatest = values.empty() ? 0 : values.back();
  for (const std::uint64_t more : {std::uint64_t{0}, room, kGreatest}) {
    RC_ASSERT(round_trips(values, greatest + std::min(more, kGreatest - greatest)));
  }
}

// Tries every sequence and every string of bits. For each size, as many strings are accepted as
// there are sequences, and each accepted string encodes to itself again.
TEST(EliasFano, IsABijectionOfSequencesAndTheBytesThatItAccepts) {
  for (std::uint64_t last = 0; last <= 9; ++last) {
    for (std::uint64_t n = 0; n <= 4; ++n) {
      std::uint64_t sequences = 0, accepted = 0;
      Numbers values;
      for_each_sequence(n, last, values, [&](const Numbers& sequence) {
        EXPECT_TRUE(round_trips(sequence, last));
        ++sequences;
      });
      const std::uint64_t size = elias_fano::byte_size(n, last);
      ASSERT_LE(size, 2u);
      for (std::uint32_t bits = 0; bits < 1u << (8 * size); ++bits) {
        Bytes bytes;
        for (std::uint64_t i = 0; i < size; ++i) {
          bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
        }
        const auto read = decoded(bytes, n, last);
        if (!read) continue;
        ++accepted;
        ASSERT_EQ(encoded(*read, last), bytes);
      }
      EXPECT_EQ(accepted, sequences) << n << " " << last;
    }
  }
}

TEST(EliasFano, TakesNumbersAtTheEndsOfTheirRange) {
  for (const std::uint64_t last :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63, kGreatest - 1, kGreatest}) {
    EXPECT_TRUE(round_trips({}, last));
    EXPECT_TRUE(round_trips({0}, last));
    EXPECT_TRUE(round_trips({last}, last));
    EXPECT_TRUE(round_trips({0, last}, last));
    EXPECT_TRUE(round_trips({0, 0, last, last, last}, last));
    EXPECT_TRUE(round_trips(Numbers(1000, last), last));
  }
}

TEST(EliasFano, TakesTwoBitsMoreThanTheDistanceNeeds) {
  EXPECT_EQ(elias_fano::byte_size(0, kGreatest), 0u);
  // 2^20 numbers below 2^30 have k = 10: 10 low bits each, one high bit each, and at most 2^20
  // zeros.
  EXPECT_EQ(elias_fano::byte_size(1 << 20, (1 << 30) - 1), ((12u << 20) - 1 + 7) / 8);
  for (std::uint64_t n = 1; n < 5000; n += 7) {
    const auto last = std::uint64_t{1} << 24;
    const double bits = 2 + std::log2(static_cast<double>(last) / static_cast<double>(n));
    EXPECT_LE(static_cast<double>(elias_fano::byte_size(n, last)),
              bits * static_cast<double>(n) / 8 + 3);
  }
}

// A claim of 2^64 - 1 numbers must not look small.
TEST(EliasFano, SizeDoesNotOverflow) {
  EXPECT_EQ(elias_fano::byte_size(kGreatest, 0), std::uint64_t{1} << 61);
  EXPECT_EQ(elias_fano::byte_size(kGreatest, kGreatest), std::uint64_t{1} << 62);
  EXPECT_EQ(elias_fano::byte_size(1, kGreatest), 9u);
  EXPECT_EQ(elias_fano::byte_size(std::uint64_t{1} << 60, kGreatest), (std::uint64_t{6} << 60) / 8);
}

TEST(EliasFano, RefusesEveryBitThatIsTooManyOrTooFew) {
  Numbers values;
  for (std::uint64_t i = 0; i < 300; ++i) values.push_back(i * i);
  const Bytes bytes = encoded(values, 100'000);
  const std::size_t low_bytes = (300 * 8 + 7) / 8;  // k = 8
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const auto read = decoded(damaged, 300, 100'000);
    if (bit >= 8 * low_bytes) {
      EXPECT_EQ(read, std::nullopt) << bit;
    } else if (read) {
      EXPECT_EQ(encoded(*read, 100'000), damaged);
    }
  }
}

TEST(EliasFano, RefusesANumberAboveTheLast) {
  // 8 to 15 differ only in their low parts.
  const Bytes bytes = encoded({11}, 11);
  EXPECT_EQ(elias_fano::byte_size(1, 8), elias_fano::byte_size(1, 11));
  EXPECT_EQ(decoded(bytes, 1, 11), Numbers{11});
  EXPECT_EQ(decoded(bytes, 1, 8), std::nullopt);
}

TEST(EliasFanoDeathTest, RefusesToEncodeWhatIsNoSuchSequence) {
  Bytes out;
  EXPECT_DEATH(elias_fano::encode(out, Numbers{2, 1}, 5), "before <= value");
  EXPECT_DEATH(elias_fano::encode(out, Numbers{6}, 5), "value <= last");
}

TEST(EliasFano, RefusesToDecodeFewerBytesThanTheNumbersTake) {
  const Bytes bytes = encoded({1, 2, 3}, 100);
  Reader reader(ByteView(bytes).first(bytes.size() - 1));
  EXPECT_EQ(elias_fano::decode(reader, 3, 100).error().code, Errc::truncated);
  Reader again(bytes);
  EXPECT_EQ(elias_fano::decode(again, kGreatest, kGreatest).error().code, Errc::truncated);
}

}  // namespace
}  // namespace semel
