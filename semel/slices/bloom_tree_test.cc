// Bloom trees: beside an exact twin, the propositions of the paper, windows, interleaved producers
// that crash, and nodes that fail.
#include "semel/slices/bloom_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/slices/internal/tree_run.h"
#include "semel/slices/sliced_node.h"
#include "semel/slices/thread_slice.h"
#include "semel/slices/window_slice.h"
#include "semel/window/internal/endless_filter.h"
#include "semel/window/internal/endless_set.h"
#include "semel/window/internal/exact_window.h"
#include "tests/support/any_tree.h"
#include "tests/support/keys.h"

namespace semel {
namespace {

constexpr std::size_t kNone = TreeShape::kNone;
constexpr TimeMs kWindow = 1000;

// A node over any window. On request it takes some ids for known, fails, or is full.
class TestNode final : public Slice {
 public:
  explicit TestNode(std::unique_ptr<Slice> slice) : slice_(std::move(slice)) {}

  void start(SliceCall& call) override {
    const bool sets = call.action == SliceAction::set || call.action == SliceAction::test_and_set;
    const bool asks = call.action == SliceAction::test || call.action == SliceAction::test_and_set;
    const SliceAction action = call.action;
    if (full && sets) call.action = SliceAction::test;
    slice_->start(call);
    call.action = action;
    call.failed = fails;
    for (std::size_t i = 0; i < call.keys.size(); ++i) {
      const bool lies = std::ranges::find(false_positives, call.keys[i]) != false_positives.end();
      if (asks && lies) call.verdicts[i] = Verdict::duplicate;
      if (sets && full && call.verdicts[i] == Verdict::fresh) call.verdicts[i] = Verdict::full;
    }
  }
  void finish(SliceCall& call) override { slice_->finish(call); }
  std::uint64_t bytes() const override { return slice_->bytes(); }
  double false_positive_rate() const override { return slice_->false_positive_rate(); }

  bool fails = false, full = false;
  std::vector<Digest> false_positives;

 private:
  std::unique_ptr<Slice> slice_;
};

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

// The nodes of a tree, and the tree.
class Forest {
 public:
  using Make = std::unique_ptr<Slice> (*)();

  Forest(std::vector<std::size_t> parents, const TreeRules& rules, Make make = exact_slice)
      : make_(make), shape_(*TreeShape::make(parents)) {
    for (std::size_t i = 0; i < parents.size(); ++i) add_node();
    std::vector<Slice*> all;
    for (const auto& node : nodes_) all.push_back(node.get());
    tree_ = *BloomTree::make(shape_, all, {.rules = rules, .pause = [] { return TimeMs{0}; }});
  }

  BloomTree& tree() { return *tree_; }
  TestNode& node(std::size_t i) { return *nodes_[i]; }

  std::size_t add_leaf(std::size_t parent) { return *tree_->add_leaf(parent, add_node()); }
  std::vector<std::size_t> leaves() const { return leaves_of(tree_->shape()); }
  std::vector<Verdict> sift(std::size_t leaf, const std::vector<Digest>& ids, TimeMs now_ms = 0) {
    std::vector<Verdict> verdicts(ids.size());
    tree_->test_and_set(leaf, ids, {}, verdicts, now_ms);
    return verdicts;
  }
  Verdict sift(std::size_t leaf, Digest id, TimeMs now_ms = 0) {
    return sift(leaf, std::vector<Digest>{id}, now_ms)[0];
  }
  Verdict test(std::size_t leaf, Digest id, TimeMs now_ms = 0) {
    Verdict verdict = Verdict::fresh;
    tree_->test(leaf, {&id, 1}, {&verdict, 1}, now_ms);
    return verdict;
  }
  // Returns true if the node itself knows the id.
  bool knows(std::size_t i, Digest id, TimeMs now_ms = 0) {
    SliceCall call;
    call.keys = {id};
    call.now_ms = now_ms;
    node(i).start(call);
    node(i).finish(call);
    return call.verdicts[0] == Verdict::duplicate;
  }

 private:
  TestNode* add_node() {
    nodes_.push_back(std::make_unique<TestNode>(make_()));
    return nodes_.back().get();
  }

