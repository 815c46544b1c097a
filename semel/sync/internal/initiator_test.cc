// Initiator: the contents of a report. tests/simulation/sync_simulation_test.cc tests how syncs
// end, whatever the network does.
#include "semel/sync/internal/initiator.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/store/memory_store.h"
#include "semel/sync/responder.h"
#include "tests/support/index.h"
#include "tests/support/store.h"

namespace semel::sync_internal {
namespace {

class InitiatorTest : public testing::Test {
 protected:
  void SetUp() override {
    for (MemoryStore* const store : {&here_, &there_}) {
      for (int n = 0; n < 5000; ++n) put(*store, key(n), "value");
    }
    open({}, {});
    // The view is read, so that later writes are not known to the florets.
    ASSERT_TRUE(here_index_->view());
    ASSERT_TRUE(there_index_->view());
  }

  void open(const IndexedStore::Settings& here, const IndexedStore::Settings& there) {
    here_index_.reset();
    there_index_.reset();
    here_index_ = *IndexedStore::open(here_, numbered_secret(1), here);
    there_index_ = *IndexedStore::open(there_, numbered_secret(1), there);
  }

  static std::string key(int n) { return "key " + std::to_string(n); }

  SyncReport sync(const SyncSettings& settings) {
    Responder responder(*there_index_, {});
    LocalPeer peer(responder);
    const Result<SyncReport> report = semel::sync(*here_index_, peer, settings);
    EXPECT_TRUE(report);
    return report ? *report : SyncReport();
  }

  MemoryStore here_;
  MemoryStore there_;
  std::unique_ptr<IndexedStore> here_index_;
  std::unique_ptr<IndexedStore> there_index_;
};

TEST_F(InitiatorTest, EqualStoresTakeOneRoundTripWhateverTheFloretsDoNotKnow) {
  for (MemoryStore* const store : {&here_, &there_}) put(*store, key(17), "changed");
  const SyncReport report = sync({});
  EXPECT_TRUE(report.proved);
  EXPECT_EQ(report.round_trips, 1U);
  EXPECT_LT(report.bytes_sent + report.bytes_received, 2000U);
  EXPECT_EQ(report.way, SyncWay::nothing);
  EXPECT_EQ(report.estimate.total.value, 0);
  EXPECT_EQ(report.estimate.total.error, 0);
  EXPECT_EQ(report.estimate.jaccard.value, 1);
}

// Words of a peer are marked, because they are not to be trusted.
TEST_F(InitiatorTest, ARefusalSaysThatItsWordsAreThePeers) {
  there_index_.reset();
  there_index_ = *IndexedStore::open(there_, numbered_secret(2), {});
  Responder responder(*there_index_, {});
  LocalPeer peer(responder);
  const Result<SyncReport> report = semel::sync(*here_index_, peer, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Errc::mismatch);
  EXPECT_TRUE(report.error().from_peer);
  EXPECT_EQ(report.error().detail(), "sync: the other end has another secret");
  EXPECT_TRUE(report.error().about("there").from_peer);

  class Lost final : public SyncPeer {
    Result<void> send(ByteView /*frame*/) override { return {}; }
    Result<std::optional<Bytes>> receive() override { return Error{Errc::io, "lost"}; }
  } lost;
  const Result<SyncReport> ours = semel::sync(*here_index_, lost, {});
  ASSERT_FALSE(ours);
  EXPECT_FALSE(ours.error().from_peer);
}

// The measures differ at either end alone, and at both.
TEST_F(InitiatorTest, MeasuresAreNoDifference) {
  const IndexedStore::Settings measured{
      .measure = [](std::string_view, std::string_view value) -> int128 { return value.size(); }};
  int changed = 0;
  for (const auto& [here, there] :
       {std::pair(measured, IndexedStore::Settings{}), {{}, measured}, {measured, measured}}) {
    open(here, there);
    const SyncReport equal = sync({});
    EXPECT_TRUE(equal.proved);
    EXPECT_EQ(equal.way, SyncWay::nothing);
    EXPECT_EQ(equal.round_trips, 1U);
    put(there_, key(changed++), "changed");
    const SyncReport report = sync({});
    EXPECT_TRUE(report.proved);
    EXPECT_EQ(report.changed, 1U);
    EXPECT_EQ(read(here_), read(there_));
  }
}

TEST_F(InitiatorTest, WhatIsNotIndexedIsNotSynced) {
  put(there_, "a", "not indexed");
  put(there_, "key", "changed");
  put(there_, "z", "not indexed");
  const IndexedStore::Settings keys{.range = {"key", "kez"}};
  open(keys, keys);
  const SyncReport report = sync({});
  EXPECT_TRUE(report.proved);
  EXPECT_EQ(report.responder.count, 5001U);
  EXPECT_EQ(report.only_responder, 1U);
  const Model records = read(here_);
  EXPECT_EQ(records.size(), 5001U);
  EXPECT_TRUE(records.contains("key"));
}

TEST_F(InitiatorTest, AFewChangesThatFloretsDoNotKnowMakeTheEstimateLessSure) {
  for (int n = 0; n < 8; ++n) put(there_, key(n), "changed");
  const SyncReport report = sync({});
  EXPECT_TRUE(report.proved);
  EXPECT_EQ(report.changed, 8U);
  EXPECT_GE(report.estimate.total.error, 8);
}

class LargeStores : public InitiatorTest {
 protected:
  static constexpr int kRecords = 60'000;

