// OperationLog: when operations fold, which of them count, what a reset undoes, and how members
// come and go.
#include "semel/tally/internal/operation_log.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace semel::tally::internal {
namespace {

// A base in a map, with the operations that a restart would find.
class MapBase final : public OperationLog::Base {
 public:
  std::optional<int128> fold(std::string_view counter, const Shard& shard) override {
    states[std::string(counter)].add(shard);
    return std::nullopt;
  }
  void clear(std::string_view counter) override { states.erase(std::string(counter)); }
  void hold(const Operation& operation) override { held.emplace(operation.dot, operation); }
  void keep(const Operation& operation) override { EXPECT_TRUE(held.contains(operation.dot)); }
  void drop(Dot dot) override { EXPECT_EQ(held.erase(dot), 1U); }

  std::map<std::string, CounterState> states;
  std::map<Dot, Operation> held;
};

struct Site {
  explicit Site(SiteId id, std::uint64_t most = 1000) : log(id, {.max_unfolded = most}) {}

  Dot add(const std::string& counter, std::int64_t delta, std::uint64_t id) {
    const OperationId named = id == 0 ? OperationId::none() : OperationId::opaque({id, id});
    const Dot dot = log.append({{}, Operation::Kind::add, named, counter, delta, {}}, base);
    log.fold(base);
    return dot;
  }
  Dot change(Operation::Kind kind, const std::string& counter) {
    const Dot dot = log.append({{}, kind, {}, counter, 0, {}}, base);
    log.fold(base);
    return dot;
  }
  // Takes what the other holds of all logs, without its view.
  void take(const Site& other) {
    other.log.operations([this](const Operation& operation) {
      if (log.place(operation) == OperationLog::Arrival::next) log.arrive(operation, base);
    });
    log.fold(base);
  }
  void receive(const Site& other) {
    log.receive(other.log.site(), other.log.view());
    log.fold(base);
  }
  void exchange(Site& other) {
    take(other);
    other.take(*this);
    receive(other);
    other.receive(*this);
    receive(other);
  }
  std::optional<int128> value(const std::string& counter) const {
    const auto state = base.states.find(counter);
    const std::optional<OperationLog::Overlay> overlay = log.overlay(counter);
    if (state == base.states.end() && (!overlay || overlay->live == 0)) return std::nullopt;
    return (state == base.states.end() ? int128{0} : state->second.sum()) +
           (overlay ? overlay->sum : int128{0});
  }
  // Returns the log that a restart would find.
  OperationLog restarted() const {
    std::vector<Operation> operations;
    for (const auto& [dot, operation] : base.held) operations.push_back(operation);
    std::map<SiteId, SiteView> views;
    log.views([&](SiteId site, const SiteView& view) { views.emplace(site, view); });
    return *OperationLog::restore(log.state(), operations, views, {.max_unfolded = 1000});
  }

  // Starts from a copy of a member that has admitted this site.
  void start_from(const Site& member) {
    base = member.base;
    const SiteId site = log.site();
    log = member.restarted();
    EXPECT_TRUE(log.become(site));
  }