  Make make_;
  TreeShape shape_;
  std::vector<std::unique_ptr<TestNode>> nodes_;
  std::optional<BloomTree> tree_;
};

//        0
//      /   \         leaves: 3, 4, 5, 6
//     1     2
//    / \   / \       .
//   3   4 5   6
const std::vector<std::size_t> kSeven = {kNone, 0, 0, 1, 1, 2, 2};

// ------------------------------------------------------------------------------------------ shapes

TEST(TreeShape, RefusesWhatIsNoTree) {
  const auto refusal = [](std::vector<std::size_t> parents) {
    const Result<TreeShape> shape = TreeShape::make(parents);
    return shape ? "none" : shape.error().message();
  };
  EXPECT_EQ(refusal({}), "a tree without a root");
  EXPECT_EQ(refusal({1, 0}), "a tree without a root");
  EXPECT_EQ(refusal({kNone, kNone}), "a tree of two roots");
  EXPECT_EQ(refusal({kNone, 2}), "a tree with a parent that is not in it");
  EXPECT_EQ(refusal({kNone, 1}), "a tree with a cycle");
  EXPECT_EQ(refusal({kNone, 0, 3, 4, 2}), "a tree with a cycle");
  EXPECT_EQ(refusal({2, 0, kNone}), "none");
}

TEST(TreeShape, KnowsLevelsAndGrows) {
  TreeShape shape = *TreeShape::make(kSeven);
  EXPECT_EQ(shape.levels(), 3u);
  EXPECT_EQ(shape.level(0), 0u);
  EXPECT_EQ(shape.level(6), 2u);
  EXPECT_EQ(shape.parent(6), 2u);
  EXPECT_TRUE(shape.leaf(6) && shape.has_own(6));
  EXPECT_FALSE(shape.leaf(2) || shape.has_own(2));
  EXPECT_EQ(*shape.add_leaf(2), 7u);
  EXPECT_EQ(*shape.add_leaf(6), 8u);
  EXPECT_EQ(shape.levels(), 4u);
  EXPECT_FALSE(shape.leaf(6));
  EXPECT_TRUE(shape.has_own(6));  // no child has the ids that came in there
  EXPECT_EQ(shape.add_leaf(9).error().code, Errc::invalid);
}

TEST(BloomTree, RefusesRulesThatDoNotGoTogether) {
  const TreeShape shape = *TreeShape::make(std::vector<std::size_t>{kNone});
  const std::unique_ptr<Slice> node = exact_slice();
  const auto refused = [&](std::vector<Slice*> nodes, const BloomTree::Options& options) {
    return !BloomTree::make(shape, std::move(nodes), options);
  };
  const auto pause = [] { return TimeMs{0}; };
  EXPECT_FALSE(refused({node.get()}, {}));
  EXPECT_TRUE(refused({}, {}));
  EXPECT_TRUE(refused({nullptr}, {}));
  EXPECT_TRUE(refused({node.get()}, {.rules = {.root_failed = Verdict::full}}));
  EXPECT_TRUE(refused({node.get()}, {.rules = {.claim_ms = -1}}));
  const TreeRules rules{.producers = Producers::many, .confirm_at = 1};
  EXPECT_FALSE(refused({node.get()}, {.rules = rules, .pause = pause}));
  EXPECT_TRUE(refused({node.get()}, {.rules = rules}));
}

// ---------------------------------------------------------------------------------- who knows what

TEST(BloomTree, SparseSetsTheFirstPathOnly) {
  Forest forest(kSeven, {.kind = TreeKind::sparse});
  EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
  EXPECT_EQ(forest.sift(4, key(1)), Verdict::duplicate);
  EXPECT_EQ(forest.sift(6, key(1)), Verdict::duplicate);
  for (std::size_t node = 0; node < 7; ++node) {
    EXPECT_EQ(forest.knows(node, key(1)), node == 0 || node == 1 || node == 3) << node;
  }
  const auto load = forest.tree().load();
  EXPECT_EQ(load[0], (TreeLoad{.messages = 2, .tests = 2, .hits = 1}));
  EXPECT_EQ(load[1], (TreeLoad{.messages = 4, .tests = 3, .sets = 1, .hits = 1}));
  EXPECT_EQ(load[2], (TreeLoad{.messages = 4, .tests = 3, .sets = 1}));
}

TEST(BloomTree, DenseSetsWhatIsBelowTheHit) {
  Forest forest(kSeven, {.kind = TreeKind::dense});
  EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
  EXPECT_EQ(forest.sift(4, key(1)), Verdict::duplicate);
  EXPECT_TRUE(forest.knows(4, key(1)));
  EXPECT_FALSE(forest.knows(2, key(1)));
  EXPECT_EQ(forest.sift(6, key(1)), Verdict::duplicate);
  EXPECT_TRUE(forest.knows(2, key(1)) && forest.knows(6, key(1)));
  EXPECT_FALSE(forest.knows(5, key(1)));
  EXPECT_EQ(forest.sift(6, key(1)), Verdict::duplicate);
  EXPECT_EQ(forest.tree().load()[2].hits, 1u);
  EXPECT_EQ(forest.tree().load()[2].tests, 4u);
  EXPECT_EQ(forest.tree().load()[2].sets, 3u);
}

TEST(BloomTree, TestsWithoutSetting) {
  for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
    Forest forest(kSeven, {.kind = kind, .confirm_at = 1});
    EXPECT_EQ(forest.test(3, key(1)), Verdict::fresh);
    EXPECT_EQ(forest.test(3, key(1)), Verdict::fresh);
    EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
    EXPECT_EQ(forest.test(6, key(1)), Verdict::duplicate);
    EXPECT_FALSE(forest.knows(6, key(1)));
  }
}

TEST(BloomTree, ARootAloneIsATree) {
  for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
    Forest forest({kNone}, {.kind = kind, .confirm_at = 3});
    EXPECT_EQ(forest.sift(0, {key(1), key(2), key(1)}),
              (std::vector{Verdict::fresh, Verdict::fresh, Verdict::duplicate}));
    EXPECT_EQ(forest.sift(0, key(2)), Verdict::duplicate);
    const std::size_t leaf = forest.add_leaf(0);  // ids that came in at the root stay known
    EXPECT_EQ(forest.sift(leaf, key(2)), Verdict::duplicate);
    EXPECT_EQ(forest.sift(leaf, key(3)), Verdict::fresh);
  }
}

