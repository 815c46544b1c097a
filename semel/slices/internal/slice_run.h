// SliceRun: a batch of ids on its way through the slices. It does no I/O, and reads no clock.
//
// Contract  The caller gets messages() answered. step() then reads the answers and prepares the
//           next messages, until done(). Messages to one slice are answered in their order; others
//           may be answered in any order.
//             test          duplicate, if all slices of an id know it
//             set           the answer of Window::insert; all slices remember the id, or renew it
//             test_and_set  the same verdict as test; a fresh id is remembered. An id that comes
//                           twice in a batch is a duplicate the second time.
//           With spread 1, test_and_set is one atomic call to one slice. With a larger spread, all
//           slices are tested first, and set if the id is fresh. A test_and_insert by each slice
//           would break the promise: a slice that knows the key from other ids would not renew it,
//           and would forget it before the window of this id is over.
//           An id that a slice refuses (full, stale) gets that verdict. Other slices may have taken
//           it. There it adds to the false positives, and it can be handed in again.
// Probing   parallel: asks all slices of an id at once. pipelined: asks one after the other, up to
//           the first that does not know the id. That takes more rounds and fewer messages.
// Producers one: no id is handled by two runs at once. If it were, both runs might find it in no
//           slice and be told that it is fresh. many: runs of one id take turns at its home, which
//           is the first of its slices that is live:
//
//             claim, and test at home     granted: go on. pending: ask again. seen: duplicate
//             test the other slices       known by all: release at home; duplicate
//             commit at home              refused: the claim was lost, start over. done: fresh
//             set in all slices
//             forget at home
//
//           No slice but home is tested before the claim is granted: between that test and the
//           grant another run could set the id and forget its claim. At most one run of an id is
//           told 'fresh' within the window, even if producers crash. If none crashes, exactly one
//           is. A producer that crashes before its commit delays the others until its claim is
//           over. If it crashes after its commit, the commit at home stands for slices that were
//           not set, as long as claims are kept. All this holds if all producers agree which slices
//           have failed: a home that fails between commit and set loses the commit. A producer that
//           a full slice refuses has committed: others that asked meanwhile were told 'duplicate'.
// Failures  A slice that has failed, or whose call fails, is not asked. One live slice that does
//           not know the id proves that it is new. If all that were asked know it, it is a
//           duplicate if at least `needed` of its k1 functions were asked. So if `needed` is 0, a
//           failed slice counts as one that knows every id; if it is k1, as one that knows none.
//           A failed slice misses ids. When it comes back it is `returning` for a window: it is
//           set, but not asked, because an id that it does not know may still be old.
// Cost      O(spread) for an id and round. Rounds of test_and_set: 1 with spread 1, else 2 in
//           parallel and up to 1 + k1 pipelined; with many producers up to 3 more.
// Source    'One is Enough', sections 3.2, 4 and 6 (concurrency, which it leaves open).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/clock.h"
#include "semel/hash/digest.h"
#include "semel/slices/internal/mailbox.h"
#include "semel/slices/placement.h"
#include "semel/slices/slice.h"
#include "semel/slices/sliced_filter.h"
#include "semel/window/window.h"

namespace semel::slices_internal {

struct SliceJob {
  SliceAction action = SliceAction::test;
  std::vector<Digest> ids;
  std::vector<TimeMs> at_ms = {};  // when each event happened; empty: when it is set
  TimeMs now_ms = 0;
  std::uint64_t owner = 0;  // with many producers: different for every run of every producer
};

class SliceRun {
 public:
  // REQUIRES: `states` has one for every slice, rules.needed <= placement.spread(), rules.claim_ms
  // >= 0, !is_claim(job.action), and job.at_ms is empty or as long as job.ids.
  SliceRun(const Placement& placement, const SliceRules& rules, std::vector<SliceState> states,
           SliceJob job);

  bool done() const { return left_ == 0; }
  // Returns the messages to be answered now. They stay where they are until step().
  std::span<SliceMessage> messages() { return mailbox_.messages(); }
  // Returns true if other producers held all remaining ids when they were last asked. The caller
  // may wait.
  bool waits() const { return waits_; }
  // REQUIRES: !done(), and all messages() are answered.
  void step(TimeMs now_ms);

  // REQUIRES: done().
  std::span<const Verdict> verdicts() const;
  // Returns the given states, with `failed` where a call has failed since.
  std::span<const SliceState> states() const { return states_; }

 private:
  enum class Phase : std::uint8_t {
    behind,  // the same id comes earlier in the batch
    claim,
    test,
    test_and_set,
    commit,
    set,
    release,
    forget,
    done,
  };
  enum class Known : std::uint8_t { unasked, yes, no };
  struct Item {
    Phase phase = Phase::behind;
    bool answered = false;  // the last call about the id has an answer
    Verdict answer = Verdict::fresh;
    ClaimAnswer claim = ClaimAnswer::fresh;  // the same for a claim
    std::size_t before = kNone;              // the item with the same id before it
    std::size_t home = kNone;
  };
  static constexpr std::size_t kNone = kNoRepetition;

  std::span<const SliceProbe> probes_of(std::size_t item) const;
  std::span<Known> known_of(std::size_t item);
  bool live(std::size_t slice) const { return states_[slice] == SliceState::live; }
  bool claims() const;

  void place();

  void read_answers();
  void read(Item& item, Verdict verdict, SliceAction action);
  void advance(std::size_t item);
  void begin(std::size_t item);
  void judge(std::size_t item);
  void decide(std::size_t item, bool duplicate);
  void set(std::size_t item);
  void finish(std::size_t item, Verdict verdict);
  Verdict verdict_without_slices() const;

  void write_messages();
  void write(std::size_t item);
  void write_tests(std::size_t item);
  void write_claim(std::size_t item, SliceAction action);
  void send(std::size_t slice, SliceAction action, Digest key, std::size_t item, std::size_t probe);

  Placement placement_;
  SliceRules rules_;
  std::vector<SliceState> states_;
  SliceJob job_;
  std::vector<Item> items_;
  std::vector<SliceProbe> probes_;  // `spread` for each item; probes of one slice are adjacent
  std::vector<Known> known_;        // of each probe
  std::vector<Verdict> verdicts_;
  std::size_t left_;  // items that are not done
  bool waits_ = false;

  struct Route {
    std::size_t item;
    std::size_t probe;  // kNone if the key is the id
  };
  Mailbox<Route> mailbox_;
};

}  // namespace semel::slices_internal
