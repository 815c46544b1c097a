// StoreBatch, JournalRecord and StoreShape: the contents of one write of a table, and the bytes
// that only its own site reads.
#include "semel/tally/store/internal/store_batch.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "semel/hash/internal/checksum.h"
#include "semel/store/memory_store.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/store/counter_merger.h"
#include "semel/tally/store/internal/store_shape.h"
#include "semel/tally/store/tally_store.h"
#include "tests/golden/golden.h"
#include "tests/hostile/hostile_bytes.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel::tally::internal {
namespace {

constexpr SiteId kSite = 3;
constexpr char kJournal[] = "#journal";

struct StoreBatchTest : ::testing::Test {
  std::map<std::string, std::string> records() const {
    std::map<std::string, std::string> all;
    const auto cursor = *store.cursor();
    for (cursor->seek({}); cursor->valid(); cursor->next())
      all.emplace(cursor->key(), cursor->value());
    return all;
  }
  std::optional<int128> sum(std::string_view counter) const {
    std::optional<int128> sum;
    EXPECT_TRUE(batch.sums_of({&counter, 1}, {&sum, 1}));
    return sum;
  }
  void write() {
    batch.close_journal(kJournal);
    ASSERT_TRUE(batch.write());
    EXPECT_TRUE(batch.empty());
  }

  StoreBatchTest() { batch.set_site(kSite); }
  MemoryStore store{MemoryStore::kLogKeys, &tally::counter_merger()};
  StoreBatch batch{store, false};
};

Operation operation(Dot dot) {
  return {dot, Operation::Kind::add, OperationId::opaque(key(dot.counter)), "x", 5, {}};
}

TEST_F(StoreBatchTest, AddsToCountersWithoutReadingThem) {
  EXPECT_EQ(sum("x"), std::nullopt);
  batch.fold("x", {kSite, 1, 1, 5});
  EXPECT_TRUE(batch.folded());
  EXPECT_EQ(sum("x"), std::nullopt);  // nothing is written before write()
  batch.fold("x", {kSite, 2, 1, -7});
  batch.fold("x", {1, 4, 1, 100});
  write();
  EXPECT_FALSE(batch.folded());
  EXPECT_TRUE(sum("x") == int128{98});
  const NamedShard additions[] = {{"x", {kSite, 3, 1, 1}}, {"", {kSite, 4, 1, 9}}};
  batch.fold_all(additions, {});
  write();
  EXPECT_TRUE(sum("x") == int128{99} && sum("") == int128{9});
}

TEST_F(StoreBatchTest, NamesACounterThatHasBecomeALongList) {
  std::uint64_t clock = 0;
  for (int i = 1; i < StoreBatch::kHeavy; ++i) {
    // These belong to one write, so they are one merge.
    batch.fold("x", {kSite, ++clock, 1, 1});
    batch.fold("x", {kSite, ++clock, 1, 1});
    write();
  }
  EXPECT_TRUE(batch.take_heavy().empty());
  batch.fold("x", {kSite, ++clock, 1, 1});
  write();
  EXPECT_EQ(batch.take_heavy(), std::vector<std::string>{"x"});
  EXPECT_TRUE(batch.take_heavy().empty());
  EXPECT_EQ(sum("x"), int128{clock});
}

TEST_F(StoreBatchTest, ClearsInTheOrderOfTheCalls) {
  batch.fold("x", {kSite, 1, 1, 5});
  batch.clear("x");
  batch.fold("x", {kSite, 2, 1, 3});
  batch.fold("y", {kSite, 3, 1, 1});
  batch.clear("y");
  write();
  EXPECT_TRUE(sum("x") == int128{3});
  EXPECT_EQ(sum("y"), std::nullopt);
}

TEST_F(StoreBatchTest, TellsADamagedCounter) {
  batch.put(counter_key("x"), bytes_of("damaged"));
  write();
  std::string_view counter = "x";
  std::optional<int128> sum;
  EXPECT_EQ(batch.sums_of({&counter, 1}, {&sum, 1}).error().code, Errc::corrupt);
}

TEST_F(StoreBatchTest, HoldsOperationsOfOthersAsEntriesAndItsOwnInTheJournal) {
  const Operation own = operation({kSite, 8});
  const Operation other = operation({1, 9});
  batch.hold(other);
  EXPECT_FALSE(batch.has_journal());
  batch.hold(own);
  EXPECT_TRUE(batch.has_journal() && batch.has_operations());
  write();
  const auto written = records();
  EXPECT_EQ(written.size(), 2U);
  EXPECT_EQ(written.at(operation_key(other.dot)), entry_of(other));
  const auto journal = JournalRecord::decode(bytes_of(written.at(kJournal)), false);
  ASSERT_TRUE(journal) << journal.error().message();
  EXPECT_EQ(journal->operations, std::vector{own});
  batch.drop(other.dot);
  write();
  EXPECT_FALSE(records().contains(operation_key(other.dot)));
}

TEST_F(StoreBatchTest, WritesNoJournalForNothing) {
  EXPECT_TRUE(batch.empty());
  batch.put("a", {});
  write();
  EXPECT_EQ(records().size(), 1U);
  batch.remove("a");
  EXPECT_FALSE(batch.empty());
  write();
  EXPECT_TRUE(records().empty());
}

// Returns a record of the journal as it is in the store.
Bytes journal_of(bool with_content) {
  MemoryStore store(MemoryStore::kLogKeys, &tally::counter_merger());
  StoreBatch batch(store, with_content);
  batch.set_site(kSite);
  batch.remember({OperationId::opaque(key(1)), key(11)});
  batch.remember({OperationId::numbered(key(2), 300), key(12)});
  batch.hold(operation({kSite, 8}));
  Operation reset{{kSite, 9}, Operation::Kind::reset, {}, "x", 0, {}};
  reset.observed.advance({kSite, 8});
  batch.hold(reset);
  batch.close_journal(kJournal);
  EXPECT_TRUE(batch.write());
  const Result<std::optional<std::string>> record = store.get(kJournal);
  const ByteView bytes = bytes_of(**record);
  return {bytes.begin(), bytes.end()};
}

TEST(JournalRecord, TellsWhatWasRemembered) {
  for (const bool with_content : {false, true}) {
    const Result<JournalRecord> record =
        JournalRecord::decode(journal_of(with_content), with_content);
    ASSERT_TRUE(record) << record.error().message();
    ASSERT_EQ(record->ids.size(), 2U);
    EXPECT_EQ(record->ids[0].id, OperationId::opaque(key(1)));
    EXPECT_EQ(record->ids[1].id, OperationId::numbered(key(2), 300));
    EXPECT_EQ(record->ids[1].content, with_content ? key(12) : (Digest{0, 0}));
    ASSERT_EQ(record->operations.size(), 2U);
    EXPECT_EQ(record->operations[0], operation({kSite, 8}));
    EXPECT_EQ(record->operations[1].kind, Operation::Kind::reset);
  }
}

TEST(JournalRecord, RefusesEveryLengthButItsOwn) {
  for (const bool with_content : {false, true}) {
    Bytes bytes = journal_of(with_content);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(JournalRecord::decode(ByteView(bytes).first(size), with_content)) << size;
    }
    EXPECT_FALSE(JournalRecord::decode(bytes, !with_content));
    bytes.push_back(0);
    EXPECT_FALSE(JournalRecord::decode(bytes, with_content));
  }
}

