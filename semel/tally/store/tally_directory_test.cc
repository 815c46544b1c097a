// TallyDirectory: what it creates, finds again, refuses and leaves alone, and the thread that
// syncs.
#include "semel/tally/store/tally_directory.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "semel/store/rocksdb_store.h"
#include "tests/cli/temporary_directory.h"
#include "tests/support/eventually.h"
#include "tests/support/keys.h"

namespace {
std::atomic<std::uint64_t> syncs = 0;
}

// RocksDB calls this when a log has to be on the disk.
extern "C" int fdatasync(int file) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fdatasync, file));
}

namespace semel::tally {

namespace {

TallyStore::Settings settings_of(Durability durability = Durability::periodic) {
  TallyStore::Settings settings;
  settings.recognition = {.fpr = 1e-9, .ids = 256};
  settings.durability = durability;
  return settings;
}

TallyStore::Settings reading() {
  TallyStore::Settings settings;
  settings.read_only = true;
  return settings;
}

OperationId id(std::uint64_t number) { return OperationId::opaque(key(number)); }

class TallyDirectoryTest : public ::testing::Test {
 protected:
  using Opened = std::unique_ptr<TallyDirectory>;

  std::string path() const { return scratch_.path() / "table"; }

  Opened open(const TallyStore::Settings& settings = settings_of()) const {
    Result<Opened> opened = TallyDirectory::open(path(), settings);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? std::move(*opened) : nullptr;
  }
  Errc refusal(const TallyStore::Settings& settings) const {
    const Result<Opened> opened = TallyDirectory::open(path(), settings);
    EXPECT_FALSE(opened);
    return opened ? Errc::full : opened.error().code;  // no opening answers `full`
  }

  static Answer add(TallyDirectory& directory, std::string_view counter, std::int64_t delta,
                    const OperationId& named) {
    const Result<Answer> answer =
        directory.table().add({counter, delta, named}, directory.now_ms());
    EXPECT_TRUE(answer) << answer.error().message();
    return answer ? *answer : Answer{Outcome::full};
  }
  static std::optional<std::int64_t> value(const Opened& directory, std::string_view counter) {
    const Result<std::optional<std::int64_t>> value = directory->table().get(counter);
    EXPECT_TRUE(value) << value.error().message();
    return value ? *value : std::nullopt;
  }

  const TemporaryDirectory scratch_;
};

TEST_F(TallyDirectoryTest, IsFoundAgainWithItsCountersAndItsIds) {
  for (const Durability durability :
       {Durability::none, Durability::periodic, Durability::every_write}) {
    SCOPED_TRACE(static_cast<int>(durability));
    std::filesystem::remove_all(path());
    {
      const Opened directory = open(settings_of(durability));
      EXPECT_EQ(add(*directory, "x", 5, id(1)), (Answer{Outcome::applied, 5}));
      EXPECT_EQ(add(*directory, "y", -2, OperationId::numbered(key(1), 7)).outcome,
                Outcome::applied);
    }
    const Opened directory = open(settings_of(durability));
    EXPECT_EQ(directory->table().info().recalled, 2U);
    EXPECT_EQ(add(*directory, "x", 5, id(1)), (Answer{Outcome::duplicate, 5}));
    EXPECT_EQ(add(*directory, "y", -2, OperationId::numbered(key(1), 7)),
              (Answer{Outcome::duplicate, -2}));
    EXPECT_EQ(add(*directory, "x", 1, id(2)), (Answer{Outcome::applied, 6}));
  }
}

TEST_F(TallyDirectoryTest, TakesTheShapeThatIsThereIfNoneIsGiven) {
  TallyStore::Settings made = settings_of();
  made.recognition->kind = Recognition::Kind::exact;
  open(made);
  EXPECT_EQ(open({})->table().info().recognition, *made.recognition);
  EXPECT_EQ(open(reading())->table().info().recognition, *made.recognition);
}

TEST_F(TallyDirectoryTest, AnotherShapeIsRefusedAndNothingChanges) {
  add(*open(), "x", 1, id(1));
  TallyStore::Settings other = settings_of();
  other.recognition->window_ms += 1;
  EXPECT_EQ(refusal(other), Errc::mismatch);
  EXPECT_EQ(value(open(), "x"), 1);
}

TEST_F(TallyDirectoryTest, IsForOneWriterAtATime) {
  const Opened directory = open();
  EXPECT_EQ(refusal(settings_of()), Errc::busy);
  EXPECT_EQ(refusal({}), Errc::busy);
  EXPECT_EQ(add(*directory, "x", 1, id(1)).outcome, Outcome::applied);
}

TEST_F(TallyDirectoryTest, IsReadBesideItsWriterAsItWasAtTheOpening) {
  const Opened writer = open();
  add(*writer, "x", 5, id(1));
  ASSERT_TRUE(writer->table().sum({}));
  ASSERT_TRUE(writer->table().checkpoint());
  add(*writer, "y", 2, id(2));
  const Opened reader = open(reading());
  add(*writer, "x", 1, id(3));
  EXPECT_EQ(value(reader, "x"), 5);
  EXPECT_EQ(*reader->table().sum({}), (RangeSum{2, 7}));
  EXPECT_EQ(reader->table().info().recalled, 2U);
  const Addition addition{"x", 1, id(4)};
  EXPECT_EQ(reader->table().add(addition, reader->now_ms()).error().code, Errc::unsupported);
  EXPECT_EQ(value(writer, "x"), 6);
}

TEST_F(TallyDirectoryTest, IsNotMadeByThoseWhoOnlyLook) {
  EXPECT_EQ(refusal({}), Errc::invalid);
  EXPECT_EQ(refusal(reading()), Errc::invalid);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(TallyDirectoryTest, ADirectoryThatIsNoDatabaseIsLeftAlone) {
  std::filesystem::create_directory(path());
  std::ofstream(path() + "/notes.txt") << "mine";
  EXPECT_EQ(refusal({}), Errc::invalid);
  EXPECT_EQ(refusal(reading()), Errc::invalid);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path()), {}), 1);
}

