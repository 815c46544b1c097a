// NyeTrie: random histories beside a map, with containers found by definition; what it reads, its
// memory, and its bytes.
#include "semel/index/nye_trie.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <new>
#include <string>

#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "semel/hash/internal/sealed.h"
#include "semel/index/internal/container_blocks.h"
#include "semel/index/internal/key_buffer.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/allocation.h"
#include "tests/support/encoded.h"

namespace semel {

using namespace index_internal;

namespace {

using Map = std::map<std::string, std::string, std::less<>>;

EntryDigest digest_of_group(std::uint8_t group) {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  bytes.fill(group);
  return EntryDigest(Secret(bytes));
}

const EntryDigest kDigest = digest_of_group(1);
constexpr std::uint32_t kBurst = NyeTrie::kLeastBurst;

// Returns measures of both signs and every size, so that sums wrap.
int128 some_measure(std::string_view key, std::string_view value) {
  const Digest bits = digest(key, value.size());
  const auto magnitude =
      static_cast<int128>((uint128{bits.hi} << 64 | bits.lo) >> (1 + bits.lo % 127));
  return bits.hi % 2 == 0 ? magnitude : -magnitude;
}

// Counts what is read from a map, and fails on demand.
class MapCursor : public Cursor {
 public:
  explicit MapCursor(const Map& map) : map_(map), at_(map.end()) {}

  void seek(std::string_view key) override {
    ++seeks;
    at_ = map_.lower_bound(key);
    count();
  }
  void next() override {
    ASSERT_TRUE(valid());
    ++at_;
    count();
  }
  bool valid() const override { return !failed_ && at_ != map_.end(); }
  std::string_view key() const override { return at_->first; }
  std::string_view value() const override {
    ++const_cast<MapCursor*>(this)->values;
    return at_->second;
  }
  Result<void> status() const override {
    if (failed_) return Error{Errc::io, "map cursor: told to fail"};
    return {};
  }

  std::uint64_t seeks = 0;
  std::uint64_t values = 0;
  std::uint64_t fail_after = ~0ull;  // steps

 private:
  void count() { failed_ = failed_ || steps_++ >= fail_after; }

