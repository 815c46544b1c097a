#include "semel/store/internal/rocksdb_log_contents.h"

#include <rocksdb/write_batch.h>

#include "semel/store/internal/rocksdb_log.h"

namespace semel::store_internal {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

class Collector final : public rocksdb::WriteBatch::Handler {
 public:
  explicit Collector(LogContents& contents) : contents_(contents) {}

  Status MergeCF(std::uint32_t family, const Slice& /*key*/, const Slice& /*operand*/) override {
    contents_.merged.insert(family);
    return Status::OK();
  }
  Status MarkEndPrepare(const Slice& id) override {
    contents_.prepared.insert(id.ToString());
    return Status::OK();
  }
  Status MarkCommit(const Slice& id) override { return end(id); }
  Status MarkCommitWithTimestamp(const Slice& id, const Slice& /*time*/) override {
    return end(id);
  }
  Status MarkRollback(const Slice& id) override { return end(id); }

  Status PutCF(std::uint32_t, const Slice&, const Slice&) override { return Status::OK(); }
  Status PutEntityCF(std::uint32_t, const Slice&, const Slice&) override { return Status::OK(); }
  Status PutBlobIndexCF(std::uint32_t, const Slice&, const Slice&) override { return Status::OK(); }
  Status DeleteCF(std::uint32_t, const Slice&) override { return Status::OK(); }
  Status SingleDeleteCF(std::uint32_t, const Slice&) override { return Status::OK(); }
  Status DeleteRangeCF(std::uint32_t, const Slice&, const Slice&) override { return Status::OK(); }
  Status MarkBeginPrepare(bool /*unprepared*/) override { return Status::OK(); }
  Status MarkNoop(bool /*empty_batch*/) override { return Status::OK(); }

 private:
  Status end(const Slice& id) {
    contents_.prepared.erase(id.ToString());
    return Status::OK();
  }

  LogContents& contents_;
};

}  // namespace

LogContents LogContents::of(const std::vector<std::string>& logs) {
  LogContents contents;
  Collector collector(contents);
  for (const std::string& path : logs) {
    std::string batch;
    const LogCheck log = check_log(path, LogKind::writes, [&](const LogPiece& piece) {
      if (piece.begins) batch.clear();
      batch.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
      if (piece.ends && !rocksdb::WriteBatch(batch).Iterate(&collector).ok()) {
        contents.complete = false;
      }
    });
    if (!log.told) contents.complete = false;
  }
  return contents;
}

}  // namespace semel::store_internal
