// Zstd frames: round trips, sizes, and sound and hostile frames.
#include "semel/crdt/zstd_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "semel/core/random.h"
#include "semel/hash/digest.h"
#include "tests/support/allocation.h"

namespace semel {
namespace {

constexpr std::size_t kHeaderSize = 24;
constexpr std::uint64_t kMost = 1 << 20;

Bytes encoded(ByteView content) {
  Bytes bytes;
  zstd_frame::encode(content, bytes);
  return bytes;
}

Bytes repetitive(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i % 7 * (i % 5));
  return bytes;
}

Bytes random_bytes(std::size_t size) {
  Bytes bytes(size);
  Random random(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

void repair_checksum(Bytes& bytes) {
  const ByteView body = ByteView(bytes).first(bytes.size() - 8);
  store_u64(bytes.data() + body.size(), checksum(body));
}

// Returns the error of decode() for bytes with a corrected checksum, as an attacker would send.
Errc refusal(Bytes bytes, std::uint64_t most_bytes = kMost) {
  repair_checksum(bytes);
  const Result<Bytes> content = zstd_frame::decode(bytes, most_bytes);
  return content ? Errc::full : content.error().code;  // no decoder answers `full`
}

TEST(ZstdFrame, GivesBackTheContent) {
  for (const std::size_t size : {0, 1, 2, 7, 100, 1000, 65'536, 500'000}) {
    for (const Bytes& content : {repetitive(size), random_bytes(size), Bytes(size)}) {
      const Bytes bytes = encoded(content);
      const Result<Bytes> back = zstd_frame::decode(bytes, content.size());
      ASSERT_TRUE(back) << size << " " << back.error().what;
      EXPECT_EQ(*back, content);
      EXPECT_LE(bytes.size(), content.size() + zstd_frame::kOverhead);
    }
  }
}

TEST(ZstdFrame, IsSmallWhereTheContentHasPatterns) {
  EXPECT_LT(encoded(repetitive(100'000)).size(), 1000u);
  EXPECT_LT(encoded(repetitive(300)).size(), 100u);  // other tests damage this one
  EXPECT_EQ(encoded(random_bytes(100'000)).size(), 100'000 + zstd_frame::kOverhead);
}

TEST(ZstdFrame, AppendsToWhatIsThere) {
  const Bytes content = repetitive(300), alone = encoded(content);
  Bytes out = {1, 2, 3};
  zstd_frame::encode(content, out);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), out.begin() + 3, out.end()));
}

// Only reads them: another version of zstd may write other bytes.
TEST(ZstdFrame, ReadsTheGoldenFiles) {
  for (const auto& [name, content] : {std::pair("zstd_frame_v1.bin", repetitive(300)),
                                      std::pair("zstd_frame_v1_stored.bin", random_bytes(50))}) {
    const std::string path = std::string("tests/golden/data/") + name;
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path;
    const Bytes golden((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const Result<Bytes> back = zstd_frame::decode(golden, kMost);
    ASSERT_TRUE(back) << path << " " << back.error().what;
    EXPECT_EQ(*back, content);
  }
}

TEST(ZstdFrame, RefusesEveryTruncationAndBytesPastTheEnd) {
  for (const Bytes& content : {repetitive(300), random_bytes(50)}) {
    Bytes bytes = encoded(content);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const Result<Bytes> back = zstd_frame::decode(ByteView(bytes).first(size), kMost);
      ASSERT_FALSE(back);
      EXPECT_EQ(back.error().code, size < kHeaderSize + 8 ? Errc::truncated : Errc::corrupt);
    }
    bytes.push_back(0);
    EXPECT_EQ(refusal(bytes), Errc::corrupt);
  }
}

TEST(ZstdFrame, RefusesEveryFlippedBit) {
  for (const Bytes& content : {repetitive(300), random_bytes(50)}) {
    const Bytes bytes = encoded(content);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      Bytes damaged = bytes;
      damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      const Result<Bytes> back = zstd_frame::decode(damaged, kMost);
      ASSERT_FALSE(back) << bit;
      EXPECT_EQ(back.error().code, bit < 32 ? Errc::unsupported : Errc::corrupt) << bit;
    }
  }
}

// With a correct checksum zstd itself may find nothing wrong. But the size always holds, and any
// flipped bit in the header contradicts the rest.
TEST(ZstdFrame, IsOfTheSizeThatItSaysWhateverBitIsFlipped) {
  const Bytes bytes = encoded(repetitive(300));
  for (std::size_t bit = 32; bit < 8 * (bytes.size() - 8); ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    repair_checksum(damaged);
    const LargestAllocation largest;
    const Result<Bytes> back = zstd_frame::decode(damaged, 1000);
    EXPECT_LE(largest.bytes(), 1000u);
    if (bit < 8 * kHeaderSize) {
      EXPECT_FALSE(back) << bit;
    } else if (back) {
      EXPECT_EQ(back->size(), 300u);
    }
  }
}

TEST(ZstdFrame, RefusesContentAboveTheLimitBeforeItIsAllocated) {
  const Bytes bomb = encoded(Bytes(100 << 20));
  EXPECT_LT(bomb.size(), 20'000u);
  const LargestAllocation largest;
  EXPECT_EQ(refusal(bomb, (100 << 20) - 1), Errc::limit);
  EXPECT_LE(largest.bytes(), bomb.size());
  EXPECT_EQ(refusal(encoded(random_bytes(50)), 49), Errc::limit);
  EXPECT_EQ(refusal(encoded(random_bytes(50)), 50), Errc::full);
}

TEST(ZstdFrame, RefusesSizesThatAreNotThoseOfTheContent) {
  const Bytes bytes = encoded(repetitive(300));
  const auto with_u64 = [](Bytes frame, std::size_t at, std::uint64_t value) {
    store_u64(frame.data() + at, value);
    return frame;
  };
  for (const std::uint64_t lie : {std::uint64_t{0}, std::uint64_t{299}, std::uint64_t{301},
                                  std::uint64_t{1} << 19, ~std::uint64_t{0}}) {
    const Errc why = lie > kMost ? Errc::limit : Errc::corrupt;
    EXPECT_EQ(refusal(with_u64(bytes, 8, lie)), why) << lie;
    EXPECT_EQ(refusal(with_u64(bytes, 16, lie)), Errc::corrupt) << lie;
  }
  for (const std::size_t at : {5, 6, 7}) {  // the zeros
    Bytes damaged = bytes;
    damaged[at] = 1;
    EXPECT_EQ(refusal(damaged), Errc::corrupt);
  }
  Bytes unknown = bytes;
  unknown[4] = 2;
  EXPECT_EQ(refusal(unknown), Errc::corrupt);
}

TEST(ZstdFrame, DoesNotAllocateWhatThePackedBytesCannotHold) {
  Bytes bytes = encoded(Bytes(100'000));
  ASSERT_LT(bytes.size(), 100u);
  bytes[8 + 3] = 0x40;  // 1 GiB more
  const LargestAllocation largest;
  EXPECT_EQ(refusal(bytes, std::uint64_t{1} << 32), Errc::corrupt);
  EXPECT_LE(largest.bytes(), bytes.size());
}

// Two zstd frames, or one followed by a skippable frame, would be another encoding.
TEST(ZstdFrame, RefusesMoreThanOneFrameOfZstd) {
  const Bytes one = encoded(repetitive(300));
  const ByteView packed = ByteView(one).subspan(kHeaderSize, one.size() - zstd_frame::kOverhead);
  const auto framed = [&](ByteView first, ByteView second, std::uint64_t content_size) {
    Bytes bytes = one;
    bytes.resize(first.size() + second.size() + zstd_frame::kOverhead);
    store_u64(&bytes[8], content_size);
    store_u64(&bytes[16], first.size() + second.size());
    std::copy(second.begin(), second.end(),
              std::copy(first.begin(), first.end(), bytes.begin() + kHeaderSize));
    return bytes;
  };
  const Bytes skipped = {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0};
  EXPECT_EQ(refusal(framed(packed, {}, 300)), Errc::full);
  EXPECT_EQ(refusal(framed(packed, packed, 600)), Errc::corrupt);
  EXPECT_EQ(refusal(framed(packed, skipped, 300)), Errc::corrupt);
  EXPECT_EQ(refusal(framed(skipped, packed, 300)), Errc::corrupt);
  EXPECT_EQ(refusal(framed(skipped, {}, 300)), Errc::corrupt);
}

}  // namespace
}  // namespace semel
