// Replica: which replica answers for which keys, and no acknowledged write is lost while ranges
// move.
#include "semel/sync/replica.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/store/memory_store.h"
#include "semel/sync/internal/frame.h"
#include "tests/support/index.h"

namespace semel {

using namespace sync_internal;

namespace {

const KeyRange kLower{"a", "m"};
const KeyRange kUpper{"m", std::nullopt};

// A value is a set of marks, one bit each, and the join is the union. So every lost write is seen:
// no later one hides it.
constexpr std::size_t kMarks = 256;

std::string with_mark(std::optional<std::string_view> now, std::size_t mark) {
  std::string marks = now ? std::string(*now) : std::string(kMarks / 8, '\0');
  marks[mark / 8] = static_cast<char>(marks[mark / 8] | 1 << mark % 8);
  return marks;
}
bool has_mark(const std::string& marks, std::size_t mark) {
  return (marks[mark / 8] >> mark % 8 & 1) != 0;
}
std::string both(std::string_view /*key*/, std::string_view a, std::string_view b) {
  std::string marks(a);
  for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = static_cast<char>(marks[i] | b[i]);
  return marks;
}

Resolver joined() {
  Resolver resolver;
  resolver.join = both;
  return resolver;
}

std::string key_of(std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, 4 - std::min<std::size_t>(4, digits.size()), '0');
  return (number % 2 == 0 ? "b" : "n") + digits;
}

class Side {
 public:
  explicit Side(const RangeSet& responsibility, std::uint8_t seed = 1) {
    Replica::Settings settings;
    settings.responsibility = responsibility;
    settings.index = {.burst_bytes = 256, .slab_bytes = 4096};
    settings.resolver = joined();
    settings.limits.frame_bytes = 4096;
    settings.seed = seed;
    replica_ = *Replica::open(store_, numbered_secret(7), settings);
  }
  Replica& operator*() { return *replica_; }
  Replica* operator->() { return replica_.get(); }
  MemoryStore& store() { return store_; }

  Result<void> add(const std::string& key, std::size_t mark) {
    const std::string_view keys[] = {key};
    return replica_->update(keys, [&](std::size_t, std::optional<std::string_view> now) {
      return with_mark(now, mark);
    });
  }
  std::map<std::string, std::string> all() {
    std::map<std::string, std::string> records;
    const auto cursor = *store_.cursor();
    for (cursor->seek(""); cursor->valid(); cursor->next()) {
      records.emplace(cursor->key(), cursor->value());
    }
    return records;
  }
  std::map<std::string, std::string> within(const KeyRange& range) {
    auto records = all();
    std::erase_if(records, [&](const auto& record) { return !range.contains(record.first); });
    return records;
  }

 private:
  MemoryStore store_;
  std::unique_ptr<Replica> replica_;
};

// The acknowledged writes: key and mark.
using Acknowledged = std::set<std::pair<std::string, std::size_t>>;

void expect_holds(Side& side, const Acknowledged& writes) {
  const auto records = side.all();
  for (const auto& [key, mark] : writes) {
    const auto found = records.find(key);
    ASSERT_NE(found, records.end()) << key;
    ASSERT_TRUE(has_mark(found->second, mark)) << key << " " << mark;
  }
}

// Writes like a client of a moving range: asks the old place, then the new one.
bool write_somewhere(Side& source, Side& destination, const std::string& key, std::size_t mark) {
  const Result<void> there = source.add(key, mark);
  if (there) return true;
  EXPECT_EQ(there.error().code, Errc::outside);
  const Result<void> here = destination.add(key, mark);
  return here.has_value();
}

// A peer that does something before each question is answered.
class MeddlingPeer final : public SyncPeer {
 public:
  MeddlingPeer(Replica& replica, std::function<void(int question)> meddle)
      : local_(replica.responder()), meddle_(std::move(meddle)) {}
  Result<void> send(ByteView frame) override { return local_.send(frame); }
  Result<std::optional<Bytes>> receive() override {
    meddle_(questions_++);
    return local_.receive();
  }

 private:
  LocalPeer local_;
  std::function<void(int)> meddle_;
  int questions_ = 0;
};

// A peer that fails from a certain question on.
class BrokenPeer final : public SyncPeer {
 public:
  BrokenPeer(Replica& replica, int good) : local_(replica.responder()), good_(good) {}
  Result<void> send(ByteView frame) override { return local_.send(frame); }
  Result<std::optional<Bytes>> receive() override {
    if (good_-- <= 0) return Error{Errc::io, "the line is down"};
    return local_.receive();
  }
  bool broken() const { return good_ < 0; }

