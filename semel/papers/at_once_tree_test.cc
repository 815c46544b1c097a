// AtOnceTree: what its nodes know, confirmation, the propositions of the paper, windows, failures,
// and producers that take turns in any order and crash.
#include "semel/papers/at_once_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/slices/thread_slice.h"
#include "semel/slices/window_slice.h"
#include "semel/window/internal/endless_filter.h"
#include "semel/window/internal/endless_set.h"
#include "semel/window/internal/exact_window.h"
#include "tests/support/any_tree.h"
#include "tests/support/keys.h"

namespace semel::papers {
namespace {

constexpr std::size_t kNone = TreeShape::kNone;
constexpr TimeMs kWindow = 1000;
const std::vector<std::size_t> kSeven = {kNone, 0, 0, 1, 1, 2, 2};

using Make = std::unique_ptr<Slice> (*)();

std::unique_ptr<Slice> exact_slice() {
  return std::make_unique<WindowSlice<window_internal::EndlessSet>>(
      window_internal::EndlessSet(kTestHash, 0), kWindow);
}
std::unique_ptr<Slice> window_slice() {
  return std::make_unique<WindowSlice<window_internal::ExactWindow>>(
      *window_internal::ExactWindow::make({.window_ms = kWindow, .hash = kTestHash}, 0), kWindow);
}
// Room for 200 ids: few enough for the first filter of the series, and many false positives.
constexpr std::uint64_t kFilterIds = 200;
std::unique_ptr<Slice> filter_slice() {
  return std::make_unique<WindowSlice<window_internal::EndlessFilter>>(
      *window_internal::EndlessFilter::make(
          {.fpr = 0.3, .first_keys = kFilterIds, .hash = kTestHash}, 0),
      kWindow);
}

// A node that on request takes some ids for known, fails, or is full.
class TestNode final : public Slice {
 public:
  explicit TestNode(Make make = window_slice) : slice_(make()) {}

  void start(SliceCall& call) override {
    const SliceAction action = call.action;
    if (full && action != SliceAction::test) call.action = SliceAction::test;
    slice_->start(call);
    call.action = action;
    call.failed = fails;
    for (std::size_t i = 0; i < call.keys.size(); ++i) {
      const bool lies = std::ranges::find(false_positives, call.keys[i]) != false_positives.end();
      if (lies && action != SliceAction::set) call.verdicts[i] = Verdict::duplicate;
      if (full && action != SliceAction::test && call.verdicts[i] == Verdict::fresh) {
        call.verdicts[i] = Verdict::full;
      }
    }
  }
  void finish(SliceCall&) override {}
  std::uint64_t bytes() const override { return slice_->bytes(); }
  double false_positive_rate() const override { return slice_->false_positive_rate(); }

  bool knows(Digest id) {
    SliceCall call;
    call.keys = {id};
    slice_->start(call);
    return call.verdicts[0] == Verdict::duplicate;
  }

  bool fails = false, full = false;
  std::vector<Digest> false_positives;

 private:
  std::unique_ptr<Slice> slice_;
};

class Forest {
 public:
  explicit Forest(AtOnceTree::Options options, const std::vector<std::size_t>& parents = kSeven,
                  Make make = window_slice) {
    std::vector<Slice*> all;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      nodes_.push_back(std::make_unique<TestNode>(make));
      all.push_back(nodes_.back().get());
    }
    tree_ = *AtOnceTree::make(*TreeShape::make(parents), all, options);
  }
  AtOnceTree& tree() { return *tree_; }
  TestNode& node(std::size_t i) { return *nodes_[i]; }
  bool knows(std::size_t i, Digest id) { return nodes_[i]->knows(id); }
  std::vector<std::size_t> leaves() const { return leaves_of(tree_->shape()); }
  std::vector<Verdict> sift(std::size_t leaf, const std::vector<Digest>& ids, TimeMs now_ms = 0) {
    std::vector<Verdict> verdicts(ids.size());
    tree_->test_and_set(leaf, ids, {}, verdicts, now_ms);
    return verdicts;
  }
  Verdict sift(std::size_t leaf, Digest id, TimeMs now_ms = 0) {
    return sift(leaf, std::vector<Digest>{id}, now_ms)[0];
  }

