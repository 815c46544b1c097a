// The duties of a decoder towards untrusted bytes, written once and instantiated for each format.
//
// A format opens with a name and a version of four bytes in all, and ends with a checksum of eight.
// The checksum catches damage. Most tests here correct the checksum, as an attacker would, so that
// the checks behind it are tested too.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/hash/internal/checksum.h"
#include "tests/support/allocation.h"
#include "tests/support/encoded.h"

namespace semel {

// A BytesCase gives: `Type` with encode, decode and ==; `static Type make()`, an object of some
// hundred bytes with content in it; `kHeaderSize`, the bytes before the first that is content; and
// `kMostGrowth`, if one allocation may be more than twice the bytes it is read from: so many times.
template <class BytesCase>
class HostileBytes : public ::testing::Test {
 protected:
  using Type = typename BytesCase::Type;

  static Errc refusal(ByteView bytes) {
    const Result<Type> object = Type::decode(bytes);
    return object ? Errc::full : object.error().code;  // no decoder answers `full`
  }

  static void repair_checksum(Bytes& bytes) {
    const ByteView body = ByteView(bytes).first(bytes.size() - 8);
    store_u64(bytes.data() + body.size(), checksum(body));
  }

  // True for the envelope of hash/internal/sealed.h: the length of the body follows the version.
  bool sealed() const { return load_u64(bytes.data() + 4) == bytes.size() - 20; }

  static constexpr std::size_t most_growth() {
    if constexpr (requires { BytesCase::kMostGrowth; }) {
      return BytesCase::kMostGrowth;
    } else {
      return 2;
    }
  }

  // Checks for an error or an object that stands for exactly these bytes, and that no allocation
  // exceeds what the bytes themselves justify.
  static void refused_or_sound(const Bytes& bytes) {
    const LargestAllocation largest;
    const Result<Type> object = Type::decode(bytes);
    EXPECT_LE(largest.bytes(), most_growth() * bytes.size() + 256);
    if (object) {
      EXPECT_EQ(encoded(*object), bytes);
    }
  }

  const Type object = BytesCase::make();
  Bytes bytes = encoded(object);
};

TYPED_TEST_SUITE_P(HostileBytes);

TYPED_TEST_P(HostileBytes, DecodesWhatItEncoded) {
  const auto copy = TypeParam::Type::decode(this->bytes);
  ASSERT_TRUE(copy) << copy.error().message();
  EXPECT_EQ(*copy, this->object);
  EXPECT_EQ(encoded(*copy), this->bytes);
}

TYPED_TEST_P(HostileBytes, AppendsToWhatIsThere) {
  Bytes out = {1, 2, 3};
  this->object.encode(out);
  EXPECT_TRUE(std::equal(this->bytes.begin(), this->bytes.end(), out.begin() + 3, out.end()));
}

TYPED_TEST_P(HostileBytes, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < this->bytes.size(); ++size) {
    const Errc why = this->refusal(ByteView(this->bytes).first(size));
    const bool short_header = size < TypeParam::kHeaderSize + 8;
    EXPECT_TRUE(why == Errc::truncated || (!short_header && why == Errc::corrupt)) << size;
  }
}

TYPED_TEST_P(HostileBytes, RefusesBytesPastTheEnd) {
  const bool sealed = this->sealed();
  this->bytes.push_back(0);
  EXPECT_EQ(this->refusal(this->bytes), Errc::corrupt);
  if (sealed) store_u64(this->bytes.data() + 4, this->bytes.size() - 20);
  this->repair_checksum(this->bytes);
  EXPECT_EQ(this->refusal(this->bytes), Errc::corrupt);
}

TYPED_TEST_P(HostileBytes, RefusesEveryFlippedBit) {
  for (std::size_t bit = 0; bit < 8 * this->bytes.size(); ++bit) {
    Bytes damaged = this->bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const Errc why = this->refusal(damaged);
    const bool in_length = bit >= 32 && bit < 96;
    EXPECT_TRUE(why == (bit < 32 ? Errc::unsupported : Errc::corrupt) ||
                (in_length && why == Errc::truncated))
        << bit;
  }
}

TYPED_TEST_P(HostileBytes, IsSoundOrRefusedWhenTheChecksumOfAFlippedBitIsMadeRight) {
  for (std::size_t bit = 32; bit < 8 * (this->bytes.size() - 8); ++bit) {
    Bytes damaged = this->bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    this->repair_checksum(damaged);
    SCOPED_TRACE(bit);
    this->refused_or_sound(damaged);
  }
}

// Replaces every field of the header, at every width and offset, by values that an attacker would
// write.
TYPED_TEST_P(HostileBytes, DoesNotBelieveALyingHeader) {
  constexpr std::array<std::uint64_t, 12> kLies = {
      0, 1, 2, 63, 64, 255, 1u << 16, 1ull << 32, 1ull << 46, 1ull << 60, 1ull << 63, ~0ull};
  for (std::size_t at = 4; at < TypeParam::kHeaderSize; ++at) {
    for (const std::size_t width : {1, 2, 4, 8}) {
      if (at + width > TypeParam::kHeaderSize) continue;
      for (const std::uint64_t lie : kLies) {
        Bytes damaged = this->bytes;
        for (std::size_t i = 0; i < width; ++i) {
          damaged[at + i] = static_cast<std::uint8_t>(lie >> (8 * i));
        }
        this->repair_checksum(damaged);
        SCOPED_TRACE(std::to_string(at) + " " + std::to_string(width) + " " + std::to_string(lie));
        this->refused_or_sound(damaged);
      }
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(HostileBytes, DecodesWhatItEncoded, AppendsToWhatIsThere,
                            RefusesEveryTruncation, RefusesBytesPastTheEnd, RefusesEveryFlippedBit,
                            IsSoundOrRefusedWhenTheChecksumOfAFlippedBitIsMadeRight,
                            DoesNotBelieveALyingHeader);

}  // namespace semel
