// WindowSlice: a slice in this thread, over a Window.
//
// Contract  The contract is that of slice.h. start() does all the work. Window and claims advance
//           to the time of each call.
// Threads   A call needs the object to itself; semel/slices/thread_slice.h serves many threads.
#pragma once

#include <cstdint>
#include <utility>

#include "semel/core/assert.h"
#include "semel/sift/claim_table.h"
#include "semel/slices/slice.h"
#include "semel/window/window.h"

namespace semel {

// W is Window, or a class with the same calls.
template <class W>
class WindowSlice final : public Slice {
 public:
  // Keeps claims of crashed producers for `keep_ms`. Ids that were committed but not set are
  // recognised that long. REQUIRES: keep_ms is no shorter than the window.
  WindowSlice(W window, TimeMs keep_ms)
      : window_(std::move(window)), claims_(keep_ms, window_.now()) {}

  void start(SliceCall& call) override {
    call.expect_answers();
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
          call.claims[i] = answer_claim(call, call.keys[i]);
        }
    }
  }
  void finish(SliceCall&) override {}

  std::uint64_t bytes() const override { return window_.bytes() + claims_.bytes(); }
  double false_positive_rate() const override { return window_.false_positive_rate(); }

  const W& window() const { return window_; }
  // Replaces the window by another one. Claims stay.
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

  ClaimAnswer answer_claim(const SliceCall& call, Digest id) {
    switch (call.action) {
      case SliceAction::claim:
        return claims_.claim(id, call.owner, call.claim_until_ms);
      case SliceAction::commit:
        return claims_.commit(id, call.owner);
      case SliceAction::release:
        return claims_.release(id, call.owner);
      default:
        claims_.forget(id, call.owner);
        return ClaimAnswer::done;  // also if the commit is gone already: the call may be repeated
    }
  }

  W window_;
  ClaimTable claims_;
};

}  // namespace semel
