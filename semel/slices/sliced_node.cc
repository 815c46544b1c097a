#include "semel/slices/sliced_node.h"

#include <cstddef>
#include <optional>

#include "semel/core/internal/arithmetic.h"
#include "semel/slices/internal/mailbox.h"

namespace semel {
namespace {

Digest claim_key(Digest id) { return {mix(id.lo), mix(~id.hi)}; }

}  // namespace

void SlicedNode::start(SliceCall& call) {
  call.expect_answers();
  switch (call.action) {
    case SliceAction::test:
      return filter_.test(call.keys, call.verdicts, call.now_ms);
    case SliceAction::set:
      return filter_.set(call.keys, call.at_ms, call.verdicts, call.now_ms);
    case SliceAction::test_and_set:
      return filter_.test_and_set(call.keys, call.at_ms, call.verdicts, call.now_ms);
    case SliceAction::claim:
    case SliceAction::commit:
    case SliceAction::release:
    case SliceAction::forget:
      return serve_claims(call);
  }
}

void SlicedNode::serve_claims(SliceCall& call) {
  slices_internal::Mailbox<std::size_t> mailbox;  // whose routes are places in the call
  for (std::size_t i = 0; i < call.keys.size(); ++i) {
    const std::size_t slice = filter_.placement().probe(call.keys[i], 0).slice;
    if (filter_.states()[slice] == SliceState::failed) {
      call.failed = true;
      return;
    }
    mailbox.put(slice, call.action, {call.now_ms, call.owner, call.claim_until_ms},
                claim_key(call.keys[i]), std::nullopt, i);
  }
  deliver(mailbox.messages(), slices_);
  mailbox.read(
      [&](std::size_t slice) {
        filter_.set_state(slice, SliceState::failed);
        call.failed = true;
      },
      [](std::size_t, SliceAction, std::size_t, Verdict) { SEMEL_ASSERT(false); },
      [&](std::size_t i, ClaimAnswer answer) { call.claims[i] = answer; });
}

}  // namespace semel
