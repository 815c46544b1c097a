// BloomTree: filters, or windows, one above the other: a duplicate is found as near as possible to where
// it comes in. One producer's view, or that of all.
//
// Contract  test_and_set and test of TreeRun (semel/slices/tree_run.h), in one call for the ids of a leaf.
//           Local filters are the tree of two levels: a leaf for each producer, below one root.
// Nodes     are slices, not owned, and may be shared by the trees of several producers if they say
//           Producers::many (or have no ids in common) and the nodes bear several callers
//           (semel/slices/internal/thread_slice.h). An overloaded node is sliced in turn (sliced_node.h).
// Growing   A leaf may be added at any time. Where hits are confirmed top-down, every producer's tree must
//           have it before the first id comes in there.
// Failures  A node whose call fails is `failed` from then on, until the caller says otherwise: `returning`
//           for a window, then `live`.
// Error     A leaf takes a new id for a duplicate with a probability of at most the sum over its path. If
//           all nodes are filters of one shape, it is that of the root: each knows a part of what the
//           root does, by the same bits. Confirming makes it less.
// Cost      As many rounds as TreeRun says, each as long as its slowest node.
// Threads   A call needs the object to itself.
// Source    Koloniari, Ntarmos, Pitoura & Souravlias, 'One is Enough', section 6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "semel/core/result.h"
#include "semel/slices/slice.h"
#include "semel/slices/tree_run.h"
#include "semel/slices/tree_shape.h"
#include "semel/window/window.h"

namespace semel {

struct TreeLevel {
  std::size_t nodes = 0;
  TreeLoad load;
  std::uint64_t bytes = 0;         // of all its nodes
  double false_positive_rate = 0;  // the mean of its nodes, now
};

class BloomTree {
 public:
  struct Options {
    TreeRules rules = {};
    // With many producers. Runs take the owners from this number on: hand in a random one.
    std::uint64_t first_owner = 0;
    // With many producers that confirm. Called while all that is left is held by others: waits a
    // little, and says what time it is.
    std::function<TimeMs()> pause = {};
  };

  // Errc::invalid unless there is a node for each of the shape's, the rules are valid, and there is a
  // pause where there are many producers and confirm_at > 0.
  static Result<BloomTree> make(TreeShape shape, std::vector<Slice*> nodes, Options options);

  // The number of the new leaf. Errc::invalid if there is no such parent, or no node.
  Result<std::size_t> add_leaf(std::size_t parent, Slice* node);

  // REQUIRES, of both: `leaf` is one; spans of equal size; without `at_ms` all happened at now_ms.
  void test(std::size_t leaf, std::span<const Digest> ids, std::span<Verdict> verdicts,
            TimeMs now_ms);
  void test_and_set(std::size_t leaf, std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                    std::span<Verdict> verdicts, TimeMs now_ms);

  std::span<const SliceState> states() const { return states_; }
  // REQUIRES: node < shape().nodes().
  void set_state(std::size_t node, SliceState state);

  const TreeShape& shape() const { return shape_; }
  std::vector<TreeLevel> levels() const;  // from the root down
  std::span<const TreeLoad> load() const { return load_; }
  std::uint64_t bytes() const;
  // Of a new id that comes in at this leaf: a bound. REQUIRES: it is one.
  double false_positive_rate(std::size_t leaf) const;

 private:
  BloomTree(TreeShape shape, std::vector<Slice*> nodes, Options options);

  void run(TreeJob job, std::span<Verdict> verdicts);

  TreeShape shape_;
  std::vector<Slice*> nodes_;
  Options options_;
  std::vector<SliceState> states_;
  std::vector<TreeLoad> load_;  // of each level
  std::uint64_t runs_ = 0;
};

}  // namespace semel