 private:
  LocalPeer local_;
  int good_;
};

TEST(Replica, AnswersForItsResponsibilityAlone) {
  Side side{RangeSet(kLower)};
  EXPECT_TRUE(side.add("b1", 0));
  EXPECT_TRUE(side->get("b1")->has_value());
  EXPECT_EQ(side->get("n1").error().code, Errc::outside);
  EXPECT_EQ(side.add("n1", 0).error().code, Errc::outside);
  const RecordWrite writes[] = {{"b2", "x"}, {"n2", "x"}};
  EXPECT_EQ(side->write(writes).error().code, Errc::outside);
  EXPECT_EQ(side.all().size(), 1U);

  side->take_over(kUpper);
  EXPECT_TRUE(side->write(writes));
  side->give_up(kLower);
  EXPECT_EQ(side->responsibility(), RangeSet(kUpper));
  EXPECT_EQ(side->get("b1").error().code, Errc::outside);
  side->set_responsibility(RangeSet::all());
  EXPECT_TRUE(side->get("b1")->has_value());
}

TEST(Replica, RefusesSettingsOfNoIndex) {
  MemoryStore store;
  Replica::Settings settings;
  settings.index.burst_bytes = 1;
  EXPECT_EQ(Replica::open(store, numbered_secret(1), settings).error().code, Errc::invalid);
}

TEST(Replica, RemovesOnlyWhatItDoesNotAnswerFor) {
  Side side{RangeSet::all()};
  ASSERT_TRUE(side.add("b1", 0));
  ASSERT_TRUE(side.add("n1", 0));
  EXPECT_EQ(side->remove_set(kUpper).error().code, Errc::invalid);
  side->give_up({"n", "o"});
  EXPECT_EQ(side->remove_set(kUpper).error().code, Errc::invalid);
  EXPECT_EQ(side.all().size(), 2U);
  side->give_up(kUpper);
  EXPECT_TRUE(side->remove_set(kUpper));
  EXPECT_EQ(side.all().size(), 1U);
  expect_equals_rebuilt(side->index());
}

TEST(Replica, CopiesARangeAndOverwritesNothing) {
  Side source{RangeSet::all()};
  Side destination{RangeSet(), 2};
  for (std::uint64_t n = 0; n < 300; ++n) ASSERT_TRUE(source.add(key_of(n), 1));
  const RecordWrite own[] = {{"n0001", "own"}, {"n9999", "only here"}};
  ASSERT_TRUE(destination.store().write(own));
  LocalPeer peer(destination->responder());
  const Result<SyncReport> copied = source->copy_set(peer, kUpper);
  ASSERT_TRUE(copied) << copied.error().message();
  auto expected = source.within(kUpper);
  expected["n0001"] = "own";
  expected["n9999"] = "only here";
  EXPECT_EQ(destination.all(), expected);
  EXPECT_EQ(source.within(kUpper).count("n9999"), 0U);
}

TEST(Replica, SyncMakesBothEndsAgreeOnTheRangeAlone) {
  Side a{RangeSet::all()};
  Side b{RangeSet::all(), 2};
  for (std::uint64_t n = 0; n < 300; ++n) {
    ASSERT_TRUE((n % 3 == 0 ? a : b).add(key_of(n), n % 5));
    if (n % 7 == 0) {
      ASSERT_TRUE(a.add(key_of(n), 6));
    }
  }
  const auto lower_a = a.within(kLower);
  const auto lower_b = b.within(kLower);
  LocalPeer peer(b->responder());
  const Result<SyncReport> synced = a->sync_set(peer, kUpper, joined());
  ASSERT_TRUE(synced) << synced.error().message();
  EXPECT_TRUE(synced->proved);
  EXPECT_EQ(a.within(kUpper), b.within(kUpper));
  EXPECT_EQ(a.within(kUpper).size(), 150U);
  EXPECT_EQ(a.within(kLower), lower_a);
  EXPECT_EQ(b.within(kLower), lower_b);
}

TEST(Replica, ReportsAPeerThatFailsOrTalksNonsense) {
  class Mumbling final : public SyncPeer {
   public:
    Result<void> send(ByteView /*frame*/) override { return {}; }
    Result<std::optional<Bytes>> receive() override { return std::optional(Bytes(40, 1)); }
  };
  Side a{RangeSet::all()};
  Side b{RangeSet::all(), 2};
  ASSERT_TRUE(a.add("n1", 0));
  BrokenPeer broken(*b, 0);
  EXPECT_EQ(a->sync_set(broken, kUpper, joined()).error().code, Errc::io);
  Mumbling mumbling;
  EXPECT_EQ(a->sync_set(mumbling, kUpper, joined()).error().code, Errc::corrupt);
}

TEST(Migration, MovesARange) {
  Side source{RangeSet::all()};
  Side destination{RangeSet(), 2};
  for (std::uint64_t n = 0; n < 500; ++n) ASSERT_TRUE(source.add(key_of(n), 0));
  const auto upper = source.within(kUpper);
  const auto lower = source.within(kLower);
  LocalPeer peer(destination->responder());
  const Result<void> migrated = migrate(*source, *destination, peer, kUpper, joined());
  ASSERT_TRUE(migrated) << migrated.error().message();
  EXPECT_EQ(source.all(), lower);
  EXPECT_EQ(destination.all(), upper);
  EXPECT_EQ(destination->responsibility(), RangeSet(kUpper));
  EXPECT_FALSE(source->responsibility().contains("n"));
  EXPECT_TRUE(source->responsibility().contains("lzz"));
  expect_equals_rebuilt(source->index());
  expect_equals_rebuilt(destination->index());
}

TEST(Migration, RefusesResolversThatLoseWrites) {
  Side source{RangeSet::all()};
  Side destination{RangeSet(), 2};
  ASSERT_TRUE(source.add("n1", 0));
  LocalPeer peer(destination->responder());
  for (const SyncRule rule : {SyncRule::source, SyncRule::destination, SyncRule::callback}) {
    Resolver resolver;
    resolver.rule = rule;
    EXPECT_EQ(migrate(*source, *destination, peer, kUpper, resolver).error().code, Errc::invalid);
    EXPECT_EQ(replicate(*source, *destination, peer, kUpper, resolver).error().code, Errc::invalid);
    EXPECT_EQ(scale_down(*source, *destination, peer, kUpper, resolver).error().code,
              Errc::invalid);
  }
  EXPECT_EQ(destination.all().size(), 0U);
  EXPECT_EQ(source->responsibility(), RangeSet::all());
}

// A write comes before every frame, in each of the five steps.
TEST(Migration, LosesNoWriteThatComesBetweenTwoFrames) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Side source{RangeSet::all()};
    Side destination{RangeSet(), 2};
    Random random(seed);
    Acknowledged writes;
    const auto write = [&] {
      const std::string key = key_of(random.below(400) * 2 + 1);
      const std::size_t mark = random.below(kMarks);
      ASSERT_TRUE(write_somewhere(source, destination, key, mark)) << key;
      writes.emplace(key, mark);
    };
    for (int i = 0; i < 300; ++i) write();
    MeddlingPeer peer(*destination, [&](int) {
      for (std::uint64_t i = random.below(4); i > 0; --i) write();
    });
    const Result<void> migrated = migrate(*source, *destination, peer, kUpper, joined());
    ASSERT_TRUE(migrated) << migrated.error().message();
    EXPECT_EQ(source.within(kUpper).size(), 0U);
    expect_holds(destination, writes);
  }
}

