// Lets RocksDB merge with a Merger.
//
// Contract  A full merge adds the operands of a record in order. A partial merge combines two
//           neighbouring operands into one, or leaves them as they are if one is damaged.
// Threads   RocksDB calls the merger from threads of its own too.
#pragma once

#include <memory>
#include <string>

#include "semel/store/ordered_store.h"

namespace rocksdb {
class MergeOperator;
class Status;
}  // namespace rocksdb

namespace semel::store_internal {

// REQUIRES: the merger outlives it, and does not throw.
std::shared_ptr<rocksdb::MergeOperator> merge_operator_of(const Merger& merger);

// Returns true if the merger found damage. RocksDB has no code for that.
bool failed_to_merge(const rocksdb::Status& status);

}  // namespace semel::store_internal
