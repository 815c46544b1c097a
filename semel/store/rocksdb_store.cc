#include "semel/store/rocksdb_store.h"

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/wide_columns.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <utility>

#include "semel/core/assert.h"
#include "semel/store/internal/rocksdb_damage.h"
#include "semel/store/internal/rocksdb_options.h"
#include "semel/store/internal/rocksdb_plan.h"
#include "semel/store/internal/rocksdb_position.h"
#include "semel/store/internal/rocksdb_status.h"
#include "semel/store/new_file.h"

namespace semel {
namespace {

namespace fs = std::filesystem;
using rocksdb::ColumnFamilyDescriptor;
using rocksdb::Slice;
using rocksdb::Status;

Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const Slice& text) { return {text.data(), text.size()}; }

bool is_plain(const rocksdb::WideColumns& columns) {
  return columns.size() == 1 && columns.front().name() == rocksdb::kDefaultWideColumnName;
}

// What the last error was about, for whoever has to tell it. Calls of any threads meet here.
class Problem {
 public:
  Error note(const Status& status) { return note(words_of(status), error_of(status)); }
  Error note(std::string words, Error error) {
    const std::lock_guard lock(mutex_);
    words_ = std::move(words);
    return error;
  }
  Result<void> check(const Status& status) {
    if (!status.ok()) return note(status);
    return {};
  }
  // A value of RocksDB is that of its default column alone.
  Error wide(std::string_view key) {
    return note("the record " + shown(key) + " has wide columns, which are not supported",
                {Errc::unsupported, "a record has wide columns"});
  }
  std::string words() const {
    const std::lock_guard lock(mutex_);
    return words_;
  }

 private:
  mutable std::mutex mutex_;
  std::string words_;
};

// RocksDB 7.8 follows a pointer to what is gone when a secondary reads a blob.
constexpr Error kBlobs = {Errc::unsupported, "a secondary cannot read blob files"};
constexpr Error kReadOnly = {Errc::unsupported, "the store is open for reading only"};

std::uint64_t number_of(const std::string& path) {
  return std::strtoull(fs::path(path).filename().c_str(), nullptr, 10);
}

// The table files of one column family, by number.
using Files = std::map<std::uint64_t, RocksFile>;

Files files_of(rocksdb::DB& db, const std::string& column_family) {
  std::vector<rocksdb::LiveFileMetaData> live;
  db.GetLiveFilesMetaData(&live);
  Files files;
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

// The same with sessions; a file that goes while we look may be left out.
Result<Files> files_with_sessions(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* handle) {
  Files all = files_of(db, handle->GetName());
  rocksdb::TablePropertiesCollection properties;
  const Status status = db.GetPropertiesOfAllTables(handle, &properties);
  if (!status.ok()) return error_of(status);
  Files files;
  for (const auto& [path, table] : properties) {
    const auto file = all.extract(number_of(path));
    if (file.empty()) continue;
    file.mapped().session = table->db_session_id;
    files[file.key()] = std::move(file.mapped());
  }
  return files;
}

// Hears of what happens below, and tells of changes that did not come through the store.
//
// A file is known if the change that it brought was told, or brought none: those at the opening,
// those that RocksDB made of others, those taken in once that was told. A position lists known
// files alone, so a file of which we have yet to hear counts as new at the next opening. While a
// compaction that drops records is under way its range goes into each position: whoever opens the
// position reads it again, whether the outcome was told in time or not.
class Listener final : public rocksdb::EventListener {
 public:
  Listener(std::string column_family, bool drops, std::uint64_t archive_bytes)
      : column_family_(std::move(column_family)), drops_(drops), archive_bytes_(archive_bytes) {}

  void observe(ChangeObserver* observer) {
    const std::lock_guard lock(mutex_);
    observer_ = observer;
  }

  void know(const Files& files) {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, file] : files) known_.insert(number);
  }