// One message goes to a node in a round, whatever the number of ids.
TEST(BloomTree, SendsABatchInOneMessage) {
  Forest forest(kSeven, {.kind = TreeKind::sparse});
  const std::vector<Verdict> verdicts = forest.sift(3, keys(0, 1000));
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::fresh), 1000);
  EXPECT_EQ(forest.tree().load()[0].messages, 1u);
  EXPECT_EQ(forest.tree().load()[1].messages, 2u);
  const std::vector<TreeLevel> levels = forest.tree().levels();
  EXPECT_EQ(levels[2].nodes, 4u);
  EXPECT_EQ(levels[2].load, forest.tree().load()[2]);
  EXPECT_EQ(levels[0].bytes + levels[1].bytes + levels[2].bytes, forest.tree().bytes());
}

// ------------------------------------------------------------------------------------ confirmation

TEST(BloomTree, RefutesAFalsePositiveByTheOtherChildren) {
  for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
    Forest forest(kSeven, {.kind = kind, .confirm_at = 2});
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
}

// The hit at 1 is false, and the id came in under 2: the paper would call it distinct.
TEST(BloomTree, GoesOnUpwardsAfterARefutedHit) {
  for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
    Forest forest(kSeven, {.kind = kind, .confirm_at = 2});
    EXPECT_EQ(forest.sift(6, key(1)), Verdict::fresh);
    forest.node(1).false_positives = {key(1)};
    EXPECT_EQ(forest.sift(3, key(1)), Verdict::duplicate);
    EXPECT_EQ(forest.tree().load()[1].refuted, 1u);
    EXPECT_EQ(forest.tree().load()[0].hits, 1u);
    forest.node(1).false_positives.clear();
    EXPECT_EQ(forest.knows(1, key(1)), kind != TreeKind::sparse);  // a copy of its own
  }
}

// -------------------------------------------------------------------------------------- properties

