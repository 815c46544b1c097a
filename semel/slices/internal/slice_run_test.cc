// SliceRun: verdicts beside one window, failures, messages, and producers that meet in every order.
#include "semel/slices/internal/slice_run.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "semel/core/internal/random.h"
#include "semel/slices/window_slice.h"
#include "semel/window/internal/exact_window.h"
#include "tests/support/keys.h"

namespace semel::slices_internal {
namespace {

using ExactSlice = WindowSlice<window_internal::ExactWindow>;

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kWindow = 1000;
constexpr TimeMs kClaim = 100;
constexpr std::uint64_t kOwner = 77;

const Placement::Shape kShapes[] = {
    {.layout = SliceLayout::horizontal, .slices = 3},
    {.layout = SliceLayout::vertical, .slices = 5, .spread = 3},
    {.layout = SliceLayout::vertical, .slices = 1, .spread = 4},
    {.layout = SliceLayout::h_v, .slices = 2, .parts = 3, .spread = 3},
    {.layout = SliceLayout::v_h, .slices = 2, .parts = 3, .spread = 3},
};

window_internal::ExactWindow window_at(TimeMs now_ms) {
  return *window_internal::ExactWindow::make({.window_ms = kWindow}, now_ms);
}

// Slices in this thread, over exact windows, whose answers are certain.
struct World {
  explicit World(const Placement::Shape& shape)
      : placement(*Placement::make(shape)), states(placement.slices(), SliceState::live) {
    for (std::size_t i = 0; i < placement.slices(); ++i)
      slices.emplace_back(window_at(kNow), kWindow);
  }

  SliceRun run(SliceAction action, std::vector<Digest> ids, const SliceRules& rules = {},
               std::vector<TimeMs> at_ms = {}, std::uint64_t owner = kOwner) const {
    return SliceRun(placement, rules, states,
                    {action, std::move(ids), std::move(at_ms), now_ms, owner});
  }

  // Answers all messages, round by round; `sent` sees each of them first.
  std::vector<Verdict> finish(SliceRun run,
                              const std::function<void(const SliceMessage&)>& sent = {}) {
    while (!run.done()) {
      for (SliceMessage& message : run.messages()) {
        if (sent) sent(message);
        deliver(message);
      }
      run.step(now_ms);
    }
    std::copy(run.states().begin(), run.states().end(), states.begin());
    return {run.verdicts().begin(), run.verdicts().end()};
  }
  std::vector<Verdict> test_and_set(std::vector<Digest> ids, const SliceRules& rules = {}) {
    return finish(run(SliceAction::test_and_set, std::move(ids), rules));
  }
  std::vector<Verdict> test(std::vector<Digest> ids, const SliceRules& rules = {}) {
    return finish(run(SliceAction::test, std::move(ids), rules));
  }

  void deliver(SliceMessage& message) {
    message.call.failed = cut_off.contains(message.slice);
    if (!message.call.failed) slices[message.slice].start(message.call);
  }