  // Leaves out what is not known, and adds what is in doubt.
  void finish(const Files& files, RocksPosition& position) {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, file] : files) {
      if (known_.contains(number)) position.files.push_back(file);
    }
    for (const auto& [job, ranges] : dropping_) {
      position.doubtful.insert(position.doubtful.end(), ranges.begin(), ranges.end());
    }
  }

  std::uint64_t rounds() const { return rounds_; }  // of flushing and compacting

  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override {
    if (info.cf_name != column_family_) return;
    const std::lock_guard lock(mutex_);
    known_.insert(number_of(info.file_path));
  }

  void OnTableFileDeleted(const rocksdb::TableFileDeletionInfo& info) override {
    const std::lock_guard lock(mutex_);
    known_.erase(number_of(info.file_path));
  }

  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) override {
    trim_archive(*db);
    if (info.cf_name == column_family_) ++rounds_;
  }

  void OnCompactionBegin(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override {
    if (info.cf_name != column_family_) return;
    const Files files = files_of(*db, column_family_);
    const std::lock_guard lock(mutex_);
    for (const rocksdb::CompactionFileInfo& input : info.input_file_infos) {
      const auto file = files.find(input.file_number);
      const KeyRange range = file == files.end() ? KeyRange::all() : file->second.range();
      if (known_.insert(input.file_number).second) tell(range);
      if (drops_) dropping_[{info.thread_id, info.job_id}].push_back(range);
    }
  }

  void OnCompactionCompleted(rocksdb::DB* /*db*/, const rocksdb::CompactionJobInfo& info) override {
    if (info.cf_name != column_family_) return;
    const std::lock_guard lock(mutex_);
    const auto dropping = dropping_.extract({info.thread_id, info.job_id});
    if (!dropping.empty()) {
      for (const KeyRange& range : dropping.mapped()) tell(range);
    }
    ++rounds_;
  }

  void OnExternalFileIngested(rocksdb::DB* db,
                              const rocksdb::ExternalFileIngestionInfo& info) override {
    if (info.cf_name != column_family_) return;
    const std::uint64_t number = number_of(info.internal_file_path);
    const Files files = files_of(*db, column_family_);
    const auto file = files.find(number);
    const std::lock_guard lock(mutex_);
    tell(file == files.end() ? KeyRange::all() : file->second.range());
    known_.insert(number);
  }

 private:
  using Job = std::pair<std::uint64_t, int>;  // thread and number

  void tell(const KeyRange& range) {
    if (observer_ != nullptr) observer_->changed(range);
  }

  // RocksDB trims its archive of the write-ahead log every ten minutes, however fast it grows.
  void trim_archive(rocksdb::DB& db) const {
    rocksdb::VectorLogPtr logs;
    if (!db.GetSortedWalFiles(logs).ok()) return;
    std::uint64_t bytes = 0;
    for (auto log = logs.rbegin(); log != logs.rend(); ++log) {
      if ((*log)->Type() != rocksdb::kArchivedLogFile) continue;
      bytes += (*log)->SizeFileBytes();
      if (bytes > archive_bytes_) db.DeleteFile((*log)->PathName()).PermitUncheckedError();
    }
  }

  const std::string column_family_;
  const bool drops_;  // compactions may drop records
  const std::uint64_t archive_bytes_;
  std::atomic<std::uint64_t> rounds_ = 0;
  std::mutex mutex_;
  ChangeObserver* observer_ = nullptr;
  std::set<std::uint64_t> known_;
  std::map<Job, std::vector<KeyRange>> dropping_;
};

// Tells the keys that a batch of the write-ahead log changes.
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

  // The log has transactions in two phases. Their changes are numbered when they are committed, and
  // stand where they were prepared: numbers do not tell whether the log is complete.
  bool has_two_phases() const { return has_two_phases_; }

 private:
  Status two_phases() {
    has_two_phases_ = true;
    return Status::OK();
  }
  Status tell(std::uint32_t family, const Slice& key) {
    if (family == column_family_) told_.changed(view(key));
    return Status::OK();
  }

  std::uint32_t column_family_;
  ChangeObserver& told_;
  bool has_two_phases_ = false;
};

