#include "semel/store/internal/rocksdb_merge.h"

#include <rocksdb/merge_operator.h>

#include <string_view>

namespace semel::store_internal {
namespace {

using rocksdb::Slice;

std::string_view view(const Slice& text) { return {text.data(), text.size()}; }

class Operator final : public rocksdb::AssociativeMergeOperator {
 public:
  explicit Operator(const Merger& merger) : merger_(merger) {}

  const char* Name() const override { return merger_.name(); }
  // No exception may pass through RocksDB.
  bool Merge(const Slice& key, const Slice* now, const Slice& operand, std::string* merged,
             rocksdb::Logger* /*log*/) const noexcept override {
    const auto before = now == nullptr ? std::nullopt : std::optional(view(*now));
    return merger_.merge(view(key), before, view(operand), *merged);
  }

 private:
  const Merger& merger_;
};

}  // namespace

std::shared_ptr<rocksdb::MergeOperator> merge_operator_of(const Merger& merger) {
  return std::make_shared<Operator>(merger);
}

bool failed_to_merge(const rocksdb::Status& status) {
  return status.IsCorruption() && status.ToString().find("merge") != std::string::npos;
}

}  // namespace semel::store_internal