 private:
  std::vector<std::unique_ptr<TestNode>> nodes_;
  std::optional<AtOnceTree> tree_;
};

TEST(AtOnceTree, RefusesNodesAndPoliciesThatDoNotFit) {
  const TreeShape shape = *TreeShape::make(std::vector<std::size_t>{kNone});
  TestNode node;
  EXPECT_FALSE(AtOnceTree::make(shape, {}, {}));
  EXPECT_FALSE(AtOnceTree::make(shape, {nullptr}, {}));
  EXPECT_FALSE(AtOnceTree::make(shape, {&node}, {.root_failed = Verdict::full}));
  EXPECT_TRUE(AtOnceTree::make(shape, {&node}, {}));
}

TEST(AtOnceTree, SetsEveryNodeThatItAsks) {
  Forest forest({});
  EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
  EXPECT_EQ(forest.sift(4, key(1)), Verdict::duplicate);
  EXPECT_TRUE(forest.knows(4, key(1)));
  EXPECT_FALSE(forest.knows(2, key(1)));
  EXPECT_EQ(forest.sift(6, key(1)), Verdict::duplicate);
  EXPECT_TRUE(forest.knows(2, key(1)) && forest.knows(6, key(1)));
  EXPECT_FALSE(forest.knows(5, key(1)));
  EXPECT_EQ(forest.sift(6, key(1)), Verdict::duplicate);
  EXPECT_EQ(forest.tree().load()[2], (TreeLoad{.messages = 4, .tests = 4, .hits = 1}));
}

TEST(AtOnceTree, ARootAloneIsATree) {
  Forest forest({.confirm_at = 3}, {kNone});
  EXPECT_EQ(forest.sift(0, {key(1), key(2), key(1)}),
            (std::vector{Verdict::fresh, Verdict::fresh, Verdict::duplicate}));
  EXPECT_EQ(forest.sift(0, key(2)), Verdict::duplicate);
}

TEST(AtOnceTree, RefutesAFalsePositiveByTheOtherChildren) {
  Forest forest({.confirm_at = 2});
  forest.node(0).false_positives = {key(1), key(2), key(3)};
  forest.node(2).false_positives = {key(2)};
  forest.node(5).false_positives = {key(3)};
  EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
  EXPECT_EQ(forest.sift(3, key(2)), Verdict::fresh);  // node 2 has it, but neither 5 nor 6
  EXPECT_EQ(forest.tree().load()[0].refuted, 2u);
  EXPECT_EQ(forest.tree().load()[0].hits, 0u);
  EXPECT_EQ(forest.sift(3, key(1)), Verdict::duplicate);
  EXPECT_EQ(forest.sift(6, key(1)), Verdict::duplicate);  // confirmed by node 1, and 3
  forest.node(2).false_positives = {key(3)};
  EXPECT_EQ(forest.sift(3, key(3)), Verdict::duplicate);  // all the way down to level 2
}

// The hit at 1 is false, and the id came in under 2: the paper would call it distinct.
TEST(AtOnceTree, GoesOnUpwardsAfterARefutedHit) {
  Forest forest({.confirm_at = 2});
  EXPECT_EQ(forest.sift(6, key(1)), Verdict::fresh);
  forest.node(1).false_positives = {key(1)};
  EXPECT_EQ(forest.sift(3, key(1)), Verdict::duplicate);
  EXPECT_EQ(forest.tree().load()[1].refuted, 1u);
  EXPECT_EQ(forest.tree().load()[0].hits, 1u);
  EXPECT_TRUE(forest.knows(1, key(1)));  // a copy of its own
}

// -------------------------------------------------------------------------------------- properties

AtOnceTree::Options any_options() { return {.confirm_at = *rc::gen::inRange<std::size_t>(0, 6)}; }

// With and without confirmation, the first event of an id is fresh and no other is.
RC_GTEST_PROP(AtOnceTree, AgreesWithAnExactTwinWhateverTheTree, ()) {
  Forest forest(any_options(), *any_tree(), exact_slice);
  const std::vector<std::size_t> leaves = forest.leaves();
  std::set<std::uint64_t> twin;
  for (int round = *rc::gen::inRange(0, 12); round > 0; --round) {
    const auto numbers =
        *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 60));
    std::vector<Digest> batch;
    for (const std::uint64_t n : numbers) batch.push_back(key(n));
    const std::vector<Verdict> verdicts = forest.sift(*rc::gen::elementOf(leaves), batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      RC_ASSERT((verdicts[i] == Verdict::fresh) == twin.insert(numbers[i]).second);
    }
  }
}

