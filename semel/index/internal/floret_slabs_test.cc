#include "semel/index/internal/floret_slabs.h"

#include <gtest/gtest.h>

#include "semel/store/memory_store.h"
#include "tests/support/index.h"

namespace semel::index_internal {
namespace {

constexpr std::uint64_t kSlab = 1000;

// A store, its trie and its slabs.
class FloretSlabsTest : public ::testing::Test {
 protected:
  static std::string key(int number) { return std::to_string(1'000'000 + number); }

  void put(int first, int last, std::size_t value_size) {
    const std::string value(value_size, 'v');
    for (int n = first; n < last; ++n) {
      const std::string name = key(n);
      const RecordWrite write{name, value};
      ASSERT_TRUE(store_.write({&write, 1}));
      slabs_.note(name);
    }
  }
  void remove(int first, int last) {
    const KeyRange range{key(first), key(last)};
    ASSERT_TRUE(store_.remove_range(range));
    slabs_.note(range);
  }

  void read_stale(const KeyRange& range = {}) {
    const auto cursor = *store_.cursor();
    const NyeTrie trie = rebuilt_trie(*cursor, 256, secret_);
    ASSERT_TRUE(slabs_.read_stale(range, {trie, *cursor, key_}));
  }
  RangeFloret sum(const KeyRange& range = {}) {
    const auto cursor = *store_.cursor();
    const NyeTrie trie = rebuilt_trie(*cursor, 256, secret_);
    return *slabs_.sum(range, {trie, *cursor, key_});
  }
  Floret truth(const KeyRange& range = {}) {
    return rebuilt_floret(**store_.cursor(), range, secret_);
  }

  const Secret secret_ = numbered_secret(1);
  const DigestKey key_{secret_, KeyPurpose::floret};
  MemoryStore store_;
  FloretSlabs slabs_{kSlab};
};

TEST_F(FloretSlabsTest, BeginAsOneThatWasNeverRead) {
  ASSERT_EQ(slabs_.slabs().size(), 1U);
  put(0, 50, 10);
  EXPECT_EQ(sum().floret, Floret());
  EXPECT_EQ(sum().unknown, 50U);
  read_stale();
  EXPECT_EQ(sum().unknown, 0U);
  EXPECT_EQ(sum().floret, truth());
}

TEST_F(FloretSlabsTest, AreOfMuchTheSameSizeAsRecordsComeAndGo) {
  const auto expect_sizes = [&] {
    std::uint64_t volume = 0;
    for (const FloretSlabs::Slab& slab : slabs_.slabs()) {
      volume += slab.volume;
      EXPECT_LE(slab.volume, 2 * kSlab);
      if (slabs_.slabs().size() > 1) {
        EXPECT_GE(slab.volume, kSlab / 2);
      }
    }
    EXPECT_EQ(volume, rebuilt_trie(**store_.cursor(), 256, secret_).total().volume);
    EXPECT_EQ(sum().floret, truth());
  };
  put(0, 500, 50);
  read_stale();
  EXPECT_GT(slabs_.slabs().size(), 10U);
  expect_sizes();
  put(100, 200, 500);  // ten times as large
  read_stale();
  expect_sizes();
  for (const int first : {50, 250, 400}) remove(first, first + 90);
  read_stale();
  expect_sizes();
  remove(0, 495);
  read_stale();
  EXPECT_EQ(slabs_.slabs().size(), 1U);
  expect_sizes();
}

TEST_F(FloretSlabsTest, CountTheChangesThatTheyDoNotKnowOf) {
  put(0, 500, 50);
  read_stale();
  put(10, 13, 20);
  EXPECT_EQ(sum().unknown, 3U);
  EXPECT_EQ(sum({key(100), std::nullopt}).unknown, 0U);
  remove(499, 500);
  const FloretSlabs::Slab& last = slabs_.slabs().back();
  EXPECT_EQ(sum().unknown, 3 + last.count + last.count - 1);
  read_stale({key(200), std::nullopt});
  EXPECT_EQ(sum().unknown, 3U);
  read_stale();
  EXPECT_EQ(sum().unknown, 0U);
  EXPECT_EQ(sum().floret, truth());
}

// One of the first two slabs shrinks and is read. The other has a change that was not read.
TEST_F(FloretSlabsTest, KeepTheirCountWhenTheyJoin) {
  for (const std::size_t small : {0, 1}) {
    put(0, 500, 50);
    read_stale();
    const KeyRange shrinks{slabs_.slabs()[small].first, slabs_.slabs()[small + 1].first};
    const std::size_t before = slabs_.slabs().size();
    for (int n = 0; n < 500; ++n) {
      if (shrinks.contains(key(n))) put(n, n + 1, 0);
    }
    slabs_.note(slabs_.slabs()[1 - small].first);
    read_stale(shrinks);
    EXPECT_EQ(slabs_.slabs().size(), before - 1);
    EXPECT_EQ(sum().unknown, 1U);
  }
}

TEST_F(FloretSlabsTest, ReadTheTwoThatARangeCuts) {
  put(0, 500, 50);
  read_stale();
  put(0, 500, 51);  // all are stale
  const std::string second = slabs_.slabs()[1].first;
  const std::string third = slabs_.slabs()[2].first;
  const RangeFloret cut = sum({second + "x", third});
  EXPECT_EQ(cut.unknown, 0U);
  EXPECT_EQ(cut.floret, truth({second + "x", third}));
  EXPECT_EQ(sum({second, third}).unknown, slabs_.slabs()[1].changes);
  EXPECT_EQ(sum({third, second}).floret, Floret());
}

}  // namespace
}  // namespace semel::index_internal