  OperationLog log;
  MapBase base;
};

struct Pair : ::testing::Test {
  Pair() {
    EXPECT_TRUE(a.log.admit(2, 0));
    b.start_from(a);
    b.receive(a);
    EXPECT_TRUE(b.log.ready());
  }
  Site a{1}, b{2};
};

TEST(OperationLogAlone, CountsWithoutALog) {
  Site site(1);
  EXPECT_TRUE(site.log.alone());
  EXPECT_EQ(site.log.count(5), (Dot{1, 5}));
  EXPECT_EQ(site.log.count(2), (Dot{1, 7}));
  EXPECT_EQ(site.log.unfolded(), 0U);
  EXPECT_EQ(site.log.held(), site.log.state().folded);
}

TEST_F(Pair, ARetryAtTheOtherSiteCountsOnceBeforeAndAfterFolding) {
  a.add("x", 5, 7);
  b.add("x", 5, 7);
  b.add("x", 1, 8);
  EXPECT_EQ(a.value("x"), 5);
  EXPECT_EQ(b.value("x"), 6);
  a.take(b);
  b.take(a);
  EXPECT_EQ(a.value("x"), 6);
  EXPECT_EQ(b.value("x"), 6);
  EXPECT_TRUE(a.base.states.empty());
  a.exchange(b);
  for (const Site* site : {&a, &b}) {
    EXPECT_EQ(site->value("x"), 6);
    EXPECT_EQ(site->log.unfolded(), 0U);
    EXPECT_TRUE(site->base.held.empty());
  }
  EXPECT_EQ(a.base.states, b.base.states);
}

TEST_F(Pair, NothingFoldsWhileTheLogOfWhoAcknowledgedIsNotAllHere) {
  a.add("x", 5, 7);
  b.take(a);
  b.add("y", 1, 8);
  a.receive(b);  // b holds all of a, and counted operation 1 itself, which is not here
  EXPECT_EQ(a.log.unfolded(), 1U);
  a.take(b);
  EXPECT_EQ(a.log.unfolded(), 0U);
  EXPECT_EQ(b.log.unfolded(), 2U);  // a has not said anything yet
}

TEST_F(Pair, AnAcknowledgementThatWaitsIsNotPushedOutByLaterOnes) {
  a.add("x", 1, 1);
  b.take(a);
  b.add("y", 1, 2);
  a.receive(b);
  const Dot first{2, 1};
  for (std::uint64_t i = 3; i < 20; ++i) {
    b.add("y", 1, i);
    a.receive(b);  // always one ahead of what a holds
    if (i == 10) {
      b.log.operations([&](const Operation& operation) {
        if (operation.dot == first) a.log.arrive(operation, a.base);
      });
      a.log.fold(a.base);
      EXPECT_TRUE(a.base.states.contains("x"));
    }
  }
}

TEST_F(Pair, OfEqualIdsTheLeastDotCountsWithWhatItSays) {
  b.add("x", 7, 1);
  a.add("x", 5, 1);
  a.exchange(b);
  EXPECT_EQ(a.value("x"), 5);
  EXPECT_EQ(b.value("x"), 5);
}

TEST_F(Pair, AResetUndoesWhatItsSiteHeldAndNothingElse) {
  a.add("x", 5, 1);
  a.exchange(b);
  a.add("x", 2, 2);  // not seen by b
  b.add("x", 1, 3);
  b.change(Operation::Kind::reset, "x");
  EXPECT_EQ(b.value("x"), 0);
  b.add("x", 10, 4);
  a.exchange(b);
  EXPECT_EQ(a.value("x"), 12);
  EXPECT_EQ(b.value("x"), 12);
  EXPECT_EQ(a.base.states, b.base.states);
}

TEST_F(Pair, ARetryOfWhatWasResetCountsNothing) {
  a.add("x", 5, 1);
  b.add("x", 5, 1);  // its retry
  b.change(Operation::Kind::reset, "x");
  a.exchange(b);
  EXPECT_EQ(a.value("x"), 0);
  EXPECT_EQ(b.value("x"), 0);
}

TEST_F(Pair, ARemovedCounterIsGoneUntilSomeoneAdds) {
  a.add("x", 5, 1);
  a.exchange(b);
  b.change(Operation::Kind::remove, "x");
  EXPECT_EQ(b.value("x"), std::nullopt);
  a.exchange(b);
  EXPECT_EQ(a.value("x"), std::nullopt);
  EXPECT_EQ(a.log.unfolded(), 0U);
  EXPECT_TRUE(a.base.states.empty());
  a.add("x", 3, 2);
  EXPECT_EQ(a.value("x"), 3);
}

TEST_F(Pair, AResetLeavesACounterOfZero) {
  a.add("x", 5, 1);
  a.change(Operation::Kind::reset, "x");
  EXPECT_EQ(a.value("x"), 0);
  a.exchange(b);
  EXPECT_EQ(b.value("x"), 0);
  EXPECT_TRUE(b.base.states.contains("x"));
}

TEST_F(Pair, TheTailIsBoundedAndSaysForWhomItWaits) {
  Site small(1, 3);
  ASSERT_TRUE(small.log.admit(2, 0));
  for (std::uint64_t i = 1; i <= 3; ++i) small.add("x", 1, i);
  const Result<void> more = small.log.may_take(1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::full);
  EXPECT_EQ(small.log.waiting_for(), SiteId{2});
  b.take(small);
  small.receive(b);
  EXPECT_TRUE(small.log.may_take(3));
}

TEST_F(Pair, HoldersAreThoseWhoSaidSo) {
  const Dot dot = a.add("x", 1, 1);
  EXPECT_EQ(a.log.holders(dot), 0U);
  a.log.record_published(a.log.view());
  EXPECT_EQ(a.log.holders(dot), 0U);  // b has not said that it knows a
  a.receive(b);
  EXPECT_EQ(a.log.holders(dot), 1U);
  b.take(a);
  a.receive(b);
  EXPECT_EQ(a.log.holders(dot), 2U);
}

struct Three : ::testing::Test {
  Three() {
    for (const SiteId other : {2, 3}) EXPECT_TRUE(a.log.admit(other, 0));
    for (Site* site : {&b, &c}) site->start_from(a);
    for (Site* site : {&b, &c}) {
      for (const Site* other : {&a, &b, &c}) {
        if (other != site) site->receive(*other);
      }
      EXPECT_TRUE(site->log.ready());
    }
  }
  Site a{1}, b{2}, c{3};
};

TEST_F(Three, NothingFoldsUntilAllHoldIt) {
  a.add("x", 5, 1);
  for (int i = 0; i < 3; ++i) a.exchange(b);
  EXPECT_EQ(a.log.unfolded(), 1U);
  a.exchange(c);
  b.exchange(c);
  a.exchange(b);
  c.exchange(a);
  for (const Site* site : {&a, &b, &c}) EXPECT_EQ(site->log.unfolded(), 0U);
}

TEST_F(Three, ARetiredSiteIsFencedAtWhatASurvivorHolds) {
  c.add("x", 1, 1);
  b.take(c);
  c.add("x", 2, 2);
  a.take(c);         // a holds both, b one
  c.add("x", 4, 3);  // only c itself holds it
  ASSERT_TRUE(b.log.retire(3));
  b.take(c);  // comes too late: b has voted
  EXPECT_EQ(b.value("x"), 1);
  a.receive(b);  // it learns about c
  EXPECT_TRUE(a.log.members().retired(3));
  a.exchange(b);
  a.exchange(b);
  EXPECT_EQ(a.value("x"), 3);
  EXPECT_EQ(b.value("x"), 3);
  EXPECT_EQ(a.log.unfolded(), 0U);
  EXPECT_EQ(b.log.unfolded(), 0U);
  a.take(c);
  b.take(c);
  EXPECT_EQ(a.value("x"), 3);
  c.receive(a);
  const Result<void> refused = c.log.may_take(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::outside);
}

TEST_F(Three, AFenceGivesWayIfTheOneThatHeldMostIsRetiredToo) {
  c.add("x", 1, 1);
  b.take(c);
  ASSERT_TRUE(a.log.retire(3));
  b.receive(a);
  a.receive(b);  // the fence is at 1, which only b holds
  a.add("y", 1, 2);
  EXPECT_EQ(a.log.unfolded(), 1U);
  ASSERT_TRUE(a.log.retire(2));
  a.log.fold(a.base);
  EXPECT_EQ(a.log.unfolded(), 0U);
  EXPECT_EQ(a.value("x"), std::nullopt);
  EXPECT_TRUE(a.log.alone());
}

TEST_F(Three, ANewSiteTakesNothingUntilAllKnowIt) {
  a.add("x", 1, 1);
  a.exchange(b);
  ASSERT_TRUE(a.log.admit(4, 0));
  EXPECT_FALSE(a.log.admit(4, 0));
  Site d(4);
  d.start_from(a);
  const Result<void> early = d.log.may_take(1);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Errc::gap);
  b.add("x", 2, 2);
  b.receive(a);
  c.receive(a);
  d.receive(a);
  d.receive(b);
  d.receive(c);
  EXPECT_FALSE(d.log.ready());  // b held its own operation when it said that it knows d
  d.take(b);
  EXPECT_TRUE(d.log.ready());
  d.add("x", 4, 3);
  for (int round = 0; round < 3; ++round) {
    for (Site* one : {&a, &b, &c, &d}) {
      for (Site* other : {&a, &b, &c, &d}) {
        if (one != other) one->exchange(*other);
      }
    }
  }
  for (const Site* site : {&a, &b, &c, &d}) {
    EXPECT_EQ(site->value("x"), 7);
    EXPECT_EQ(site->log.unfolded(), 0U);
    EXPECT_EQ(site->base.states, a.base.states);
  }
}

