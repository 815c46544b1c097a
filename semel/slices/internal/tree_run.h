// TreeRun: a batch of ids on its way from a leaf up the tree. It does no I/O, and reads no clock.
//
// Contract  The caller gets messages() answered. step() then reads the answers and prepares the
//           next messages, until done(). Messages to one node are answered in their order; others
//           may be answered in any order. Every node on the path is asked, from the leaf up, until
//           one knows the id, which is then a duplicate. If no node up to the root knows the id, it
//           is fresh, and is set in all of them. An id that comes twice in a batch is a duplicate
//           the second time. If hits at the root cannot be refuted, the root is asked by
//           test_and_set: its answer also sets it. An id that the root refuses (full, stale) gets
//           that verdict, and is set nowhere below.
// Kinds     sparse: only fresh ids are set, so an id is in one leaf and the ancestors of that leaf.
//           dense: a duplicate is also set in the nodes below the one that knew it, so it is found
//           nearer next time. The paper's tree sets each node when it asks it: papers::AtOnceTree.
// Windows   All nodes need windows of one length w, and forget at most g later. All nodes of a
//           sparse tree are set at one time, so the tree keeps the promise of its nodes. In a dense
//           tree the copies of a duplicate are younger than the original. The root knows an id up
//           to w + g after it was fresh. A child gets its last copy no later than that, and knows
//           it up to w + g longer. So a leaf on level l says 'duplicate' up to (l + 1)(w + g) after
//           the id was fresh (longest_ms). Both kinds know an id for at least w.
// Top-down  With confirm_at = d > 0, a hit on a level j < d stands only if another child than the
//           one it came from knows the id too, and so on down to level d. A hit that no child
//           confirms is refuted as a false positive. The run then goes on upwards as after a miss,
//           because the id may have come through another part of the tree. Nodes that forget early,
//           or have different windows, would refute true hits.
// Producers one: no id is handled by two runs at once. many: the root serialises the runs of an id.
//           Its test_and_set is atomic, which is enough if its hits are not refuted. Otherwise the
//           steps are:
//
//             claim at the root and test it   granted: go on. pending: ask again. seen: duplicate
//             confirm a hit by all children   the path may have been set since it answered
//             commit at the root              refused: the claim is lost, start over. done: fresh
//             set the path
//             forget at the root
//
//           At most one run of an id is told 'fresh' within the window, even if producers crash. If
//           none crashes, exactly one is.
// Failures  A node that has failed, or whose call fails, counts as a miss, because its parent knows
//           all that it knew. It is not set, and refutes nothing. A node that is `returning`, or
//           was too full to be set, lacks ids and refutes nothing either. The root has no parent:
//           if it has failed, an id that no node knows gets `root_failed`, and two producers may
//           both be told 'fresh'.
// Cost      One message for each level and node; O(levels) for an id. Confirming a hit on level j
//           asks at most all nodes below it on levels j + 1 to d.
// Source    'One is Enough', section 6, algorithms 1 and 2. They stop at a hit that is refuted, and
//           leave concurrent producers open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/clock.h"
#include "semel/hash/digest.h"
#include "semel/slices/bloom_tree.h"
#include "semel/slices/internal/mailbox.h"
#include "semel/slices/slice.h"
#include "semel/slices/tree_shape.h"
#include "semel/window/window.h"

namespace semel::slices_internal {

struct TreeJob {
  std::size_t leaf = 0;
  std::vector<Digest> ids;
  std::vector<TimeMs> at_ms = {};  // when each event happened; empty: when it is set
  TimeMs now_ms = 0;
  std::uint64_t owner = 0;  // with many producers: different for every run of every producer
  bool only_test = false;   // sets nothing
};

class TreeRun {
 public:
  // REQUIRES: the shape outlives the run, and does not change meanwhile; rules.valid(); `states`
  // has one for every node; job.leaf is a leaf; job.at_ms is empty or as long as job.ids.
  TreeRun(const TreeShape& shape, const TreeRules& rules, std::vector<SliceState> states,
          TreeJob job);

