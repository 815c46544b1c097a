// TreeRun: a batch of ids on its way from a leaf up the tree. Pure: it sends nothing, reads no clock.
//
// Contract  messages() are answered, by whoever runs it; step() reads the answers, and brings the next
//           ones; until done(). Messages may be answered in any order, but those to one node in theirs.
//           Every node on the path is asked, from the leaf up, until one knows the id: a duplicate.
//           What no node knows, the root included, is fresh, and set in all of them. An id that comes
//           twice in a batch is a duplicate the second time. With no hit at the root refuted, the root
//           is asked by test_and_set, and is set with its answer.
//           An id that the root refuses (full, stale) gets that verdict, and is set nowhere below,
//           unless at once.
// Kinds     sparse: only what is fresh is set: an id is in one leaf, and its ancestors.
//           dense: of a duplicate too, the nodes below the one that knew it: next time it is found
//           nearer. at_once: as dense, but every node is asked by test_and_set: a message less for each
//           node, and an id that does not arrive at the root (a crash, a full root) was set on its way:
//           later ones are told 'duplicate' although none was told 'fresh'.
// Windows   All nodes need windows of one length, say w, which end g later at the latest. A sparse tree
//           then promises what each of its nodes does: all are set at one time. In a dense one, the
//           copy of a duplicate is younger than the original. The root knows an id up to w + g after
//           it was fresh; a child gets its last copy no later than then, and knows it up to w + g after
//           that; and so on: a leaf on level l says 'duplicate' up to (l + 1)(w + g) after the id was
//           fresh (longest_ms). No less than w after it, in either.
// Top-down  With confirm_at = d > 0, a hit on a level j < d stands only if a child knows the id too, other
//           than the one it came from, which does not; and so on down to level d. If none does, it is a
//           false positive, refuted: the run goes on upwards as after a miss, since the id may have come
//           through another part of the tree. Nodes that forget early, or of different windows, would
//           refute what is true.
// Producers one: no id is handled by two runs at once. many: runs of an id are serialised by the root.
//           Its test_and_set is atomic, and that is enough where its hits are not refuted. Otherwise
//
//             claim at the root, and test it    granted: go on. pending: ask again. committed: duplicate
//             confirm a hit, by all children    the path may have been set since it was asked
//             commit at the root                refused: the claim was lost, start over. accepted: fresh
//             set the path
//             forget at the root
//
//           At most one run of an id is told 'fresh' within the window, though producers crash
//           anywhere; if none crashes, exactly one is. at_once with many producers cannot confirm:
//           each of two would take the other's marks for an event that was.
// Failures  A node that is failed, or whose call fails, counts as a miss: its parent knows what it knew.
//           It is not set, and refutes nothing; nor when it is `returning`, without what it missed. Nor
//           does a node that was too full to be set. The root has nobody above it: when it is failed, an
//           id that no node knows gets `root_failed`; then two producers may both be told 'fresh'.
// Cost      A message for each level and node; O(levels) for an id. Confirming asks up to all nodes of
//           levels j + 1 to d below the hit.
// Source    'One is Enough', section 6, algorithms 1 and 2, which stop at a hit that is refuted, and
//           leave concurrent producers open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/clock.h"
#include "semel/hash/digest.h"
#include "semel/slices/internal/slice_run.h"
#include "semel/slices/mailbox.h"
#include "semel/slices/slice.h"
#include "semel/slices/tree_shape.h"
#include "semel/window/window.h"

namespace semel {

enum class TreeKind : std::uint8_t { sparse, dense, at_once };

struct TreeRules {
  TreeKind kind = TreeKind::dense;
  Producers producers = Producers::one;
  std::size_t confirm_at = 0;                // level d of the top-down test; 0: every hit stands
  Verdict root_failed = Verdict::duplicate;  // or fresh
  TimeMs claim_ms = 10'000;  // how long a claim of a producer that stands still holds up the others

  // root_failed is one of the two, claim_ms is not negative, and not all of at_once, many and
  // confirm_at > 0.
  bool valid() const;
};

// The age up to which a tree may say 'duplicate', if each of its nodes may up to `node_ms`.
// REQUIRES: levels > 0, node_ms >= 0.
TimeMs longest_ms(TreeKind kind, std::size_t levels, TimeMs node_ms);

struct TreeJob {
  std::size_t leaf = 0;
  std::vector<Digest> ids;
  std::vector<TimeMs> at_ms = {};  // when each event happened; empty: when it is set
  TimeMs now_ms = 0;
  std::uint64_t owner = 0;  // with many producers: different for every run of every one
  bool only_test = false;   // sets nothing
};

// What was asked of the nodes of one level, and found there.
struct TreeLoad {
  std::uint64_t messages = 0;
  std::uint64_t tests = 0;    // keys of test and test_and_set
  std::uint64_t sets = 0;     // keys of set
  std::uint64_t claims = 0;   // ids of claim, commit, release and forget
  std::uint64_t hits = 0;     // ids that are duplicates by a node of this level
  std::uint64_t refuted = 0;  // hits that did not stand

  std::uint64_t accesses() const { return tests + sets; }
  TreeLoad& operator+=(const TreeLoad& other);
  bool operator==(const TreeLoad&) const = default;
};

class TreeRun {
 public:
  // REQUIRES: the shape outlives the run, and does not change meanwhile; rules.valid(); `states` has
  // one for every node; job.leaf is a leaf; job.at_ms is empty or as long as job.ids.
  TreeRun(const TreeShape& shape, const TreeRules& rules, std::vector<SliceState> states,
          TreeJob job);

  bool done() const { return left_ == 0; }
  // To be answered now. They stay where they are until step(). `slice` is the node.
  std::span<SliceMessage> messages() { return mailbox_.messages(); }
  // Whether all that is left was held by other producers when it was asked last: no hurry.
  bool waits() const { return waits_; }
  // REQUIRES: !done(), and all messages() are answered.
  void step(TimeMs now_ms);

  // REQUIRES: done().
  std::span<const Verdict> verdicts() const;
  // As given; `failed` where a call has failed since, `returning` where a node was too full.
  std::span<const SliceState> states() const { return states_; }
  std::span<const TreeLoad> load() const { return load_; }  // of each level

 private:
  enum class Phase : std::uint8_t {
    behind,   // the same id comes before it in the batch
    climb,    // asks path_[place]
    claim,    // the root, and asks it
    confirm,  // asks `asked`
    commit,
    set_root,  // before all others: what the root refuses is set nowhere
    set,
    release,
    forget,
    done,
  };
  struct Item {
    Phase phase = Phase::behind;
    bool claimed = false, committed = false;
    bool answered = false;  // the last call about the id was, and `answer` is what it said
    Verdict answer = Verdict::fresh;
    bool tested = false;            // the root was, after the claim in the same round,
    Verdict test = Verdict::fresh;  // and this is what it said
    bool stands = false;            // the hit that is being confirmed
    std::size_t place = 0;          // on the path, from the leaf up
    std::size_t before = kNone;     // the item with the same id before it
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
  std::vector<std::uint8_t> needs_;  // of each item and place: whether a set is owed there
  std::vector<Verdict> verdicts_;
  std::vector<TreeLoad> load_;
  std::size_t left_;  // items that are not done
  bool waits_ = false;

  Mailbox<std::size_t> mailbox_;  // whose routes are items
};

}  // namespace semel