// Propositions 3 and 4, with filters of one shape: the tree gives the answers of the single filter.
// With confirmed hits it calls fewer ids duplicates, and no duplicate fresh.
RC_GTEST_PROP(AtOnceTree, SaysWhatASingleFilterSays, ()) {
  const std::vector<std::size_t> parents = *any_tree();
  Forest forest({}, parents, filter_slice);
  Forest single({}, {kNone}, filter_slice);
  Forest confirming({.confirm_at = *rc::gen::inRange<std::size_t>(1, 7)}, parents, filter_slice);
  const std::vector<std::size_t> leaves = forest.leaves();
  // As many as there is room for, so that the filters err in every run.
  const auto events = *rc::gen::container<std::vector<std::uint64_t>>(
      kFilterIds, rc::gen::inRange<std::uint64_t>(0, 2 * kFilterIds));
  const std::uint64_t salt = *rc::gen::inRange<std::uint64_t>(0, 1'000'000) * 1000;
  std::set<std::uint64_t> twin;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::size_t leaf = leaves[mix(events[i] + i) % leaves.size()];
    const Digest id = key(salt + events[i]);
    RC_ASSERT(forest.sift(leaf, id) == single.sift(0, id));
    const Verdict confirmed = confirming.sift(leaf, id);
    const bool is_new = twin.insert(events[i]).second;
    RC_ASSERT(is_new || confirmed == Verdict::duplicate);
  }
}

// Every duplicate is within the bound of its level, and every repetition within the window is a
// duplicate, in a batch or alone, through steps of time of any size.
RC_GTEST_PROP(AtOnceTree, KeepsThePromiseOfItsWindows, ()) {
  Forest forest(any_options(), *any_tree());
  const std::vector<std::size_t> leaves = forest.leaves();
  const TimeMs node_ms = kWindow + kWindow / 8;  // an exact window forgets within a span
  std::map<std::uint64_t, TimeMs> fresh_at;
  TimeMs now_ms = 0;
  for (int round = *rc::gen::inRange(0, 60); round > 0; --round) {
    now_ms += *rc::gen::inRange<TimeMs>(0, kWindow);
    const std::size_t leaf = *rc::gen::elementOf(leaves);
    std::vector<std::uint64_t> numbers;
    std::vector<Digest> batch;
    for (int n = *rc::gen::inRange(1, 4); n > 0; --n) {
      numbers.push_back(*rc::gen::inRange<std::uint64_t>(0, 6));
      batch.push_back(key(numbers.back()));
    }
    const std::vector<Verdict> verdicts = forest.sift(leaf, batch, now_ms);
    const TimeMs longest =
        longest_ms(TreeKind::dense, forest.tree().shape().level(leaf) + 1, node_ms);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto known = fresh_at.find(numbers[i]);
      const bool was = known != fresh_at.end();
      if (was && now_ms - known->second <= kWindow) {
        RC_ASSERT(verdicts[i] == Verdict::duplicate);
      } else if (!was || now_ms - known->second > longest) {
        RC_ASSERT(verdicts[i] == Verdict::fresh);
      }
      if (verdicts[i] == Verdict::fresh) fresh_at[numbers[i]] = now_ms;
    }
  }
}

TEST(AtOnceTree, CopiesLiveLongerByAWindowForEveryLevel) {
  Forest forest({});
  EXPECT_EQ(forest.sift(3, key(1), 0), Verdict::fresh);
  // At the last moment the root copies to 2 and 6, then 2 to 5.
  EXPECT_EQ(forest.sift(6, key(1), kWindow), Verdict::duplicate);
  EXPECT_EQ(forest.sift(5, key(1), 2 * kWindow), Verdict::duplicate);
  EXPECT_EQ(forest.sift(5, key(1), 3 * kWindow), Verdict::duplicate);
  EXPECT_EQ(forest.sift(3, key(1), 3 * kWindow + 250), Verdict::fresh);  // over elsewhere
}

