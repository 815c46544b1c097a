// Finds the changes in a RocksDB directory since a position.
#pragma once

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/store/internal/rocksdb_database.h"
#include "semel/store/internal/rocksdb_position.h"
#include "semel/store/ordered_store.h"

namespace semel::store_internal {

// Flushes, and returns the position. REQUIRES: writable, and nobody writes through us meanwhile.
Result<RocksPosition> position_of(const RocksDatabase& database);

// Reports to `told` everything that may have changed since the position. REQUIRES: nobody writes
// through us meanwhile.
Result<void> changes_since(const RocksDatabase& database, ByteView position, ChangeObserver& told);

}  // namespace semel::store_internal
