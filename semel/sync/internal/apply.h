// Taking in records that came from the other end.
#pragma once

#include <cstdint>
#include <span>

#include "semel/core/result.h"
#include "semel/index/entry_digest.h"
#include "semel/store/ordered_store.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/resolver.h"

namespace semel {

// Writes the records in this manner, each against what is there at that moment, some hundred in
// one step. What happened is added to `done`.
// Error     The store's; or Errc::corrupt for records that make no sense: then nothing is written.
// REQUIRES: the keys are in increasing order.
Result<void> apply_records(OrderedStore& store, frame::Manner manner, const Resolver& resolver,
                           EntryDigest digest, std::span<const frame::Record> records,
                           frame::StoreReply& done);

}  // namespace semel
