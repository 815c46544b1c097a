// BloomTree: a tree of filters or windows that finds a duplicate as near as possible to the leaf
// where it comes in. A BloomTree is the view of one producer, or of all.
//
// Contract  A call hands in ids at a leaf. The nodes on its path are asked from the leaf up, until
//           one knows the id, which is then a duplicate. If no node up to the root knows the id, it
//           is fresh. test_and_set sets a fresh id in all nodes of the path. An id that comes twice
//           in a call is a duplicate the second time. An id that the root refuses (full, stale)
//           gets that verdict, and is set nowhere below. A tree of two levels, with a leaf for each
//           producer below one root, gives local filters.
// Kinds     sparse: only fresh ids are set, so an id is in one leaf and the ancestors of that leaf.
//           dense: a duplicate is also set in the nodes below the one that knew it, so it is found
//           nearer next time.
// Windows   All nodes need windows of one length. Both kinds know an id for at least the window. In
//           a dense tree the copies of a duplicate are younger than the original, so lower levels
//           know it longer: longest_ms().
// Confirmed With confirm_at = d > 0, a hit on a level above d stands only if another child than the
//           one it came from knows the id too, and so on down to level d. Otherwise it was a false
//           positive, and the ids go on upwards as after a miss. Nodes that forget early, or have
//           different windows, would refute true hits.
// Producers one: no id is handled by two producers at once. many: the root decides which producer
//           came first. At most one is told 'fresh' within the window, even if producers crash, and
//           exactly one if none crashes.
// Nodes     Nodes are slices, which the tree does not own. The trees of several producers may share
//           them if the trees say Producers::many (or have no ids in common) and the nodes allow
//           several callers (semel/slices/thread_slice.h). An overloaded node can itself be sliced
//           (sliced_node.h).
//           A leaf may be added at any time. If hits are confirmed top-down, every producer's tree
//           must have the leaf before the first id comes in there.
// Failures  A node whose call fails is `failed` from then on, until the caller says otherwise:
//           `returning` for a window, then `live`. A failed node counts as a miss, because its
//           parent knows all that it knew. The root has no parent: if it has failed, an id that no
//           node knows gets TreeRules::root_failed, and two producers may both be told 'fresh'.
// Error     A leaf takes a new id for a duplicate with a probability of at most the sum over its
//           path. If all nodes are filters of one shape, it is the probability of the root, because
//           the bits of every node are a subset of the root's. Confirming makes it less.
// Cost      Each round takes as long as its slowest node. A call takes a round for each level up to
//           the one that knows the id, and up to two to set the ids. Confirming a hit takes a round
//           for each level from there down to confirm_at. Many producers with confirm_at > 0 take
//           further rounds for their claims.
// Threads   A call needs the object to itself.
// Source    Koloniari, Ntarmos, Pitoura & Souravlias, 'One is Enough', section 6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/result.h"
#include "semel/slices/slice.h"
#include "semel/slices/tree_shape.h"
#include "semel/window/window.h"

namespace semel {

namespace slices_internal {
struct TreeJob;
}

enum class TreeKind : std::uint8_t { sparse, dense };

struct SEMEL_API TreeRules {
  TreeKind kind = TreeKind::dense;
  Producers producers = Producers::one;
  std::size_t confirm_at = 0;                // level d that confirms hits; 0: every hit stands
  Verdict root_failed = Verdict::duplicate;  // or fresh
  TimeMs claim_ms = 10'000;  // how long a stalled producer's claim delays the others

  // Returns true if root_failed is one of the two and claim_ms is not negative.
  bool valid() const;
};

// Returns the greatest age of an id at which a tree may say 'duplicate', if each of its nodes may
// do so up to the age `node_ms`. REQUIRES: levels > 0, node_ms >= 0.
SEMEL_API TimeMs longest_ms(TreeKind kind, std::size_t levels, TimeMs node_ms);

// Counts the calls to the nodes of one level, and the hits there.
struct SEMEL_API TreeLoad {
  std::uint64_t messages = 0;
  std::uint64_t tests = 0;    // keys of test and test_and_set
  std::uint64_t sets = 0;     // keys of set
  std::uint64_t claims = 0;   // ids of claim, commit, release and forget
  std::uint64_t hits = 0;     // ids that a node of this level takes for duplicates
  std::uint64_t refuted = 0;  // hits that did not stand

  std::uint64_t accesses() const { return tests + sets; }
  TreeLoad& operator+=(const TreeLoad& other);
  bool operator==(const TreeLoad&) const = default;
};

struct TreeLevel {
  std::size_t nodes = 0;
  TreeLoad load;
  std::uint64_t bytes = 0;         // of all its nodes
  double false_positive_rate = 0;  // the mean of its nodes, now
};

class SEMEL_API BloomTree {
 public:
  struct Options {
    TreeRules rules = {};
    // With many producers, runs take owners from this number on. Hand in a random one.
    std::uint64_t first_owner = 0;
    // Waits a little, and returns the time. It is called with many producers and confirm_at > 0,
    // while others hold all remaining ids.
    std::function<TimeMs()> pause = {};
  };

  // Errors: Errc::invalid unless there is a slice for each node of the shape, the rules are valid,
  // and there is a pause if there are many producers and confirm_at > 0.
  static Result<BloomTree> make(TreeShape shape, std::vector<Slice*> nodes, Options options);

  // Returns the number of the new leaf. Errors: Errc::invalid if there is no such parent, or no
  // node.
  Result<std::size_t> add_leaf(std::size_t parent, Slice* node);

  // If `at_ms` is empty, all events happened at now_ms. REQUIRES for both: `leaf` is a leaf, and
  // the spans are of equal size.
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
  // Returns an upper bound for new ids that come in at this leaf. REQUIRES: it is a leaf.
  double false_positive_rate(std::size_t leaf) const;

 private:
  BloomTree(TreeShape shape, std::vector<Slice*> nodes, Options options);

  void run(slices_internal::TreeJob job, std::span<Verdict> verdicts);

  TreeShape shape_;
  std::vector<Slice*> nodes_;
  Options options_;
  std::vector<SliceState> states_;
  std::vector<TreeLoad> load_;  // of each level
  std::uint64_t runs_ = 0;
};

}  // namespace semel
