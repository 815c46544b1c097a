// AtOnceTree: the dense Bloom tree as the paper prints it, with its faults corrected.
//
// Contract  The path is asked by test_and_set, from the leaf up. If a node knows the id, it is a
//           duplicate. An id that no node knows is fresh. So this tree saves the message with which
//           BloomTree sets a node. The price: if an id does not arrive at the root (a crash, a full
//           root), it was still set on its way, and later events are told 'duplicate' although none
//           was told 'fresh'.
// Top-down  With confirm_at = d > 0, a hit on a level j < d stands only if a child other than the
//           one it came from knows the id too, and so on down to level d. A hit that no child
//           confirms is refuted as a false positive. The run then goes on upwards, unlike in the
//           paper.
// Failures  As in BloomTree: a failed node counts as a miss, and refutes nothing.
// Cost      One message for each id and node. The ids of a batch go one after another.
// Threads   A call needs the object to itself. Several trees may share nodes that allow several
//           callers. The root's test_and_set is atomic, so one of all producers of an id is told
//           'fresh', unless its hits are refuted. With confirm_at > 0 there must be only one
//           producer.
// Source    Koloniari, Ntarmos, Pitoura & Souravlias, 'One is Enough', section 6, algorithm 1.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/result.h"
#include "semel/slices/bloom_tree.h"
#include "semel/slices/slice.h"
#include "semel/slices/tree_shape.h"

namespace semel::papers {

class AtOnceTree {
 public:
  struct Options {
    std::size_t confirm_at = 0;                // level d of the top-down test; 0: every hit stands
    Verdict root_failed = Verdict::duplicate;  // or fresh
  };

  // Errors: Errc::invalid unless there is one node for each node of the shape, and root_failed is
  // one of the two.
  static Result<AtOnceTree> make(TreeShape shape, std::vector<Slice*> nodes, Options options);

  // If `at_ms` is empty, all events happened at now_ms. REQUIRES: `leaf` is a leaf; the spans are
  // of equal size.
  void test_and_set(std::size_t leaf, std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                    std::span<Verdict> verdicts, TimeMs now_ms);

  std::span<const SliceState> states() const { return states_; }
  // REQUIRES: node < shape().nodes().
  void set_state(std::size_t node, SliceState state);

  const TreeShape& shape() const { return shape_; }
  std::span<const TreeLoad> load() const { return load_; }  // of each level

 private:
  // An event on its way.
  struct Event {
    Digest id;
    std::optional<TimeMs> at_ms;
    TimeMs now_ms;
  };

  AtOnceTree(TreeShape shape, std::vector<Slice*> nodes, Options options);

  bool live(std::size_t node) const { return states_[node] == SliceState::live; }
  bool failed(std::size_t node) const { return states_[node] == SliceState::failed; }
  bool refutable(std::size_t node) const {
    return shape_.level(node) < options_.confirm_at && !shape_.has_own(node);
  }
  TreeLoad& load_of(std::size_t node) { return load_[shape_.level(node)]; }

  Verdict sift(std::size_t leaf, const Event& event);
  bool stands(std::size_t node, std::size_t from, const Event& event);
  std::optional<Verdict> ask(std::size_t node, SliceAction action, const Event& event);

  TreeShape shape_;
  std::vector<Slice*> nodes_;
  Options options_;
  std::vector<SliceState> states_;
  std::vector<TreeLoad> load_;
};

}  // namespace semel::papers
