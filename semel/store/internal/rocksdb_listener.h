// RocksListener: hears of what happens below a store, and reports changes that did not come through
// the store.
//
// Contract  A file is known if the change that it brought was reported, or brought none: the files
//           at the opening, those that RocksDB made of others, and those taken in once that was
//           reported. A position lists only known files. So a file that the listener has not heard
//           of yet counts as new at the next opening. While a compaction that drops records is
//           running, its range goes into each position. The opener of the position reads it again,
//           whether the outcome was reported in time or not.
// Threads   Any number of threads may call at once. RocksDB calls the On... functions.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/result.h"
#include "semel/store/internal/rocksdb_position.h"
#include "semel/store/ordered_store.h"

namespace semel::store_internal {

// The table files of one column family, by number.
using RocksFilesByNumber = std::map<std::uint64_t, RocksFile>;

RocksFilesByNumber files_of(rocksdb::DB& db, const std::string& column_family);
// Returns the same with the sessions that wrote the files. It may leave out a file that is deleted
// meanwhile.
Result<RocksFilesByNumber> files_with_sessions(rocksdb::DB& db,
                                               rocksdb::ColumnFamilyHandle* handle);

class RocksListener final : public rocksdb::EventListener {
 public:
  // `drops`: compactions may drop records.
  RocksListener(std::string column_family, bool drops, std::uint64_t archive_bytes)
      : column_family_(std::move(column_family)), drops_(drops), archive_bytes_(archive_bytes) {}

  void observe(ChangeObserver* observer);
  void know(const RocksFilesByNumber& files);
  // Adds the known ones of these files to the position, and the ranges in doubt.
  void finish(const RocksFilesByNumber& files, RocksPosition& position);
  std::uint64_t rounds() const { return rounds_; }  // of flushing and compacting

  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override;
  void OnTableFileDeleted(const rocksdb::TableFileDeletionInfo& info) override;
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override;
  void OnCompactionBegin(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;
  void OnExternalFileIngested(rocksdb::DB* db,
                              const rocksdb::ExternalFileIngestionInfo& info) override;

 private:
  using Job = std::pair<std::uint64_t, int>;  // thread and number

  void tell(const KeyRange& range);
  void trim_archive(rocksdb::DB& db) const;

  const std::string column_family_;
  const bool drops_;
  const std::uint64_t archive_bytes_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::mutex mutex_;
  ChangeObserver* observer_ = nullptr;
  std::set<std::uint64_t> known_;
  std::map<Job, std::vector<KeyRange>> dropping_;
};

}  // namespace semel::store_internal