TEST(AtOnceTree, TakesTheTimesOfEvents) {
  Forest forest({});
  std::vector<Verdict> verdicts(3);
  forest.tree().test_and_set(3, keys(0, 3), std::vector<TimeMs>{10'000, 9'100, 8'999}, verdicts,
                             10'000);
  EXPECT_EQ(verdicts, (std::vector{Verdict::fresh, Verdict::fresh, Verdict::stale}));
  EXPECT_EQ(forest.sift(3, keys(0, 3), 10'400),
            (std::vector{Verdict::duplicate, Verdict::fresh, Verdict::fresh}));
}

TEST(AtOnceTree, TakesAFailedNodeForAMiss) {
  for (const std::size_t bad : {3, 1}) {
    Forest forest({.confirm_at = 2});
    EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
    forest.node(bad).fails = true;
    EXPECT_EQ(forest.sift(3, key(1)), Verdict::duplicate);
    EXPECT_EQ(forest.sift(5, key(1)), Verdict::duplicate);  // a silent node refutes nothing
    EXPECT_EQ(forest.sift(3, key(2)), Verdict::fresh);
    EXPECT_EQ(forest.tree().states()[bad], SliceState::failed);
    // The node is back, without the ids that it missed.
    forest.node(bad).fails = false;
    forest.tree().set_state(bad, SliceState::returning);
    EXPECT_EQ(forest.sift(5, key(2)), Verdict::duplicate);
    EXPECT_EQ(forest.sift(3, key(2)), Verdict::duplicate);
  }
}

TEST(AtOnceTree, FollowsItsPolicyWhenTheRootFailsAndLeavesMarks) {
  for (const Verdict policy : {Verdict::duplicate, Verdict::fresh}) {
    Forest forest({.root_failed = policy});
    EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
    forest.node(0).fails = true;
    EXPECT_EQ(forest.sift(3, key(1)), Verdict::duplicate);  // the leaf knows it
    EXPECT_EQ(forest.sift(3, key(2)), policy);
    EXPECT_EQ(forest.sift(3, key(3)), policy);  // known to have failed, and not asked
    EXPECT_TRUE(forest.knows(3, key(2)));
  }
}

// The price of setting at once: nobody was told 'fresh', and the next event is told 'duplicate'.
TEST(AtOnceTree, AFullRootLeavesMarksBelow) {
  Forest forest({});
  forest.node(0).full = true;
  EXPECT_EQ(forest.sift(3, {key(1), key(1)}), (std::vector{Verdict::full, Verdict::duplicate}));
  forest.node(0).full = false;
  forest.node(1).full = true;
  EXPECT_EQ(forest.sift(4, key(2)), Verdict::fresh);
  EXPECT_EQ(forest.tree().states()[1], SliceState::returning);
}

// ---------------------------------------------------------------------- producers at the same time

// Producers in threads that send one message at a time, in a random order. A producer may crash
// instead of sending: then none of its messages arrives any more.
class Turns {
 public:
  explicit Turns(std::size_t producers) : producers_(producers) {}

  // Waits for a turn. Returns false if the producer has crashed.
  bool wait(std::size_t producer) {
    std::unique_lock lock(lock_);
    State& state = producers_[producer];
    if (state.crashed) return false;
    state.waits = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !state.waits; });
    return !state.crashed;
  }
  void end(std::size_t producer) {
    const std::lock_guard lock(lock_);
    producers_[producer].done = true;
    changed_.notify_all();
  }
  // Gives turns until all producers have ended.
  template <class Draw>
  void give(Draw draw, std::uint64_t crash_one_in) {
    std::unique_lock lock(lock_);
    for (;;) {
      changed_.wait(lock, [&] {
        return std::ranges::all_of(producers_, [](const State& s) { return s.waits || s.done; });
      });
      std::vector<State*> waiting;
      for (State& state : producers_) {
        if (!state.done) waiting.push_back(&state);
      }
      if (waiting.empty()) return;
      State& next = *waiting[draw(waiting.size())];
      next.crashed = crash_one_in > 0 && draw(crash_one_in) == 0;
      next.waits = false;
      changed_.notify_all();
    }
  }
  // REQUIRES: all producers have ended.
  bool any_crashed() const {
    return std::ranges::any_of(producers_, [](const State& state) { return state.crashed; });
  }

 private:
  struct State {
    bool waits = false, crashed = false, done = false;
  };
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<State> producers_;
};

// A node as one of the producers reaches it.
class NodeInTurn final : public Slice {
 public:
  NodeInTurn(TestNode& node, Turns& turns, std::size_t producer)
      : node_(node), turns_(turns), producer_(producer) {}
  void start(SliceCall& call) override {
    if (turns_.wait(producer_)) return node_.start(call);
    call.expect_answers();
    call.failed = true;
  }
  void finish(SliceCall&) override {}
  std::uint64_t bytes() const override { return node_.bytes(); }
  double false_positive_rate() const override { return node_.false_positive_rate(); }

 private:
  TestNode& node_;
  Turns& turns_;
  std::size_t producer_;
};

// Lets this many producers of one id take turns, and returns how many were told 'fresh'.
template <class Draw>
std::size_t told_fresh(Forest& forest, Turns& turns, std::size_t producers, Draw draw,
                       std::uint64_t crash_one_in) {
  const TreeShape& shape = forest.tree().shape();
  const std::vector<std::size_t> leaves = forest.leaves();
  std::vector<Verdict> verdicts(producers, Verdict::duplicate);
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p < producers; ++p) {
    threads.emplace_back([&, p] {
      std::vector<std::unique_ptr<NodeInTurn>> owned;
      std::vector<Slice*> nodes;
      for (std::size_t i = 0; i < shape.nodes(); ++i) {
        owned.push_back(std::make_unique<NodeInTurn>(forest.node(i), turns, p));
        nodes.push_back(owned.back().get());
      }
      AtOnceTree tree = *AtOnceTree::make(shape, nodes, {});
      const Digest id = key(1);
      tree.test_and_set(leaves[p % leaves.size()], {&id, 1}, {}, {&verdicts[p], 1}, 0);
      turns.end(p);
    });
  }
  turns.give(draw, crash_one_in);
  for (std::thread& thread : threads) thread.join();
  return static_cast<std::size_t>(std::ranges::count(verdicts, Verdict::fresh));
}

