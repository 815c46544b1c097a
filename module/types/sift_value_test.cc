// SiftValue: ids and owners by the secret of the key, copies, and untrusted bytes. The sifter has
// its tests in semel/sift/sifter_replay_test.cc.
#include "module/types/sift_value.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

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
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return Secret(bytes);
}

std::unique_ptr<SiftValue> value_of(Window::Structure structure, std::uint8_t secret = 1) {
  const double fpr = structure == Window::Structure::exact ? 0 : 1e-2;
  Result<std::unique_ptr<SiftValue>> value = SiftValue::make(
      secret_of(secret), {{.structure = structure, .window_ms = 1000, .fpr = fpr, .ids = 8}}, kNow);
  EXPECT_TRUE(value) << value.error().message();
  return *std::move(value);
}

void fill(SiftValue& value) {
  Sifter& sifter = value.sifter();
  EXPECT_EQ(sifter.test_and_insert(value.id_of("an event"), kNow), ClaimAnswer::fresh);
  EXPECT_EQ(sifter.claim(value.id_of("another"), value.owner_of("ann"), kNow + 100, kNow + 50),
            ClaimAnswer::fresh);
}

using Held = HeldValue<SiftValue>;

template <Window::Structure kStructure>
struct ValueBytes {
  using Type = Held;
  static constexpr std::size_t kHeaderSize = kSealedHeader + Secret::kSize;
  static constexpr const char* kFile = kStructure == Window::Structure::exact
                                           ? "module_sift_v1_exact.bin"
                                           : "module_sift_v1_forgetful.bin";
  static Held make() {
    std::unique_ptr<SiftValue> value = value_of(kStructure);
    fill(*value);
    return Held(std::move(value));
  }
};
using Exact = ValueBytes<Window::Structure::exact>;
using GoldenCases = ::testing::Types<Exact, ValueBytes<Window::Structure::forgetful>>;
INSTANTIATE_TYPED_TEST_SUITE_P(SiftValue, HostileBytes, Exact);
INSTANTIATE_TYPED_TEST_SUITE_P(SiftValue, Golden, GoldenCases);

TEST(SiftValue, KnowsIdsAndOwnersByItsOwnSecret) {
  const auto one = value_of(Window::Structure::exact, 1),
             other = value_of(Window::Structure::exact, 2);
  EXPECT_EQ(one->id_of("id"), value_of(Window::Structure::exact, 1)->id_of("id"));
  EXPECT_NE(one->id_of("id"), other->id_of("id"));
  EXPECT_NE(one->id_of("id"), one->id_of("id "));
  EXPECT_NE(one->owner_of("ann"), one->owner_of("ben"));
  EXPECT_NE(one->owner_of("ann"), other->owner_of("ann"));
}

TEST(SiftValue, CopiesAllThatItHolds) {
  for (const Window::Structure structure :
       {Window::Structure::forgetful, Window::Structure::timers, Window::Structure::exact}) {
    const std::unique_ptr<SiftValue> value = value_of(structure);
    fill(*value);
    const std::unique_ptr<host::Value> copy = value->copy();
    const Bytes before = encoded(*value);
    EXPECT_EQ(encoded(*copy), before);
    // The copy is independent.
    auto& sifter = static_cast<SiftValue&>(*copy).sifter();
    EXPECT_EQ(sifter.test_and_insert(value->id_of("a third"), kNow + 60), ClaimAnswer::fresh);
    EXPECT_EQ(encoded(*value), before);
    EXPECT_NE(encoded(*copy), before);
  }
}

TEST(SiftValue, KeepsClaimsForAWindowAfterTheirDeadline) {
  const std::unique_ptr<SiftValue> value = value_of(Window::Structure::forgetful);
  fill(*value);
  const Digest id = value->id_of("another");
  const std::uint64_t ann = value->owner_of("ann");
  EXPECT_EQ(value->copy()->bytes(), value->bytes());
  const std::unique_ptr<host::Value> early = value->copy();
  EXPECT_EQ(static_cast<SiftValue&>(*early).sifter().commit(id, ann, kNow + 1100),
            ClaimAnswer::done);
  EXPECT_EQ(value->sifter().commit(id, ann, kNow + 1101), ClaimAnswer::lost);
}

TEST(SiftValue, RefusesPartsThatDoNotGoTogether) {
  const auto refusal = [](Sifter::Goal goal) {
    Bytes bytes = encoded(*value_of(Window::Structure::exact));
    bytes.resize(Exact::kHeaderSize);
    Sifter::make(goal, kNow)->encode(bytes);
    store_u64(bytes.data() + 4, bytes.size() - kSealedHeader);
    Writer(bytes).u64(checksum(bytes));
    const Result<std::unique_ptr<host::Value>> read = SiftValue::decode(bytes);
    return read ? std::string() : read.error().message();
  };
  Sifter::Goal goal = value_of(Window::Structure::exact)->sifter().goal();
  EXPECT_EQ(refusal(goal), "");
  ++goal.keep_ms;
  EXPECT_EQ(refusal(goal), "sift of a key: it keeps claims for another time");
  --goal.keep_ms;
  ++goal.hash.seed;
  EXPECT_EQ(refusal(goal), "sift of a key: the secret of another sift");
}

TEST(SiftValue, SaysWhyItCannotBeMade) {
  const Result<std::unique_ptr<SiftValue>> value =
      SiftValue::make(secret_of(1), {{.window_ms = 1000, .fpr = 1e-3, .max_bytes = 1000}}, kNow);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, Errc::limit);
}

}  // namespace
}  // namespace semel::module
