// The merger of a store that holds a table of counters.
//
// A program that only reads such a store, or copies it, needs the merger and nothing else of tally.
#pragma once

#include "semel/core/api.h"
#include "semel/store/ordered_store.h"

namespace semel::tally {

// Returns the merger that the store must be opened with.
SEMEL_API const Merger& counter_merger();

}  // namespace semel::tally