// Every record of the destination changes before every frame, so nothing there can ever be proved.
TEST(Migration, EndsHoweverFastTheDestinationIsWrittenTo) {
  Side source{RangeSet::all()};
  Side destination{RangeSet(), 2};
  Acknowledged writes;
  constexpr std::uint64_t kKeys = 40;
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    ASSERT_TRUE(source.add(key_of(2 * n + 1), 0));
    writes.emplace(key_of(2 * n + 1), 0);
  }
  MeddlingPeer peer(*destination, [&](int question) {
    const std::size_t mark = 1 + static_cast<std::size_t>(question) % (kMarks - 1);
    for (std::uint64_t n = 0; n < kKeys; ++n) {
      const std::string key = key_of(2 * n + 1);
      // This is the last chance for the source. The destination lacks the mark when it takes over.
      ASSERT_TRUE(write_somewhere(source, destination, key, mark));
      writes.emplace(key, mark);
    }
  });
  const Result<void> migrated = migrate(*source, *destination, peer, kUpper, joined());
  ASSERT_TRUE(migrated) << migrated.error().message();
  EXPECT_EQ(source.all().size(), 0U);
  expect_holds(destination, writes);
}

// Answers a sync from another replica, which has everything that the source has, and also changes
// all the time. So nothing is proved, and no record of the source is found missing.
class Decoy final : public SyncPeer {
 public:
  Decoy(Replica& destination, Side& decoy) : destination_(destination), decoy_(decoy) {}
  Result<void> send(ByteView question) override {
    questions_.emplace_back(question.begin(), question.end());
    return {};
  }
  Result<std::optional<Bytes>> receive() override {
    const Bytes question = std::move(questions_.front());
    questions_.pop_front();
    for (const auto& [key, value] : decoy_.all()) {
      if (key.size() != 5) continue;
      EXPECT_TRUE(decoy_.add(key + "x", mark_ % kMarks));
    }
    ++mark_;
    return std::optional((stores(question) ? destination_ : *decoy_).responder().respond(question));
  }

