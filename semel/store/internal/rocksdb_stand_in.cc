#include "semel/store/internal/rocksdb_stand_in.h"

#include <rocksdb/comparator.h>
#include <rocksdb/merge_operator.h>

#include <utility>

namespace semel::store_internal {
namespace {

using rocksdb::Slice;

class StandInComparator final : public rocksdb::Comparator {
 public:
  explicit StandInComparator(std::string name) : name_(std::move(name)) {}
  const char* Name() const override { return name_.c_str(); }
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  void FindShortestSeparator(std::string* /*start*/, const Slice& /*limit*/) const override {}
  void FindShortSuccessor(std::string* /*key*/) const override {}

 private:
  std::string name_;
};

class StandInMergeOperator final : public rocksdb::MergeOperator {
 public:
  explicit StandInMergeOperator(std::string name) : name_(std::move(name)) {}
  const char* Name() const override { return name_.c_str(); }
  bool FullMergeV2(const MergeOperationInput& /*in*/,
                   MergeOperationOutput* /*out*/) const override {
    return false;
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<rocksdb::Comparator> stand_in_comparator(std::string name) {
  return std::make_unique<StandInComparator>(std::move(name));
}

std::shared_ptr<rocksdb::MergeOperator> stand_in_merge_operator(std::string name) {
  return std::make_shared<StandInMergeOperator>(std::move(name));
}

}  // namespace semel::store_internal