  bool done() const { return left_ == 0; }
  // Returns the messages to be answered now. They stay where they are until step(). In them `slice`
  // is the number of the node.
  std::span<SliceMessage> messages() { return mailbox_.messages(); }
  // Returns true if other producers held all remaining ids when they were last asked. The caller
  // may wait.
  bool waits() const { return waits_; }
  // REQUIRES: !done(), and all messages() are answered.
  void step(TimeMs now_ms);

  // REQUIRES: done().
  std::span<const Verdict> verdicts() const;
  // Returns the given states, with `failed` where a call has failed since and `returning` where a
  // node was too full.
  std::span<const SliceState> states() const { return states_; }
  std::span<const TreeLoad> load() const { return load_; }  // of each level

 private:
  enum class Phase : std::uint8_t {
    behind,   // the same id comes earlier in the batch
    climb,    // asks path_[place]
    claim,    // claims at the root, and asks it
    confirm,  // asks `asked`
    commit,
    set_root,  // before all others: an id that the root refuses is set nowhere
    set,
    release,
    forget,
    done,
  };
  struct Item {
    Phase phase = Phase::behind;
    bool claimed = false, committed = false;
    bool answered = false;  // the last call about the id has an answer
    Verdict answer = Verdict::fresh;
    ClaimAnswer claim = ClaimAnswer::fresh;  // the same for a claim
    bool tested = false;                     // the root was tested in the round of the claim
    Verdict test = Verdict::fresh;           // the answer of that test
    bool stands = false;                     // the hit that is being confirmed
    std::size_t place = 0;                   // on the path, from the leaf up
    std::size_t before = kNone;              // the item with the same id before it
    std::vector<std::size_t> asked = {},
                             next = {};  // nodes that confirm, now and in the next round
  };
  static constexpr std::size_t kNone = kNoRepetition;

  bool live(std::size_t node) const { return states_[node] == SliceState::live; }
  bool failed(std::size_t node) const { return states_[node] == SliceState::failed; }
  bool at_root(const Item& item) const { return item.place + 1 == path_.size(); }
  bool refutable(std::size_t node) const;
  bool claims() const;
  bool tests_and_sets(std::size_t place) const;
  std::uint8_t& needs(std::size_t item, std::size_t place);
  TreeLoad& load_of(std::size_t node) { return load_[shape_->level(node)]; }
  TreeLoad& load_at(std::size_t item) { return load_of(path_[items_[item].place]); }

  void read_answers();
  void read(Item& item, std::size_t node, SliceAction action, Verdict verdict);

  void advance(std::size_t item);
  void begin(std::size_t item);
  void climb(std::size_t item);
  void judge(std::size_t item, Verdict verdict);
  void begin_confirming(std::size_t item);
  void confirm(std::size_t item);
  void go_on(std::size_t item);
  void found(std::size_t item);
  void decide_fresh(std::size_t item);
  void without_root(std::size_t item);
  void set_root(std::size_t item);
  void set_below(std::size_t item, std::size_t places);
  void end(std::size_t item);
  void finish(std::size_t item, Verdict verdict);

  void write_messages();
  void write(std::size_t item);
  void send(std::size_t node, SliceAction action, std::size_t item);

  const TreeShape* shape_;
  TreeRules rules_;
  std::vector<SliceState> states_;
  TreeJob job_;
  std::vector<std::size_t> path_;  // from the leaf to the root
  std::vector<Item> items_;
  std::vector<std::uint8_t> needs_;  // for each item and place: 1 if a set is owed
  std::vector<Verdict> verdicts_;
  std::vector<TreeLoad> load_;
  std::size_t left_;  // items that are not done
  bool waits_ = false;

  Mailbox<std::size_t> mailbox_;  // whose routes are items
};

}  // namespace semel::slices_internal
