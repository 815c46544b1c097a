// Slice: a part of a filter that stands alone, in this thread, in another one, or behind a client.
//
// Contract  A call carries a batch of keys and brings back an answer for each. start() begins it
//           and may return at once; finish() waits for the answers. Between the two the call
//           belongs to the slice. Calls to one slice take effect in the order in which they were
//           started; each is atomic. A slice that cannot be reached sets `failed`, and the answers
//           mean nothing.
// Keys      The keys of test, set and test_and_set are made by the placement from an id, for this
//           slice. The keys of claims are the ids themselves: claims serialise the producers of one
//           id at its home slice (semel/sift/claim_table.h), so that only one of them is told that
//           it is first.
//
//             action         answers
//             test           Verdict: fresh or duplicate
//             set            Verdict of Window::insert: remembers, and renews what was known
//             test_and_set   Verdict of Window::test_and_insert: does not renew
//             claim          ClaimAnswer. fresh: the owner holds it. seen: another committed it.
//                            pending: another holds it, ask again
//             commit         ClaimAnswer. done, or lost: another has claimed it, nothing changed
//             release        ClaimAnswer. done: the id is free again. lost: nothing changed
//             forget         ClaimAnswer::done: a commit by this owner need not be kept any more
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/clock.h"
#include "semel/hash/digest.h"
#include "semel/sift/claim_table.h"
#include "semel/window/window.h"

namespace semel {

enum class SliceAction : std::uint8_t { test, set, test_and_set, claim, commit, release, forget };

// Returns true for the actions that are answered with a ClaimAnswer.
constexpr bool is_claim(SliceAction action) { return action >= SliceAction::claim; }

// A failed slice gets no calls. A returning slice is set, but not asked: it misses ids that were
// set while it was failed.
enum class SliceState : std::uint8_t { live, returning, failed };

// one: no id is handled by two runs at once. many: runs of one id take turns by claims.
enum class Producers : std::uint8_t { one, many };

struct SliceCall {
  SliceAction action = SliceAction::test;
  TimeMs now_ms = 0;  // the slice's windows and claims advance to this time
  std::vector<Digest> keys = {};
  std::vector<TimeMs> at_ms = {};  // when each event happened, for set and test_and_set; empty: now
  std::uint64_t owner = 0;         // of claims: different for every run of every producer
  TimeMs claim_until_ms = 0;       // from then on another owner may take the ids claimed here
  std::vector<Verdict> verdicts = {};    // one for each key of test, set and test_and_set
  std::vector<ClaimAnswer> claims = {};  // one for each key of the other actions
  bool failed = false;

  // Makes room for an answer to each key. The call has not failed.
  void expect_answers() {
    failed = false;
    verdicts.assign(is_claim(action) ? 0 : keys.size(), Verdict::fresh);
    claims.assign(is_claim(action) ? keys.size() : 0, ClaimAnswer::done);
  }
};

class SEMEL_API Slice {
 public:
  virtual ~Slice() = default;

  // REQUIRES: the call stays where it is, and is not touched, until finish() returns.
  virtual void start(SliceCall& call) = 0;
  // REQUIRES: start() came before.
  virtual void finish(SliceCall& call) = 0;

  virtual std::uint64_t bytes() const = 0;
  virtual double false_positive_rate() const = 0;  // of one key, now
};

// A call and the slice that it is for.
struct SliceMessage {
  std::size_t slice;
  SliceCall call;
};

// Starts all calls, then waits for all, in the order of the slices. So slices in other threads and
// behind clients work in parallel, and callers cannot deadlock.
// REQUIRES: every message is for one of the slices.
SEMEL_API void deliver(std::span<SliceMessage> messages, std::span<Slice* const> slices);

inline constexpr std::size_t kNoRepetition = ~std::size_t{0};
// Returns for each id the index of an equal id earlier in the batch, or kNoRepetition.
SEMEL_API std::vector<std::size_t> repetitions(std::span<const Digest> ids);

}  // namespace semel
