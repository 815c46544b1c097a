#include "semel/store/internal/rocksdb_listener.h"

#include <cstdlib>
#include <filesystem>

#include "semel/store/internal/rocksdb_status.h"

namespace semel::store_internal {
namespace {

using rocksdb::Status;

std::uint64_t number_of(const std::string& path) {
  return std::strtoull(std::filesystem::path(path).filename().c_str(), nullptr, 10);
}

}  // namespace

RocksFilesByNumber files_of(rocksdb::DB& db, const std::string& column_family) {
  std::vector<rocksdb::LiveFileMetaData> live;
  db.GetLiveFilesMetaData(&live);
  RocksFilesByNumber files;
  for (rocksdb::LiveFileMetaData& file : live) {
    if (file.column_family_name != column_family) continue;
    files[file.file_number] = {.number = file.file_number,
                               .session = {},
                               .size = file.size,
                               .created_s = file.file_creation_time,
                               .least_sequence = file.smallest_seqno,
                               .last_sequence = file.largest_seqno,
                               .first_key = std::move(file.smallestkey),
                               .last_key = std::move(file.largestkey)};
  }
  return files;
}

Result<RocksFilesByNumber> files_with_sessions(rocksdb::DB& db,
                                               rocksdb::ColumnFamilyHandle* handle) {
  RocksFilesByNumber all = files_of(db, handle->GetName());
  rocksdb::TablePropertiesCollection properties;
  const Status status = db.GetPropertiesOfAllTables(handle, &properties);
  if (!status.ok()) return error_of(status);
  RocksFilesByNumber files;
  for (const auto& [path, table] : properties) {
    const auto file = all.extract(number_of(path));
    if (file.empty()) continue;
    file.mapped().session = table->db_session_id;
    files[file.key()] = std::move(file.mapped());
  }
  return files;
}

void RocksListener::observe(ChangeObserver* observer) {
  const std::lock_guard lock(mutex_);
  observer_ = observer;
}

void RocksListener::know(const RocksFilesByNumber& files) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, file] : files) known_.insert(number);
}

void RocksListener::finish(const RocksFilesByNumber& files, RocksPosition& position) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, file] : files) {
    if (known_.contains(number)) position.files.push_back(file);
  }
  for (const auto& [job, ranges] : dropping_) {
    position.doubtful.insert(position.doubtful.end(), ranges.begin(), ranges.end());
  }
}

void RocksListener::OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) {
  if (info.cf_name != column_family_) return;
  const std::lock_guard lock(mutex_);
  known_.insert(number_of(info.file_path));
}

void RocksListener::OnTableFileDeleted(const rocksdb::TableFileDeletionInfo& info) {
  const std::lock_guard lock(mutex_);
  known_.erase(number_of(info.file_path));
}

void RocksListener::OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) {
  trim_archive(*db);
  if (info.cf_name == column_family_) ++rounds_;
}

void RocksListener::OnCompactionBegin(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) {
  if (info.cf_name != column_family_) return;
  const RocksFilesByNumber files = files_of(*db, column_family_);
  const std::lock_guard lock(mutex_);
  for (const rocksdb::CompactionFileInfo& input : info.input_file_infos) {
    const auto file = files.find(input.file_number);
    const KeyRange range = file == files.end() ? KeyRange::all() : file->second.range();
    if (known_.insert(input.file_number).second) tell(range);
    if (drops_) dropping_[{info.thread_id, info.job_id}].push_back(range);
  }
}

void RocksListener::OnCompactionCompleted(rocksdb::DB* /*db*/,
                                          const rocksdb::CompactionJobInfo& info) {
  if (info.cf_name != column_family_) return;
  const std::lock_guard lock(mutex_);
  const auto dropping = dropping_.extract({info.thread_id, info.job_id});
  if (!dropping.empty()) {
    for (const KeyRange& range : dropping.mapped()) tell(range);
  }
  ++rounds_;
}

void RocksListener::OnExternalFileIngested(rocksdb::DB* db,
                                           const rocksdb::ExternalFileIngestionInfo& info) {
  if (info.cf_name != column_family_) return;
  const std::uint64_t number = number_of(info.internal_file_path);
  const RocksFilesByNumber files = files_of(*db, column_family_);
  const auto file = files.find(number);
  const std::lock_guard lock(mutex_);
  tell(file == files.end() ? KeyRange::all() : file->second.range());
  known_.insert(number);
}

void RocksListener::tell(const KeyRange& range) {
  if (observer_ != nullptr) observer_->changed(range);
}

// Trims the archive of the write-ahead log. RocksDB does so only every ten minutes, however fast
// the archive grows.
void RocksListener::trim_archive(rocksdb::DB& db) const {
  rocksdb::VectorLogPtr logs;
  if (!db.GetSortedWalFiles(logs).ok()) return;
  std::uint64_t bytes = 0;
  for (auto log = logs.rbegin(); log != logs.rend(); ++log) {
    if ((*log)->Type() != rocksdb::kArchivedLogFile) continue;
    bytes += (*log)->SizeFileBytes();
    if (bytes > archive_bytes_) db.DeleteFile((*log)->PathName()).PermitUncheckedError();
  }
}

}  // namespace semel::store_internal