// A directory of this process, for the files of a secondary.
std::string temporary_directory() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "semel-secondary-XXXXXX").string();
  return error || ::mkdtemp(name.data()) == nullptr ? std::string() : name;
}

}  // namespace

struct RocksStore::Body {
  Body(std::string where, const Settings& how)
      : directory(std::move(where)), settings(how), plan(directory, settings) {
    writing.sync = settings.sync;
    reading.total_order_seek = true;
  }
  ~Body() {
    (void)close();  // an error here has nobody to hear it: who has to know calls close()
    std::error_code ignored;
    if (!secondary_directory.empty()) fs::remove_all(secondary_directory, ignored);
  }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  // `why` takes more words of an error than it can hold itself.
  Result<void> open(std::string& why);
  void listen();
  Result<void> close();
  Status probe() const;
  Status open_as_planned();

  bool writable() const { return settings.mode == Mode::read_write; }
  bool has_blob_files() const {
    std::uint64_t files = 0;
    return db->GetOptions(family).enable_blob_files ||
           !db->GetIntProperty(family, rocksdb::DB::Properties::kNumBlobFiles, &files) || files > 0;
  }
  std::string checkpoint_path() const {
    const std::uint32_t id = family->GetID();
    return directory + "/SEMEL-INDEX" + (id == 0 ? std::string() : "." + std::to_string(id));
  }

  Result<std::optional<std::string>> get(std::string_view key) const;
  Result<std::optional<std::string>> get_checked(std::string_view key) const;
  Status add(const Write& write, rocksdb::WriteBatch& batch) const;
  // REQUIRES of these: the mutex is held.
  Result<void> write(std::span<const Write> writes);
  Result<RocksPosition> position() const;
  Result<bool> replay(std::uint64_t from, ChangeObserver& told) const;

  const std::string directory;
  const Settings settings;
  RocksPlan plan;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::ColumnFamilyHandle* family = nullptr;
  rocksdb::WriteOptions writing;
  rocksdb::ReadOptions reading;
  std::shared_ptr<Listener> listener;
  std::string secondary_directory;

  // Held shared from before a write until the observer knows of it; alone where no write may come
  // between. Threads of RocksDB never take it, so it may be held while they are waited for.
  mutable std::shared_mutex mutex;
  ChangeObserver* observer = nullptr;
  mutable std::atomic<std::uint64_t> rounds_at_position = 0;
  std::atomic<std::uint64_t> rounds_at_checkpoint = 0;
  const std::shared_ptr<Problem> problem = std::make_shared<Problem>();  // cursors tell it, too
};

void RocksStore::Body::listen() {
  const ColumnFamilyDescriptor& ours = plan.asked();
  const bool drops = ours.options.compaction_filter != nullptr ||
                     ours.options.compaction_filter_factory != nullptr ||
                     ours.options.compaction_style == rocksdb::kCompactionStyleFIFO;
  listener = std::make_shared<Listener>(ours.name, drops, settings.log_archive_bytes);
  if (writable()) plan.db.listeners.push_back(listener);
}

Result<void> RocksStore::Body::open(std::string& why) {
  if (const Result<void> planned = plan.make(why); !planned) return planned;
  listen();
  if (const Status status = open_as_planned(); !status.ok()) return open_error(status, why);
  for (rocksdb::ColumnFamilyHandle* const handle : handles) {
    if (handle->GetName() == settings.column_family) family = handle;
  }
  SEMEL_ASSERT(family != nullptr);
  listener->know(files_of(*db, settings.column_family));
  if (settings.mode == Mode::secondary && has_blob_files()) {
    why =
        "its values are in blob files, which a secondary of RocksDB cannot read; read it while its "
        "owner has it closed";
    return kBlobs;
  }
  if (!writable()) return plan.judge_stand_ins(*db, handles, why);
  remove_leftovers(checkpoint_path());
  remove_leftovers(seal_path(directory));
  if (!seal_directory(directory, plan.log_directory(), false)) {
    return Error{Errc::io, "the seal could not be written"};
  }
  return {};
}