TreeRules any_rules() {
  TreeRules rules;
  rules.kind = *rc::gen::element(TreeKind::sparse, TreeKind::dense);
  rules.confirm_at = *rc::gen::inRange<std::size_t>(0, 6);
  rules.producers = *rc::gen::element(Producers::one, Producers::many);
  return rules;
}

std::vector<Digest> any_batch() {
  std::vector<Digest> batch;
  for (const std::uint64_t n :
       *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 60))) {
    batch.push_back(key(n));
  }
  return batch;
}

struct DigestLess {
  bool operator()(const Digest& a, const Digest& b) const { return a < b; }
};

RC_GTEST_PROP(BloomTree, AgreesWithAnExactTwinWhateverTheTree, ()) {
  const bool grows = *rc::gen::arbitrary<bool>();
  Forest forest(*any_tree(), any_rules());
  std::set<Digest, DigestLess> twin;
  for (int round = *rc::gen::inRange(0, 12); round > 0; --round) {
    if (grows) {
      forest.add_leaf(*rc::gen::inRange<std::size_t>(0, forest.tree().shape().nodes()));
    }
    const std::size_t leaf = *rc::gen::elementOf(forest.leaves());
    const std::vector<Digest> batch = any_batch();
    const std::vector<Verdict> verdicts = forest.sift(leaf, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      RC_ASSERT((verdicts[i] == Verdict::fresh) == twin.insert(batch[i]).second);
    }
  }
}

// Propositions 3 and 4, with filters of one shape: sparse and dense trees give the answers of the
// single filter. With confirmed hits they call fewer ids duplicates, and no duplicate fresh.
RC_GTEST_PROP(BloomTree, SaysWhatASingleFilterSays, ()) {
  const std::vector<std::size_t> parents = *any_tree();
  Forest sparse(parents, {.kind = TreeKind::sparse}, filter_slice);
  Forest dense(parents, {.kind = TreeKind::dense}, filter_slice);
  Forest single({kNone}, {}, filter_slice);
  TreeRules rules = any_rules();
  rules.confirm_at += 1;
  Forest confirming(parents, rules, filter_slice);
  std::set<std::uint64_t> twin;
  const std::vector<std::size_t> leaves = sparse.leaves();
  // As many as there is room for, so that the filters err in every run.
  const auto events = *rc::gen::container<std::vector<std::uint64_t>>(
      kFilterIds, rc::gen::inRange<std::uint64_t>(0, 2 * kFilterIds));
  const std::uint64_t salt = *rc::gen::inRange<std::uint64_t>(0, 1'000'000) * 1000;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::size_t leaf = leaves[mix(events[i] + i) % leaves.size()];
    const Digest id = key(salt + events[i]);
    const Verdict verdict = single.sift(0, id);
    RC_ASSERT(sparse.sift(leaf, id) == verdict);
    RC_ASSERT(dense.sift(leaf, id) == verdict);
    const Verdict confirmed = confirming.sift(leaf, id);
    const bool is_new = twin.insert(events[i]).second;
    RC_ASSERT(is_new || confirmed == Verdict::duplicate);
  }
}

// Every duplicate is within the bound of its level, and every repetition within the window is a
// duplicate, in a batch or alone, through steps of time of any size.
RC_GTEST_PROP(BloomTree, KeepsThePromiseOfItsWindows, ()) {
  TreeRules rules = any_rules();
  Forest forest(*any_tree(), rules, window_slice);
  const std::vector<std::size_t> leaves = forest.leaves();
  const TimeMs node_ms = kWindow + kWindow / 8;  // an exact window forgets within a span
  std::map<Digest, TimeMs, DigestLess> fresh_at;
  TimeMs now_ms = 0;
  for (int round = *rc::gen::inRange(0, 60); round > 0; --round) {
    now_ms += *rc::gen::inRange<TimeMs>(0, kWindow);
    const std::size_t leaf = *rc::gen::elementOf(leaves);
    std::vector<Digest> batch;
    for (int n = *rc::gen::inRange(1, 4); n > 0; --n) {
      batch.push_back(key(*rc::gen::inRange<std::uint64_t>(0, 6)));
    }
    const std::vector<Verdict> verdicts = forest.sift(leaf, batch, now_ms);
    const TimeMs longest = longest_ms(rules.kind, forest.tree().shape().level(leaf) + 1, node_ms);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto known = fresh_at.find(batch[i]);
      const bool was = known != fresh_at.end();
      if (was && now_ms - known->second <= kWindow) {
        RC_ASSERT(verdicts[i] == Verdict::duplicate);
      } else if (!was || now_ms - known->second > longest) {
        RC_ASSERT(verdicts[i] == Verdict::fresh);
      }
      if (verdicts[i] == Verdict::fresh) fresh_at[batch[i]] = now_ms;
    }
  }
}

