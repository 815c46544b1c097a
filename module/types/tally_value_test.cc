// TallyValue: ids by the secret of the key, copies, and untrusted bytes. The table has its tests in
// semel/tally.
#include "module/types/tally_value.h"

#include <gtest/gtest.h>

#include <array>

#include "semel/hash/internal/sealed.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/held_value.h"

namespace semel::module {
namespace {

constexpr TimeMs kNow = 1'700'000'000'000;

Secret secret_of(std::uint8_t first) {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  bytes.fill(first);
  return Secret(bytes);
}

std::unique_ptr<TallyValue> value_of(tally::Recognition::Kind kind, std::uint8_t secret = 1) {
  Result<std::unique_ptr<TallyValue>> value = TallyValue::make(
      secret_of(secret), {.kind = kind, .window_ms = 1000, .fpr = 1e-3, .ids = 8}, kNow);
  EXPECT_TRUE(value) << value.error().message();
  return *std::move(value);
}

void count_some(TallyValue& value) {
  const auto id = tally::opaque_id(value.hasher(), "an operation");
  const auto numbered = tally::numbered_id(value.hasher(), "a client", 7);
  EXPECT_TRUE(value.table().add({"visits", 2, *id}, kNow));
  EXPECT_TRUE(value.table().add({"visits", 3, *numbered}, kNow + 1));
  EXPECT_TRUE(value.table().add({"clicks", -1, {}}, kNow + 2));
}

template <tally::Recognition::Kind kKind>
struct ValueBytes {
  using Type = HeldValue<TallyValue>;
  static constexpr std::size_t kHeaderSize = kSealedHeader + Secret::kSize;
  static constexpr std::size_t kMostGrowth = 48;  // the first block of names
  static constexpr const char* kFile = kKind == tally::Recognition::Kind::exact
                                           ? "module_tally_v1_exact.bin"
                                           : "module_tally_v1.bin";
  static Type make() {
    std::unique_ptr<TallyValue> value = value_of(kKind);
    count_some(*value);
    return Type(std::move(value));
  }
};
using Exact = ValueBytes<tally::Recognition::Kind::exact>;
using GoldenCases = ::testing::Types<Exact, ValueBytes<tally::Recognition::Kind::clients>>;
INSTANTIATE_TYPED_TEST_SUITE_P(TallyValue, HostileBytes, Exact);
INSTANTIATE_TYPED_TEST_SUITE_P(TallyValue, Golden, GoldenCases);

TEST(TallyValue, ACopyIsEqualAndGoesItsOwnWay) {
  const auto value = value_of(tally::Recognition::Kind::clients);
  count_some(*value);
  const std::unique_ptr<host::Value> copy = value->copy();
  EXPECT_EQ(encoded(*copy), encoded(*value));
  EXPECT_TRUE(value->table().add({"visits", 1, {}}, kNow + 3));
  EXPECT_NE(encoded(*copy), encoded(*value));
}

// The hash is part of the shape: a table whose ids were hashed with another secret would recognise
// none of them.
TEST(TallyValue, ASecretThatIsNotThatOfTheTableIsRefused) {
  Bytes bytes = encoded(*value_of(tally::Recognition::Kind::clients));
  bytes[kSealedHeader] ^= 1;
  store_u64(bytes.data() + bytes.size() - 8, checksum(ByteView(bytes).first(bytes.size() - 8)));
  const auto decoded = TallyValue::decode(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Errc::corrupt);
}

}  // namespace
}  // namespace semel::module