// The directory is a store of records, for which there may be another use tomorrow.
TEST_F(TallyDirectoryTest, AStoreOfAnotherKindIsRefusedAndStaysAsItWas) {
  const auto with_record = [this] {
    const auto store = RocksStore::open(path(), {.create = true});
    EXPECT_TRUE(store) << store.error().message();
    const RecordWrite write{"some", "record"};
    EXPECT_TRUE((*store)->write({&write, 1}));
  };
  with_record();
  EXPECT_EQ(refusal(settings_of()), Errc::corrupt);
  EXPECT_EQ(refusal({}), Errc::corrupt);
  EXPECT_EQ(refusal(reading()), Errc::corrupt);
  const auto store = RocksStore::open(path(), {});
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_EQ(*(*store)->get("some"), "record");
}

TEST_F(TallyDirectoryTest, AStoreWithAnotherMergeOperatorIsRefused) {
  class Other final : public Merger {
   public:
    const char* name() const override { return "other"; }
    bool merge(std::string_view /*key*/, std::optional<std::string_view> /*now*/,
               std::string_view operand, std::string& merged) const override {
      merged = operand;
      return true;
    }
  };
  const Other other;
  ASSERT_TRUE(RocksStore::open(path(), {.create = true, .merger = &other}));
  EXPECT_EQ(refusal(settings_of()), Errc::unsupported);
  EXPECT_EQ(refusal(reading()), Errc::unsupported);
}

TEST_F(TallyDirectoryTest, SumsFollowThroughOpeningsAndCheckpoints) {
  RangeSum expected;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const Opened directory = open();
    EXPECT_EQ(*directory->table().sum({}), expected);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const std::string counter = std::to_string(1000 * round + i);
      add(*directory, counter, static_cast<std::int64_t>(i) - 30, id(1000 * round + i));
      ++expected.count;
      expected.sum += static_cast<std::int64_t>(i) - 30;
    }
    if (round % 2 == 0) {
      ASSERT_TRUE(directory->table().checkpoint());
    }
    EXPECT_EQ(*directory->table().sum({}), expected);
  }
}

// Nobody calls tick() or sync() in these tests.
TEST_F(TallyDirectoryTest, SyncsEveryWrite) {
  const Opened directory = open(settings_of(Durability::every_write));
  for (std::uint64_t i = 0; i < 5; ++i) {
    const std::uint64_t before = syncs;
    add(*directory, "x", 1, id(i));
    EXPECT_GT(syncs, before);
  }
}

TEST_F(TallyDirectoryTest, SyncsInEachPeriodByItself) {
  TallyStore::Settings settings = settings_of();
  settings.period_ms = 4;
  const Opened directory = open(settings);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const std::uint64_t before = syncs;
    add(*directory, "x", 1, id(i));
    EXPECT_TRUE(eventually([&] { return syncs > before; }));
  }
}

// Closes without a sync before, and with each durability. Nothing is left in the log, where damage
// would go unnoticed.
TEST_F(TallyDirectoryTest, SyncsWhenItIsClosed) {
  constexpr TimeMs kLongerThanTheTest = 3'600'000;
  for (const Durability durability : {Durability::none, Durability::periodic}) {
    TallyStore::Settings settings = settings_of(durability);
    settings.period_ms = kLongerThanTheTest;
    const Opened directory = open(settings);
    add(*directory, "x", 1, {});
    const std::uint64_t before = syncs;
    EXPECT_TRUE(directory->close());
    EXPECT_GT(syncs, before);
  }
}

TEST_F(TallyDirectoryTest, ForgetsByItselfWhatHasLeftTheWindow) {
  TallyStore::Settings settings = settings_of();
  settings.recognition->window_ms = 1;
  settings.period_ms = 4;
  const Opened directory = open(settings);
  add(*directory, "x", 1, id(1));
  const auto records = [&] {
    std::size_t count = 0;
    const auto cursor = *directory->store().cursor();
    for (cursor->seek({}); cursor->valid(); cursor->next()) ++count;
    return count;
  };
  constexpr std::size_t kLeft = 3;  // the shape, the state, the counter
  EXPECT_TRUE(eventually([&] { return records() == kLeft; }));
  EXPECT_EQ(value(directory, "x"), 1);
}

TEST_F(TallyDirectoryTest, ManyThreadsLoseNothing) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 50;
  {
    const Opened directory = open(settings_of(Durability::every_write));
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < kEach; ++i) {
          EXPECT_EQ(add(*directory, "all", 1, id(t * kEach + i)).outcome, Outcome::applied);
          EXPECT_TRUE(i % 10 != 0 || directory->table().sum({}).has_value());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(value(open(), "all"), static_cast<std::int64_t>(kThreads * kEach));
}

}  // namespace
}  // namespace semel::tally
