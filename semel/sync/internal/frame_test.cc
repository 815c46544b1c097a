#include "semel/sync/internal/frame.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/core/internal/bit_codec.h"
#include "semel/core/internal/random.h"
#include "semel/hash/internal/checksum.h"
#include "semel/sync/internal/path_codec.h"

namespace semel::sync_internal {
namespace {

using frame::Content;
using frame::Fetch;

BitPath path_of(std::string_view bits) {
  BitPath path;
  for (const char bit : bits) path.push(bit == '1');
  return path;
}

// Returns bits with which some key begins.
BitPath random_path(Random& random, std::size_t most) {
  BitPath path = BitPath::of_key(std::string(8, static_cast<char>(random.below(4) * 64)));
  path.truncate(random.below(most));
  return path;
}

TEST(FrameTest, WhatIsSealedIsOpened) {
  frame::Builder builder({frame::Kind::question, 77, 0xabcdef01});
  builder.body().u32(5);
  const Bytes bytes = std::move(builder).seal();
  const Result<frame::Opened> opened = frame::open(bytes);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->header.kind, frame::Kind::question);
  EXPECT_EQ(opened->header.number, 77U);
  EXPECT_EQ(opened->header.key, 0xabcdef01U);
  EXPECT_EQ(opened->body.size(), 4U);
}

TEST(FrameTest, EveryFlippedBitAndEveryCutIsRefused) {
  frame::Builder builder({frame::Kind::answer, 1, 2});
  builder.body().u64(3);
  const Bytes bytes = std::move(builder).seal();
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] = static_cast<std::uint8_t>(damaged[bit / 8] ^ 1U << bit % 8);
    EXPECT_FALSE(frame::open(damaged)) << bit;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(frame::open(ByteView(bytes).first(size))) << size;
  }
}

TEST(FrameTest, AnotherVersionIsNamed) {
  frame::Builder builder({frame::Kind::question, 9, 2});
  Bytes bytes = std::move(builder).seal();
  bytes[2] = 2;
  EXPECT_EQ(frame::open(bytes).error().code, Errc::corrupt);  // it looks damaged
  bytes.resize(bytes.size() - frame::kChecksumBytes);
  Writer(bytes).u32(static_cast<std::uint32_t>(checksum(bytes)));
  EXPECT_EQ(frame::open(bytes).error().code, Errc::unsupported);
  EXPECT_EQ(frame::header_of(bytes).number, 9U);
}

Fetch::Item item_of(std::string_view top, std::optional<std::string_view> without, bool all,
                    std::vector<std::uint32_t> numbers) {
  Fetch::Item item;
  item.region.top = path_of(top);
  if (without) item.region.without = path_of(*without);
  item.all = all;
  item.numbers = std::move(numbers);
  return item;
}

TEST(FrameTest, FetchComesBackWithItemsOfAllKinds) {
  for (const bool wide : {false, true}) {
    Fetch fetch;
    fetch.content = Content::keys;
    fetch.wide = wide;
    fetch.first_item = 2;
    fetch.from = "from here";
    fetch.items.push_back(item_of("101", "10111", true, {}));
    fetch.items.push_back(item_of("1011", {}, false, {1, 5, 5, 65535}));
    fetch.items.push_back(item_of("11", {}, false, {}));
    Bytes bytes;
    Writer out(bytes);
    encode(fetch, out);
    Reader in(bytes);
    const Result<Fetch> back = frame::decode_fetch(in);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->content, fetch.content);
    EXPECT_EQ(back->wide, wide);
    EXPECT_EQ(back->first_item, 2U);
    EXPECT_EQ(back->from, "from here");
    ASSERT_EQ(back->items.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(back->items[i].region, fetch.items[i].region);
      EXPECT_EQ(back->items[i].all, fetch.items[i].all);
      EXPECT_EQ(back->items[i].numbers, fetch.items[i].numbers);
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      Reader cut(ByteView(bytes).first(size));
      EXPECT_FALSE(frame::decode_fetch(cut)) << size;
    }
  }
}

TEST(FrameTest, FetchComesBackWithPartitions) {
  Fetch fetch;
  fetch.partitions = 100;
  fetch.items.push_back(item_of("", {}, false, {}));
  fetch.parts = {{0, {7}}, {3, {1, 2, 3}}, {99, {65535}}};
  Bytes bytes;
  Writer out(bytes);
  encode(fetch, out);
  Reader in(bytes);
  const Result<Fetch> back = frame::decode_fetch(in);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->parts.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back->parts[i].partition, fetch.parts[i].partition);
    EXPECT_EQ(back->parts[i].numbers, fetch.parts[i].numbers);
  }
}