// Leaves nothing in the log, and the directory sealed: nothing that is lost later can be taken for
// something that was never written.
Result<void> RocksStore::Body::close() {
  if (db == nullptr) return {};
  Status status;
  for (rocksdb::ColumnFamilyHandle* const handle : handles) {
    if (writable() && status.ok()) status = db->Flush({}, handle);
  }
  rocksdb::CancelAllBackgroundWork(db.get(), true);  // the MANIFEST grows no more
  const bool sealed =
      !writable() || !status.ok() || seal_directory(directory, plan.log_directory(), true);
  for (rocksdb::ColumnFamilyHandle* const handle : handles) {
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  const Status closed = db->Close();
  db.reset();
  if (!status.ok() || !closed.ok()) return problem->note(status.ok() ? closed : status);
  if (!sealed) return Error{Errc::io, "the seal could not be written"};
  return {};
}

// Tells damage that a secondary would not: where a table file cannot be read, it shows an older
// state. An owner that deletes files while we look is no damage: it does not do so at every look.
Status RocksStore::Body::probe() const {
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

Status RocksStore::Body::open_as_planned() {
  rocksdb::DB* opened = nullptr;
  Status status;
  switch (settings.mode) {
    case Mode::read_write:
      status = rocksdb::DB::Open(plan.db, directory, plan.families, &handles, &opened);
      break;
    case Mode::read_only:
      status = rocksdb::DB::OpenForReadOnly(plan.db, directory, plan.families, &handles, &opened);
      break;
    case Mode::secondary: {
      if (status = probe(); !status.ok()) return status;
      secondary_directory = temporary_directory();
      if (secondary_directory.empty()) return Status::IOError("no temporary directory");
      plan.files.allow(secondary_directory);
      rocksdb::DBOptions options = plan.db;
      options.max_open_files = -1;  // files that the owner deletes stay readable
      status = rocksdb::DB::OpenAsSecondary(options, directory, secondary_directory, plan.families,
                                            &handles, &opened);
      // RocksDB wants it for its log of messages, of which there are none. Whoever ends by a signal
      // leaves nothing behind.
      ::rmdir(secondary_directory.c_str());
      break;
    }
  }
  db.reset(opened);
  return status;
}

Result<std::optional<std::string>> RocksStore::Body::get(std::string_view key) const {
  if (settings.merger == nullptr) return get_checked(key);
  std::string value;
  const Status status = db->Get(reading, family, slice(key), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return problem->note(status);
  return std::optional(std::move(value));
}

// RocksDB gives of a record with wide columns the value of one, and only an iterator tells: its
// GetEntity() ends the process where there are merges, and is wrong where there are blobs.
Result<std::optional<std::string>> RocksStore::Body::get_checked(std::string_view key) const {
  const std::string end = successor(key);
  const Slice bound = end;
  rocksdb::ReadOptions one = reading;
  one.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(one, family));
  at->Seek(slice(key));
  if (!at->status().ok()) return problem->note(at->status());
  if (!at->Valid()) return std::optional<std::string>();
  if (!is_plain(at->columns())) return problem->wide(key);
  return std::optional(at->value().ToString());
}

Status RocksStore::Body::add(const Write& write, rocksdb::WriteBatch& batch) const {
  const Slice key = slice(write.key);
  if (write.value && plan.prefix() != nullptr && !plan.prefix()->InDomain(key)) {
    return Status::NotSupported("the key " + shown(write.key) +
                                " has no prefix, which its owner needs to find it in memory");
  }
  if (!write.merge) {
    return write.value ? batch.Put(family, key, slice(*write.value)) : batch.Delete(family, key);
  }
  SEMEL_ASSERT(write.value.has_value());
  return batch.Merge(family, key, slice(*write.value));
}

Result<void> RocksStore::Body::write(std::span<const Write> writes) {
  constexpr std::size_t kBeside = 24;  // of the batch, and of each record: lengths, kind, family
  std::size_t bytes = kBeside;
  bool merges = false;
  for (const Write& write : writes) {
    merges = merges || write.merge;
    bytes += write.key.size() + (write.value ? write.value->size() : 0) + kBeside;
  }
  if (merges && settings.merger == nullptr) {
    return Error{Errc::unsupported, "the store has no merger"};
  }
  rocksdb::WriteBatch batch(bytes);
  for (const Write& write : writes) {
    const Status status = add(write, batch);
    if (!status.ok()) return problem->note(status);
  }
  const Status status = db->Write(writing, &batch);
  // Told after a failure too: the batch may be in the log, and come to light at the next opening.
  if (observer != nullptr) {
    for (const Write& write : writes) observer->changed(write.key);
  }
  return problem->check(status);
}

Result<RocksPosition> RocksStore::Body::position() const {
  RocksPosition position;
  position.sequence = db->GetLatestSequenceNumber();
  position.column_family = family->GetID();
  Status status = db->Flush({}, family);
  if (status.ok()) status = db->GetDbIdentity(position.identity);
  if (!status.ok()) return problem->note(status);
  Result<Files> files = files_with_sessions(*db, family);
  if (!files) return files.error();
  // Writes to raw() may have come after the sequence was read.
  std::erase_if(*files,
                [&](const auto& file) { return file.second.last_sequence > position.sequence; });
  listener->finish(*files, position);
  return position;
}

// Tells what the write-ahead log holds from this sequence on; false if it does not hold all.
// RocksDB begins at a later sequence without a word if the one asked for is gone.
Result<bool> RocksStore::Body::replay(std::uint64_t from, ChangeObserver& told) const {
  const std::uint64_t last = db->GetLatestSequenceNumber();
  if (from > last) return true;
  std::unique_ptr<rocksdb::TransactionLogIterator> log;
  if (!db->GetUpdatesSince(from, &log).ok()) return false;
  Replay handler(family->GetID(), told);
  std::uint64_t expected = from;
  for (; log->Valid() && log->status().ok(); log->Next()) {
    const rocksdb::BatchResult batch = log->GetBatch();
    if (batch.sequence > expected) return false;
    if (!batch.writeBatchPtr->Iterate(&handler).ok() || handler.has_two_phases()) return false;
    expected = std::max(expected, batch.sequence + batch.writeBatchPtr->Count());
  }
  return expected > last;
}

class RocksStore::IteratorCursor final : public Cursor {
 public:
  IteratorCursor(std::unique_ptr<rocksdb::Iterator> iterator, std::shared_ptr<Problem> problem)
      : iterator_(std::move(iterator)), problem_(std::move(problem)) {}
  void seek(std::string_view key) override {
    iterator_->Seek(slice(key));
    look();
  }
  void next() override {
    iterator_->Next();
    look();
  }
  bool valid() const override { return iterator_->Valid() && !wide_; }
  std::string_view key() const override { return view(iterator_->key()); }
  std::string_view value() const override { return view(iterator_->value()); }
  Result<void> status() const override {
    if (wide_) return problem_->wide(view(iterator_->key()));
    return problem_->check(iterator_->status());
  }

 private:
  void look() { wide_ = iterator_->Valid() && !is_plain(iterator_->columns()); }

  bool wide_ = false;
  std::unique_ptr<rocksdb::Iterator> iterator_;
  std::shared_ptr<Problem> problem_;
};

RocksStore::RocksStore(std::unique_ptr<Body> body) : body_(std::move(body)) {}
RocksStore::~RocksStore() = default;

Result<std::unique_ptr<RocksStore>> RocksStore::open(const std::string& directory,
                                                     const Settings& settings, std::string* why) {
  auto body = std::make_unique<Body>(directory, settings);
  std::string more;
  const Result<void> opened = body->open(more);
  if (!opened) {
    if (why != nullptr) *why = more.empty() ? opened.error().what : more;
    return opened.error();
  }
  return std::unique_ptr<RocksStore>(new RocksStore(std::move(body)));
}

Result<std::vector<std::string>> RocksStore::column_families(const std::string& directory) {
  if (!fs::exists(directory + "/CURRENT")) {
    return Error{Errc::invalid, "the directory holds no RocksDB database"};
  }
  if (!check_directory(directory).damage.empty()) {
    return Error{Errc::io, "the database is damaged"};
  }
  std::vector<std::string> names;
  const Status status = rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), directory, &names);
  if (!status.ok()) return error_of(status);
  return names;
}

