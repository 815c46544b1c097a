// Stand-ins for orders and merge operators that only the owner of a directory has.
//
// Why       RocksDB opens all column families for writing or none, and only with the names that
//           they were made with. A column family that nobody asks for must not stand in the way.
// Contract  A stand-in has the name and nothing else. No record may be put in order or merged by
//           it: a merge fails, and an order of bytes is what a search for nothing needs.
#pragma once

#include <memory>
#include <string>

namespace rocksdb {
class Comparator;
class MergeOperator;
}  // namespace rocksdb

namespace semel {

std::unique_ptr<rocksdb::Comparator> stand_in_comparator(std::string name);
std::shared_ptr<rocksdb::MergeOperator> stand_in_merge_operator(std::string name);

}  // namespace semel