  Placement placement;
  std::vector<SliceState> states;
  std::vector<ExactSlice> slices;
  std::map<std::size_t, bool> cut_off;  // slices that cannot be reached
  TimeMs now_ms = kNow;
};

// Returns the first id whose functions all choose different slices.
Digest id_with_slices_of_its_own(const Placement& placement) {
  for (std::uint64_t n = 0;; ++n) {
    std::map<std::size_t, bool> slices;
    for (std::uint32_t j = 0; j < placement.spread(); ++j) {
      slices[placement.probe(key(n), j).slice] = true;
    }
    if (slices.size() == placement.spread()) return key(n);
  }
}

using Verdicts = std::vector<Verdict>;
constexpr Verdict kFresh = Verdict::fresh, kDuplicate = Verdict::duplicate;

// Slices over exact windows forget at the same times as one exact window does.
TEST(SliceRun, AnswersAsOneWindowWould) {
  const bool ok = rc::check([] {
    World world(kShapes[*rc::gen::inRange<std::size_t>(0, std::size(kShapes))]);
    const SliceRules rules = {.probing = *rc::gen::element(Probing::parallel, Probing::pipelined),
                              .producers = *rc::gen::element(Producers::one, Producers::many),
                              .needed = *rc::gen::inRange(0u, world.placement.spread() + 1)};
    window_internal::ExactWindow twin = window_at(kNow);
    const int steps = *rc::gen::inRange(0, 30);
    for (int step = 0; step < steps; ++step) {
      world.now_ms += *rc::gen::element(0, 1, 50, 400, 1200);
      twin.advance(world.now_ms);
      const auto numbers = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 20));
      std::vector<Digest> ids;
      for (const int number : numbers) ids.push_back(key(static_cast<std::uint64_t>(number)));
      std::vector<TimeMs> at_ms;
      const bool late = *rc::gen::arbitrary<bool>();
      for (std::size_t i = 0; late && i < ids.size(); ++i) {
        at_ms.push_back(world.now_ms - *rc::gen::element(0, 300, 900, 1500));
      }
      const auto action = static_cast<SliceAction>(*rc::gen::inRange(0, 3));
      Verdicts expected;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const TimeMs at = late ? at_ms[i] : world.now_ms;
        expected.push_back(action == SliceAction::test  ? twin.test(ids[i])
                           : action == SliceAction::set ? twin.insert(ids[i], at)
                                                        : twin.test_and_insert(ids[i], at));
      }
      const Verdicts verdicts = world.finish(world.run(action, ids, rules, at_ms));
      RC_ASSERT(verdicts == expected);
    }
    for (const ExactSlice& slice : world.slices) RC_ASSERT(slice.claims().size() == 0u);
  });
  EXPECT_TRUE(ok);
}

TEST(SliceRun, IsDoneAtOnceWithNothingToDo) {
  World world(kShapes[1]);
  EXPECT_TRUE(world.run(SliceAction::test_and_set, {}).done());
}

TEST(SliceRun, KnowsTheFirstOfABatchFromItsRepetitions) {
  for (const Placement::Shape& shape : kShapes) {
    for (const Producers producers : {Producers::one, Producers::many}) {
      World world(shape);
      EXPECT_EQ(
          world.test_and_set({key(1), key(2), key(1), key(1), key(2)}, {.producers = producers}),
          (Verdicts{kFresh, kFresh, kDuplicate, kDuplicate, kDuplicate}));
    }
  }
}

// The first event is refused, so the second counts as the first.
TEST(SliceRun, TakesARepetitionWhoseFirstWasStale) {
  World world(kShapes[1]);
  EXPECT_EQ(world.finish(world.run(SliceAction::test_and_set, {key(1), key(1), key(1)}, {},
                                   {kNow - 5000, kNow, kNow})),
            (Verdicts{Verdict::stale, kFresh, kDuplicate}));
}

// The key of one id was set in one slice by nobody but that id. If its second acceptance did not
// renew the key, the id would be lost a window after the first.
TEST(SliceRun, RenewsInAllSlicesWhatIsFresh) {
  World world(kShapes[1]);
  const Digest id = id_with_slices_of_its_own(world.placement);
  // Others, so to speak, have set the key of the first function at the start.
  const SliceProbe probe = world.placement.probe(id, 0);
  SliceCall call;
  call.action = SliceAction::set;
  call.now_ms = kNow;
  call.keys = {probe.key};
  world.slices[probe.slice].start(call);
  world.now_ms += kWindow - 1;
  EXPECT_EQ(world.test_and_set({id}), Verdicts{kFresh});
  world.now_ms += kWindow;
  EXPECT_EQ(world.test_and_set({id}), Verdicts{kDuplicate});
}

TEST(SliceRun, DoesNotRenewADuplicate) {
  for (const Placement::Shape& shape : kShapes) {
    World world(shape);
    EXPECT_EQ(world.test_and_set({key(1)}), Verdicts{kFresh});
    world.now_ms += kWindow;
    EXPECT_EQ(world.test_and_set({key(1)}), Verdicts{kDuplicate});
    world.now_ms += kWindow / 2;
    EXPECT_EQ(world.test_and_set({key(1)}), Verdicts{kFresh});
  }
}

struct Traffic {
  std::size_t rounds = 0, messages = 0;
  std::map<SliceAction, std::size_t> keys;
};

Traffic traffic_of(World& world, SliceRun run) {
  Traffic traffic;
  while (!run.done()) {
    ++traffic.rounds;
    for (SliceMessage& message : run.messages()) {
      ++traffic.messages;
      traffic.keys[message.call.action] += message.call.keys.size();
      world.deliver(message);
    }
    run.step(world.now_ms);
  }
  return traffic;
}