  const Map& map_;
  Map::const_iterator at_;
  std::uint64_t steps_ = 0;
  bool failed_ = false;
};

Aggregate sum_of(const Map& map, const KeyRange& range, RecordMeasure measure = nullptr) {
  EntryDigest digest = kDigest;
  Aggregate sum;
  uint128 measures = 0;
  for (const auto& [key, value] : map) {
    if (!range.contains(key)) continue;
    sum += {1, key.size() + value.size(), digest(key, value)};
    if (measure != nullptr) measures += static_cast<uint128>(measure(key, value));
  }
  sum.measure = static_cast<int128>(measures);
  return sum;
}

void refresh(NyeTrie& trie, const Map& map) {
  MapCursor cursor(map);
  const Result<void> done = trie.refresh(cursor);
  ASSERT_TRUE(done) << done.error().message();
  ASSERT_FALSE(trie.marked());
}

NyeTrie trie_of(const Map& map, std::uint32_t burst_bytes = kBurst,
                RecordMeasure measure = nullptr) {
  NyeTrie trie(burst_bytes, kDigest, measure);
  refresh(trie, map);
  return trie;
}

// Finds the containers by definition: down from the root, one bit at a time.
void add_containers(const Map& map, const BitPath& node, std::uint32_t burst_bytes,
                    std::vector<Container>& out) {
  const Aggregate sum = sum_of(map, node.range());
  if (sum.count == 0) return;
  if (sum.count == 1 || sum.volume <= burst_bytes) {
    out.push_back({node, sum});
    return;
  }
  for (const bool bit : {false, true}) {
    BitPath child = node;
    child.push(bit);
    if (child.possible()) add_containers(map, child, burst_bytes, out);
  }
}

std::vector<Container> containers_of(const Map& map, std::uint32_t burst_bytes) {
  std::vector<Container> containers;
  add_containers(map, BitPath(), burst_bytes, containers);
  return containers;
}

// Returns keys that are prefixes of each other, end in zeros, share long prefixes, or are all ones.
std::string nasty_key(Random& random) {
  constexpr std::string_view kLetters("\0\1ab\xff", 5);
  std::string key;
  if (random.below(4) == 0) key = "a prefix that many of the keys have";
  for (std::uint64_t n = random.below(6); n > 0; --n) key += kLetters[random.below(5)];
  return key;
}

KeyRange nasty_range(Random& random) {
  KeyRange range{nasty_key(random), std::nullopt};
  if (random.below(5) != 0) range.end = nasty_key(random);
  return range;
}

BitPath nasty_node(Random& random) {
  BitPath node = BitPath::of_key(nasty_key(random));
  node.truncate(random.below(node.size() + 1));
  return node;
}

std::string nasty_value(Random& random) {
  return std::string(random.below(random.below(20) == 0 ? 600 : 60), 'v');
}

// Changes records and marks them, in one of the ways of a store.
void change(Map& map, NyeTrie& trie, Random& random) {
  if (random.below(50) == 0) {
    const KeyRange range = nasty_range(random);
    if (range.empty()) return;
    const bool remove = random.below(4) == 0;
    for (auto at = map.lower_bound(range.first); at != map.end() && range.contains(at->first);) {
      if (remove && random.below(2) == 0) {
        at = map.erase(at);
      } else {
        at->second = nasty_value(random);
        ++at;
      }
    }
    trie.mark(range);
    return;
  }
  const std::string key = nasty_key(random);
  if (random.below(3) == 0) {
    map.erase(key);
  } else {
    map[key] = nasty_value(random);
  }
  trie.mark(key);
}

Map many_records(std::uint64_t records, std::size_t value_size = 20) {
  Map map;
  Random random(5);
  for (std::uint64_t n = 0; n < records; ++n) {
    map["key " + std::to_string(mix(n))] = std::string(value_size, static_cast<char>(random()));
  }
  return map;
}

TEST(NyeTrie, EqualsOneThatIsBuiltAnewAfterEveryHistory) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const RecordMeasure measure = seed % 2 == 0 ? nullptr : &some_measure;
    Random random(seed);
    Map map;
    NyeTrie trie(kBurst, kDigest, measure);
    for (int round = 0; round < 25; ++round) {
      const std::uint64_t changes = random.below(round % 5 == 0 ? 400 : 10);
      for (std::uint64_t n = 0; n < changes; ++n) change(map, trie, random);
      refresh(trie, map);
      ASSERT_EQ(trie, trie_of(map, kBurst, measure));
      MapCursor cursor(map);
      for (int n = 0; n < 5; ++n) {
        const KeyRange range = nasty_range(random);
        ASSERT_EQ(*trie.sum(range, cursor), sum_of(map, range, measure));
        const BitPath node = nasty_node(random);
        ASSERT_EQ(*trie.sum(node, cursor), sum_of(map, node.range(), measure));
      }
      ASSERT_EQ(trie.total(), sum_of(map, KeyRange::all(), measure));
    }
  }
}

// Makes one change at a time in a trie of many blocks, in which most containers hold one or two
// records. So containers split, join and vanish beside neighbours in other blocks.
TEST(NyeTrie, EqualsOneThatIsBuiltAnewAcrossBlocks) {
  Random random(14);
  Map map;
  for (std::uint64_t n = 0; n < 500; ++n) map[std::to_string(mix(n))] = std::string(130, 'v');
  NyeTrie trie = trie_of(map, kBurst, &some_measure);
  ASSERT_GT(trie.container_count(), std::size_t{4} * ContainerBlocks::kMost);
  std::vector<std::string> gone;
  for (int round = 0; round < 3000; ++round) {
    const auto at = std::next(map.begin(), static_cast<std::ptrdiff_t>(random.below(map.size())));
    std::string key = at->first;
    if (random.below(2) == 0 && !gone.empty()) {
      std::swap(gone[random.below(gone.size())], gone.back());
      key = gone.back();
      gone.pop_back();
      map[key] = std::string(130, 'v');
    } else {
      map.erase(at);
      gone.push_back(key);
    }
    trie.mark(key);
    refresh(trie, map);
    ASSERT_EQ(trie, trie_of(map, kBurst, &some_measure)) << round;
    ASSERT_EQ(trie.total(), sum_of(map, KeyRange::all(), &some_measure)) << round;
  }
}

struct Step {
  enum class Kind : std::uint8_t { put, remove, mark, mark_range, refresh } kind;
  std::string key;
  std::size_t size;
};