TEST(BloomTree, DenseCopiesLiveLongerByAWindowForEveryLevel) {
  const TimeMs node_ms = kWindow + kWindow / 8;
  EXPECT_EQ(longest_ms(TreeKind::sparse, 3, node_ms), node_ms);
  EXPECT_EQ(longest_ms(TreeKind::dense, 3, node_ms), 3 * node_ms);
  EXPECT_EQ(longest_ms(TreeKind::dense, 1u << 20, std::numeric_limits<TimeMs>::max() / 2),
            std::numeric_limits<TimeMs>::max());
  for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
    Forest forest(kSeven, {.kind = kind}, window_slice);
    EXPECT_EQ(forest.sift(3, key(1), 0), Verdict::fresh);
    // At the last moment the root copies to 2 and 6, then 2 to 5.
    const Verdict late = kind == TreeKind::sparse ? Verdict::fresh : Verdict::duplicate;
    EXPECT_EQ(forest.sift(6, key(1), kWindow), Verdict::duplicate);
    EXPECT_EQ(forest.sift(5, key(1), 2 * kWindow), late);
    EXPECT_EQ(forest.sift(5, key(1), 3 * kWindow), Verdict::duplicate);
    EXPECT_EQ(forest.sift(3, key(1), 3 * kWindow + 250), Verdict::fresh);  // over elsewhere
  }
}

TEST(BloomTree, TakesTheTimesOfEvents) {
  for (const std::size_t confirm_at : {0, 2}) {
    Forest forest(kSeven, {.kind = TreeKind::sparse, .confirm_at = confirm_at}, window_slice);
    const std::vector<Digest> ids = keys(0, 3);
    std::vector<Verdict> verdicts(3);
    const TimeMs now_ms = 10'000;
    forest.tree().test_and_set(3, ids, std::vector<TimeMs>{now_ms, now_ms - 900, now_ms - 1001},
                               verdicts, now_ms);
    EXPECT_EQ(verdicts, (std::vector{Verdict::fresh, Verdict::fresh, Verdict::stale}));
    EXPECT_FALSE(forest.knows(3, key(2), now_ms));
    EXPECT_EQ(forest.sift(3, ids, now_ms + 400),
              (std::vector{Verdict::duplicate, Verdict::fresh, Verdict::fresh}));
  }
}

// ---------------------------------------------------------------------- producers at the same time

// Runs whose messages are delivered one by one, in a random order. A run may stop for ever.
struct Producer {
  std::optional<slices_internal::TreeRun> run;
  std::vector<bool> delivered;
  bool crashed = false;
};

class Interleaving {
 public:
  Interleaving(Forest& forest, const TreeRules& rules, std::size_t producers, Digest id)
      : forest_(forest) {
    const std::vector<std::size_t> leaves = forest.leaves();
    producers_.resize(producers);
    for (std::size_t i = 0; i < producers; ++i) {
      const std::vector<SliceState> states(forest.tree().shape().nodes(), SliceState::live);
      slices_internal::TreeJob job{
          .leaf = leaves[i % leaves.size()], .ids = {id}, .owner = 100 + i};
      producers_[i].run.emplace(forest.tree().shape(), rules, states, std::move(job));
    }
  }