TEST(SliceRun, SendsAsFewMessagesAsItsProbingNeeds) {
  using enum SliceAction;
  struct Case {
    SliceRules rules;
    std::size_t rounds_fresh, tests_fresh, rounds_known, tests_known;
  };
  for (const Case& c :
       {Case{{.probing = Probing::parallel}, 2, 3, 1, 3},
        Case{{.probing = Probing::pipelined}, 2, 1, 3, 3},
        Case{{.producers = Producers::many}, 4, 1, 3, 3},
        Case{{.probing = Probing::pipelined, .producers = Producers::many}, 4, 1, 4, 3}}) {
    World world(kShapes[1]);
    const Digest id = id_with_slices_of_its_own(world.placement);
    const auto run = [&] {
      return traffic_of(world, world.run(SliceAction::test_and_set, {id}, c.rules));
    };
    Traffic fresh = run();
    EXPECT_EQ(fresh.rounds, c.rounds_fresh);
    EXPECT_EQ(fresh.keys[test], c.tests_fresh);
    EXPECT_EQ(fresh.keys[set], 3u);
    Traffic known = run();
    EXPECT_EQ(known.rounds, c.rounds_known);
    EXPECT_EQ(known.keys[test], c.tests_known);
    EXPECT_EQ(known.keys[set], 0u);
    const bool many = c.rules.producers == Producers::many;
    EXPECT_EQ(fresh.keys[claim] + fresh.keys[commit] + fresh.keys[forget], many ? 3u : 0u);
    EXPECT_EQ(known.keys[claim] + known.keys[release], many ? 2u : 0u);
  }
}

TEST(SliceRun, PacksABatchIntoOneMessageForEachSlice) {
  World world(kShapes[1]);
  SliceRun run = world.run(SliceAction::test, keys(0, 1000));
  EXPECT_EQ(run.messages().size(), 5u);
  const Traffic whole = traffic_of(world, world.run(SliceAction::test_and_set, keys(0, 1000)));
  EXPECT_EQ(whole.messages, 10u);
  World atomic(kShapes[0]);
  EXPECT_EQ(traffic_of(atomic, atomic.run(SliceAction::test_and_set, keys(0, 1000))).messages, 3u);
}

// A failed slice knows all ids or none, or `needed` others make up for it.
TEST(SliceRun, JudgesByTheSlicesThatDidNotFail) {
  for (const Probing probing : {Probing::parallel, Probing::pipelined}) {
    for (const bool at_run_time : {false, true}) {
      for (std::uint32_t failed = 0; failed <= 3; ++failed) {
        for (std::uint32_t needed = 0; needed <= 3; ++needed) {
          World world(kShapes[1]);
          const Digest id = id_with_slices_of_its_own(world.placement);
          World empty(kShapes[1]);
          ASSERT_EQ(world.test_and_set({id}), Verdicts{kFresh});
          for (std::uint32_t j = 0; j < failed; ++j) {
            const std::size_t slice = world.placement.probe(id, j).slice;
            for (World* one : {&world, &empty}) {
              if (at_run_time) one->cut_off[slice] = true;
              if (!at_run_time) one->states[slice] = SliceState::failed;
            }
          }
          const SliceRules rules = {.probing = probing, .needed = needed};
          const std::uint32_t alive = 3 - failed;
          EXPECT_EQ(world.test({id}, rules), Verdicts{alive >= needed ? kDuplicate : kFresh});
          // Nobody knows the id, and any slice that is asked says so.
          EXPECT_EQ(empty.test({id}, rules),
                    Verdicts{alive == 0 && needed == 0 ? kDuplicate : kFresh});
          for (std::uint32_t j = 0; j < failed; ++j) {
            const std::size_t slice = world.placement.probe(id, j).slice;
            EXPECT_EQ(world.states[slice], SliceState::failed);
          }
        }
      }
    }
  }
}

