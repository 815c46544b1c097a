// StoredId: the usual way to make counters in RocksDB safe against retries. Each id is stored, and
// read before its operation counts; each counter is read, added to and written.
//
// Fairness  A batch of operations is two MultiGet, one for the ids and one for the counters, and
//           one write batch for both. Both have Bloom filters in files and in the memtable: for a
//           new id, and most ids are new, files are hardly ever read. The block cache holds
//           everything. All else is RocksDB's default: the small write buffers of ours do not make
//           this one faster.
// Memory    An id is looked up by itself, so its key cannot begin with a time. Its value is the
//           time, and compactions drop ids that are older than the window, at no extra cost.
// Durable   As ours in `periodic`: no write waits for the disk, and a thread syncs the log each
//           second.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bench/keys.h"
#include "semel/core/assert.h"
#include "semel/core/clock.h"
#include "semel/core/codec.h"

namespace semel::bench {

class StoredIds {
 public:
  struct Addition {
    Key counter;
    std::int64_t delta;
    Key id;
  };

  StoredIds(const std::string& directory, TimeMs window_ms) : forgetting_(window_ms) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.memtable_prefix_bloom_size_ratio = 0.02;
    options.memtable_whole_key_filtering = true;
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.block_cache = rocksdb::NewLRUCache(std::size_t{512} << 20);
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::ColumnFamilyOptions ids(options);
    ids.compaction_filter = &forgetting_;

    rocksdb::DB* db = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    const rocksdb::Status opened = rocksdb::DB::Open(
        options, directory, {{"default", rocksdb::ColumnFamilyOptions(options)}, {"ids", ids}},
        &families, &db);
    SEMEL_ASSERT(opened.ok());
    db_.reset(db);
    counters_ = families[0];
    ids_ = families[1];
    syncing_ = std::thread([this] { sync_each_second(); });
  }

  ~StoredIds() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    closed_.notify_all();
    syncing_.join();
    SEMEL_ASSERT(db_->SyncWAL().ok());
    db_->DestroyColumnFamilyHandle(counters_).PermitUncheckedError();
    db_->DestroyColumnFamilyHandle(ids_).PermitUncheckedError();
  }
  StoredIds(const StoredIds&) = delete;
  StoredIds& operator=(const StoredIds&) = delete;

  // Applies one batch. Returns how many operations counted. For one caller at a time.
  std::uint64_t add(std::span<const Addition> additions) {
    const TimeMs now_ms = SystemClock().now_ms();
    const std::vector<bool> known = find_ids(additions, now_ms);
    std::unordered_map<std::string_view, std::int64_t> values;
    read_counters(additions, known, values);

    rocksdb::WriteBatch batch;
    std::unordered_set<std::string_view> seen;  // in this batch
    std::uint64_t applied = 0;
    const std::string now = encoded(static_cast<std::uint64_t>(now_ms));
    for (std::size_t i = 0; i < additions.size(); ++i) {
      if (known[i] || !seen.insert(additions[i].id.view()).second) continue;
      ++applied;
      values[additions[i].counter.view()] += additions[i].delta;
      SEMEL_ASSERT(batch.Put(ids_, slice(additions[i].id), now).ok());
    }
    for (const auto& [counter, value] : values) {
      const std::string encoded_value = encoded(static_cast<std::uint64_t>(value));
      SEMEL_ASSERT(batch.Put(counters_, {counter.data(), counter.size()}, encoded_value).ok());
    }
    SEMEL_ASSERT(db_->Write({}, &batch).ok());
    return applied;
  }

  std::int64_t sum() const {
    std::int64_t sum = 0;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator({}, counters_));
    for (at->SeekToFirst(); at->Valid(); at->Next()) sum += decoded(at->value());
    SEMEL_ASSERT(at->status().ok());
    return sum;
  }

  rocksdb::DB& raw() const { return *db_; }
  std::vector<rocksdb::ColumnFamilyHandle*> families() const { return {counters_, ids_}; }

 private:
  class Forgetting final : public rocksdb::CompactionFilter {
   public:
    explicit Forgetting(TimeMs window_ms) : window_ms_(window_ms) {}
    const char* Name() const override { return "semel.bench.Forgetting"; }
    bool Filter(int /*level*/, const rocksdb::Slice& /*key*/, const rocksdb::Slice& value,
                std::string* /*changed*/, bool* /*is_changed*/) const override {
      return decoded(value) + window_ms_ < SystemClock().now_ms();
    }
    TimeMs window_ms() const { return window_ms_; }

   private:
    TimeMs window_ms_;
  };

  static rocksdb::Slice slice(const Key& key) { return {key.view().data(), key.view().size()}; }
  static std::string encoded(std::uint64_t value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::int64_t decoded(const rocksdb::Slice& value) {
    SEMEL_ASSERT(value.size() == 8);
    return static_cast<std::int64_t>(load_u64(reinterpret_cast<const std::uint8_t*>(value.data())));
  }

  void read(rocksdb::ColumnFamilyHandle* family, const std::vector<rocksdb::Slice>& keys) {
    values_.resize(keys.size());
    statuses_.resize(keys.size());
    for (rocksdb::PinnableSlice& value : values_) value.Reset();
    db_->MultiGet({}, family, keys.size(), keys.data(), values_.data(), statuses_.data());
  }

  std::vector<bool> find_ids(std::span<const Addition> additions, TimeMs now_ms) {
    keys_.clear();
    for (const Addition& addition : additions) keys_.push_back(slice(addition.id));
    read(ids_, keys_);
    std::vector<bool> known(additions.size());
    for (std::size_t i = 0; i < additions.size(); ++i) {
      SEMEL_ASSERT(statuses_[i].ok() || statuses_[i].IsNotFound());
      known[i] = statuses_[i].ok() && decoded(values_[i]) + forgetting_.window_ms() >= now_ms;
    }
    return known;
  }

  void read_counters(std::span<const Addition> additions, const std::vector<bool>& known,
                     std::unordered_map<std::string_view, std::int64_t>& values) {
    keys_.clear();
    for (std::size_t i = 0; i < additions.size(); ++i) {
      if (known[i] || !values.try_emplace(additions[i].counter.view(), 0).second) continue;
      keys_.push_back(slice(additions[i].counter));
    }
    read(counters_, keys_);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      SEMEL_ASSERT(statuses_[i].ok() || statuses_[i].IsNotFound());
      if (statuses_[i].ok()) values[{keys_[i].data(), keys_[i].size()}] = decoded(values_[i]);
    }
  }

  void sync_each_second() {
    std::unique_lock lock(mutex_);
    while (!closed_.wait_for(lock, std::chrono::seconds(1), [this] { return closing_; })) {
      lock.unlock();
      SEMEL_ASSERT(db_->SyncWAL().ok());
      lock.lock();
    }
  }

  Forgetting forgetting_;  // outlives the database
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* counters_ = nullptr;
  rocksdb::ColumnFamilyHandle* ids_ = nullptr;
  std::vector<rocksdb::Slice> keys_;
  std::vector<rocksdb::PinnableSlice> values_;
  std::vector<rocksdb::Status> statuses_;
  std::mutex mutex_;
  std::condition_variable closed_;
  bool closing_ = false;
  std::thread syncing_;
};

}  // namespace semel::bench