// The site that admits it is retired before the others have heard of it. They may have found the
// fence already.
TEST_F(Three, ANewSiteThatComesTooLateForAFenceIsVoid) {
  ASSERT_TRUE(a.log.admit(4, 0));
  a.add("x", 1, 1);
  Site d(4);
  d.start_from(a);
  ASSERT_TRUE(b.log.retire(1));
  b.exchange(c);
  b.receive(d);
  EXPECT_FALSE(b.log.members().contains(4));
  d.receive(b);
  EXPECT_TRUE(d.log.members().retired(4));
  EXPECT_EQ(d.log.may_take(1).error().code, Errc::outside);
  b.exchange(c);
  b.add("x", 2, 2);
  for (int i = 0; i < 2; ++i) b.exchange(c);
  EXPECT_EQ(b.log.unfolded(), 0U);
  EXPECT_EQ(c.value("x"), 2);
}

TEST_F(Three, WhoIsRetiredOrNotReadyDecidesNothing) {
  ASSERT_TRUE(a.log.retire(3));
  c.receive(a);
  EXPECT_EQ(c.log.retire(1).error().code, Errc::outside);
  EXPECT_EQ(c.log.admit(5, 0).error().code, Errc::outside);
  ASSERT_TRUE(a.log.admit(4, 0));
  Site d(4);
  d.start_from(a);
  EXPECT_EQ(d.log.admit(5, 0).error().code, Errc::gap);
  EXPECT_EQ(d.log.retire(2).error().code, Errc::gap);
}

