// SliceRun: a batch of ids on its way through the slices. It does no I/O, and reads no clock.
//
// Contract  messages() are answered, by whoever runs it; step() reads the answers, and brings the
//           next ones; until done(). Messages may be answered in any order, but those to one slice
//           in theirs.
//             test          duplicate, if all slices of an id know it
//             set           what Window::insert answers: the id is remembered, or renewed, by all
//             test_and_set  the same verdict as test; what is fresh is remembered. An id that comes
//                           twice in a batch is a duplicate the second time.
//           With the spread 1 test_and_set is one call to one slice, which is atomic. With more,
//           all slices are tested first, and set if the id is fresh. If each slice did
//           test_and_insert for itself, a slice that knows the key from other ids would not renew
//           it, and forget it before the window is over: the promise of the id would be lost.
//           An id that a slice refuses (full, stale) gets that verdict. Other slices may have taken
//           it; that is an error more in them, and it can be handed in again.
// Probing   parallel: all slices of an id at once. pipelined: one after the other, up to the first
//           that does not know the id: more rounds, fewer messages.
// Producers one: no id is handled by two runs at once. Otherwise both may find it in no slice, and
//           both be told that it is fresh. many: runs of one id take turns at its home, the first
//           of its slices that is live:
//
//             claim, and test at home     granted: go on. pending: ask again. committed: duplicate
//             test the other slices       known by all: release at home; duplicate
//             commit at home              refused: the claim was lost, start over. accepted: fresh
//             set in all slices
//             forget at home
//
//           No slice but home is tested before the claim is granted: between that test and the
//           grant another run could set the id and forget its claim. Of all runs of an id at most
//           one is told 'fresh' within the window, though producers crash anywhere; if none
//           crashes, exactly one is. One that crashed before its commit delays the others until its
//           claim is over; after it, the commit at home stands for what was not set, for as long as
//           claims are kept. That holds while all producers hold the same slices for failed: a home
//           that fails between commit and set takes the turn with it. A producer that is refused by
//           a full slice has committed: others that asked meanwhile were told 'duplicate'.
// Failures  A slice that is failed, or whose call fails, is asked nothing. A slice that is not
//           failed and does not know the id proves that it is new; if all know it, it is a
//           duplicate where at least `needed` of its k1 functions were asked. So `needed` 0 takes
//           failed slices for ones that know every id, and k1 for ones that know none.
//           A failed slice misses what is set meanwhile. When it comes back it is `returning` for a
//           window: it is set, but not asked, since what it does not know proves nothing.
// Cost      O(spread) for an id and round. Rounds of test_and_set: 1 with the spread 1, else 2 in
//           parallel and up to 1 + k1 pipelined; with many producers up to 3 more.
// Source    'One is Enough', sections 3.2, 4 and 6 (concurrency, which it leaves open).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/clock.h"
#include "semel/hash/digest.h"
#include "semel/slices/mailbox.h"
#include "semel/slices/placement.h"
#include "semel/slices/slice.h"
#include "semel/window/window.h"

namespace semel {

enum class SliceOperation : std::uint8_t { test, set, test_and_set };
enum class Probing : std::uint8_t { parallel, pipelined };
enum class Producers : std::uint8_t { one, many };
enum class SliceState : std::uint8_t { live, returning, failed };

struct SliceRules {
  Probing probing = Probing::parallel;
  Producers producers = Producers::one;
  std::uint32_t needed = 0;  // at most the spread
  TimeMs claim_ms = 10'000;  // how long a claim of a producer that stands still holds up the others
};

struct SliceJob {
  SliceOperation operation = SliceOperation::test;
  std::vector<Digest> ids;
  std::vector<TimeMs> at_ms = {};  // when each event happened; empty: when it is set
  TimeMs now_ms = 0;
  std::uint64_t owner = 0;  // with many producers: different for every run of every one
};

class SliceRun {
 public:
  // REQUIRES: `states` has one for every slice, rules.needed <= placement.spread(), rules.claim_ms
  // >= 0, and job.at_ms is empty or as long as job.ids.
  SliceRun(const Placement& placement, const SliceRules& rules, std::vector<SliceState> states,
           SliceJob job);

  bool done() const { return left_ == 0; }
  // To be answered now. They stay where they are until step().
  std::span<SliceMessage> messages() { return mailbox_.messages(); }
  // Whether all that is left was held by other producers when it was asked last: no hurry.
  bool waits() const { return waits_; }
  // REQUIRES: !done(), and all messages() are answered.
  void step(TimeMs now_ms);

  // REQUIRES: done().
  std::span<const Verdict> verdicts() const;
  // As given, and `failed` where a call has failed since.
  std::span<const SliceState> states() const { return states_; }

 private:
  enum class Phase : std::uint8_t {
    behind,  // the same id comes before it in the batch
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
    bool answered = false;  // the last call about the whole id was, and `answer` is what it said
    Verdict answer = Verdict::fresh;
    std::size_t before = kNone;  // the item with the same id before it
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
  std::vector<SliceProbe> probes_;  // spread for each item; those of one slice stand together
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

}  // namespace semel