  // Delivers messages until all are done or have crashed. Time passes; claims may run out.
  template <class Draw>
  void go(Draw draw, std::uint64_t crash_one_in, TimeMs step_ms) {
    for (int turn = 0; turn < 20'000; ++turn) {
      std::vector<Producer*> alive;
      for (Producer& producer : producers_) {
        if (!producer.crashed && !producer.run->done()) alive.push_back(&producer);
      }
      if (alive.empty()) return;
      Producer& producer = *alive[draw(alive.size())];
      if (crash_one_in > 0 && draw(crash_one_in) == 0) {
        producer.crashed = true;
        continue;
      }
      now_ms_ += step_ms;
      deliver_one(producer, draw);
    }
    FAIL() << "no end";
  }

  std::size_t told_fresh() const {
    return static_cast<std::size_t>(std::ranges::count_if(producers_, [](const Producer& p) {
      return p.run->done() && p.run->verdicts()[0] == Verdict::fresh;
    }));
  }
  bool crashed() const {
    return std::ranges::any_of(producers_, [](const Producer& p) { return p.crashed; });
  }

 private:
  // Picks any message, but keeps the order of messages to one node.
  template <class Draw>
  void deliver_one(Producer& producer, Draw draw) {
    const std::span<SliceMessage> messages = producer.run->messages();
    producer.delivered.resize(messages.size());
    std::vector<std::size_t> next;
    std::set<std::size_t> nodes;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      if (!producer.delivered[m] && nodes.insert(messages[m].slice).second) next.push_back(m);
    }
    const std::size_t m = next[draw(next.size())];
    messages[m].call.now_ms = now_ms_;
    forest_.node(messages[m].slice).start(messages[m].call);
    producer.delivered[m] = true;
    if (std::ranges::find(producer.delivered, false) != producer.delivered.end()) return;
    producer.run->step(now_ms_);
    producer.delivered.clear();
  }

  Forest& forest_;
  std::vector<Producer> producers_;
  TimeMs now_ms_ = 0;
};

TEST(TreeRun, TellsOneOfManyProducersThatItIsFresh) {
  std::uint64_t crashes = 0, fresh = 0, runs = 0;
  for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
    for (std::size_t confirm_at = 0; confirm_at <= 2; ++confirm_at) {
      const TreeRules rules{
          .kind = kind, .producers = Producers::many, .confirm_at = confirm_at, .claim_ms = 20};
      for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        Random random(seed);
        Forest forest(kSeven, rules, window_slice);
        // In some of the runs the root, or a node above the leaves, takes the id for known.
        if (confirm_at > 0 && seed % 3 == 1) forest.node(0).false_positives = {key(1)};
        if (confirm_at > 1 && seed % 3 == 2) forest.node(1).false_positives = {key(1)};
        Interleaving all(forest, rules, 2 + random.below(4), key(1));
        const auto draw = [&](std::uint64_t n) { return random.below(n); };
        const bool may_crash = seed % 2 == 0;
        // With steps of 3 ms, claims of 20 ms expire while their owners are still at work.
        all.go(draw, may_crash ? 12 : 0, seed % 4 < 2 ? 0 : 3);
        if (HasFatalFailure()) return;
        ++runs;
        crashes += all.crashed();
        fresh += all.told_fresh();
        ASSERT_LE(all.told_fresh(), 1u) << seed;
        if (!all.crashed()) {
          ASSERT_EQ(all.told_fresh(), 1u) << seed;
        }
      }
    }
  }
  EXPECT_GT(crashes, runs / 10);
  EXPECT_GT(fresh, runs / 2);
}

// The fault that claims prevent must show, or the test above means nothing.
TEST(TreeRun, WouldTellTwoProducersIfTheyDidNotTakeTurns) {
  const TreeRules rules{.kind = TreeKind::sparse, .confirm_at = 1};
  std::uint64_t twice = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Forest forest(kSeven, rules, window_slice);
    Interleaving all(forest, rules, 3, key(1));
    all.go([&](std::uint64_t n) { return random.below(n); }, 0, 0);
    twice += all.told_fresh() > 1;
  }
  EXPECT_GT(twice, 20u);
}

