// Digests are frozen with the formats: these values must never change.
#include "semel/hash/digest.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/hash/hasher.h"
#include "semel/hash/internal/checksum.h"
#include "semel/hash/keyed_digest.h"

namespace semel {
namespace {

std::string counting(std::size_t size) {
  std::string bytes(size, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  return bytes;
}

Secret counting_secret() {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return Secret(bytes);
}

// The lengths lie on both sides of every change of method within XXH3.
TEST(Digest, IsFrozen) {
  struct Case {
    std::size_t size;
    std::uint64_t seed;
    Digest digest;
  };
  for (const Case& c : {Case{0, 0, {0x6001c324468d497f, 0x99aa06d3014798d8}},
                        {0, 7, {0xcb4aa04fe72c771f, 0x76a30bdf56cdfa2c}},
                        {1, 7, {0x2c45aa60ff5dc0e5, 0x5f2ab574a2753d0c}},
                        {3, 7, {0x3868dcb498f6507c, 0xf12a97a0c3e9bd79}},
                        {4, 7, {0x94dbd6b75f357c68, 0xf3e213d34c8bfdbb}},
                        {8, 7, {0x20ae4863fcd1e45e, 0xef410570eefa548c}},
                        {9, 7, {0x305ac2c38240b0ce, 0x84a8d7f69634e335}},
                        {16, 7, {0xd5a8d2000d3cbb72, 0xdcc59ef29d2ad371}},
                        {17, 7, {0x6b5b994d48a60d09, 0x7ce21ef7f0040c9e}},
                        {128, 7, {0x7b364d6f5de58b1f, 0x24fe1df6cf352024}},
                        {129, 7, {0x152f7839d788da0e, 0x4e746e45a5fec98e}},
                        {240, 7, {0xb9eb3fece6a0c9d7, 0x981ac7942d4765a0}},
                        {241, 7, {0xd8f2ad256b03a316, 0xef3eef39f6761963}},
                        {300, 0, {0xd44052f5a3485425, 0xa699035354fc0beb}}}) {
    EXPECT_EQ(digest(counting(c.size), c.seed), c.digest) << c.size << " " << c.seed;
  }
}

TEST(Checksum, IsFrozen) {
  const std::string bytes = counting(300);
  EXPECT_EQ(checksum({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}),
            0xd44052f5a3485425);
}

TEST(KeyedDigest, IsFrozen) {
  const Secret secret = counting_secret();
  const DigestKey key(secret, KeyPurpose::key);
  EXPECT_EQ(key(""), (Digest{0x8a5c28f974c7e1af, 0xeb0319ddfa4ad9fb}));
  EXPECT_EQ(key(counting(16)), (Digest{0x7dbc19b2a36c0b67, 0xaadba5cc28daef27}));
  EXPECT_EQ(key(counting(100)), (Digest{0x7100f463412c8805, 0x52af7d2a11981350}));
  EXPECT_EQ(DigestKey(secret, KeyPurpose::entry)(""),
            (Digest{0x5e1bc04bc069c1c9, 0x14758bf06c0b2fc5}));
  EXPECT_EQ(DigestKey(secret, KeyPurpose::floret)(""),
            (Digest{0x97e8c8d384a8d533, 0xc140a756f007530a}));
  EXPECT_EQ(DigestKey(secret, KeyPurpose::sketch)(""),
            (Digest{0x121fc054c18ea6df, 0x463d5fa3c0ec9153}));
  EXPECT_EQ(key.id(), (HashId{HashKind::keyed, 0xb1956c079edfc742}));
}

// This is the published vector of SipHash-2-4-128 for empty input. It proves that the function is
// the one that we name.
TEST(KeyedDigest, RestsOnSipHash) {
  std::array<std::uint8_t, 16> key{};
  std::iota(key.begin(), key.end(), std::uint8_t{0});
  std::array<std::uint8_t, 16> out{};
  crypto_shorthash_siphashx24(out.data(), nullptr, 0, key.data());
  EXPECT_EQ(out, (std::array<std::uint8_t, 16>{0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d,
                                               0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93}));
}

TEST(KeyedDigest, DiffersByPurposeAndBySecret) {
  const Secret secret = counting_secret();
  const DigestKey a(secret, KeyPurpose::key), b(secret, KeyPurpose::entry),
      c(Secret::random(), KeyPurpose::key);
  EXPECT_NE(a("x"), b("x"));
  EXPECT_NE(a("x"), c("x"));
  EXPECT_NE(a.id(), b.id());
  EXPECT_NE(a.id(), c.id());
}

TEST(KeyedDigest, OfManyKeysAreThoseOfEach) {
  const DigestKey key(counting_secret(), KeyPurpose::key);
  Random random(1);
  for (const std::size_t most : {1u, 8u, 9u, 16u, 17u, 40u, 300u}) {
    // The first keys have about equal lengths and go through the lanes. The second have any length
    // and do not.
    for (const std::size_t least : {most / 8 * 8, std::size_t{0}}) {
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < 101; ++i) {
        std::string& text = texts.emplace_back(least + random.below(most - least + 1), '\0');
        for (char& c : text) c = static_cast<char>(random());
      }
      const std::vector<std::string_view> keys(texts.begin(), texts.end());
      std::vector<Digest> digests(keys.size());
      Hasher::keyed(key)(keys, digests);
      for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(digests[i], key(keys[i])) << most;
      Hasher::fast(3)(keys, digests);
      for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(digests[i], digest(keys[i], 3));
    }
  }
}

TEST(Hasher, IsFastOrKeyedAndSaysWhich) {
  const DigestKey key(counting_secret(), KeyPurpose::key);
  EXPECT_EQ(Hasher::fast(9)("x"), digest("x", 9));
  EXPECT_EQ(Hasher::fast(9).id(), (HashId{HashKind::fast, 9}));
  EXPECT_EQ(Hasher::keyed(key)("x"), key("x"));
  EXPECT_EQ(Hasher::keyed(key).id(), key.id());
}

}  // namespace
}  // namespace semel