 private:
  static bool stores(ByteView question) {
    Reader in(frame::open(question)->body);
    EXPECT_TRUE(frame::decode_scope(in));
    const Result<std::vector<frame::Part>> parts = frame::decode_parts(in);
    return parts && parts->front().topic == frame::Topic::store;
  }
  Replica& destination_;
  Side& decoy_;
  std::deque<Bytes> questions_;
  std::size_t mark_ = 0;
};

TEST(Migration, SendsWhatCannotBeProved) {
  Side source{RangeSet()};
  Side destination{RangeSet::all(), 2};
  Side decoy{RangeSet::all(), 3};
  Acknowledged writes;
  source->take_over(kUpper);
  for (std::uint64_t n = 1; n < 40; n += 2) {
    ASSERT_TRUE(source.add(key_of(n), 1));
    ASSERT_TRUE(decoy.add(key_of(n), 1));
    writes.emplace(key_of(n), 1);
  }
  Decoy peer(*destination, decoy);
  EXPECT_EQ(source->hand_over(peer, kUpper, joined()).error().code, Errc::invalid);
  source->give_up(kUpper);
  const Result<void> handed = source->hand_over(peer, kUpper, joined());
  ASSERT_TRUE(handed) << handed.error().message();
  expect_holds(destination, writes);
}

TEST(Migration, GoesOnAfterTheLineWasDownAtAnyQuestion) {
  for (int good = 0;; ++good) {
    SCOPED_TRACE(good);
    Side source{RangeSet::all()};
    Side destination{RangeSet(), 2};
    Acknowledged writes;
    const auto write = [&](std::size_t mark) {
      for (std::uint64_t n = 1; n < 200; n += 2) {
        ASSERT_TRUE(write_somewhere(source, destination, key_of(n), mark));
        writes.emplace(key_of(n), mark);
      }
    };
    write(0);
    BrokenPeer broken(*destination, good);
    const Result<void> first = migrate(*source, *destination, broken, kUpper, joined());
    ASSERT_EQ(first.has_value(), !broken.broken());
    if (!first) {
      EXPECT_EQ(first.error().code, Errc::io);
    }
    write(1);
    LocalPeer peer(destination->responder());
    const Result<void> again = migrate(*source, *destination, peer, kUpper, joined());
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(source.all().size(), 0U);
    expect_holds(destination, writes);
    if (first) break;
  }
}

