// What a server's active defragmentation does to values. The server is a fake, because the servers
// that distributions build cannot defragment.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "module/host/relocation.h"
#include "module/host/type.h"
#include "module/types/bloom_value.h"
#include "module/types/cuckoo_value.h"
#include "module/types/sift_value.h"
#include "module/types/tally_value.h"
#include "tests/support/encoded.h"

namespace semel::host {
namespace {

using module::BloomValue;
using module::CuckooValue;
using module::SiftValue;
using module::TallyValue;

const Secret kSecret(std::array<std::uint8_t, Secret::kSize>{1, 2, 3});

// Returns the functions of our types, in the order in which they are loaded.
const std::vector<api::TypeMethods>& methods() {
  static std::vector<api::TypeMethods> all;
  if (!all.empty()) return all;
  api::CreateDataType = [](api::Ctx* /*ctx*/, const char* /*name*/, int /*version*/,
                           api::TypeMethods* given) {
    all.push_back(*given);
    return reinterpret_cast<api::Type*>(all.size());
  };
  static const std::array<const TypeSpec*, 4> kTypes = {&BloomValue::kType, &CuckooValue::kType,
                                                        &SiftValue::kType, &TallyValue::kType};
  EXPECT_TRUE(load_types(nullptr, kTypes));
  return all;
}

constexpr std::size_t kBloom = 0, kCuckoo = 1, kSift = 2, kTally = 3;

struct Asked {
  int stops = 0;
  unsigned long cursor = 0;
  bool keeps_cursor = true;
};
Asked asked;

// A server that interrupts a value after every three sections.
class Defragmentation : public ::testing::Test {
 protected:
  void SetUp() override {
    asked = {};
    api::DefragAlloc = [](api::DefragCtx*, void*) -> void* { return nullptr; };
    api::DefragShouldStop = [](api::DefragCtx*) { return ++asked.stops % 3 == 0 ? 1 : 0; };
    api::DefragCursorGet = [](api::DefragCtx*, unsigned long* cursor) {
      *cursor = asked.cursor;
      return asked.keeps_cursor ? api::kOk : api::kErr;
    };
    api::DefragCursorSet = [](api::DefragCtx*, unsigned long cursor) {
      asked.cursor = cursor;
      return asked.keeps_cursor ? api::kOk : api::kErr;
    };
  }

