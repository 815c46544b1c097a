#include "semel/store/internal/rocksdb_database.h"

#include <rocksdb/convenience.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "semel/core/assert.h"
#include "semel/store/internal/new_file.h"
#include "semel/store/internal/rocksdb_damage.h"
#include "semel/store/internal/rocksdb_status.h"

namespace semel::store_internal {
namespace {

namespace fs = std::filesystem;
using rocksdb::ColumnFamilyDescriptor;
using rocksdb::Status;

// Makes a directory of this process for the files of a secondary. Returns an empty name on failure.
std::string temporary_directory() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "semel-secondary-XXXXXX").string();
  return error || ::mkdtemp(name.data()) == nullptr ? std::string() : name;
}

}  // namespace

RocksDatabase::RocksDatabase(std::string where, const RocksStore::Settings& how)
    : directory(std::move(where)), settings(how), plan(directory, settings) {}

RocksDatabase::~RocksDatabase() {
  (void)close();  // the error is lost here: call close() to get it
  std::error_code ignored;
  if (!secondary_directory_.empty()) fs::remove_all(secondary_directory_, ignored);
}

bool RocksDatabase::has_blob_files() const {
  std::uint64_t files = 0;
  return db->GetOptions(family).enable_blob_files ||
         !db->GetIntProperty(family, rocksdb::DB::Properties::kNumBlobFiles, &files) || files > 0;
}

std::string RocksDatabase::checkpoint_path() const {
  const std::uint32_t id = family->GetID();
  std::string path = directory + "/SEMEL-INDEX";
  if (id != 0) {
    path.append(".").append(std::to_string(id));
  }
  return path;
}

void RocksDatabase::listen() {
  const ColumnFamilyDescriptor& ours = plan.asked();
  const bool drops = ours.options.compaction_filter != nullptr ||
                     ours.options.compaction_filter_factory != nullptr ||
                     ours.options.compaction_style == rocksdb::kCompactionStyleFIFO;
  listener = std::make_shared<RocksListener>(ours.name, drops, settings.log_archive_bytes);
  if (writable()) plan.db.listeners.push_back(listener);
}

Result<void> RocksDatabase::open() {
  SEMEL_TRY(plan.make());
  listen();
  if (const Status status = open_as_planned(); !status.ok()) return open_error(status);
  for (rocksdb::ColumnFamilyHandle* const handle : handles_) {
    if (handle->GetName() == settings.column_family) family = handle;
  }
  SEMEL_ASSERT(family != nullptr);
  listener->know(files_of(*db, settings.column_family));
  if (settings.mode == RocksStore::Mode::secondary && has_blob_files()) {
    return Error{Errc::unsupported,
                 "its values are in blob files, which a secondary of RocksDB cannot read; read it "
                 "while its owner has it closed"};
  }
  if (!writable()) return plan.judge_stand_ins(*db, handles_);
  remove_leftovers(checkpoint_path());
  remove_leftovers(seal_path(directory));
  if (!seal_directory(directory, plan.log_directory(), false)) {
    return Error{Errc::io, "the seal could not be written"};
  }
  return {};
}

// Leaves the log empty and the directory sealed, so that a later loss cannot be mistaken for
// records that were never written.
Result<void> RocksDatabase::close() {
  if (db == nullptr) return {};
  Status status;
  for (rocksdb::ColumnFamilyHandle* const handle : handles_) {
    if (writable() && status.ok()) status = db->Flush({}, handle);
  }
  rocksdb::CancelAllBackgroundWork(db.get(), true);  // from here on the MANIFEST does not grow
  const bool sealed =
      !writable() || !status.ok() || seal_directory(directory, plan.log_directory(), true);
  for (rocksdb::ColumnFamilyHandle* const handle : handles_) {
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  const Status closed = db->Close();
  db.reset();
  if (!status.ok() || !closed.ok()) return error_of(status.ok() ? closed : status);
  if (!sealed) return Error{Errc::io, "the seal could not be written"};
  return {};
}

// Finds damage that a secondary would not report: if a table file cannot be read, a secondary shows
// an older state. A file that the owner deletes meanwhile is no damage, so this looks several
// times.
Status RocksDatabase::probe() const {
  constexpr int kLooks = 10;
  Status status;
  for (int look = 0; look < kLooks; ++look) {
    std::vector<rocksdb::ColumnFamilyHandle*> seen;
    rocksdb::DB* opened = nullptr;
    status = rocksdb::DB::OpenForReadOnly(plan.db, directory, plan.families, &seen, &opened);
    const std::unique_ptr<rocksdb::DB> closed_again(opened);
    for (rocksdb::ColumnFamilyHandle* const handle : seen) {
      opened->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    if (status.ok()) break;
  }
  return status;
}

Status RocksDatabase::open_as_planned() {
  rocksdb::DB* opened = nullptr;
  Status status;
  switch (settings.mode) {
    case RocksStore::Mode::read_write:
      status = rocksdb::DB::Open(plan.db, directory, plan.families, &handles_, &opened);
      break;
    case RocksStore::Mode::read_only:
      status = rocksdb::DB::OpenForReadOnly(plan.db, directory, plan.families, &handles_, &opened);
      break;
    case RocksStore::Mode::secondary: {
      if (status = probe(); !status.ok()) return status;
      secondary_directory_ = temporary_directory();
      if (secondary_directory_.empty()) return Status::IOError("no temporary directory");
      plan.files.allow(secondary_directory_);
      rocksdb::DBOptions options = plan.db;
      options.max_open_files = -1;  // files that the owner deletes stay readable
      status = rocksdb::DB::OpenAsSecondary(options, directory, secondary_directory_, plan.families,
                                            &handles_, &opened);
      // RocksDB requires the directory for its log of messages, but we let it write none. If the
      // directory is removed now, a process that a signal ends does not leave it behind.
      ::rmdir(secondary_directory_.c_str());
      break;
    }
  }
  db.reset(opened);
  return status;
}

}  // namespace semel::store_internal