// Moves the range there and back, twice, while threads write at least once between any two frames.
TEST(Migration, LosesNoWriteOfOtherThreads) {
  Side a{RangeSet::all()};
  Side b{RangeSet(), 2};
  Side* homes[] = {&a, &b};
  std::atomic<bool> stop = false;
  std::atomic<int> refused = 0;
  std::atomic<std::uint64_t> written = 0;
  constexpr std::size_t kThreads = 2;
  constexpr std::uint64_t kKeys = 300;
  Acknowledged initial;
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    ASSERT_TRUE(a.add(key_of(2 * n + 1), kMarks - 1));
    initial.emplace(key_of(2 * n + 1), kMarks - 1);
  }
  std::array<Acknowledged, kThreads> writes;
  // The side to ask first: the one that the range moves away from.
  std::atomic<int> source = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(t + 1);
      while (!stop) {
        const std::string key = key_of(2 * random.below(kKeys) + 1);
        const std::size_t mark = random.below(kMarks);
        // Between the two tries, a migration may end and the next one begin.
        bool done = false;
        for (int attempt = 0; attempt < 3 && !done; ++attempt) {
          const int first = source;
          done = write_somewhere(*homes[first], *homes[1 - first], key, mark);
        }
        if (!done) {
          ++refused;
        } else {
          writes[t].emplace(key, mark);
          ++written;
        }
      }
    });
  }
  const auto wait_for_a_write = [&](int /*question*/) {
    for (const std::uint64_t before = written; written == before && refused == 0;) {
      std::this_thread::yield();
    }
  };
  for (int round = 0; round < 4; ++round) {
    Side& from = *homes[round % 2];
    Side& to = *homes[1 - round % 2];
    source = round % 2;
    MeddlingPeer peer(*to, wait_for_a_write);
    const Result<void> migrated = migrate(*from, *to, peer, kUpper, joined());
    EXPECT_TRUE(migrated) << migrated.error().message();
    EXPECT_EQ(from.within(kUpper).size(), 0U);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0);
  expect_holds(a, initial);
  for (const Acknowledged& each : writes) expect_holds(a, each);
  expect_equals_rebuilt(a->index());
  expect_equals_rebuilt(b->index());
}

TEST(Replication, BothAnswerAndASyncBringsThemTogether) {
  Side source{RangeSet::all()};
  Side destination{RangeSet(), 2};
  Random random(3);
  Acknowledged writes;
  const auto write = [&](Side& side) {
    const std::string key = key_of(2 * random.below(200) + 1);
    const std::size_t mark = random.below(kMarks);
    const Result<void> written = side.add(key, mark);
    if (written) writes.emplace(key, mark);
    return written.has_value();
  };
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(write(source));
  MeddlingPeer peer(*destination, [&](int) {
    ASSERT_TRUE(write(source));
    (void)write(destination);
  });
  const Result<SyncReport> replicated = replicate(*source, *destination, peer, kUpper, joined());
  ASSERT_TRUE(replicated) << replicated.error().message();
  EXPECT_TRUE(source->responsibility().contains("n"));
  EXPECT_EQ(destination->responsibility(), RangeSet(kUpper));
  EXPECT_TRUE(write(source));
  EXPECT_TRUE(write(destination));
  LocalPeer quiet(destination->responder());
  const Result<SyncReport> synced = source->sync_set(quiet, kUpper, joined());
  ASSERT_TRUE(synced) << synced.error().message();
  EXPECT_TRUE(synced->proved);
  EXPECT_EQ(source.all(), destination.all());
  expect_holds(source, writes);
}

TEST(ScaleDown, TheStayingReplicaHasEveryWriteOfTheLeavingOne) {
  Side leaving{RangeSet::all()};
  Side staying{RangeSet::all(), 2};
  Acknowledged writes;
  for (std::uint64_t n = 1; n < 400; n += 2) {
    Side& side = n % 3 == 0 ? leaving : staying;
    ASSERT_TRUE(side.add(key_of(n), n % kMarks));
    writes.emplace(key_of(n), n % kMarks);
  }
  MeddlingPeer peer(*staying, [&](int question) {
    const auto mark = static_cast<std::size_t>(question) % kMarks;
    ASSERT_EQ(leaving.add("n0001", mark).error().code, Errc::outside);
    ASSERT_TRUE(staying.add("n0001", mark));
    writes.emplace("n0001", mark);
  });
  const Result<void> down = scale_down(*leaving, *staying, peer, kUpper, joined());
  ASSERT_TRUE(down) << down.error().message();
  expect_holds(staying, writes);
  EXPECT_TRUE(leaving->remove_set(kUpper));
  EXPECT_EQ(leaving.all().size(), 0U);
}

TEST(ScaleDown, NeedsSomebodyWhoStays) {
  Side leaving{RangeSet::all()};
  Side staying{RangeSet(kLower), 2};
  LocalPeer peer(staying->responder());
  EXPECT_EQ(scale_down(*leaving, *staying, peer, kUpper, joined()).error().code, Errc::invalid);
  EXPECT_EQ(leaving->responsibility(), RangeSet::all());
}

}  // namespace
}  // namespace semel
