#include "semel/crdt/delta_log.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/crdt/series.h"
#include "tests/support/keys.h"
#include "tests/support/site_life.h"

namespace semel {
namespace {

// A delta that is a list of numbers, so that a test sees what was joined.
struct ListDelta {
  std::vector<int> numbers;
  Result<void> merge(const ListDelta& other) {
    numbers.insert(numbers.end(), other.numbers.begin(), other.numbers.end());
    return {};
  }
  std::uint64_t bytes() const { return 100 * numbers.size(); }
};
using ListLog = DeltaLog<ListDelta>;
using Kind = ListLog::Interval::Kind;
constexpr std::uint64_t kRoomy = 1 << 20;

std::vector<int> numbers_for(ListLog& log, PeerId peer) {
  const ListLog::Interval interval = log.interval_for(peer);
  EXPECT_EQ(interval.kind, Kind::delta);
  return interval.delta ? interval.delta->numbers : std::vector<int>{};
}

TEST(DeltaLog, JoinsInOrderWhatThePeerHasNotAcknowledged) {
  ListLog log(1, kRoomy, ListLog::Start::empty);
  EXPECT_EQ(log.interval_for(7).kind, Kind::nothing);
  EXPECT_EQ(log.interval_for(8).kind, Kind::nothing);
  for (int n = 1; n <= 5; ++n) log.record({{n}});
  EXPECT_EQ(numbers_for(log, 7), (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(log.interval_for(7).upto, (LogNumber{1, 5}));
  log.acknowledge(7, {1, 3});
  EXPECT_EQ(numbers_for(log, 7), (std::vector<int>{4, 5}));
  EXPECT_EQ(numbers_for(log, 8), (std::vector<int>{1, 2, 3, 4, 5}));
  log.acknowledge(7, {1, 5});
  EXPECT_EQ(log.interval_for(7).kind, Kind::nothing);
  EXPECT_EQ(log.size(), 5u);
  log.acknowledge(8, {1, 4});
  EXPECT_EQ(log.size(), 1u);
  log.forget(8);
  EXPECT_EQ(log.size(), 0u);
  EXPECT_EQ(log.bytes(), 0u);
}

TEST(DeltaLog, TakesNoHarmFromAcknowledgementsThatAreLateOrDoubledOrOfNothing) {
  ListLog log(2, kRoomy, ListLog::Start::empty);
  log.acknowledge(7, {2, 0});
  for (int n = 1; n <= 4; ++n) log.record({{n}});
  log.acknowledge(7, {2, 4});  // an unknown peer
  EXPECT_EQ(numbers_for(log, 7), (std::vector<int>{1, 2, 3, 4}));
  log.record({{5}});
  log.acknowledge(7, {2, 5});  // not sent yet
  log.acknowledge(7, {2, 6});  // not recorded yet
  log.acknowledge(7, {1, 4});  // from an earlier log
  log.acknowledge(7, {3, 4});
  EXPECT_EQ(numbers_for(log, 7), (std::vector<int>{1, 2, 3, 4, 5}));
  for (const std::uint64_t number : {4, 2, 4, 0}) log.acknowledge(7, {2, number});
  EXPECT_EQ(numbers_for(log, 7), (std::vector<int>{5}));
}

TEST(DeltaLog, SendsTheStateToAPeerThatTheLogDoesNotReach) {
  ListLog restarted(3, kRoomy, ListLog::Start::something);
  EXPECT_EQ(restarted.interval_for(7).kind, Kind::state);
  EXPECT_EQ(restarted.interval_for(7).kind, Kind::state);
  restarted.acknowledge(7, restarted.last());
  EXPECT_EQ(restarted.interval_for(7).kind, Kind::nothing);
  restarted.record({{1}});
  EXPECT_EQ(numbers_for(restarted, 7), (std::vector<int>{1}));
  EXPECT_EQ(restarted.interval_for(8).kind, Kind::state);
  restarted.cut();
  EXPECT_EQ(restarted.interval_for(7).kind, Kind::state);
  EXPECT_EQ(restarted.size(), 0u);
}

TEST(DeltaLog, KeepsWhatFollowsAStateUntilThatIsAcknowledged) {
  ListLog log(4, kRoomy, ListLog::Start::something);
  EXPECT_EQ(log.interval_for(8).kind, Kind::state);
  log.acknowledge(8, log.last());
  const LogNumber first = log.interval_for(7).upto;
  for (int n = 1; n <= 3; ++n) {
    log.record({{n}});
    EXPECT_EQ(log.interval_for(7).kind, Kind::state);  // not acknowledged yet
    EXPECT_EQ(numbers_for(log, 8), (std::vector<int>{n}));
    log.acknowledge(8, log.last());
  }
  log.acknowledge(7, first);
  EXPECT_EQ(numbers_for(log, 7), (std::vector<int>{1, 2, 3}));
}

TEST(DeltaLog, DropsTheOldestBeyondItsBytes) {
  constexpr std::uint64_t kMost = 4000;
  ListLog log(5, kMost, ListLog::Start::empty);
  EXPECT_EQ(log.interval_for(7).kind, Kind::nothing);
  EXPECT_EQ(log.interval_for(8).kind, Kind::nothing);
  for (int n = 1; n <= 100; ++n) {
    log.record({{n}});
    ASSERT_LE(log.bytes(), kMost);
    if (n > 90) continue;
    ASSERT_NE(log.interval_for(7).kind, Kind::state);
    log.acknowledge(7, log.last());
  }
  EXPECT_GE(log.size(), 10u);
  EXPECT_EQ(numbers_for(log, 7).front(), 91);
  EXPECT_EQ(log.interval_for(8).kind, Kind::state);
  log.record({std::vector<int>(1000)});
  EXPECT_EQ(log.size(), 0u);
  EXPECT_EQ(log.interval_for(7).kind, Kind::state);
}

TEST(DeltaLog, DoesNotSendBackWhatCameFromAPeer) {
  ListLog log(6, kRoomy, ListLog::Start::empty);
  EXPECT_EQ(log.interval_for(8).kind, Kind::nothing);
  log.record({{1}}, 7);
  log.record({{2}}, 7);
  EXPECT_EQ(log.interval_for(7).kind, Kind::nothing);
  log.record({{3}});
  log.record({{4}}, 7);
  EXPECT_EQ(numbers_for(log, 7), (std::vector<int>{3}));
  EXPECT_EQ(numbers_for(log, 8), (std::vector<int>{1, 2, 3, 4}));
  log.acknowledge(7, log.last());
  log.acknowledge(8, log.last());
  EXPECT_EQ(log.size(), 0u);
}

// A network of sites, each with a state and a log. Messages are bytes that are lost, doubled and
// reordered as the test says.
template <class Type>
class Network {
 public:
  struct Faults {
    double loss = 0, doubling = 0;
    bool reordering = false;
  };

  Network(std::uint32_t sites, bool ring, std::uint64_t most_bytes, std::uint64_t seed)
      : goal_{.fpr = 0.01, .first_keys = 8, .sites = sites, .hash = kTestHash},
        ring_(ring),
        most_bytes_(most_bytes),
        random_(seed) {
    for (std::uint32_t site = 0; site < sites; ++site) {
      sites_.push_back({*Type::make(goal_), Log(0, most_bytes, Log::Start::empty), 0});
    }
  }

  void update(SiteId at) {
    Site& site = sites_[at];
    typename Type::Delta delta(goal_);
    if constexpr (Type::kRemoves) {
      if (random_.below(3) == 0) {
        (void)site.state.remove(key(random_.below(100)), &delta);
      } else {
        ASSERT_TRUE(site.state.add(key(random_.below(100)), semel::at(at), &delta));
      }
    } else {
      ASSERT_TRUE(site.state.add(key(random_.below(2000)), at, &delta));
    }
    if (!delta.empty()) site.log.record(delta);
  }

  // Loses the log but keeps the state.
  void crash(SiteId at) {
    Site& site = sites_[at];
    site.log = Log(++site.epoch, most_bytes_, Log::Start::something);
  }

  void send(SiteId from, SiteId to, const Faults& faults) {
    const auto interval = sites_[from].log.interval_for(to);
    if (interval.kind == Log::Interval::Kind::nothing) return;
    Message message{from, to, interval.upto, {}, {}, false};
    message.is_state = interval.kind == Log::Interval::Kind::state;
    if (message.is_state) {
      sites_[from].state.encode(message.content);
      ++states_sent;
    } else {
      interval.delta->encode(message.content);
      ++deltas_sent;
    }
    post(message, faults);
  }

  void send_all(const Faults& faults) {
    const auto count = static_cast<SiteId>(sites_.size());
    for (SiteId from = 0; from < count; ++from) {
      for (SiteId to = 0; to < count; ++to) {
        const bool next = to == (from + 1) % count;
        if (from != to && (!ring_ || next)) send(from, to, faults);
      }
    }
  }

  void deliver(std::size_t most, const Faults& faults) {
    for (; most > 0 && !messages_.empty(); --most) {
      const std::size_t which = faults.reordering ? random_.below(messages_.size()) : 0;
      const Message message = messages_[which];
      messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(which));
      receive(message, faults);
    }
  }

  bool quiet() const { return messages_.empty(); }
  bool agree() const {
    for (const Site& site : sites_) {
      if (!(site.state == sites_[0].state)) return false;
    }
    return true;
  }
  const Type& state(SiteId site) const { return sites_[site].state; }
  std::uint64_t log_bytes(std::size_t site) const { return sites_[site].log.bytes(); }

  std::uint64_t states_sent = 0, deltas_sent = 0, lost = 0;

 private:
  using Log = DeltaLog<typename Type::Delta>;
  struct Site {
    Type state;
    Log log;
    std::uint64_t epoch;
  };
  struct Message {
    SiteId from, to;
    LogNumber upto;
    Bytes content;
    bool is_acknowledgement;
    bool is_state;
  };

  void post(const Message& message, const Faults& faults) {
    if (random_.unit() < faults.loss) {
      ++lost;
      return;
    }
    messages_.push_back(message);
    if (random_.unit() < faults.doubling) messages_.push_back(message);
  }

  void receive(const Message& message, const Faults& faults) {
    Site& site = sites_[message.to];
    if (message.is_acknowledgement) {
      site.log.acknowledge(message.from, message.upto);
      return;
    }
    if (message.is_state) {
      const Result<bool> changed = site.state.merge(*Type::decode(message.content));
      ASSERT_TRUE(changed);
      if (*changed) site.log.cut();
    } else {
      const typename Type::Delta delta = *Type::Delta::decode(message.content);
      const Result<bool> changed = site.state.merge(delta);
      ASSERT_TRUE(changed) << changed.error().message();  // there is never a gap
      if (*changed) site.log.record(delta, message.from);
    }
    post({message.to, message.from, message.upto, {}, true, false}, faults);
  }

  const SeriesGoal goal_;
  const bool ring_;
  const std::uint64_t most_bytes_;
  Random random_;
  std::vector<Site> sites_;
  std::vector<Message> messages_;
};

template <class Type>
class DeltaLogNetwork : public ::testing::Test {};
using AllSeries = ::testing::Types<GrowBloomSeries, GrowCuckooSeries, ObservedCuckooSeries>;
TYPED_TEST_SUITE(DeltaLogNetwork, AllSeries);

template <class Type>
void settle(Network<Type>& network, std::size_t sites) {
  for (std::size_t round = 0; round < 4 * sites; ++round) {
    network.send_all({});
    while (!network.quiet()) network.deliver(1, {});
  }
}

TYPED_TEST(DeltaLogNetwork, NeverSendsAStateWhileNoMessageIsLost) {
  for (std::uint32_t sites = 2; sites <= 5; ++sites) {
    for (const bool ring : {false, true}) {
      SCOPED_TRACE(std::to_string(sites) + (ring ? " sites in a ring" : " sites"));
      Network<TypeParam> network(sites, ring, 1 << 24, sites);
      const typename Network<TypeParam>::Faults faults{0, 0.2, true};
      network.send_all(faults);  // now the logs know their peers
      Random random(sites);
      for (int step = 0; step < 300; ++step) {
        network.update(static_cast<SiteId>(random.below(sites)));
        if (random.below(5) == 0) network.send_all(faults);
        network.deliver(random.below(6), faults);
      }
      settle(network, sites);
      EXPECT_TRUE(network.agree());
      EXPECT_EQ(network.states_sent, 0u);
      EXPECT_GT(network.deltas_sent, 50u);
      EXPECT_GT(network.state(0).cardinality(), 20);
      for (std::uint32_t site = 0; site < sites; ++site) EXPECT_EQ(network.log_bytes(site), 0u);
    }
  }
}

TYPED_TEST(DeltaLogNetwork, ConvergesWhateverIsLostDoubledLateOrForgotten) {
  std::uint64_t states = 0, deltas = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto sites = static_cast<std::uint32_t>(2 + seed % 4);
    const bool ring = seed / 4 % 2 == 1;
    SCOPED_TRACE("seed " + std::to_string(seed));
    Network<TypeParam> network(sites, ring, seed % 3 == 0 ? 2000 : 1 << 24, seed);
    const typename Network<TypeParam>::Faults faults{0.3, 0.2, true};
    Random random(seed);
    for (int step = 0; step < 200; ++step) {
      network.update(static_cast<SiteId>(random.below(sites)));
      if (random.below(6) == 0) network.send_all(faults);
      if (random.below(70) == 0) network.crash(static_cast<SiteId>(random.below(sites)));
      network.deliver(random.below(6), faults);
      for (std::uint32_t site = 0; site < sites && seed % 3 == 0; ++site) {
        ASSERT_LE(network.log_bytes(site), 2000u);
      }
    }
    EXPECT_GT(network.lost, 10u);
    settle(network, sites);
    EXPECT_TRUE(network.agree());
    states += network.states_sent;
    deltas += network.deltas_sent;
  }
  EXPECT_GT(states, 100u);
  EXPECT_GT(deltas, 100u);
}

TEST(DeltaLog, SendsToAStateOfTheSameProcess) {
  const SeriesGoal goal{.fpr = 0.01, .first_keys = 10, .sites = 2, .hash = kTestHash};
  GrowBloomSeries here = *GrowBloomSeries::make(goal), there = here, late = here;
  DeltaLog<GrowBloomSeries::Delta> log(1, 1 << 20);
  EXPECT_FALSE(*log.send(7, here, there));
  GrowBloomSeries::Delta delta(goal);
  ASSERT_TRUE(*here.add(key(1), 0, &delta));
  log.record(delta);
  EXPECT_TRUE(*log.send(7, here, there));
  EXPECT_EQ(there, here);
  EXPECT_FALSE(*log.send(7, here, there));
  log.cut();
  EXPECT_TRUE(*log.send(8, here, late));  // the state
  EXPECT_EQ(late, here);
  SeriesGoal wrong = goal;
  wrong.fpr = 0.02;
  GrowBloomSeries other = *GrowBloomSeries::make(wrong);
  EXPECT_EQ(log.send(9, here, other).error().code, Errc::mismatch);
  EXPECT_FALSE(*log.send(8, here, late));
}

}  // namespace
}  // namespace semel
