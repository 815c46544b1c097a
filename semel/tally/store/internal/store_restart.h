// Restart: the state of a table in a store when its process ended, in whatever way.
#pragma once

#include <cstdint>
#include <optional>

#include "semel/core/result.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/internal/ledger.h"
#include "semel/tally/store/internal/store_shape.h"

namespace semel::tally::internal {

struct Restart {
  StoreShape shape;
  Ledger ledger;
  std::uint64_t recalled = 0;                    // ids of the window that the recogniser has again
  std::uint64_t next_number = 0;                 // of a record of the journal
  std::uint64_t unshared = 0;                    // operations that are only in the journal
  std::optional<TimeMs> unshared_since_ms = {};  // the time of the first of them

  enum class Time : std::uint8_t {
    now,     // ids that have left the window are forgotten
    copied,  // the time is that of the last record: a copy has the times of another clock
  };
  // Returns nullopt if the store is empty. Errc::corrupt if it holds something other than a table.
  static Result<std::optional<Restart>> read(const OrderedStore& store,
                                             const OperationLog::Limits& limits, TimeMs now_ms,
                                             Time time = Time::now);
};

}  // namespace semel::tally::internal