// Uses generated steps, which shrink to fewer and shorter ones when they fail.
TEST(NyeTrie, HoldsThroughGeneratedHistories) {
  const auto steps = rc::gen::container<std::vector<Step>>(rc::gen::construct<Step>(
      rc::gen::element(Step::Kind::put, Step::Kind::put, Step::Kind::put, Step::Kind::remove,
                       Step::Kind::mark, Step::Kind::mark_range, Step::Kind::refresh),
      rc::gen::container<std::string>(rc::gen::element('\0', 'a', '\xff')),
      rc::gen::element<std::size_t>(0, 10, 100, 255, 300)));
  const bool ok = rc::check([&] {
    const RecordMeasure measure = *rc::gen::element<RecordMeasure>(nullptr, &some_measure);
    Map map;
    NyeTrie trie(kBurst, kDigest, measure);
    refresh(trie, map);
    for (const Step& step : *steps) {
      switch (step.kind) {
        case Step::Kind::put:
          map[step.key] = std::string(step.size, 'v');
          break;
        case Step::Kind::remove:
          map.erase(step.key);
          break;
        case Step::Kind::mark:
          break;
        case Step::Kind::mark_range:
          trie.mark(KeyRange{step.key, std::nullopt});
          continue;
        case Step::Kind::refresh:
          refresh(trie, map);
          RC_ASSERT(trie == trie_of(map, kBurst, measure));
          continue;
      }
      trie.mark(step.key);
    }
    refresh(trie, map);
    RC_ASSERT(trie == trie_of(map, kBurst, measure));
    RC_ASSERT(trie.total() == sum_of(map, KeyRange::all(), measure));
  });
  EXPECT_TRUE(ok);
}

TEST(NyeTrie, ContainersAreTheHighestNodesThatAreSmallEnough) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    Map map;
    for (std::uint64_t n = random.below(seed < 10 ? 6 : 300); n > 0; --n) {
      map[nasty_key(random)] = nasty_value(random);
    }
    const NyeTrie trie = trie_of(map);
    const std::vector<Container> expected = containers_of(map, kBurst);
    const std::vector<Container> found = trie.containers(KeyRange::all());
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_EQ(found.size(), trie.container_count());
    for (std::size_t i = 0; i < found.size(); ++i) {
      // The definition gives the node below all edges that do not branch. Ours may end above it.
      EXPECT_EQ(found[i].sum, expected[i].sum);
      EXPECT_TRUE(expected[i].path.is_prefix_of(found[i].path) ||
                  found[i].path.is_prefix_of(expected[i].path));
      std::size_t shared = 0;
      if (i > 0) shared = common_bits(found[i - 1].path, found[i].path) + 1;
      if (i + 1 < found.size()) {
        shared = std::max(shared, common_bits(found[i].path, found[i + 1].path) + 1);
      }
      EXPECT_EQ(found[i].path.size(), shared);
    }
  }
}

TEST(NyeTrie, GivesTheContainersThatHaveKeysInARange) {
  Random random(3);
  Map map;
  for (int n = 0; n < 500; ++n) map[nasty_key(random)] = nasty_value(random);
  const NyeTrie trie = trie_of(map);
  const std::vector<Container> all = trie.containers(KeyRange::all());
  for (int n = 0; n < 1000; ++n) {
    const KeyRange range = nasty_range(random);
    std::vector<Container> expected;
    for (const Container& container : all) {
      if (!intersection(container.path.range(), range).empty() && !range.empty()) {
        expected.push_back(container);
      }
    }
    ASSERT_EQ(trie.containers(range), expected);
  }
}

TEST(NyeTrie, BranchesWhereContainersPart) {
  Random random(4);
  for (const int records : {0, 1, 2, 20, 1000}) {
    Map map;
    for (int n = 0; n < records; ++n) map[nasty_key(random)] = nasty_value(random);
    const NyeTrie trie = trie_of(map);
    for (int n = 0; n < 300; ++n) {
      const BitPath node = nasty_node(random);
      std::vector<BitPath> below;
      for (const Container& container : trie.containers(KeyRange::all())) {
        if (node.is_prefix_of(container.path)) below.push_back(container.path);
      }
      std::optional<BitPath> expected;
      if (below.size() > 1) {
        expected = below.front();
        expected->truncate(common_bits(below.front(), below.back()));
      }
      ASSERT_EQ(trie.branch(node), expected);
    }
  }
}

