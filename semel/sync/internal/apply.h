// Stores records that came from the other end.
#pragma once

#include <cstdint>
#include <span>

#include "semel/core/result.h"
#include "semel/index/entry_digest.h"
#include "semel/store/ordered_store.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/resolver.h"

namespace semel::sync_internal {

// Writes the records in this manner, a few hundred in one step. Each is judged against the record
// that the store has at that moment. Adds the outcome to `done`. Errc::corrupt if a record makes no
// sense; then nothing is written. REQUIRES: the keys are in increasing order.
Result<void> apply_records(OrderedStore& store, frame::Manner manner, const Resolver& resolver,
                           EntryDigest digest, std::span<const frame::Record> records,
                           frame::StoreReply& done);

}  // namespace semel::sync_internal
