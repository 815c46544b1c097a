#include "semel/sync/internal/frontier.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/index/indexed_store.h"
#include "semel/store/memory_store.h"

namespace semel::sync_internal {
namespace {

Secret secret() { return Secret(std::array<std::uint8_t, Secret::kSize>{1, 2, 3}); }

// A store of decimal keys, with an index of small containers.
class FrontierTest : public testing::Test {
 protected:
  void SetUp() override {
    Random random(1);
    for (int i = 0; i < 3000; ++i) {
      const std::string key = "user:" + std::to_string(random.below(100'000));
      const std::string value = "value " + std::to_string(i);
      const RecordWrite write{key, value};
      ASSERT_TRUE(store_.write({&write, 1}));
    }
    Result<std::unique_ptr<IndexedStore>> opened =
        IndexedStore::open(store_, secret(), {.burst_bytes = 512});
    ASSERT_TRUE(opened);
    index_ = std::move(*opened);
    Result<IndexedStore::View> held = index_->view();
    ASSERT_TRUE(held);
    held_.emplace(std::move(*held));
  }

  RangeView view(const KeyRange& range) { return {held_->trie(), held_->cursor(), range}; }

  MemoryStore store_;
  std::unique_ptr<IndexedStore> index_;
  std::optional<IndexedStore::View> held_;
};

TEST_F(FrontierTest, EveryKeyIsInOneSlotAndTheSumsAreThoseOfTheSlots) {
  const std::vector<KeyRange> ranges = {KeyRange::all(), {"user:2", "user:77"}, {"user:5", {}}};
  for (const KeyRange& range : ranges) {
    const RangeView in_range = view(range);
    const BitPath root;
    for (const std::size_t most : {1, 7, 100, 100'000}) {
      const Result<Frontier> frontier = Frontier::grow(in_range, {&root, 1}, most, 0);
      ASSERT_TRUE(frontier);
      Aggregate all;
      for (const Frontier::Slot& slot : frontier->slots()) {
        Aggregate read;
        EntryDigest digest(secret());
        ASSERT_TRUE(in_range.read(slot.region, "", [&](auto key, auto value) {
          read += {1, key.size() + value.size(), digest(key, value)};
          return true;
        }));
        EXPECT_EQ(read, slot.sum);
        const Result<Aggregate> summed = in_range.sum(slot.region);
        ASSERT_TRUE(summed);
        EXPECT_EQ(*summed, slot.sum);
        all += slot.sum;
      }
      EXPECT_EQ(all, *in_range.sum(root));
      for (int i = 0; i < 300; ++i) {
        const std::string key = "user:" + std::to_string(i * 331);
        int holders = 0;
        for (const Frontier::Slot& slot : frontier->slots()) holders += slot.region.contains(key);
        EXPECT_EQ(holders, 1) << key;
      }
    }
  }
}

TEST_F(FrontierTest, TheOtherEndReadsTheSameSlots) {
  const RangeView all = view(KeyRange::all());
  const BitPath root;
  const Result<Frontier> frontier = Frontier::grow(all, {&root, 1}, 200, 0);
  ASSERT_TRUE(frontier);
  const ShortDigest shorten(secret(), ShortDigest::Of::node, 7);
  Bytes bytes;
  Writer out(bytes);
  frontier->encode(shorten, out);
  Reader in(bytes);
  const Result<std::vector<PeerSlot>> slots = decode_frontier(in);
  ASSERT_TRUE(slots);
  ASSERT_EQ(slots->size(), frontier->slots().size());
  for (std::size_t i = 0; i < slots->size(); ++i) {
    EXPECT_EQ((*slots)[i].region, frontier->slots()[i].region);
    EXPECT_EQ((*slots)[i].empty, frontier->slots()[i].region.without.has_value());
    if (!(*slots)[i].empty) {
      EXPECT_EQ((*slots)[i].digest, node_bits(shorten, frontier->slots()[i].sum));
    }
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Reader cut(ByteView(bytes).first(size));
    EXPECT_FALSE(decode_frontier(cut)) << size;
  }
}

TEST_F(FrontierTest, RandomBytesAreNoFrontierOrAHarmlessOne) {
  Random random(2);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes(random.below(60));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    Reader in(bytes);
    const Result<std::vector<PeerSlot>> slots = decode_frontier(in);
    if (slots) {
      EXPECT_LE(slots->size(), bytes.size() * 8);
    }
  }
}

TEST(ShortDigestTest, AnotherSaltHasOtherBits) {
  const ShortDigest first(secret(), ShortDigest::Of::node, 1);
  const ShortDigest second(secret(), ShortDigest::Of::node, 2);
  const ShortDigest record(secret(), ShortDigest::Of::record, 1);
  Random random(4);
  int bits = 0;
  for (int i = 0; i < 1000; ++i) {
    const Digest digest{random(), random()};
    bits += std::popcount(first(digest) ^ second(digest));
    EXPECT_NE(first(digest), record(digest));
  }
  EXPECT_NEAR(bits / 1000.0, 32, 1);
}

}  // namespace
}  // namespace semel::sync_internal
