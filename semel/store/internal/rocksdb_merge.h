// How RocksDB merges with a Merger, and what it says of merging.
//
// Contract  A full merge adds the operands of a record in their order; a partial one makes two
//           neighbours one, and leaves them as they are if one of them is damaged.
// Threads   RocksDB calls the merger from threads of its own too.
#pragma once

#include <memory>
#include <string>

#include "semel/store/ordered_store.h"

namespace rocksdb {
class MergeOperator;
class Status;
}  // namespace rocksdb

namespace semel {

// REQUIRES: the merger outlives it, and does not throw.
std::shared_ptr<rocksdb::MergeOperator> merge_operator_of(const Merger& merger);

// The merger found damage. RocksDB has no code of its own for that.
bool failed_to_merge(const rocksdb::Status& status);

}  // namespace semel