TEST(JournalRecord, AllocatesNothingOnTheWordOfANumber) {
  Bytes bytes;
  Writer(bytes).varint(std::uint64_t{1} << 60);
  bytes.resize(100);  // the kind of these ids is unknown, except `none`
  const LargestAllocation largest;
  EXPECT_FALSE(JournalRecord::decode(bytes, false));
  EXPECT_LE(largest.bytes(), 2 * sizeof(Recogniser::Query) * bytes.size());
}

TEST(JournalRecord, RefusesAnOperationWithoutANumber) {
  Bytes value = encoded(operation({kSite, 1}));
  Bytes bytes;
  Writer w(bytes);
  w.varint(0);
  w.varint(1);
  w.u64(Dot{kSite, 0}.packed());
  w.text(text_of(value));
  EXPECT_EQ(JournalRecord::decode(bytes, false).error().code, Errc::corrupt);
}

// Adds the == that tests/hostile requires.
struct Shape : StoreShape {
  static Result<Shape> decode(ByteView in) {
    const Result<StoreShape> shape = StoreShape::decode(in);
    if (!shape) return shape.error();
    return Shape{*shape};
  }
  bool operator==(const Shape& other) const { return recogniser == other.recogniser; }
};

struct ShapeCase {
  using Type = Shape;
  static constexpr std::size_t kHeaderSize = 55;
  static constexpr char kFile[] = "tally_shape_v1.bin";
  static Type make() {
    return Shape{{{.kind = Recogniser::Kind::exact,
                   .window_ms = 3'600'000,
                   .fpr = 1e-9,
                   .ids = 1000,
                   .max_bytes = 1 << 20,
                   .on_full = OnFull::forget,
                   .hash = {HashKind::keyed, 7}}}};
  }
};

TEST(StoreShape, RefusesKindsThatThereAreNot) {
  constexpr std::size_t kKind = 12, kOnFull = 13, kHash = 14;
  for (const auto& [at, last] : {std::pair(kKind, 2), {kOnFull, 1}, {kHash, 1}}) {
    for (int value = 0; value < 256; ++value) {
      Bytes bytes = encoded(ShapeCase::make());
      bytes[at] = static_cast<std::uint8_t>(value);
      const std::size_t body = bytes.size() - 8;
      store_u64(bytes.data() + body, checksum(ByteView(bytes).first(body)));
      EXPECT_EQ(StoreShape::decode(bytes).has_value(), value <= last) << at << ' ' << value;
    }
  }
}

}  // namespace
}  // namespace semel::tally::internal

namespace semel {

INSTANTIATE_TYPED_TEST_SUITE_P(StoreShape, HostileBytes, tally::internal::ShapeCase);
INSTANTIATE_TYPED_TEST_SUITE_P(StoreShape, Golden, tally::internal::ShapeCase);

}  // namespace semel
