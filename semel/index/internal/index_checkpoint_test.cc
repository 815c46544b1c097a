#include "semel/index/internal/index_checkpoint.h"

#include <gtest/gtest.h>

#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"

namespace semel {
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
  static constexpr std::size_t kHeaderSize = 40;
  static constexpr const char* kFile = "index_checkpoint_v1.bin";
  static Type make() { return some_checkpoint(); }
};
struct OfARange {
  using Type = IndexCheckpoint;
  static constexpr std::size_t kHeaderSize = 40;
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
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(*read, checkpoint);
  }
}

TEST(IndexCheckpoint, RefusesARangeThatIsEmptyOrWrittenForNothing) {
  const auto refuses = [](KeyRange range, std::ptrdiff_t at, std::uint8_t byte) {
    Bytes bytes = encoded(checkpoint_of(std::move(range)));
    bytes[static_cast<std::size_t>(at)] = byte;
    const std::size_t body = bytes.size() - 8;
    store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
    const Result<IndexCheckpoint> read = IndexCheckpoint::decode(bytes);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Errc::corrupt);
    EXPECT_STREQ(read.error().what, "checkpoint: range");
  };
  constexpr std::ptrdiff_t kFirst = 40 + 8, kEnd = kFirst + 1 + 8;
  refuses({"b", "c"}, kEnd, 'b');
  refuses({"b", "c"}, kEnd, 'a');
  refuses({"b", std::nullopt}, 40, 0);  // an empty least key needs no flag
  refuses({"", "c"}, 40, 0);            // no key lies before an empty end
  refuses({"", "c"}, 40 + 7, 1);        // a size beyond all bytes
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
  const std::size_t first_slab = 40 + 8 + 3;
  bytes[first_slab] = 1;  // a first key of one byte
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(first_slab) + 32, 'a');
  const std::size_t body = bytes.size() - 8;
  store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
  const Result<IndexCheckpoint> read = IndexCheckpoint::decode(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::corrupt);
}

}  // namespace
}  // namespace semel