std::string RocksStore::merge_operator(const std::string& directory,
                                       const std::string& column_family) {
  return RocksOptionsText::of_directory(directory).family_option(column_family, "merge_operator");
}

Result<std::optional<std::string>> RocksStore::get(std::string_view key) const {
  return body_->get(key);
}

Result<void> RocksStore::write(std::span<const Write> writes) {
  if (!body_->writable()) return kReadOnly;
  const std::shared_lock lock(body_->mutex);
  return body_->write(writes);
}

Result<void> RocksStore::remove_range(const KeyRange& range) {
  if (!body_->writable()) return kReadOnly;
  if (range.empty()) return {};
  const std::unique_lock lock(body_->mutex);
  std::string end;
  if (range.end) {
    end = *range.end;
  } else {  // RocksDB has no end of all keys: it is behind the last one
    const std::unique_ptr<rocksdb::Iterator> last(
        body_->db->NewIterator(body_->reading, body_->family));
    last->SeekToLast();
    if (!last->status().ok()) return body_->problem->note(last->status());
    if (!last->Valid() || view(last->key()) < range.first) return {};
    end = successor(view(last->key()));
  }
  const Status status =
      body_->db->DeleteRange(body_->writing, body_->family, slice(range.first), slice(end));
  if (body_->observer != nullptr) body_->observer->changed(range);
  return body_->problem->check(status);
}

