#include "semel/store/rocksdb_store.h"

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/wide_columns.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "semel/core/assert.h"
#include "semel/store/internal/new_file.h"
#include "semel/store/internal/rocksdb_changes.h"
#include "semel/store/internal/rocksdb_damage.h"
#include "semel/store/internal/rocksdb_database.h"
#include "semel/store/internal/rocksdb_options.h"
#include "semel/store/internal/rocksdb_status.h"

namespace semel {

using namespace store_internal;

namespace {

namespace fs = std::filesystem;
using rocksdb::Slice;
using rocksdb::Status;

Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const Slice& text) { return {text.data(), text.size()}; }

bool is_plain(const rocksdb::WideColumns& columns) {
  return columns.size() == 1 && columns.front().name() == rocksdb::kDefaultWideColumnName;
}

// Keeps the last error of a call in any thread.
class LastError {
 public:
  Error note(Error error) {
    const std::lock_guard lock(mutex_);
    error_ = error;
    return error;
  }
  Result<void> check(const Status& status) {
    if (!status.ok()) return note(error_of(status));
    return {};
  }
  template <class T>
  Result<T> check(Result<T> result) {
    if (!result && result.error().code == Errc::io) note(result.error());
    return result;
  }
  // The value of a RocksDB record is only that of its default column.
  Error wide(std::string_view key) {
    return note({Errc::unsupported,
                 "the record " + shown(key) + " has wide columns, which are not supported"});
  }
  Result<void> get() const {
    const std::lock_guard lock(mutex_);
    if (error_) return *error_;
    return {};
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

// RocksDB 7.8 follows a dangling pointer when a secondary reads a blob.
const Error kBlobs = {Errc::unsupported, "a secondary cannot read blob files"};
const Error kReadOnly = {Errc::unsupported, "the store is open for reading only"};

}  // namespace

struct RocksStore::Body {
  Body(std::string directory, const Settings& settings) : open(std::move(directory), settings) {
    writing.sync = settings.sync;
    reading.total_order_seek = true;
  }

  bool writable() const { return open.writable(); }
  Result<std::optional<std::string>> get(std::string_view key) const;
  Result<std::optional<std::string>> get_checked(std::string_view key) const;
  Status add(const RecordWrite& write, rocksdb::WriteBatch& batch) const;
  // REQUIRES: the mutex is held.
  Result<void> write(std::span<const RecordWrite> writes);

  RocksDatabase open;
  rocksdb::WriteOptions writing;
  rocksdb::ReadOptions reading;