  void SetUp() override {
    for (MemoryStore* const store : {&here_, &there_}) {
      for (int n = 0; n < kRecords; ++n) put(*store, scattered(n), "value");
    }
    open({}, {});
    ASSERT_TRUE(here_index_->view());
    ASSERT_TRUE(there_index_->view());
  }
  static std::string scattered(int n) { return std::to_string(mix(static_cast<std::uint64_t>(n))); }

  // The sync undoes the change.
  void change(int first, int count) {
    for (int n = first; n < first + count; ++n) {
      put(there_, scattered(n % kRecords), "value " + std::to_string(first));
    }
  }
  static double overhead(const SyncReport& report) {
    return static_cast<double>(report.bytes_sent + report.bytes_received - report.payload_bytes);
  }
};

TEST_F(LargeStores, ASyncCostsTheThirtiethTimeWhatItCostTheFirst) {
  double first = 0;
  for (int round = 0; round < 30; ++round) {
    change(round * 100, 100);
    const SyncReport report = sync({});
    EXPECT_TRUE(report.proved);
    EXPECT_EQ(report.changed, 100U);
    if (round == 0) first = overhead(report);
    EXPECT_LT(overhead(report), 2.5 * first) << round;
    EXPECT_LE(report.round_trips, 6U) << round;
    // The estimate is of this difference, not of everything that the florets have not seen.
    EXPECT_NEAR(report.estimate.total.value, 200, 150) << round;
  }
}

// Nothing is known: there is one slab at each end, because a whole range was reported as changed.
// Tests few and many differences, and whole clusters of them.
TEST_F(LargeStores, WithoutAnEstimateTheWayIsNearlyAsGoodAsWithOne) {
  for (const int count : {1, 30, 300, 3'000, 20'000}) {
    for (const bool cluster : {false, true}) {
      const auto differ = [&](std::string_view value) {
        const Model records = read(there_);
        auto at = records.begin();
        for (int n = 0; n < count; ++n) {
          put(there_, cluster ? (at++)->first : scattered(n), std::string(value));
        }
      };
      SyncSettings settings;
      settings.purpose = SyncPurpose::diff;
      differ("one");
      settings.assumed_difference = 2.0 * count;
      const double known = overhead(sync(settings));
      settings.assumed_difference.reset();
      const double probed = overhead(sync(settings));
      EXPECT_LT(probed, 2.5 * known + 8000) << count << (cluster ? " in a cluster" : "");
      for (const double wrong : {0.0, 2.0 * count / 100, 2.0 * count / 10}) {
        settings.assumed_difference = wrong;
        const SyncReport report = sync(settings);
        EXPECT_TRUE(report.proved);
        EXPECT_EQ(report.changed, static_cast<std::uint64_t>(count));
        EXPECT_EQ(report.passes, 1U) << count << ", assumed " << wrong;
        EXPECT_LT(overhead(report), 3 * known + 8000)
            << count << (cluster ? " in a cluster" : "") << ", assumed " << wrong;
      }
      settings = {};
      settings.resolver.rule = SyncRule::source;
      EXPECT_TRUE(sync(settings).proved);
    }
  }
}

TEST_F(InitiatorTest, WhereMoreDiffersThanTheLimitTheRangeIsDoneInStretches) {
  for (int n = 0; n < 3000; ++n) put(there_, key(n), "changed");
  SyncSettings settings;
  settings.limits.stretch_records = 500;
  const SyncReport report = sync(settings);
  EXPECT_TRUE(report.proved);
  EXPECT_EQ(report.changed, 3000U);
  EXPECT_GT(report.passes, 3U);
  EXPECT_EQ(report.initiator.count, 5000U);
  EXPECT_EQ(read(here_), read(there_));
}

TEST_F(InitiatorTest, APlanWritesNothing) {
  put(there_, key(1), "changed");
  const Model before = read(here_);
  SyncSettings settings;
  settings.purpose = SyncPurpose::plan;
  const SyncReport report = sync(settings);
  EXPECT_EQ(report.round_trips, 1U);
  EXPECT_EQ(report.way, report.plan.best.way);
  EXPECT_EQ(read(here_), before);
}

TEST_F(InitiatorTest, APlanPredictsTheRepair) {
  for (int n = 0; n < 200; ++n) put(there_, key(n), "changed");
  SyncSettings settings;
  settings.purpose = SyncPurpose::plan;
  const SyncReport plan = sync(settings);
  settings.purpose = SyncPurpose::repair;
  const SyncReport repair = sync(settings);
  EXPECT_EQ(plan.predicted.way, repair.predicted.way);
  EXPECT_EQ(plan.predicted.bytes.value, repair.predicted.bytes.value);
  EXPECT_EQ(plan.predicted.payload.value, repair.predicted.payload.value);
}

// A diff fetches keys with their digests, and stores nothing.
TEST_F(InitiatorTest, ADiffIsPredictedAsADiff) {
  for (int n = 0; n < 200; ++n) put(there_, key(n), "changed");
  for (const SyncWay way : {SyncWay::walk, SyncWay::sketch, SyncWay::list, SyncWay::copy}) {
    SyncSettings settings;
    settings.purpose = SyncPurpose::diff;
    settings.way = way;
    const SyncReport diff = sync(settings);
    const auto bytes =
        static_cast<double>(diff.bytes_sent + diff.bytes_received - diff.payload_bytes);
    EXPECT_NEAR(diff.predicted.bytes.value / bytes, 1, 0.25) << kSyncWayNames[std::size_t(way)];
    EXPECT_EQ(diff.predicted.round_trips, diff.round_trips) << kSyncWayNames[std::size_t(way)];
  }
}

}  // namespace
}  // namespace semel::sync_internal