TEST(FrameTest, AnswersComeBackForEverySlot) {
  using frame::SlotAnswer;
  std::vector<SlotAnswer> answers(7);
  answers[1] = {SlotAnswer::Kind::sketch, {1, 2, 3}};
  answers[2] = {SlotAnswer::Kind::list, {9}};
  answers[3] = {SlotAnswer::Kind::none, {}};
  answers[5] = {SlotAnswer::Kind::big, {}};
  Bytes bytes;
  Writer out(bytes);
  encode(answers, 3, out);
  Reader in(bytes);
  const Result<std::vector<SlotAnswer>> back = frame::decode_answers(in, 7);
  ASSERT_TRUE(back);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ((*back)[i].kind, answers[i].kind);
    EXPECT_EQ((*back)[i].numbers, answers[i].numbers);
  }
  Reader other(bytes);
  EXPECT_FALSE(frame::decode_answers(other, 60));
}

TEST(FrameTest, RecordsOfEqualLengthsShareTheMentionOfThem) {
  Bytes bytes;
  frame::RecordWriter writer(bytes);
  for (int i = 0; i < 1000; ++i) writer.add("key" + std::to_string(i % 10), "value");
  writer.add("", "");
  writer.add("long key", "");
  writer.finish();
  EXPECT_LT(bytes.size(), 1000 * 9 + 20U);
  Reader in(bytes);
  const Result<std::vector<frame::Record>> records = frame::decode_records(in);
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 1002U);
  EXPECT_EQ((*records)[17].key, "key7");
  EXPECT_EQ((*records)[17].value, "value");
  EXPECT_EQ((*records)[1000].key, "");
  EXPECT_EQ((*records)[1001].key, "long key");
}

TEST(FrameTest, ARunOfRecordsWithoutBytesIsNotBelieved) {
  Bytes bytes;
  Writer out(bytes);
  out.varint(std::uint64_t{1} << 60);
  out.varint(0);
  out.varint(0);
  Reader in(bytes);
  EXPECT_FALSE(frame::decode_records(in));
}

TEST(PathCodecTest, AnyPathsComeBackInAnyOrder) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<BitPath> paths;
    for (std::uint64_t i = random.below(20); i > 0; --i) paths.push_back(random_path(random, 60));
    Bytes bytes;
    PathWriter writer(bytes);
    for (const BitPath& path : paths) writer.add(path);
    PathReader reader(bytes);
    for (const BitPath& path : paths) EXPECT_EQ(reader.take(), path);
    EXPECT_TRUE(reader.bits().at_end());
  }
}

TEST(PathCodecTest, PathsOutOfOrderAreRefusedWhereOrderIsPromised) {
  const std::vector<std::vector<BitPath>> wrong = {{path_of("11"), path_of("101")},
                                                   {path_of("11"), path_of("11")},
                                                   {path_of("1"), path_of("11")}};
  for (const std::vector<BitPath>& paths : wrong) {
    Bytes bytes;
    Writer out(bytes);
    encode_paths(paths, out);
    Reader in(bytes);
    EXPECT_FALSE(decode_paths(in));
  }
}

TEST(PathCodecTest, BitsThatNoKeyBeginsWithAreRefused) {
  Bytes bytes;
  Writer out(bytes);
  encode_paths(std::vector<BitPath>{path_of("01")}, out);
  Reader in(bytes);
  EXPECT_FALSE(decode_paths(in));
}

TEST(BitCodecTest, FieldsComeBack) {
  Random random(5);
  std::vector<std::pair<std::uint64_t, int>> fields;
  Bytes bytes;
  BitWriter writer(bytes);
  for (int i = 0; i < 1000; ++i) {
    const int width = static_cast<int>(random.below(65));
    const std::uint64_t value = width == 0 ? 0 : random() >> (64 - width);
    fields.emplace_back(value, width);
    writer.put(value, width);
    writer.gamma(value | 1);
  }
  BitReader reader(bytes);
  for (const auto& [value, width] : fields) {
    EXPECT_EQ(reader.get(width), value);
    EXPECT_EQ(reader.gamma(), value | 1);
  }
  EXPECT_TRUE(reader.ok());
  EXPECT_TRUE(reader.at_end());
  reader.get(9);
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace semel::sync_internal
