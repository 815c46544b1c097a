// AtOnceTree: what its nodes know, confirmation, failures, and producers in threads.
#include "semel/papers/at_once_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "semel/core/internal/random.h"
#include "semel/slices/thread_slice.h"
#include "semel/slices/window_slice.h"
#include "semel/window/internal/sliding_filter.h"
#include "tests/support/keys.h"

namespace semel::papers {
namespace {

constexpr std::size_t kNone = TreeShape::kNone;
constexpr TimeMs kWindow = 1000;
const std::vector<std::size_t> kSeven = {kNone, 0, 0, 1, 1, 2, 2};

// A node that on request takes some ids for known, fails, or is full. The error of its filter is so
// low that it is exact here.
class TestNode final : public Slice {
 public:
  void start(SliceCall& call) override {
    const SliceAction action = call.action;
    if (full && action != SliceAction::test) call.action = SliceAction::test;
    slice_.start(call);
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
  std::uint64_t bytes() const override { return slice_.bytes(); }
  double false_positive_rate() const override { return slice_.false_positive_rate(); }

  bool knows(Digest id) const { return slice_.window().test(id) == Verdict::duplicate; }

  bool fails = false, full = false;
  std::vector<Digest> false_positives;

 private:
  using Window = window_internal::SlidingFilter;
  WindowSlice<Window> slice_{*Window::make({.window_ms = kWindow, .fpr = 1e-9, .ids = 100}, 0), 0};
};

class Forest {
 public:
  explicit Forest(AtOnceTree::Options options, std::vector<std::size_t> parents = kSeven)
      : nodes_(parents.size()) {
    std::vector<Slice*> all;
    for (TestNode& node : nodes_) all.push_back(&node);
    tree_ = *AtOnceTree::make(*TreeShape::make(parents), all, options);
  }
  AtOnceTree& tree() { return *tree_; }
  TestNode& node(std::size_t i) { return nodes_[i]; }
  bool knows(std::size_t i, Digest id) const { return nodes_[i].knows(id); }
  std::vector<Verdict> sift(std::size_t leaf, const std::vector<Digest>& ids, TimeMs now_ms = 0) {
    std::vector<Verdict> verdicts(ids.size());
    tree_->test_and_set(leaf, ids, {}, verdicts, now_ms);
    return verdicts;
  }
  Verdict sift(std::size_t leaf, Digest id, TimeMs now_ms = 0) {
    return sift(leaf, std::vector<Digest>{id}, now_ms)[0];
  }

 private:
  std::vector<TestNode> nodes_;
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

// With and without confirmation, the first event of an id is fresh and no other is.
TEST(AtOnceTree, TellsTheFirstOfEachIdThroughAnyEvents) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    Forest forest({.confirm_at = static_cast<std::size_t>(seed % 4)});
    std::vector<bool> seen(40);
    for (int n = 0; n < 200; ++n) {
      const std::uint64_t number = random.below(seen.size());
      ASSERT_EQ(forest.sift(3 + random.below(4), key(number)) == Verdict::fresh, !seen[number]);
      seen[number] = true;
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