TEST(NyeTrie, HistogramPartsTheRecordsOfARange) {
  const Map map = many_records(2000);
  const NyeTrie trie = trie_of(map);
  MapCursor cursor(map);
  for (const KeyRange& range : {KeyRange::all(), KeyRange{"key 2", "key 45"}, KeyRange{"z", {}}}) {
    for (const std::size_t most : {1u, 2u, 7u, 64u, 100'000u}) {
      const auto nodes = trie.histogram(range, most, cursor);
      ASSERT_TRUE(nodes);
      EXPECT_LE(nodes->size(), most);
      Aggregate sum;
      std::uint64_t heaviest = 0;
      for (std::size_t i = 0; i < nodes->size(); ++i) {
        const Container& node = (*nodes)[i];
        EXPECT_EQ(node.sum, sum_of(map, intersection(range, node.path.range())));
        EXPECT_GT(node.sum.count, 0u);
        if (i > 0) {
          EXPECT_TRUE((*nodes)[i - 1].path < node.path);
          EXPECT_FALSE((*nodes)[i - 1].path.is_prefix_of(node.path));
        }
        sum += node.sum;
        heaviest = std::max(heaviest, node.sum.volume);
      }
      EXPECT_EQ(sum, sum_of(map, range));
      // Halving leaves up to two fair shares. Decimal digits make a skewed tree, so twice that is
      // allowed.
      if (most == 64u && sum.count > 0) {
        EXPECT_LE(heaviest, 4 * sum.volume / 64);
      }
    }
  }
}

TEST(NyeTrie, RefreshReadsWhatIsMarkedAndNothingElse) {
  Map map = many_records(20'000, 60);
  NyeTrie trie = trie_of(map, 4096);
  Random random(1);
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);

  for (const std::size_t marks : {1u, 10u, 200u}) {
    std::map<std::string, BitPath> marked;  // containers, by their first key
    std::vector<std::string> written;
    for (std::size_t n = 0; n < marks; ++n) {
      written.push_back(keys[random.below(keys.size())]);
      const Container held = trie.containers({written[n], successor(written[n])}).front();
      marked.emplace(held.path.first_key(), held.path);
      map[written[n]] = std::string(random.below(120), 'w');
    }
    std::uint64_t records = 0;
    for (const auto& [key, path] : marked) records += sum_of(map, path.range()).count;

    for (const std::string& key : written) trie.mark(key);
    MapCursor cursor(map);
    std::uint64_t seen = 0;
    ASSERT_TRUE(
        trie.refresh(cursor, [&](std::string_view, std::string_view, const Digest&) { ++seen; }));
    EXPECT_EQ(trie, trie_of(map, 4096));
    EXPECT_EQ(seen, records);
    EXPECT_EQ(cursor.values, records);
    EXPECT_LE(cursor.seeks, marked.size());
  }
  MapCursor cursor(map);
  ASSERT_TRUE(trie.refresh(cursor));
  EXPECT_EQ(cursor.seeks, 0u);
}

TEST(NyeTrie, BulkLoadIsOneOrderedPass) {
  const Map map = many_records(5000);
  NyeTrie trie(kBurst, kDigest);
  trie.mark("key 1");
  EXPECT_TRUE(trie.marked());
  MapCursor cursor(map);
  auto expected = map.begin();
  EntryDigest digest = kDigest;
  ASSERT_TRUE(
      trie.refresh(cursor, [&](std::string_view key, std::string_view value, const Digest& entry) {
        EXPECT_EQ(key, expected->first);
        EXPECT_EQ(value, expected->second);
        EXPECT_EQ(entry, digest(key, value));
        ++expected;
      }));
  EXPECT_TRUE(expected == map.end());
  EXPECT_EQ(cursor.seeks, 1u);
  EXPECT_EQ(cursor.values, map.size());
}

TEST(NyeTrie, SumReadsTwoContainersAtMostAndANodeOne) {
  const Map map = many_records(10'000, 60);
  const NyeTrie trie = trie_of(map, 4096);
  std::uint64_t most = 0;
  for (const Container& container : trie.containers(KeyRange::all())) {
    most = std::max(most, container.sum.count);
    MapCursor cursor(map);
    EXPECT_EQ(*trie.sum(container.path, cursor), container.sum);
    EXPECT_EQ(*trie.sum(container.path.range(), cursor), container.sum);
    EXPECT_EQ(cursor.seeks, 0u);
  }
  Random random(2);
  for (int n = 0; n < 300; ++n) {
    KeyRange range{"key " + std::to_string(random()), "key " + std::to_string(random())};
    if (range.empty()) std::swap(range.first, *range.end);
    MapCursor cursor(map);
    EXPECT_EQ(*trie.sum(range, cursor), sum_of(map, range));
    EXPECT_LE(cursor.seeks, 2u);
    EXPECT_LE(cursor.values, 2 * most);

    BitPath node = BitPath::of_key(range.first);
    node.truncate(random.below(node.size() + 1));
    MapCursor for_node(map);
    EXPECT_EQ(*trie.sum(node, for_node), sum_of(map, node.range()));
    EXPECT_LE(for_node.seeks, 1u);
    EXPECT_LE(for_node.values, most);
  }
}

TEST(NyeTrie, StaysMarkedAndSoundWhenACursorFails) {
  Map map = many_records(2000);
  NyeTrie trie = trie_of(map);
  Random random(6);
  std::uint64_t errors = 0;
  for (std::uint64_t fail_after = 0; fail_after < 40; ++fail_after) {
    for (int n = 0; n < 20; ++n) change(map, trie, random);
    MapCursor failing(map);
    failing.fail_after = fail_after;
    const Result<void> done = trie.refresh(failing);
    EXPECT_EQ(trie.marked(), !done);
    if (done) continue;
    ++errors;
    EXPECT_EQ(done.error().code, Errc::io);
    if (fail_after % 2 == 0) continue;
    refresh(trie, map);
    ASSERT_EQ(trie, trie_of(map));
  }
  EXPECT_GT(errors, 20u);
  refresh(trie, map);
  EXPECT_EQ(trie, trie_of(map));

  MapCursor failing(map);
  failing.fail_after = 0;
  const std::string key = std::next(map.begin(), 1000)->first;
  EXPECT_EQ(trie.sum(KeyRange{key + '\0', std::nullopt}, failing).error().code, Errc::io);
}

// Whichever allocation fails, the trie is as it was, and still marked.
TEST(NyeTrie, StaysMarkedAndSoundWhenMemoryRunsOut) {
  Map map = many_records(1000);
  NyeTrie trie = trie_of(map);
  Random random(7);
  for (int n = 0; n < 30; ++n) change(map, trie, random);
  for (auto& [key, value] : map) {
    if (random.below(40) != 0) continue;
    value = nasty_value(random);
    trie.mark(key);
  }
  const NyeTrie expected = trie_of(map);
  std::size_t good = 0;
  for (bool done = false; !done; ++good) {
    MapCursor cursor(map);
    try {
      const FailingAllocation failing(good);
      done = trie.refresh(cursor).has_value();
    } catch (const std::bad_alloc&) {
      ASSERT_TRUE(trie.marked());
    }
  }
  EXPECT_GT(good, 20u);
  EXPECT_EQ(trie, expected);
}

// Generates records instead of storing them: record n has a key of 13 bytes and a value of
// `value_size`.
class NumberedCursor : public Cursor {
 public:
  enum class Keys : std::uint8_t { decimal, binary, random };
  NumberedCursor(Keys keys, std::uint64_t records, std::size_t value_size)
      : value_(value_size, 'v') {
    for (std::uint64_t n = 0; n < records; ++n) {
      if (keys == Keys::decimal) {
        std::string digits = std::to_string(n);
        keys_.push_back("key" + std::string(10 - digits.size(), '0') + digits);
        continue;
      }
      std::string key = "table";
      const std::uint64_t number = keys == Keys::binary ? n : mix(n);
      for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift);
      keys_.push_back(key);
    }
    std::sort(keys_.begin(), keys_.end());
  }
  void seek(std::string_view key) override {
    at_ =
        static_cast<std::size_t>(std::lower_bound(keys_.begin(), keys_.end(), key) - keys_.begin());
  }
  void next() override { ++at_; }
  bool valid() const override { return at_ < keys_.size(); }
  std::string_view key() const override { return keys_[at_]; }
  std::string_view value() const override { return value_; }
  Result<void> status() const override { return {}; }

 private:
  std::vector<std::string> keys_;
  std::string value_;
  std::size_t at_ = 0;
};

// Checks the figures of the paper, which has records of 256 bytes, and the worst sizes for halves.
TEST(NyeTrie, TakesNoMoreMemoryThanThePaper) {
  using Keys = NumberedCursor::Keys;
  for (const Keys keys : {Keys::decimal, Keys::binary, Keys::random}) {
    for (const std::size_t value_size : {243u, 256u}) {
      NumberedCursor cursor(keys, 400'000, value_size);
      for (const auto& [burst_bytes, share] : {std::pair{4096u, 0.013}, {32'768u, 0.0014}}) {
        NyeTrie trie(burst_bytes, kDigest);
        ASSERT_TRUE(trie.refresh(cursor));
        EXPECT_EQ(trie.total().count, 400'000u);
        EXPECT_LE(static_cast<double>(trie.bytes()),
                  share * static_cast<double>(trie.total().volume))
            << static_cast<int>(keys) << " " << value_size << " " << burst_bytes;
      }
    }
  }
}

TEST(NyeTrie, StaysSmallThroughRandomWrites) {
  Map map;
  NyeTrie trie = trie_of(map);
  Random random(8);
  for (int round = 0; round < 300; ++round) {
    for (int n = 0; n < 30; ++n) {
      const std::string key = "key " + std::to_string(random());
      map[key] = std::string(100, 'v');
      trie.mark(key);
    }
    refresh(trie, map);
  }
  EXPECT_EQ(trie, trie_of(map));
  EXPECT_GT(trie.container_count(), 3000u);
  EXPECT_LE(trie.bytes(), 27 * trie.container_count());
  for (auto at = map.begin(); at != map.end();) {
    trie.mark(at->first);
    at = random.below(10) == 0 ? std::next(at) : map.erase(at);
    if (random.below(30) == 0) refresh(trie, map);
  }
  refresh(trie, map);
  EXPECT_EQ(trie, trie_of(map));
  EXPECT_LE(trie.bytes(), 32 * trie.container_count() + 1000);
}

TEST(NyeTrie, MarksTakeBoundedMemory) {
  Map map = many_records(1000);
  NyeTrie trie = trie_of(map);
  const std::size_t clean = trie.bytes();
  Random random(9);
  for (int n = 0; n < 200'000; ++n) trie.mark("key " + std::to_string(random()));
  EXPECT_LE(trie.bytes(), clean + 3 * KeyBuffer::kFull);
  refresh(trie, map);
  EXPECT_EQ(trie.bytes(), clean);
}

// Anyone can compute these digests and their XOR. Of 129 records, each with a choice of two values,
// the differences are linearly dependent. So some values can be exchanged unseen.
TEST(NyeTrie, FindsTheForgeryThatUnkeyedDigestsDoNotSee) {
  constexpr std::size_t kRecords = 129;
  const auto unkeyed = [](const std::string& key, const std::string& value) {
    return digest(key + value, 0);
  };
  using Chosen = std::bitset<kRecords>;
  struct Row {
    Digest sum;
    Chosen chosen;
  };
  const auto bit = [](const Digest& d, int i) {
    return ((i < 64 ? d.lo : d.hi) >> i % 64 & 1) != 0;
  };
  Map honest;
  std::array<Row, 128> pivots{};
  Chosen forged;
  for (std::size_t n = 0; n < kRecords; ++n) {
    const std::string key = "account " + std::to_string(1000 + n);
    honest[key] = "balance 100";
    Row row{unkeyed(key, "balance 100"), Chosen().set(n)};
    row.sum ^= unkeyed(key, "balance 999");
    for (int i = 0; i < 128; ++i) {
      if (!bit(row.sum, i)) continue;
      Row& pivot = pivots[static_cast<std::size_t>(i)];
      if (pivot.chosen.none()) {
        pivot = row;
        break;
      }
      row.sum ^= pivot.sum;
      row.chosen ^= pivot.chosen;
    }
    if (row.sum == Digest{0, 0}) forged = row.chosen;
  }
  ASSERT_TRUE(forged.any());
  Map dishonest = honest;
  std::size_t n = 0;
  for (auto& [key, value] : dishonest) {
    if (forged[n++]) value = "balance 999";
  }

  Aggregate seen_honest, seen_dishonest;
  for (const auto& [key, value] : honest)
    seen_honest += {1, key.size() + value.size(), unkeyed(key, value)};
  for (const auto& [key, value] : dishonest)
    seen_dishonest += {1, key.size() + value.size(), unkeyed(key, value)};
  ASSERT_EQ(seen_honest, seen_dishonest);

  const NyeTrie a = trie_of(honest), b = trie_of(dishonest);
  EXPECT_NE(a.total(), b.total());
  const std::vector<Container> in_a = a.containers(KeyRange::all());
  const std::vector<Container> in_b = b.containers(KeyRange::all());
  ASSERT_EQ(in_a.size(), in_b.size());
  std::size_t first = 0;
  for (std::size_t i = 0; i < in_a.size(); ++i) {
    bool differs = false;
    for (std::size_t k = first; k < first + in_a[i].sum.count; ++k) differs = differs || forged[k];
    first += in_a[i].sum.count;
    EXPECT_EQ(in_a[i].sum.digest != in_b[i].sum.digest, differs);
  }
}

// A trie of the test's group, with marks of every kind. It is compared by its bytes.
template <RecordMeasure kMeasure>
struct CodedTrie {
  NyeTrie trie;
  void encode(Sink out) const { trie.encode(out); }
  static Result<CodedTrie> decode(ByteView in) {
    Result<NyeTrie> trie = NyeTrie::decode(in, kDigest, kMeasure);
    if (!trie) return trie.error();
    return CodedTrie{*std::move(trie)};
  }
  bool operator==(const CodedTrie& other) const { return encoded(*this) == encoded(other); }
};

template <RecordMeasure kMeasure>
struct BytesCase {
  using Type = CodedTrie<kMeasure>;
  static constexpr std::size_t kHeaderSize = 12 + 21;
  static constexpr std::size_t kMostGrowth = 8;
  static constexpr const char* kFile =
      kMeasure == nullptr ? "nye_trie_v1.bin" : "nye_trie_v1_measured.bin";
  static Type make() {
    Map map;
    Random random(11);
    for (int n = 0; n < 60; ++n) map[nasty_key(random)] = nasty_value(random);
    NyeTrie trie = trie_of(map, kBurst, kMeasure);
    trie.mark(map.begin()->first);
    trie.mark("nothing like this");
    trie.mark(KeyRange{"\xff", std::nullopt});
    return {std::move(trie)};
  }
};
using BytesCases = ::testing::Types<BytesCase<nullptr>, BytesCase<&some_measure>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Trie, HostileBytes, BytesCases);
INSTANTIATE_TYPED_TEST_SUITE_P(Trie, Golden, BytesCases);

TEST(NyeTrie, MarksTravel) {
  Map map = many_records(3000);
  Random random(12);
  for (const bool loaded : {false, true}) {
    NyeTrie trie(kBurst, kDigest);
    if (loaded) {
      refresh(trie, map);
      for (int n = 0; n < 50; ++n) change(map, trie, random);
    }
    Result<NyeTrie> copy = NyeTrie::decode(encoded(trie), kDigest);
    ASSERT_TRUE(copy) << copy.error().message();
    EXPECT_TRUE(copy->marked());
    refresh(*copy, map);
    EXPECT_EQ(*copy, trie_of(map));
    const Result<NyeTrie> clean = NyeTrie::decode(encoded(*copy), kDigest);
    ASSERT_TRUE(clean);
    EXPECT_EQ(*clean, *copy);
  }
}

TEST(NyeTrie, BytesDependOnContainersAndMarksAlone) {
  Random random(13);
  Map map = many_records(3000);
  NyeTrie grown = trie_of(map);
  for (int round = 0; round < 20; ++round) {
    for (int n = 0; n < 20; ++n) change(map, grown, random);
    refresh(grown, map);
  }
  NyeTrie built = trie_of(map);
  EXPECT_EQ(encoded(grown), encoded(built));
  for (NyeTrie* const trie : {&grown, &built}) trie->mark("key 5");
  EXPECT_EQ(encoded(grown), encoded(built));
}

TEST(NyeTrie, RefusesAnotherKey) {
  const Result<NyeTrie> trie = NyeTrie::decode(encoded(trie_of({})), digest_of_group(2));
  ASSERT_FALSE(trie);
  EXPECT_EQ(trie.error().code, Errc::mismatch);
}

TEST(NyeTrie, RefusesMeasuresThatNobodyWantsAndTheLackOfThem) {
  for (const Map& map : {Map(), many_records(100)}) {
    const NyeTrie plain = trie_of(map);
    const NyeTrie measured = trie_of(map, kBurst, &some_measure);
    EXPECT_FALSE(plain == measured);
    const Result<NyeTrie> unwanted = NyeTrie::decode(encoded(measured), kDigest);
    ASSERT_FALSE(unwanted);
    EXPECT_EQ(unwanted.error().code, Errc::mismatch);
    const Result<NyeTrie> lacking = NyeTrie::decode(encoded(plain), kDigest, &some_measure);
    ASSERT_FALSE(lacking);
    EXPECT_EQ(lacking.error().code, Errc::mismatch);
  }
}

// A hand-written forgery: a header, and containers of `path`, count and volume.
struct Written {
  std::string path;  // zeros and ones
  std::uint64_t count;
  std::uint64_t volume;
};

std::string refusal(const std::vector<Written>& containers) {
  Bytes bytes;
  seal(bytes, Format{"SNT", 1, "trie"}, [&](Writer& w) {
    w.u8(0);
    w.u32(kBurst);
    w.u64(kDigest.id().seed);
    w.u64(containers.size());
    BitPath before;
    for (const Written& written : containers) {
      Container container{BitPath(), {written.count, written.volume, {1, 2}}};
      for (const char bit : written.path) container.path.push(bit == '1');
      const bool first = &written == containers.data();
      write_container(w, container, first ? nullptr : &before, Measured::no);
      before = container.path;
    }
    const std::size_t count = containers.size();
    for (std::size_t n = (count + 7) / 8 + (count + 8) / 8; n > 0; --n) w.u8(0);
  });
  const Result<NyeTrie> trie = NyeTrie::decode(bytes, kDigest);
  return trie ? "none" : trie.error().message();
}

TEST(NyeTrie, RefusesContainersThatNoTrieHas) {
  EXPECT_EQ(refusal({}), "none");
  EXPECT_EQ(refusal({{"", 3, 256}}), "none");
  EXPECT_EQ(refusal({{"", 1, 1000}}), "none");
  EXPECT_EQ(refusal({{"", 3, 257}}), "trie: sum of a container");
  EXPECT_EQ(refusal({{"", 0, 0}}), "trie: sum of a container");
  EXPECT_EQ(refusal({{"", 3, 1}}), "trie: sum of a container");
  EXPECT_EQ(refusal({{"1", 3, 200}}), "trie: containers that no trie has");  // the root is shorter
  EXPECT_EQ(refusal({{"0", 1, 200}, {"1", 3, 57}}), "none");
  EXPECT_EQ(refusal({{"0", 1, 200}, {"1", 3, 56}}),
            "trie: containers that no trie has");  // one container is enough
  EXPECT_EQ(refusal({{"0", 2, 200}, {"1", 3, 57}}), "trie: sum of a container");  // one key
  EXPECT_EQ(refusal({{"1", 3, 200}, {"0", 1, 200}}), "trie: container");          // wrong order
  EXPECT_EQ(refusal({{"1", 3, 200}, {"1", 3, 200}}), "trie: container");
  EXPECT_EQ(refusal({{"10", 3, 200}, {"11", 3, 200}}), "none");
  EXPECT_EQ(refusal({{"100", 3, 200}, {"11", 3, 200}}), "trie: containers that no trie has");
  EXPECT_EQ(refusal({{"10", 3, 200}, {"110", 3, 200}}), "trie: containers that no trie has");
  EXPECT_EQ(refusal({{"10", 3, 200}, {"110", 3, 100}, {"111", 3, 157}}), "none");
  EXPECT_EQ(refusal({{"10", 3, 200}, {"110", 3, 100}, {"111", 3, 156}}),
            "trie: containers that no trie has");
  EXPECT_EQ(refusal({{"00", 1, 300}, {"01", 1, 300}}), "trie: sum of a container");
  EXPECT_EQ(refusal({{"10", 1, 0}, {"11", 3, 256}}),
            "trie: sum of a container");  // a key has bytes
  EXPECT_EQ(refusal({{"10", 3, 2}, {"11", 3, 256}}), "trie: sum of a container");
  EXPECT_EQ(refusal({{"10", 1, ~0ull}, {"11", 1, 1}}), "trie: sum of a container");  // overflow
  EXPECT_EQ(refusal({{std::string((1 << 16) + 1, '1'), 1, 10'000}}),
            "trie: the path of a container is too long");
}

TEST(NyeTrieDeathTest, ChecksWhatItRequires) {
  EXPECT_DEATH(NyeTrie(NyeTrie::kLeastBurst - 1, kDigest), "burst_bytes");
  EXPECT_DEATH(NyeTrie(NyeTrie::kMostBurst + 1, kDigest), "burst_bytes");
  const Map map;
  MapCursor cursor(map);
  EXPECT_DEATH((void)NyeTrie(kBurst, kDigest).sum(BitPath(), cursor), "marked");
}

}  // namespace
}  // namespace semel