  // Held shared from before a write until the observer knows of the write. Held exclusively where
  // no write may come in between. Threads of RocksDB never take it, so it may be held while waiting
  // for them.
  mutable std::shared_mutex mutex;
  ChangeObserver* observer = nullptr;
  mutable std::atomic<std::uint64_t> rounds_at_position = 0;
  std::atomic<std::uint64_t> rounds_at_checkpoint = 0;
  const std::shared_ptr<LastError> last =
      std::make_shared<LastError>();  // cursors store their errors here, too
};

Result<std::optional<std::string>> RocksStore::Body::get(std::string_view key) const {
  if (open.settings.merger == nullptr) return get_checked(key);
  std::string value;
  const Status status = open.db->Get(reading, open.family, slice(key), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return last->note(error_of(status));
  return std::optional(std::move(value));
}

// For a record with wide columns RocksDB returns one of the values. Only an iterator reveals that
// there are more. GetEntity() ends the process if there are merges, and is wrong if there are
// blobs.
Result<std::optional<std::string>> RocksStore::Body::get_checked(std::string_view key) const {
  const std::string end = successor(key);
  const Slice bound = end;
  rocksdb::ReadOptions one = reading;
  one.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> at(open.db->NewIterator(one, open.family));
  at->Seek(slice(key));
  if (!at->status().ok()) return last->note(error_of(at->status()));
  if (!at->Valid()) return std::optional<std::string>();
  if (!is_plain(at->columns())) return last->wide(key);
  return std::optional(at->value().ToString());
}

Status RocksStore::Body::add(const RecordWrite& write, rocksdb::WriteBatch& batch) const {
  const Slice key = slice(write.key);
  if (write.value && open.plan.prefix() != nullptr && !open.plan.prefix()->InDomain(key)) {
    return Status::NotSupported("the key " + shown(write.key) +
                                " has no prefix, which its owner needs to find it in memory");
  }
  if (!write.merge) {
    return write.value ? batch.Put(open.family, key, slice(*write.value))
                       : batch.Delete(open.family, key);
  }
  SEMEL_ASSERT(write.value.has_value());
  return batch.Merge(open.family, key, slice(*write.value));
}

Result<void> RocksStore::Body::write(std::span<const RecordWrite> writes) {
  constexpr std::size_t kBeside = 24;  // for the batch, and for each record: lengths, kind, family
  std::size_t bytes = kBeside;
  bool merges = false;
  for (const RecordWrite& write : writes) {
    merges = merges || write.merge;
    bytes += write.key.size() + (write.value ? write.value->size() : 0) + kBeside;
  }
  if (merges && open.settings.merger == nullptr) {
    return Error{Errc::unsupported, "the store has no merger"};
  }
  rocksdb::WriteBatch batch(bytes);
  for (const RecordWrite& write : writes) {
    const Status status = add(write, batch);
    if (!status.ok()) return last->note(error_of(status));
  }
  const Status status = open.db->Write(writing, &batch);
  // The observer hears of failed writes too: they may be in the log and show at the next opening.
  if (observer != nullptr) {
    for (const RecordWrite& write : writes) observer->changed(write.key);
  }
  return last->check(status);
}

class RocksStore::IteratorCursor final : public Cursor {
 public:
  IteratorCursor(std::unique_ptr<rocksdb::Iterator> iterator, std::shared_ptr<LastError> last)
      : iterator_(std::move(iterator)), last_(std::move(last)) {}
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
    if (wide_) return last_->wide(view(iterator_->key()));
    return last_->check(iterator_->status());
  }

 private:
  void look() { wide_ = iterator_->Valid() && !is_plain(iterator_->columns()); }

  bool wide_ = false;
  std::unique_ptr<rocksdb::Iterator> iterator_;
  std::shared_ptr<LastError> last_;
};

RocksStore::RocksStore(std::unique_ptr<Body> body) : body_(std::move(body)) {}
RocksStore::~RocksStore() = default;

Result<std::unique_ptr<RocksStore>> RocksStore::open(const std::string& directory,
                                                     const Settings& settings) {
  auto body = std::make_unique<Body>(directory, settings);
  SEMEL_TRY(body->open.open());
  return std::unique_ptr<RocksStore>(new RocksStore(std::move(body)));
}

Result<std::vector<std::string>> RocksStore::column_families(const std::string& directory) {
  if (!fs::exists(directory + "/CURRENT")) {
    return Error{Errc::invalid, "the directory holds no RocksDB database"};
  }
  if (std::string damage = check_directory(directory).damage; !damage.empty()) {
    return Error{Errc::io, std::move(damage)};
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

Result<void> RocksStore::write(std::span<const RecordWrite> writes) {
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
  } else {  // RocksDB has no end of all keys, so the range ends after the last one
    const std::unique_ptr<rocksdb::Iterator> last(
        body_->open.db->NewIterator(body_->reading, body_->open.family));
    last->SeekToLast();
    if (!last->status().ok()) return body_->last->note(error_of(last->status()));
    if (!last->Valid() || view(last->key()) < range.first) return {};
    end = successor(view(last->key()));
  }
  const Status status = body_->open.db->DeleteRange(body_->writing, body_->open.family,
                                                    slice(range.first), slice(end));
  if (body_->observer != nullptr) body_->observer->changed(range);
  return body_->last->check(status);
}

Result<void> RocksStore::sync() {
  if (!body_->writable()) return kReadOnly;
  return body_->last->check(body_->open.db->FlushWAL(true));
}

Result<void> RocksStore::close() { return body_->last->check(body_->open.close()); }
Result<void> RocksStore::health() const { return body_->last->get(); }

Result<std::unique_ptr<Cursor>> RocksStore::cursor() const {
  std::unique_ptr<rocksdb::Iterator> iterator(
      body_->open.db->NewIterator(body_->reading, body_->open.family));
  if (!iterator->status().ok()) return body_->last->note(error_of(iterator->status()));
  return std::unique_ptr<Cursor>(
      std::make_unique<IteratorCursor>(std::move(iterator), body_->last));
}

Result<void> RocksStore::update(std::span<const std::string_view> keys, const Become& become) {
  if (!body_->writable()) return kReadOnly;
  const std::unique_lock lock(body_->mutex);
  std::vector<std::optional<std::string>> values;
  std::vector<RecordWrite> writes;
  values.reserve(keys.size());
  writes.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::optional<std::string> now = SEMEL_TRY(body_->get(keys[i]));
    values.push_back(become(i, now));
    if (values.back() != now) writes.push_back({keys[i], values.back()});
  }
  return writes.empty() ? Result<void>{} : body_->write(writes);
}

void RocksStore::observe(ChangeObserver* observer) {
  const std::unique_lock lock(body_->mutex);
  body_->observer = observer;
  body_->open.listener->observe(observer);
}

Result<Bytes> RocksStore::position() const {
  if (!body_->writable()) return kReadOnly;
  const std::unique_lock lock(body_->mutex);
  const RocksPosition position = SEMEL_TRY(body_->last->check(position_of(body_->open)));
  body_->rounds_at_position = body_->open.listener->rounds();
  Bytes bytes;
  position.encode(bytes);
  return bytes;
}

Result<void> RocksStore::changes_since(ByteView position, ChangeObserver& told) const {
  const std::unique_lock lock(body_->mutex);
  return body_->last->check(store_internal::changes_since(body_->open, position, told));
}

Result<void> RocksStore::save_checkpoint(ByteView bytes) {
  if (!body_->writable()) return kReadOnly;
  if (replace_file(body_->open.checkpoint_path(), bytes)) {
    return Error{Errc::io, "the checkpoint could not be written"};
  }
  body_->rounds_at_checkpoint = body_->rounds_at_position.load();
  return {};
}

Result<std::optional<Bytes>> RocksStore::load_checkpoint() const {
  const std::string path = body_->open.checkpoint_path();
  if (!fs::exists(path)) return std::optional<Bytes>();
  const std::optional<std::string> content = content_of(path);
  if (!content) return Error{Errc::io, "the checkpoint could not be read"};
  return std::optional(Bytes(content->begin(), content->end()));
}

Result<void> RocksStore::ingest(const std::vector<std::string>& files) {
  if (!body_->writable()) return kReadOnly;
  const std::shared_lock lock(body_->mutex);
  return body_->last->check(body_->open.db->IngestExternalFile(body_->open.family, files,
                                                               {}));  // the listener reports it
}

Result<void> RocksStore::catch_up() {
  if (body_->open.settings.mode != Mode::secondary) {
    return Error{Errc::unsupported, "only a secondary catches up"};
  }
  const std::unique_lock lock(body_->mutex);
  const auto state = [&] {
    return std::pair(body_->open.db->GetLatestSequenceNumber(),
                     files_of(*body_->open.db, body_->open.settings.column_family));
  };
  const auto before = state();
  const Status status = body_->open.db->TryCatchUpWithPrimary();
  if (body_->observer != nullptr && state() != before) body_->observer->changed(KeyRange::all());
  if (status.ok() && body_->open.has_blob_files()) return kBlobs;
  return body_->last->check(status);
}

bool RocksStore::flushed_since_checkpoint() const {
  return body_->open.listener->rounds() != body_->rounds_at_checkpoint;
}

rocksdb::DB& RocksStore::raw() const { return *body_->open.db; }

}  // namespace semel