// A crash anywhere delays the others, but never makes the id fresh twice. A later run of the same
// event gets one answer.
TEST(TreeRun, GoesOnAfterACrashAtEveryPoint) {
  const TreeRules rules{
      .kind = TreeKind::sparse, .producers = Producers::many, .confirm_at = 2, .claim_ms = 20};
  bool ended = false;
  for (std::size_t steps = 0; !ended; ++steps) {
    Forest forest(kSeven, rules, window_slice);
    const auto run_of = [&](std::uint64_t owner, std::size_t leaf, TimeMs now_ms) {
      return slices_internal::TreeRun(
          forest.tree().shape(), rules, std::vector<SliceState>(7, SliceState::live),
          {.leaf = leaf, .ids = {key(1)}, .now_ms = now_ms, .owner = owner});
    };
    const auto answer = [&](slices_internal::TreeRun& run) {
      for (SliceMessage& message : run.messages()) forest.node(message.slice).start(message.call);
    };
    slices_internal::TreeRun first = run_of(1, 3, 0);
    bool committed = false;
    for (std::size_t step = 0; step < steps && !first.done(); ++step) {
      answer(first);
      committed = committed || first.messages()[0].call.action == SliceAction::commit;
      first.step(0);
    }
    ended = first.done();
    slices_internal::TreeRun second = run_of(2, 3, 0);
    bool waited = false;
    for (TimeMs now_ms = 0; !second.done(); ++now_ms) {
      waited = waited || second.waits();
      answer(second);
      second.step(now_ms);
    }
    EXPECT_EQ(second.verdicts()[0], committed ? Verdict::duplicate : Verdict::fresh) << steps;
    EXPECT_EQ(waited, !committed && steps > 2) << steps;  // it asks leaf and parent, then claims
  }
}