TEST(SliceRun, TreatsAFailedHorizontalSliceAsTold) {
  for (const bool at_run_time : {false, true}) {
    World world(kShapes[0]);
    for (std::size_t slice = 0; slice < 3; ++slice) {
      if (at_run_time) world.cut_off[slice] = true;
      if (!at_run_time) world.states[slice] = SliceState::failed;
    }
    EXPECT_EQ(world.test_and_set({key(1)}, {.needed = 0}), Verdicts{kDuplicate});
    EXPECT_EQ(world.test_and_set({key(1)}, {.needed = 1}), Verdicts{kFresh});
    EXPECT_EQ(world.finish(world.run(SliceAction::set, {key(1)}, {.needed = 0})),
              Verdicts{kDuplicate});
    EXPECT_EQ(world.finish(world.run(SliceAction::set, {key(1)}, {.needed = 1})), Verdicts{kFresh});
  }
}

TEST(SliceRun, WorksOnWithSomeOrAllOfItsSlicesGone) {
  for (const bool at_run_time : {false, true}) {
    for (const Producers producers : {Producers::one, Producers::many}) {
      for (std::uint32_t failed = 0; failed <= 3; ++failed) {
        World world(kShapes[1]);
        const Digest id = id_with_slices_of_its_own(world.placement);
        for (std::uint32_t j = 0; j < failed; ++j) {
          const std::size_t slice = world.placement.probe(id, j).slice;
          if (at_run_time) world.cut_off[slice] = true;
          if (!at_run_time) world.states[slice] = SliceState::failed;
        }
        const SliceRules rules = {.producers = producers, .needed = 1};
        EXPECT_EQ(world.test_and_set({id}, rules), Verdicts{kFresh});
        EXPECT_EQ(world.test_and_set({id}, rules), Verdicts{failed == 3 ? kFresh : kDuplicate});
        for (const ExactSlice& slice : world.slices) EXPECT_EQ(slice.claims().size(), 0u);
      }
    }
  }
}

// If the slice were asked, ids that it missed would be taken for new.
TEST(SliceRun, SetsButDoesNotAskASliceThatReturns) {
  World world(kShapes[1]);
  const Digest before = id_with_slices_of_its_own(world.placement);
  const std::size_t slice = world.placement.probe(before, 1).slice;
  world.states[slice] = SliceState::failed;
  EXPECT_EQ(world.test_and_set({before}), Verdicts{kFresh});
  world.states[slice] = SliceState::live;
  EXPECT_EQ(world.test({before}), Verdicts{kFresh});
  world.states[slice] = SliceState::returning;
  EXPECT_EQ(world.test({before}), Verdicts{kDuplicate});

  world.now_ms += kWindow / 2;
  const SliceProbe probe = world.placement.probe(before, 1);
  EXPECT_EQ(world.finish(world.run(SliceAction::set, {before})), Verdicts{kFresh});
  EXPECT_EQ(world.slices[slice].window().test(probe.key), kDuplicate);
}

