// Stand-ins for orders and merge operators that only the owner of a directory has.
//
// Contract  RocksDB opens all column families for writing or none, and only with the names that
//           they were made with. Other column families must not prevent the opening. A stand-in has
//           only the name. It must never order or merge a record: a merge fails, and the order of
//           bytes is enough to search for nothing.
#pragma once

#include <memory>
#include <string>

namespace rocksdb {
class Comparator;
class MergeOperator;
}  // namespace rocksdb

namespace semel::store_internal {

std::unique_ptr<rocksdb::Comparator> stand_in_comparator(std::string name);
std::shared_ptr<rocksdb::MergeOperator> stand_in_merge_operator(std::string name);

}  // namespace semel::store_internal
