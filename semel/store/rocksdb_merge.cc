#include "semel/store/rocksdb_merge.h"

#include <rocksdb/merge_operator.h>

#include <fstream>
#include <string_view>

namespace semel {
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

std::string merge_operator_name(const std::string& options_file, const std::string& column_family) {
  constexpr std::string_view kOption = "merge_operator=";
  const std::string section = "[CFOptions \"" + column_family + "\"]";
  std::ifstream in(options_file);
  bool within = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('[')) within = line == section;
    const std::size_t at = line.find_first_not_of(' ');
    if (!within || at == std::string::npos || !line.substr(at).starts_with(kOption)) continue;
    std::string name = line.substr(at + kOption.size());
    return name == "nullptr" ? std::string() : name;
  }
  return {};
}

bool failed_to_merge(const rocksdb::Status& status) {
  return status.IsCorruption() && status.ToString().find("merge") != std::string::npos;
}

}  // namespace semel