Result<void> RocksStore::sync() {
  if (!body_->writable()) return kReadOnly;
  return body_->problem->check(body_->db->FlushWAL(true));
}

Result<void> RocksStore::close() { return body_->close(); }
std::string RocksStore::problem() const { return body_->problem->words(); }

Result<std::unique_ptr<Cursor>> RocksStore::cursor() const {
  std::unique_ptr<rocksdb::Iterator> iterator(
      body_->db->NewIterator(body_->reading, body_->family));
  if (!iterator->status().ok()) return body_->problem->note(iterator->status());
  return std::unique_ptr<Cursor>(
      std::make_unique<IteratorCursor>(std::move(iterator), body_->problem));
}

Result<void> RocksStore::update(std::span<const std::string_view> keys, const Become& become) {
  if (!body_->writable()) return kReadOnly;
  const std::unique_lock lock(body_->mutex);
  std::vector<std::optional<std::string>> values;
  std::vector<Write> writes;
  values.reserve(keys.size());
  writes.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Result<std::optional<std::string>> now = body_->get(keys[i]);
    if (!now) return now.error();
    values.push_back(become(i, *now));
    if (values.back() != *now) writes.push_back({keys[i], values.back()});
  }
  return writes.empty() ? Result<void>{} : body_->write(writes);
}

void RocksStore::observe(ChangeObserver* observer) {
  const std::unique_lock lock(body_->mutex);
  body_->observer = observer;
  body_->listener->observe(observer);
}

Result<Bytes> RocksStore::position() const {
  if (!body_->writable()) return kReadOnly;
  const std::unique_lock lock(body_->mutex);
  const Result<RocksPosition> position = body_->position();
  if (!position) return position.error();
  body_->rounds_at_position = body_->listener->rounds();
  Bytes bytes;
  position->encode(bytes);
  return bytes;
}