  // Defragments a value once. Returns true if there is more to do.
  template <class V>
  static bool defragment(std::size_t type, std::unique_ptr<V>& value) {
    void* place = static_cast<Value*>(value.release());
    auto* const server = reinterpret_cast<api::DefragCtx*>(&asked);
    const bool more = methods()[type].defrag(server, nullptr, &place) != 0;
    value.reset(static_cast<V*>(static_cast<Value*>(place)));
    return more;
  }
};

// Returns where the words of each link are.
std::vector<const void*> places(const BloomValue& value) {
  std::vector<const void*> all;
  std::uint64_t position = 1;
  while (const auto piece = value.piece(position)) {
    all.push_back(piece->part.words.data());
    position = piece->next;
  }
  return all;
}

std::unique_ptr<BloomValue> with_chains(std::uint64_t chains) {
  auto value = *BloomValue::make(kSecret, {.error = 0.01, .capacity = 1000, .expansion = 2});
  for (std::uint64_t chain = 1; chain <= chains; ++chain) {
    EXPECT_TRUE(value->begin_chain(chain));
    EXPECT_TRUE(value->add(value->hasher()(std::to_string(chain)), 0));
  }
  return value;
}

TEST_F(Defragmentation, RenewsALargeValueInSectionsUntilItIsDone) {
  std::unique_ptr<BloomValue> value = with_chains(400);
  ASSERT_GT(value->bytes(), std::uint64_t{256} << 10);
  const Bytes before = encoded(*value);
  const BloomValue* const object = value.get();
  const std::vector<const void*> old = places(*value);
  ASSERT_EQ(old.size(), 400u);
  int calls = 1;
  while (defragment(kBloom, value)) ++calls;
  EXPECT_GT(calls, 100);
  EXPECT_EQ(value.get(), object);
  EXPECT_EQ(encoded(*value), before);
  const std::vector<const void*> now = places(*value);
  ASSERT_EQ(now.size(), old.size());
  for (std::size_t i = 0; i < old.size(); ++i) EXPECT_NE(now[i], old[i]) << i;
  EXPECT_FALSE(*value->add(value->hasher()("400"), 0));
  EXPECT_TRUE(*value->add(value->hasher()("new"), 0));
}

TEST_F(Defragmentation, RenewsAValueAtOnceForAServerThatKeepsNoPlace) {
  asked.keeps_cursor = false;
  std::unique_ptr<BloomValue> value = with_chains(400);
  const std::vector<const void*> old = places(*value);
  EXPECT_FALSE(defragment(kBloom, value));
  const std::vector<const void*> now = places(*value);
  for (std::size_t i = 0; i < old.size(); ++i) EXPECT_NE(now[i], old[i]) << i;
}

TEST_F(Defragmentation, LeavesLargeBlocksWhereTheyAre) {
  auto value = *BloomValue::make(kSecret, {.error = 0.01, .capacity = 1'000'000, .expansion = 2});
  ASSERT_TRUE(value->begin_chain(1));
  ASSERT_TRUE(value->add(value->hasher()("a"), 0));
  const std::vector<const void*> old = places(*value);
  EXPECT_FALSE(defragment(kBloom, value));
  EXPECT_EQ(places(*value), old);
}

TEST_F(Defragmentation, RenewsClaims) {
  auto value = *SiftValue::make(kSecret, {{.window_ms = 60'000, .fpr = 0.001, .ids = 1000}}, 0);
  for (int i = 0; i < 5000; ++i) {
    const std::string id = std::to_string(i);
    ASSERT_EQ(value->sifter().claim(value->id_of(id), 7, 1000, 0), ClaimAnswer::fresh);
  }
  ASSERT_GT(value->bytes(), std::uint64_t{256} << 10);
  const Bytes before = encoded(*value);
  int calls = 1;
  while (defragment(kSift, value)) ++calls;
  EXPECT_GT(calls, 10);
  EXPECT_EQ(encoded(*value), before);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(value->sifter().commit(value->id_of(std::to_string(i)), 7, 500), ClaimAnswer::done);
  }
}

// Small values are copied whole, and go on as before: a cuckoo filter needs no further life.
TEST_F(Defragmentation, CopiesSmallValues) {
  auto cuckoo = *CuckooValue::make(kSecret, {0.001, 100, 2, 20, 1});
  ASSERT_TRUE(cuckoo->begin(1, 2, CuckooValue::Begun::here));
  ASSERT_TRUE(cuckoo->add(cuckoo->hasher()("a"), 0));
  auto tally = *TallyValue::make(kSecret, {.window_ms = 60'000}, 0);
  const auto expect_moved = [](std::size_t type, auto& value) {
    const Bytes before = encoded(*value);
    const void* const old = value.get();
    EXPECT_FALSE(defragment(type, value));
    EXPECT_NE(value.get(), old);
    EXPECT_EQ(encoded(*value), before);
  };
  expect_moved(kCuckoo, cuckoo);
  EXPECT_TRUE(cuckoo->open());
  EXPECT_TRUE(cuckoo->add(cuckoo->hasher()("b"), 0));
  expect_moved(kTally, tally);
  auto empty = *BloomValue::make(kSecret, {.error = 0.01, .capacity = 100, .expansion = 2});
  ASSERT_TRUE(empty->begin_chain(1));
  empty->reserve();
  expect_moved(kBloom, empty);
  EXPECT_EQ(empty->unreserved_bytes(), 0u);
}

TEST_F(Defragmentation, OffersEachNewBlockToTheServer) {
  static std::byte given, better;
  auto* const server = reinterpret_cast<api::DefragCtx*>(&asked);
  api::DefragAlloc = [](api::DefragCtx*, void* block) -> void* {
    return block == &given ? &better : nullptr;
  };
  EXPECT_EQ(Relocation::place(&given), &given);
  {
    const Relocation relocation(server);
    EXPECT_EQ(Relocation::place(&given), &better);
    EXPECT_EQ(Relocation::place(&better), &better);
    EXPECT_EQ(Relocation::place(nullptr), nullptr);
  }
  EXPECT_EQ(Relocation::place(&given), &given);
}

}  // namespace
}  // namespace semel::host
