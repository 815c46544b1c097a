// RocksListener: listens to RocksDB below a store, and reports changes that did not come through
// the store.
//
// Contract  A file is known if its change was reported, or if it brought none. Known files are
//           those present at opening, those that RocksDB made from others, and ingested files once
//           they were reported. A position lists only known files. So a file that the listener has
//           not yet heard of counts as new at the next opening. While a compaction that drops
//           records is running, its range is part of every position. Whoever opens the position
//           reads that range again, even if the outcome was reported in time.
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
// Returns these files with the sessions that wrote them. It may leave out a file that is deleted
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
  // Adds to the position those of these files that are known, and the ranges in doubt.
  void finish(const RocksFilesByNumber& files, RocksPosition& position);
  std::uint64_t rounds() const { return rounds_; }  // the number of flushes and compactions

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