TEST(SliceRun, ReportsASliceThatRefusesAndLeavesNoClaim) {
  const Placement placement = *Placement::make(kShapes[1]);
  const Digest id = id_with_slices_of_its_own(placement);
  for (const Producers producers : {Producers::one, Producers::many}) {
    World world(kShapes[1]);
    const std::size_t slice = placement.probe(id, 2).slice;
    window_internal::ExactWindow full =
        *window_internal::ExactWindow::make({.window_ms = kWindow,
                                             .max_bytes = window_internal::ExactWindow::kLeastCap,
                                             .on_full = OnFull::refuse},
                                            kNow);
    for (std::uint64_t n = 0; full.test_and_insert(key(10'000 + n)) == kFresh; ++n) {
    }
    world.slices[slice] = ExactSlice(std::move(full), kWindow);
    const SliceRules rules = {.producers = producers};
    EXPECT_EQ(world.test_and_set({id, id}, rules), (Verdicts{Verdict::full, Verdict::full}));
    for (const ExactSlice& one : world.slices) EXPECT_EQ(one.claims().size(), 0u);
    world.slices[slice] = ExactSlice(window_at(kNow), kWindow);  // there is room again
    EXPECT_EQ(world.test_and_set({id}, rules), Verdicts{kFresh});
    EXPECT_EQ(world.test_and_set({id}, rules), Verdicts{kDuplicate});
  }
}

TEST(SliceRun, TakesTimesOfEverySignAndSize) {
  for (const TimeMs now_ms :
       {std::numeric_limits<TimeMs>::min(), TimeMs{0}, std::numeric_limits<TimeMs>::max()}) {
    World world(kShapes[1]);
    for (ExactSlice& slice : world.slices) slice = ExactSlice(window_at(now_ms), kWindow);
    world.now_ms = now_ms;
    const SliceRules rules = {.producers = Producers::many,
                              .claim_ms = std::numeric_limits<TimeMs>::max()};
    EXPECT_EQ(world.test_and_set({key(1), key(1)}, rules), (Verdicts{kFresh, kDuplicate}));
  }
}

// Producers that collide. The caller chooses the order in which the messages of several runs are
// delivered, one at a time. A producer may stop for ever at any point.
class Meeting {
 public:
  using Choose = std::function<std::size_t(std::size_t)>;  // one of so many

  struct Producer {
    SliceRun run;
    std::vector<Digest> ids;
    std::vector<bool> delivered;
    bool crashed = false;
    std::uint64_t asked_at = 0;  // when it was last told to wait, in deliveries
  };
  struct Decision {
    Digest id;
    TimeMs at_ms;
  };

  Meeting(const Placement::Shape& shape, const SliceRules& rules,
          const std::vector<std::vector<Digest>>& batches)
      : world_(shape) {
    std::uint64_t owner = 1;
    for (const std::vector<Digest>& ids : batches) {
      producers_.push_back(
          {world_.run(SliceAction::test_and_set, ids, rules, {}, owner++), ids, {}});
      producers_.back().delivered.resize(producers_.back().run.messages().size());
    }
  }

  // Delivers one message. If all who are left wait for a crashed producer, time passes instead.
  // Returns false if nobody is left.
  bool go_on(const Choose& choose) {
    struct Option {
      std::size_t producer, message;
    };
    std::vector<Option> options;
    bool left = false;
    for (std::size_t p = 0; p < producers_.size(); ++p) {
      Producer& producer = producers_[p];
      if (producer.crashed || producer.run.done()) continue;
      left = true;
      // Asking again before anything has happened leads nowhere.
      if (producer.run.waits() && producer.asked_at == deliveries_) continue;
      for (const std::size_t m : deliverable(producer)) options.push_back({p, m});
    }
    if (!left) return false;
    if (options.empty()) {
      pass(kClaim);
      ++deliveries_;
      return true;
    }
    const Option option = options[options.size() == 1 ? 0 : choose(options.size())];
    deliver(producers_[option.producer], option.message);
    return true;
  }

  void pass(TimeMs by_ms) { world_.now_ms += by_ms; }
  void crash(std::size_t producer) { producers_[producer].crashed = true; }
  std::uint64_t deliveries() const { return deliveries_; }

  // Returns how many producers heard that the id is fresh.
  std::size_t told_fresh(Digest id) const {
    std::size_t told = 0;
    for (const Producer& producer : producers_) {
      if (!producer.run.done()) continue;
      for (std::size_t i = 0; i < producer.ids.size(); ++i) {
        told += producer.ids[i] == id && producer.run.verdicts()[i] == kFresh;
      }
    }
    return told;
  }
  // Returns the accepted commits, even if their producer did not live to hear of them.
  const std::vector<Decision>& decisions() const { return decisions_; }
  const World& world() const { return world_; }

 private:
  // Messages to one slice keep their order.
  static std::vector<std::size_t> deliverable(Producer& producer) {
    std::vector<std::size_t> found;
    std::map<std::size_t, bool> blocked;
    const std::span<SliceMessage> messages = producer.run.messages();
    for (std::size_t m = 0; m < messages.size(); ++m) {
      if (producer.delivered[m]) continue;
      if (!std::exchange(blocked[messages[m].slice], true)) found.push_back(m);
    }
    return found;
  }

  void deliver(Producer& producer, std::size_t m) {
    SliceMessage& message = producer.run.messages()[m];
    world_.deliver(message);
    producer.delivered[m] = true;
    const bool waited = producer.run.waits();
    if (message.call.action == SliceAction::commit) {
      for (std::size_t i = 0; i < message.call.keys.size(); ++i) {
        if (message.call.claims[i] != ClaimAnswer::done) continue;
        decisions_.push_back({message.call.keys[i], message.call.now_ms});
      }
    }
    if (std::ranges::all_of(producer.delivered, [](bool one) { return one; })) {
      producer.run.step(world_.now_ms);
      producer.delivered.assign(producer.run.messages().size(), false);
    }
    // Waiting longer is no event for the others.
    if (!(waited && (producer.run.waits() || producer.run.done()))) ++deliveries_;
    if (producer.run.waits()) producer.asked_at = deliveries_;
  }

  World world_;
  std::vector<Producer> producers_;
  std::vector<Decision> decisions_;
  std::uint64_t deliveries_ = 1;
};

// Enumerates all orders of a tiny meeting. The choices of a run are the digits of a number, and the
// next run takes the next number.
class AllOrders {
 public:
  std::size_t choose(std::size_t of) {
    if (at_ == digits_.size()) digits_.push_back({0, of});
    return digits_[at_++].digit;
  }
  // Returns false after the last order.
  bool next() {
    at_ = 0;
    while (!digits_.empty() && ++digits_.back().digit == digits_.back().base) digits_.pop_back();
    return !digits_.empty();
  }

 private:
  struct Digit {
    std::size_t digit, base;
  };
  std::vector<Digit> digits_;
  std::size_t at_ = 0;
};

struct Outcomes {
  std::uint64_t orders = 0, none = 0, one = 0, more = 0;
};

// Runs two producers of one id. The first crashes after `crash_after` events. After `pause_after`
// events more time passes than a claim lasts.
Outcomes all_outcomes(const Placement::Shape& shape, const SliceRules& rules,
                      std::optional<std::uint64_t> crash_after,
                      std::optional<std::uint64_t> pause_after) {
  const Digest id = id_with_slices_of_its_own(*Placement::make(shape));
  AllOrders orders;
  Outcomes outcomes;
  do {
    Meeting meeting(shape, rules, {{id}, {id}});
    std::uint64_t event = 0;
    const auto choose = [&](std::size_t of) { return orders.choose(of); };
    do {
      if (event == crash_after) meeting.crash(0);
      if (event == pause_after) meeting.pass(2 * kClaim);
      ++event;
    } while (meeting.go_on(choose));
    ++outcomes.orders;
    const std::size_t told = meeting.told_fresh(id);
    ++(told == 0 ? outcomes.none : told == 1 ? outcomes.one : outcomes.more);
    EXPECT_LE(meeting.decisions().size(), 1u);
  } while (orders.next());
  return outcomes;
}

TEST(SliceRunMeetings, TellOneOfTwoProducersInEveryOrder) {
  for (const Probing probing : {Probing::parallel, Probing::pipelined}) {
    const SliceRules rules = {.probing = probing, .producers = Producers::many, .claim_ms = kClaim};
    for (const Placement::Shape& shape :
         {Placement::Shape{.layout = SliceLayout::vertical, .slices = 2, .spread = 2},
          {.layout = SliceLayout::h_v, .slices = 2, .parts = 2, .spread = 2},
          {.layout = SliceLayout::v_h, .slices = 2, .parts = 2, .spread = 2}}) {
      const Outcomes outcomes = all_outcomes(shape, rules, std::nullopt, std::nullopt);
      EXPECT_GE(outcomes.orders, 220u);
      EXPECT_EQ(outcomes.one, outcomes.orders);
    }
  }
}

TEST(SliceRunMeetings, TellAtMostOneWhenAProducerCrashesAnywhere) {
  const Placement::Shape shape = {.layout = SliceLayout::vertical, .slices = 2, .spread = 2};
  const SliceRules rules = {.producers = Producers::many, .claim_ms = kClaim};
  std::uint64_t none = 0;
  for (std::uint64_t crash_after = 0; crash_after < 16; ++crash_after) {
    const Outcomes outcomes = all_outcomes(shape, rules, crash_after, std::nullopt);
    EXPECT_EQ(outcomes.more, 0u);
    none += outcomes.none;
  }
  EXPECT_GT(none, 0u);  // it had committed
}

TEST(SliceRunMeetings, TellOneWhenClaimsRunOutAnywhere) {
  const Placement::Shape shape = {.layout = SliceLayout::vertical, .slices = 2, .spread = 2};
  const SliceRules rules = {.producers = Producers::many, .claim_ms = kClaim};
  for (std::uint64_t pause_after = 0; pause_after < 16; ++pause_after) {
    const Outcomes outcomes = all_outcomes(shape, rules, std::nullopt, pause_after);
    EXPECT_EQ(outcomes.one, outcomes.orders);
  }
}

// Checks the check: without claims, some orders must tell both 'fresh', or the paper's fault never
// arises.
TEST(SliceRunMeetings, FindTheFaultOfProducersThatDoNotTakeTurns) {
  for (const Probing probing : {Probing::parallel, Probing::pipelined}) {
    const Outcomes outcomes =
        all_outcomes({.layout = SliceLayout::vertical, .slices = 2, .spread = 2},
                     {.probing = probing, .producers = Producers::one}, std::nullopt, std::nullopt);
    EXPECT_GT(outcomes.more, 0u);
    EXPECT_GT(outcomes.one, 0u);
  }
}

// Several producers hand in several ids, in random orders. Producers crash, and time passes, up to
// whole windows.
TEST(SliceRunMeetings, TellOneProducerInAWindow) {
  std::uint64_t crashed_runs = 0, renewed = 0;
  const bool ok = rc::check([&] {
    const Placement::Shape shape = kShapes[*rc::gen::element(1, 2, 3, 4)];
    const SliceRules rules = {.probing = *rc::gen::element(Probing::parallel, Probing::pipelined),
                              .producers = Producers::many,
                              .claim_ms = kClaim};
    const auto batches = *rc::gen::container<std::vector<std::vector<std::uint64_t>>>(
        *rc::gen::inRange<std::size_t>(2, 6),
        rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 3)));
    std::vector<std::vector<Digest>> ids;
    for (const auto& batch : batches) {
      ids.emplace_back();
      for (const std::uint64_t number : batch) ids.back().push_back(key(number));
    }
    const bool crashes = *rc::gen::arbitrary<bool>();
    const TimeMs most_ms = *rc::gen::element<TimeMs>(1, 60, 1500);
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    for (int order = 0; order < 50; ++order) {
      Meeting meeting(shape, rules, ids);
      bool crashed = false;
      for (int step = 0; meeting.go_on([&](std::size_t of) { return random.below(of); }); ++step) {
        RC_ASSERT(step < 100'000);  // otherwise they wait for each other
        if (random.below(10) == 0) {
          meeting.pass(static_cast<TimeMs>(random.below(static_cast<std::uint64_t>(most_ms))));
        }
        if (crashes && random.below(40) == 0) {
          meeting.crash(random.below(ids.size()));
          crashed = true;
        }
      }
      crashed_runs += crashed;
      for (std::uint64_t number = 0; number < 3; ++number) {
        const Digest id = key(number);
        std::optional<TimeMs> last_ms;
        std::size_t decisions = 0;
        for (const Meeting::Decision& decision : meeting.decisions()) {
          if (!(decision.id == id)) continue;
          if (last_ms) RC_ASSERT(decision.at_ms - *last_ms > kWindow);
          renewed += last_ms.has_value();
          last_ms = decision.at_ms;
          ++decisions;
        }
        RC_ASSERT(meeting.told_fresh(id) <= decisions);
        if (crashed) continue;
        const bool asked = std::ranges::any_of(ids, [&](const std::vector<Digest>& batch) {
          return std::ranges::find(batch, id) != batch.end();
        });
        RC_ASSERT(meeting.told_fresh(id) == decisions);
        RC_ASSERT(asked == (decisions > 0));
      }
      if (crashed) continue;
      for (const ExactSlice& slice : meeting.world().slices) {
        RC_ASSERT(slice.claims().size() == 0u);
      }
    }
  });
  EXPECT_TRUE(ok);
  EXPECT_GT(crashed_runs, 0u);
  EXPECT_GT(renewed, 0u);
}

TEST(SliceRunDeathTest, RefusesAJobThatDoesNotFit) {
  const World world(kShapes[1]);
  EXPECT_DEATH(SliceRun(world.placement, {.needed = 4}, world.states, {}), "needed");
  EXPECT_DEATH(SliceRun(world.placement, {}, {}, {}), "states");
  EXPECT_DEATH(world.run(SliceAction::test, {key(1)}).verdicts(), "done");
}

}  // namespace
}  // namespace semel::slices_internal
