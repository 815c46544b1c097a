#include "semel/index/internal/index_checkpoint.h"

#include <gtest/gtest.h>

#include "semel/hash/internal/checksum.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"

namespace semel::index_internal {
namespace {

Floret some_floret(std::uint32_t step) {
  Bytes counters(Floret::kCounters);
  for (std::uint32_t i = 0; i < counters.size(); i += step) {
    counters[i] = static_cast<std::uint8_t>(i / step);
  }
  return *Floret::of_bytes(counters);
}

IndexCheckpoint some_checkpoint() {
  std::vector<FloretSlabs::Slab> slabs(2);
  slabs[0] = {"", some_floret(7), 1000, 4'000'000, 3};
  slabs[1] = {std::string("k\0y", 3), some_floret(11), 2000, 5'000'000, FloretSlabs::kUncounted};
  return {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11}, FloretSlabs(4'194'304, std::move(slabs))};
}

IndexCheckpoint checkpoint_of(KeyRange range) {
  IndexCheckpoint checkpoint = some_checkpoint();
  checkpoint.range = std::move(range);
  return checkpoint;
}

struct OfAllKeys {
  using Type = IndexCheckpoint;
  static constexpr std::size_t kHeaderSize = 12 + 2;
  static constexpr const char* kFile = "index_checkpoint_v1.bin";
  static Type make() { return some_checkpoint(); }
};
struct OfARange {
  using Type = IndexCheckpoint;
  static constexpr std::size_t kHeaderSize = 12 + 2;
  static constexpr const char* kFile = "index_checkpoint_v1_range.bin";
  static Type make() { return checkpoint_of({"counter", "counters"}); }
};
using Cases = ::testing::Types<OfAllKeys, OfARange>;
INSTANTIATE_TYPED_TEST_SUITE_P(IndexCheckpoint, HostileBytes, Cases);
INSTANTIATE_TYPED_TEST_SUITE_P(IndexCheckpoint, Golden, Cases);

Errc refusal(const IndexCheckpoint& checkpoint) {
  const Result<IndexCheckpoint> read = IndexCheckpoint::decode(encoded(checkpoint));
  return read ? Errc::full : read.error().code;
}

TEST(IndexCheckpoint, KeepsARangeWithEitherEnd) {
  for (const KeyRange& range :
       {KeyRange{"a", "b"}, {"a", std::nullopt}, {"", "b"}, {"", std::nullopt}}) {
    const IndexCheckpoint checkpoint = checkpoint_of(range);
    const Result<IndexCheckpoint> read = IndexCheckpoint::decode(encoded(checkpoint));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, checkpoint);
  }
}

TEST(IndexCheckpoint, RefusesARangeThatIsEmptyOrMalformed) {
  const auto refuses = [](KeyRange range, std::ptrdiff_t at, std::uint8_t byte) {
    Bytes bytes = encoded(checkpoint_of(std::move(range)));
    bytes[static_cast<std::size_t>(at)] = byte;
    const std::size_t body = bytes.size() - 8;
    store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
    const Result<IndexCheckpoint> read = IndexCheckpoint::decode(bytes);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Errc::corrupt);
    EXPECT_EQ(read.error().message(), "index checkpoint: range");
  };
  constexpr std::ptrdiff_t kBody = 12, kFirst = kBody + 1, kEnd = kFirst + 1 + 2;
  refuses({"b", "c"}, kEnd - 1, 0);  // no key lies before an empty end
  refuses({"b", "c"}, kEnd, 'b');
  refuses({"b", "c"}, kEnd, 'a');
  refuses({"b", "c"}, kFirst + 1, 2);  // neither with an end nor without
  refuses({"", "c"}, kBody, 0x7f);     // reads on to a flag that is none
}

TEST(IndexCheckpoint, RefusesSlabsThatDoNotAscend) {
  IndexCheckpoint checkpoint = some_checkpoint();
  std::vector<FloretSlabs::Slab> slabs = checkpoint.slabs.slabs();
  slabs.push_back(slabs.back());
  checkpoint.slabs = FloretSlabs(1, slabs);
  EXPECT_EQ(refusal(checkpoint), Errc::corrupt);
  slabs.back().first += "z";
  checkpoint.slabs = FloretSlabs(1, slabs);
  EXPECT_EQ(refusal(checkpoint), Errc::full);
}

TEST(IndexCheckpoint, RefusesSlabsThatLackTheLeastKeys) {
  Bytes bytes = encoded(some_checkpoint());
  const std::size_t first_slab = 12 + 2 + 9 + 4 + 16;
  bytes[first_slab] = 1;  // a first key of one byte
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(first_slab) + 1, 'a');
  store_u64(bytes.data() + 4, load_u64(bytes.data() + 4) + 1);
  const std::size_t body = bytes.size() - 8;
  store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
  const Result<IndexCheckpoint> read = IndexCheckpoint::decode(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(), "index checkpoint: order of the slabs");
}

}  // namespace
}  // namespace semel::index_internal
