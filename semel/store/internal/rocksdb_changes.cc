#include "semel/store/internal/rocksdb_changes.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <memory>

#include "semel/store/internal/rocksdb_listener.h"
#include "semel/store/internal/rocksdb_status.h"

namespace semel::store_internal {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Reports the keys that a batch of the write-ahead log changes.
class Replay final : public rocksdb::WriteBatch::Handler {
 public:
  Replay(std::uint32_t column_family, ChangeObserver& told)
      : column_family_(column_family), told_(told) {}

  Status PutCF(std::uint32_t family, const Slice& key, const Slice& /*value*/) override {
    return tell(family, key);
  }
  Status PutEntityCF(std::uint32_t family, const Slice& key, const Slice& /*entity*/) override {
    return tell(family, key);
  }
  Status PutBlobIndexCF(std::uint32_t family, const Slice& key, const Slice& /*value*/) override {
    return tell(family, key);
  }
  Status MergeCF(std::uint32_t family, const Slice& key, const Slice& /*operand*/) override {
    return tell(family, key);
  }
  Status DeleteCF(std::uint32_t family, const Slice& key) override { return tell(family, key); }
  Status SingleDeleteCF(std::uint32_t family, const Slice& key) override {
    return tell(family, key);
  }
  Status DeleteRangeCF(std::uint32_t family, const Slice& first, const Slice& end) override {
    if (family == column_family_) told_.changed(KeyRange{first.ToString(), end.ToString()});
    return Status::OK();
  }
  Status MarkNoop(bool /*empty_batch*/) override { return Status::OK(); }
  Status MarkBeginPrepare(bool /*unprepared*/) override { return two_phases(); }
  Status MarkEndPrepare(const Slice& /*id*/) override { return two_phases(); }
  Status MarkCommit(const Slice& /*id*/) override { return two_phases(); }
  Status MarkCommitWithTimestamp(const Slice& /*id*/, const Slice& /*time*/) override {
    return two_phases();
  }
  Status MarkRollback(const Slice& /*id*/) override { return two_phases(); }

  // Returns true if the log has two-phase transactions. Their changes are in the log where they
  // were prepared, but get their numbers when they are committed. So the numbers do not show
  // whether the log is complete.
  bool has_two_phases() const { return has_two_phases_; }

 private:
  Status two_phases() {
    has_two_phases_ = true;
    return Status::OK();
  }
  Status tell(std::uint32_t family, const Slice& key) {
    if (family == column_family_) told_.changed(std::string_view(key.data(), key.size()));
    return Status::OK();
  }

  std::uint32_t column_family_;
  ChangeObserver& told_;
  bool has_two_phases_ = false;
};

// Reports the changes in the write-ahead log from this sequence on. Returns false if the log is not
// complete. RocksDB silently begins at a later sequence if the requested one is gone.
bool replay(const RocksDatabase& database, std::uint64_t from, ChangeObserver& told) {
  rocksdb::DB& db = *database.db;
  const std::uint64_t last = db.GetLatestSequenceNumber();
  if (from > last) return true;
  std::unique_ptr<rocksdb::TransactionLogIterator> log;
  if (!db.GetUpdatesSince(from, &log).ok()) return false;
  Replay handler(database.family->GetID(), told);
  std::uint64_t expected = from;
  for (; log->Valid() && log->status().ok(); log->Next()) {
    const rocksdb::BatchResult batch = log->GetBatch();
    if (batch.sequence > expected) return false;
    if (!batch.writeBatchPtr->Iterate(&handler).ok() || handler.has_two_phases()) return false;
    expected = std::max(expected, batch.sequence + batch.writeBatchPtr->Count());
  }
  return expected > last;
}

}  // namespace

Result<RocksPosition> position_of(const RocksDatabase& database) {
  rocksdb::DB& db = *database.db;
  RocksPosition position;
  position.sequence = db.GetLatestSequenceNumber();
  position.column_family = database.family->GetID();
  Status status = db.Flush({}, database.family);
  if (status.ok()) status = db.GetDbIdentity(position.identity);
  if (!status.ok()) return error_of(status);
  RocksFilesByNumber files = SEMEL_TRY(files_with_sessions(db, database.family));
  // Writes to raw() may have come after the sequence was read.
  std::erase_if(files,
                [&](const auto& file) { return file.second.last_sequence > position.sequence; });
  database.listener->finish(files, position);
  return position;
}

// No change is missed, for this reason. After a flush the records are a function of the table files
// alone, then and now. In a store that cannot flush, they also depend on the live write-ahead log,
// all of which is reported. Take a key in no reported range. Then no file that held it is gone. A
// new file can hold it only if all the file's writes are later than the position and are reported
// from a log that is complete since then; so no new file holds it either. The files that hold the
// key are the same as before, and so are its values in them. Anyone who wrote in between, with or
// without the log, or who ingested, restored or dropped files, has changed the list of files.
Result<void> changes_since(const RocksDatabase& database, ByteView position, ChangeObserver& told) {
  rocksdb::DB& db = *database.db;
  const RocksPosition then = SEMEL_TRY(RocksPosition::decode(position));
  if (database.settings.mode == RocksStore::Mode::secondary) {
    return Error{Errc::gap, "a secondary cannot tell what has changed"};
  }
  std::string identity;
  Status status = db.GetDbIdentity(identity);
  if (status.ok() && database.writable()) status = db.Flush({}, database.family);
  if (!status.ok()) return error_of(status);
  if (identity != then.identity || database.family->GetID() != then.column_family) {
    return Error{Errc::gap, "a position of another database"};
  }
  if (db.GetLatestSequenceNumber() < then.sequence) {
    return Error{Errc::gap, "the database is older than the position"};
  }
  std::uint64_t from = then.sequence + 1;
  if (!database.writable()) {
    rocksdb::VectorLogPtr logs;
    status = db.GetSortedWalFiles(logs);
    if (!status.ok()) return error_of(status);
    for (const auto& log : logs) {
      if (log->Type() == rocksdb::kAliveLogFile && log->StartSequence() > 0) {
        from = std::min<std::uint64_t>(from, log->StartSequence());
      }
    }
  }
  RocksFilesByNumber now = SEMEL_TRY(files_with_sessions(db, database.family));
  const bool complete = replay(database, from, told);
  if (!complete && !database.writable()) {
    return Error{Errc::gap, "the write-ahead log is not complete"};
  }
  for (const KeyRange& range : then.doubtful) told.changed(range);
  for (const RocksFile& file : then.files) {
    const auto same = now.find(file.number);
    if (same != now.end() && same->second == file) {
      now.erase(same);
    } else {
      told.changed(file.range());
    }
  }
  for (const auto& [number, file] : now) {
    if (!complete || file.least_sequence <= then.sequence) told.changed(file.range());
  }
  return {};
}

}  // namespace semel::store_internal