// Threads, each with a tree of its own over shared nodes. For ThreadSanitizer as well.
TEST(BloomTree, ServesProducersInThreads) {
  for (const std::size_t confirm_at : {0, 1}) {
    std::vector<std::unique_ptr<Slice>> owned;
    std::vector<Slice*> nodes;
    for (std::size_t i = 0; i < kSeven.size(); ++i) {
      owned.push_back(std::make_unique<ThreadSlice>(exact_slice()));
      nodes.push_back(owned.back().get());
    }
    const TreeRules rules{
        .kind = TreeKind::dense, .producers = Producers::many, .confirm_at = confirm_at};
    constexpr std::size_t kThreads = 4, kIds = 500;
    std::vector<std::vector<Verdict>> verdicts(kThreads, std::vector<Verdict>(kIds));
    const std::vector<Digest> ids = keys(0, kIds);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto pause = [] {
          std::this_thread::yield();
          return TimeMs{0};
        };
        BloomTree tree =
            *BloomTree::make(*TreeShape::make(kSeven), nodes,
                             {.rules = rules, .first_owner = 1000 * (t + 1), .pause = pause});
        for (std::size_t from = 0; from < kIds; from += 50) {
          tree.test_and_set(3 + t, std::span(ids).subspan(from, 50), {},
                            std::span(verdicts[t]).subspan(from, 50), 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < kIds; ++i) {
      const auto fresh = std::ranges::count_if(
          verdicts, [&](const std::vector<Verdict>& of) { return of[i] == Verdict::fresh; });
      ASSERT_EQ(fresh, 1) << i;
    }
  }
}

// ---------------------------------------------------------------------------------------- failures

TEST(BloomTree, TakesAFailedNodeForAMiss) {
  for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
    for (const std::size_t bad : {3, 1}) {
      Forest forest(kSeven, {.kind = kind, .confirm_at = 2});
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
}

TEST(BloomTree, FollowsItsPolicyWhenTheRootFails) {
  for (const Verdict policy : {Verdict::duplicate, Verdict::fresh}) {
    for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
      for (const Producers producers : {Producers::one, Producers::many}) {
        for (const std::size_t confirm_at : {0, 2}) {
          const TreeRules rules{.kind = kind,
                                .producers = producers,
                                .confirm_at = confirm_at,
                                .root_failed = policy};
          Forest forest(kSeven, rules);
          EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
          forest.node(0).fails = true;
          EXPECT_EQ(forest.sift(3, key(1)), Verdict::duplicate);  // the leaf knows it
          EXPECT_EQ(forest.sift(3, key(2)), policy);
          EXPECT_EQ(forest.sift(3, key(3)), policy);  // known to have failed, and not asked
          EXPECT_EQ(forest.test(3, key(4)), policy);
          EXPECT_EQ(forest.knows(3, key(2)), policy == Verdict::fresh);
        }
      }
    }
  }
}

TEST(BloomTree, TellsWhenTheRootIsFullAndSetsNothing) {
  for (const TreeKind kind : {TreeKind::sparse, TreeKind::dense}) {
    for (const Producers producers : {Producers::one, Producers::many}) {
      for (const std::size_t confirm_at : {0, 2}) {
        Forest forest(kSeven, {.kind = kind, .producers = producers, .confirm_at = confirm_at});
        forest.node(0).full = true;
        EXPECT_EQ(forest.sift(3, {key(1), key(1)}), (std::vector{Verdict::full, Verdict::full}));
        EXPECT_FALSE(forest.knows(3, key(1)) || forest.knows(1, key(1)));
      }
    }
  }
}

TEST(BloomTree, DoesNotLetAFullNodeRefute) {
  Forest forest(kSeven, {.kind = TreeKind::sparse, .confirm_at = 2}, window_slice);
  forest.node(1).full = true;
  EXPECT_EQ(forest.sift(3, key(1)), Verdict::fresh);
  EXPECT_EQ(forest.tree().states()[1], SliceState::returning);
  EXPECT_EQ(forest.sift(5, key(1)), Verdict::duplicate);
}

// ------------------------------------------------------------------------------------ sliced nodes

TEST(BloomTree, AnOverloadedNodeIsSliced) {
  for (const Producers producers : {Producers::one, Producers::many}) {
    for (const std::size_t confirm_at : {0, 1}) {
      std::vector<std::unique_ptr<Slice>> owned;
      std::vector<Slice*> slices, nodes;
      for (int i = 0; i < 5; ++i) {
        owned.push_back(exact_slice());
        slices.push_back(owned.back().get());
      }
      const Placement placement = *Placement::make({SliceLayout::vertical, 5, 1, 3});
      const auto pause = [] { return TimeMs{0}; };
      SlicedNode root(*SlicedFilter::make(
                          placement, slices,
                          {.rules = {.producers = producers}, .first_owner = 7, .pause = pause}),
                      slices);
      nodes.push_back(&root);
      for (int i = 0; i < 3; ++i) {
        owned.push_back(exact_slice());
        nodes.push_back(owned.back().get());
      }
      const std::vector<std::size_t> parents = {kNone, 0, 0, 0};
      BloomTree tree = *BloomTree::make(
          *TreeShape::make(parents), nodes,
          {.rules = {.kind = TreeKind::sparse, .producers = producers, .confirm_at = confirm_at},
           .pause = pause});
      std::set<std::uint64_t> twin;
      Random random(1);
      for (int round = 0; round < 200; ++round) {
        std::vector<Digest> batch;
        std::vector<bool> is_new;
        for (int n = 0; n < 10; ++n) {
          const std::uint64_t number = random.below(500);
          batch.push_back(key(number));
          is_new.push_back(twin.insert(number).second);
        }
        std::vector<Verdict> verdicts(batch.size());
        tree.test_and_set(1 + random.below(3), batch, {}, verdicts, round);
        for (std::size_t i = 0; i < batch.size(); ++i) {
          ASSERT_EQ(verdicts[i] == Verdict::fresh, is_new[i]);
        }
      }
      EXPECT_GT(root.filter().load().total().lookups, 0u);
      EXPECT_EQ(tree.levels()[0].bytes, root.bytes());
    }
  }
}

TEST(BloomTree, BoundsItsFalsePositives) {
  Forest forest(kSeven, {.kind = TreeKind::dense}, filter_slice);
  EXPECT_EQ(forest.tree().false_positive_rate(3), 0);
  forest.sift(3, keys(0, 150));
  const double bound = forest.tree().false_positive_rate(3);
  const double root = forest.tree().levels()[0].false_positive_rate;
  EXPECT_GT(root, 0.05);
  EXPECT_NEAR(bound, 3 * root, 1e-9);  // the same filter three times
  EXPECT_NEAR(forest.tree().levels()[2].false_positive_rate, root / 4, 1e-9);
  EXPECT_LE(forest.tree().false_positive_rate(6), root);
}

}  // namespace
}  // namespace semel
