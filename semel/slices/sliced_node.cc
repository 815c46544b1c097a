#include "semel/slices/sliced_node.h"

#include <cstddef>

#include "semel/core/internal/arithmetic.h"

namespace semel {
namespace {

Digest claim_key(Digest id) { return {mix(id.lo), mix(~id.hi)}; }

}  // namespace

void SlicedNode::start(SliceCall& call) {
  call.failed = false;
  const bool claims = is_claim(call.action);
  call.verdicts.assign(claims ? 0 : call.keys.size(), Verdict::fresh);
  call.claims.assign(claims ? call.keys.size() : 0, ClaimAnswer::done);
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
  std::vector<SliceMessage> messages;
  std::vector<std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < call.keys.size(); ++i) {
    const std::size_t slice = filter_.placement().probe(call.keys[i], 0).slice;
    if (filter_.states()[slice] == SliceState::failed) {
      call.failed = true;
      return;
    }
    std::size_t m = 0;
    while (m < messages.size() && messages[m].slice != slice) ++m;
    if (m == messages.size()) {
      messages.push_back({slice, {}});
      SliceCall& part = messages.back().call;
      part.action = call.action;
      part.now_ms = call.now_ms;
      part.owner = call.owner;
      part.claim_until_ms = call.claim_until_ms;
      places.emplace_back();
    }
    messages[m].call.keys.push_back(claim_key(call.keys[i]));
    places[m].push_back(i);
  }
  deliver(messages, slices_);
  for (std::size_t m = 0; m < messages.size(); ++m) {
    if (messages[m].call.failed) {
      filter_.set_state(messages[m].slice, SliceState::failed);
      call.failed = true;
      continue;
    }
    for (std::size_t i = 0; i < places[m].size(); ++i) {
      call.claims[places[m][i]] = messages[m].call.claims[i];
    }
  }
}

}  // namespace semel
