// Slice: a part of a filter that lives on its own: in this thread, in another one, or behind a client.
//
// Contract  A call carries a batch of keys and brings back a verdict for each. start() begins it and may
//           return at once; finish() waits for its answer. Between the two the call belongs to the slice.
//           Calls to one slice take effect in the order in which they were started; each is atomic.
//           A slice that cannot be reached sets `failed`, and the verdicts mean nothing.
// Keys      of test, set and test_and_set are what the placement made of an id for this slice; keys of
//           the claiming calls are the ids themselves. Claims serialise the producers of one id at its
//           home slice (semel/sift/claim_table.h), so that only one of them is told that it is distinct.
//
//             action         verdicts
//             test           fresh, duplicate
//             set            what Window::insert answers: remembers, and renews what was known
//             test_and_set   what Window::test_and_insert answers: does not renew
//             claim          fresh: it is the owner's now. duplicate: it was committed by another.
//                            stale: another holds it, ask again
//             commit         fresh: done. stale: the claim was lost to another, nothing changed
//             release        fresh: the id is free again. stale: the claim was lost, nothing changed
//             forget         fresh, always: a commit by this owner need not be kept any more
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "semel/core/clock.h"
#include "semel/hash/digest.h"
#include "semel/window/window.h"

namespace semel {

enum class SliceAction : std::uint8_t { test, set, test_and_set, claim, commit, release, forget };

struct SliceCall {
  SliceAction action = SliceAction::test;
  TimeMs now_ms = 0;  // the slice's windows and claims advance to this time
  std::vector<Digest> keys;
  std::vector<TimeMs> at_ms;      // when each event happened, for set and test_and_set; empty: now
  std::uint64_t owner = 0;        // of claims: different for every run of every producer
  TimeMs claim_until_ms = 0;      // from then on another may take what is claimed here
  std::vector<Verdict> verdicts;  // the answers, one for each key
  bool failed = false;
};

class Slice {
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

// Starts all calls, then waits for all, in the order of the slices: slices in other threads and behind
// clients work side by side, and no two callers wait for each other.
// REQUIRES: every message is for one of the slices.
void deliver(std::span<SliceMessage> messages, std::span<Slice* const> slices);

}  // namespace semel