TEST_F(Pair, WhatWaitsForItsTurnComesInOrder) {
  for (std::uint64_t i = 1; i <= 3; ++i) b.add("x", 1, i);
  std::vector<Operation> sent;
  b.log.operations([&](const Operation& operation) { sent.push_back(operation); });
  EXPECT_EQ(a.log.place(sent[2]), OperationLog::Arrival::waiting);
  EXPECT_TRUE(a.log.wait(sent[2]));
  EXPECT_TRUE(a.log.wait(sent[1]));
  EXPECT_EQ(a.log.take_waiting(), std::nullopt);
  a.log.arrive(sent[0], a.base);
  EXPECT_EQ(a.log.take_waiting(), sent[1]);
  a.log.arrive(sent[1], a.base);
  EXPECT_EQ(a.log.take_waiting(), sent[2]);
  EXPECT_EQ(a.log.place(Operation{.dot = {9, 1}}), OperationLog::Arrival::known);  // of no member
}

TEST_F(Pair, ARestartFindsItAsItWas) {
  a.add("x", 5, 1);
  b.add("x", 5, 1);
  b.add("y", 2, 2);
  a.take(b);
  b.change(Operation::Kind::reset, "y");
  a.take(b);
  a.receive(b);
  const OperationLog again = a.restarted();
  EXPECT_EQ(again.state(), a.log.state());
  EXPECT_EQ(again.unfolded(), a.log.unfolded());
  for (const char* counter : {"x", "y"}) {
    ASSERT_EQ(again.overlay(counter).has_value(), a.log.overlay(counter).has_value());
    if (!again.overlay(counter)) continue;
    EXPECT_EQ(again.overlay(counter)->sum, a.log.overlay(counter)->sum);
    EXPECT_EQ(again.overlay(counter)->live, a.log.overlay(counter)->live);
  }
}

TEST_F(Pair, ARestartWithAnOperationMissingIsRefused) {
  a.add("x", 5, 1);
  EXPECT_FALSE(OperationLog::restore(a.log.state(), {}, {}, {}));
}

}  // namespace
}  // namespace semel::tally::internal