// Why no change is missed. After a flush the records are a function of the table files alone, then
// and now; in a store that cannot flush, of these and of the live write-ahead log, all of which is
// told. Let a key be in no range that is told. Then no file that held it has gone, and the files
// that are new hold it only if all their writes are later than the position and the log, complete
// since then, tells each of them: so they do not hold it either. The files that hold it are the
// same as before, and so is what they say of it. Whoever wrote in between, with or without the log,
// took files in, restored older ones or dropped some, has changed the list of files.
Result<void> RocksStore::changes_since(ByteView position, ChangeObserver& told) const {
  const Result<RocksPosition> then = RocksPosition::decode(position);
  if (!then) return then.error();
  if (body_->settings.mode == Mode::secondary) {
    return Error{Errc::gap, "a secondary cannot tell what has changed"};
  }
  const std::unique_lock lock(body_->mutex);
  std::string identity;
  Status status = body_->db->GetDbIdentity(identity);
  if (status.ok() && body_->writable()) status = body_->db->Flush({}, body_->family);
  if (!status.ok()) return body_->problem->note(status);
  if (identity != then->identity || body_->family->GetID() != then->column_family) {
    return Error{Errc::gap, "a position of another database"};
  }
  if (body_->db->GetLatestSequenceNumber() < then->sequence) {
    return Error{Errc::gap, "the database is older than the position"};
  }
  std::uint64_t from = then->sequence + 1;
  if (!body_->writable()) {
    rocksdb::VectorLogPtr logs;
    status = body_->db->GetSortedWalFiles(logs);
    if (!status.ok()) return body_->problem->note(status);
    for (const auto& log : logs) {
      if (log->Type() == rocksdb::kAliveLogFile && log->StartSequence() > 0) {
        from = std::min<std::uint64_t>(from, log->StartSequence());
      }
    }
  }
  Result<Files> now = files_with_sessions(*body_->db, body_->family);
  if (!now) return now.error();
  const Result<bool> complete = body_->replay(from, told);
  if (!complete) return complete.error();
  if (!*complete && !body_->writable()) {
    return Error{Errc::gap, "the write-ahead log is not complete"};
  }
  for (const KeyRange& range : then->doubtful) told.changed(range);
  for (const RocksFile& file : then->files) {
    const auto same = now->find(file.number);
    if (same != now->end() && same->second == file) {
      now->erase(same);
    } else {
      told.changed(file.range());
    }
  }
  for (const auto& [number, file] : *now) {
    if (!*complete || file.least_sequence <= then->sequence) told.changed(file.range());
  }
  return {};
}

Result<void> RocksStore::save_checkpoint(ByteView bytes) {
  if (!body_->writable()) return kReadOnly;
  if (replace_file(body_->checkpoint_path(), bytes)) {
    return Error{Errc::io, "the checkpoint could not be written"};
  }
  body_->rounds_at_checkpoint = body_->rounds_at_position.load();
  return {};
}

Result<std::optional<Bytes>> RocksStore::load_checkpoint() const {
  const std::string path = body_->checkpoint_path();
  if (!fs::exists(path)) return std::optional<Bytes>();
  const std::optional<std::string> content = content_of(path);
  if (!content) return Error{Errc::io, "the checkpoint could not be read"};
  return std::optional(Bytes(content->begin(), content->end()));
}

Result<void> RocksStore::ingest(const std::vector<std::string>& files) {
  if (!body_->writable()) return kReadOnly;
  const std::shared_lock lock(body_->mutex);
  return body_->problem->check(
      body_->db->IngestExternalFile(body_->family, files, {}));  // the listener tells
}

Result<void> RocksStore::catch_up() {
  if (body_->settings.mode != Mode::secondary) {
    return Error{Errc::unsupported, "only a secondary catches up"};
  }
  const std::unique_lock lock(body_->mutex);
  const auto state = [&] {
    return std::pair(body_->db->GetLatestSequenceNumber(),
                     files_of(*body_->db, body_->settings.column_family));
  };
  const auto before = state();
  const Status status = body_->db->TryCatchUpWithPrimary();
  if (body_->observer != nullptr && state() != before) body_->observer->changed(KeyRange::all());
  if (status.ok() && body_->has_blob_files()) return kBlobs;
  return body_->problem->check(status);
}

bool RocksStore::flushed_since_checkpoint() const {
  return body_->listener->rounds() != body_->rounds_at_checkpoint;
}

rocksdb::DB& RocksStore::raw() const { return *body_->db; }

}  // namespace semel
