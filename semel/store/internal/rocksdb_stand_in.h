// Stand-ins for orders and merge operators that only the owner of a directory has.
//
// Contract  RocksDB opens all column families for writing or none, and only with the names of their
//           original orders and operators. Other column families must not prevent the opening. A
//           stand-in has only the name. It must never order or merge a record: merges fail, and it
//           orders by bytes, which is enough for a search that finds nothing.
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
