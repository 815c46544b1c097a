// Chooses the cheapest way to find a difference.
#pragma once

#include <cstdint>

#include "semel/index/aggregate.h"
#include "semel/index/floret.h"
#include "semel/sync/plan.h"

namespace semel::sync_internal {

// The part of a record that is sent to an end which needs to know about it.
enum class Travels : std::uint8_t {
  nothing,  // only that it exists
  keys,     // each with its digest; the prediction assumes that a key is as large as its record
  records,
};

// The known facts about the two stores.
struct PlanInputs {
  Aggregate initiator;
  Aggregate responder;
  DifferenceEstimate difference;  // A is the initiator
  // The first frontier: its slots, how many of them differ, and how many records the larger store
  // has in those. Without a frontier there is a single slot that differs and holds everything.
  std::uint64_t slots = 1;
  std::uint64_t slots_differing = 1;
  std::uint64_t records_in_question = 0;
  std::uint64_t containers = 0;  // of the initiator's trie, in the range
  Travels to_initiator = Travels::records;
  bool stores = true;  // records travel to the responder
};

// Compares the ways by the time that each will take on the link.
SyncPlan make_plan(const PlanInputs& known, const SyncLink& link);

// Returns how many records the walk and the scan look for: somewhat more than the estimate, so that
// it is rarely exceeded.
double looked_for(const DifferenceEstimate& difference);

}  // namespace semel::sync_internal