TEST(AtOnceTree, TellsOneOfManyProducersThatItIsFresh) {
  constexpr std::uint64_t kRuns = 2000;
  std::uint64_t crashes = 0, fresh = 0;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    Random random(seed);
    Forest forest({});
    const std::size_t producers = 2 + random.below(4);
    Turns turns(producers);
    const auto draw = [&](std::uint64_t n) { return random.below(n); };
    const std::size_t told = told_fresh(forest, turns, producers, draw, seed % 2 == 0 ? 12 : 0);
    ASSERT_LE(told, 1u) << seed;
    if (!turns.any_crashed()) {
      ASSERT_EQ(told, 1u) << seed;
    }
    crashes += turns.any_crashed();
    fresh += told;
  }
  EXPECT_GT(crashes, kRuns / 10);
  EXPECT_GT(fresh, kRuns / 2);
}

// Each thread has its own tree over shared nodes. One of all producers of an id is told 'fresh'.
TEST(AtOnceTree, TellsOneOfManyProducersInThreads) {
  std::vector<std::unique_ptr<Slice>> owned;
  std::vector<Slice*> nodes;
  for (std::size_t i = 0; i < kSeven.size(); ++i) {
    owned.push_back(std::make_unique<ThreadSlice>(std::make_unique<TestNode>()));
    nodes.push_back(owned.back().get());
  }
  constexpr std::size_t kThreads = 4, kIds = 300;
  std::vector<std::vector<Verdict>> verdicts(kThreads, std::vector<Verdict>(kIds));
  const std::vector<Digest> ids = keys(0, kIds);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      AtOnceTree tree = *AtOnceTree::make(*TreeShape::make(kSeven), nodes, {});
      tree.test_and_set(3 + t, ids, {}, verdicts[t], 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kIds; ++i) {
    const auto fresh = std::ranges::count_if(
        verdicts, [&](const std::vector<Verdict>& of) { return of[i] == Verdict::fresh; });
    ASSERT_EQ(fresh, 1) << i;
  }
}

}  // namespace
}  // namespace semel::papers
