// WindowSlice: a slice in this thread, over any window of digests.
//
// Contract  As in slice.h: start() does all of it. Window and claims advance to the time of each
//           call.
// Threads   A call needs the object to itself; semel/slices/internal/thread_slice.h serves many threads.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "semel/core/assert.h"
#include "semel/sift/claim_table.h"
#include "semel/slices/slice.h"
#include "semel/window/window.h"

namespace semel {

template <Window W>
requires std::same_as<typename W::Id, Digest>
class WindowSlice final : public Slice {
 public:
  // Claims keep what crashed producers left for `keep_ms`: it must be no less than the window for
  // ids that were committed, and not set yet, to be recognised as long as all others.
  WindowSlice(W window, TimeMs keep_ms)
      : window_(std::move(window)), claims_(keep_ms, window_.now()) {}

  void start(SliceCall& call) override {
    call.failed = false;
    call.verdicts.assign(call.keys.size(), Verdict::fresh);
    window_.advance(call.now_ms);
    claims_.advance(call.now_ms);
    switch (call.action) {
      case SliceAction::test:
        return window_.test(call.keys, call.verdicts);
      case SliceAction::set:
        if (call.at_ms.empty()) return window_.insert(call.keys, call.verdicts);
        return judge_each(call,
                          [&](Digest key, TimeMs at_ms) { return window_.insert(key, at_ms); });
      case SliceAction::test_and_set:
        if (call.at_ms.empty()) return window_.test_and_insert(call.keys, call.verdicts);
        return judge_each(
            call, [&](Digest key, TimeMs at_ms) { return window_.test_and_insert(key, at_ms); });
      case SliceAction::claim:
      case SliceAction::commit:
      case SliceAction::release:
      case SliceAction::forget:
        for (std::size_t i = 0; i < call.keys.size(); ++i) {
          call.verdicts[i] = answer_claim(call, call.keys[i]);
        }
    }
  }
  void finish(SliceCall&) override {}

  std::uint64_t bytes() const override { return window_.bytes() + claims_.bytes(); }
  double false_positive_rate() const override { return window_.false_positive_rate(); }

  const W& window() const { return window_; }
  // Another window takes over, with what it knows. Claims stay.
  void replace(W window) { window_ = std::move(window); }
  const ClaimTable& claims() const { return claims_; }

 private:
  template <class Judge>
  static void judge_each(SliceCall& call, Judge judge) {
    SEMEL_ASSERT(call.at_ms.size() == call.keys.size());
    for (std::size_t i = 0; i < call.keys.size(); ++i) {
      call.verdicts[i] = judge(call.keys[i], call.at_ms[i]);
    }
  }

  Verdict answer_claim(const SliceCall& call, Digest id) {
    switch (call.action) {
      case SliceAction::claim:
        switch (claims_.claim(id, call.owner, call.claim_until_ms)) {
          case Claim::granted:
            return Verdict::fresh;
          case Claim::pending:
            return Verdict::stale;
          case Claim::committed:
            return Verdict::duplicate;
        }
        break;
      case SliceAction::commit:
        return claims_.commit(id, call.owner) ? Verdict::fresh : Verdict::stale;
      case SliceAction::release:
        return claims_.release(id, call.owner) ? Verdict::fresh : Verdict::stale;
      default:
        claims_.forget(id, call.owner);
    }
    return Verdict::fresh;
  }

  W window_;
  ClaimTable claims_;
};

}  // namespace semel
