// SlicedNode: a sliced filter behind the interface of a slice, so that an overloaded node of a tree
// can itself be spread over slices.
//
// Contract  The contract is that of slice.h. start() does all the work. The first slice of each id
//           serves its claims, under a key that differs from that of the sliced filter's own
//           claims. A call of claims fails if a slice that must serve them fails. For test, set and
//           test_and_set the rules of the sliced filter decide how failed slices count.
// Threads   A call needs the object to itself. test_and_set is atomic among producers if the sliced
//           filter says Producers::many, or serves this node alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/slices/slice.h"
#include "semel/slices/sliced_filter.h"

namespace semel {

class SEMEL_API SlicedNode final : public Slice {
 public:
  // `slices` are those of the filter; they serve the claims.
  SlicedNode(SlicedFilter filter, std::vector<Slice*> slices)
      : filter_(std::move(filter)), slices_(std::move(slices)) {
    SEMEL_ASSERT(slices_.size() == filter_.placement().slices());
  }

  void start(SliceCall& call) override {
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
  void finish(SliceCall&) override {}

  std::uint64_t bytes() const override { return filter_.bytes(); }
  double false_positive_rate() const override { return filter_.false_positive_rate(); }

  const SlicedFilter& filter() const { return filter_; }

 private:
  void serve_claims(SliceCall& call) {
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

  static Digest claim_key(Digest id) { return {mix(id.lo), mix(~id.hi)}; }

  SlicedFilter filter_;
  std::vector<Slice*> slices_;
};

}  // namespace semel
