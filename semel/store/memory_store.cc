#include "semel/store/memory_store.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "semel/core/assert.h"

namespace semel {
namespace {

using Value = std::optional<std::string>;  // nullopt: removed

struct Version {
  std::uint64_t sequence;
  Value value;
};

struct Record {
  Version newest;
  std::vector<Version> older;  // ascending; only those that open cursors may need

  // Returns the value at that instant; nullptr if there was no record.
  const std::string* at(std::uint64_t sequence) const {
    const Version* seen = &newest;
    if (newest.sequence > sequence) {
      const auto later = std::upper_bound(
          older.begin(), older.end(), sequence,
          [](std::uint64_t instant, const Version& version) { return instant < version.sequence; });
      if (later == older.begin()) return nullptr;
      seen = &*std::prev(later);
    }
    return seen->value ? &*seen->value : nullptr;
  }
};

// Every object has its own number, so that its positions are valid for no other.
std::uint64_t next_instance() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

class MemoryStore::Body {
 public:
  Body(std::size_t log_keys, const Merger* merger) : log_keys_(log_keys), merger_(merger) {}

  std::shared_mutex& mutex() { return mutex_; }

  // REQUIRES for everything below: the caller holds the mutex, exclusively if the call is not
  // const.
  const std::string* find(std::string_view key) const {
    const auto found = records_.find(key);
    return found == records_.end() ? nullptr : found->second.at(sequence_);
  }

  Result<void> write(std::span<const RecordWrite> writes) {
    if (std::none_of(writes.begin(), writes.end(),
                     [](const RecordWrite& one) { return one.merge; })) {
      put(writes);
      return {};
    }
    if (merger_ == nullptr) return Error{Errc::unsupported, "the store has no merger"};
    std::deque<std::string> merged;  // a deque, because its elements stay in place while it grows
    std::unordered_map<std::string_view, std::optional<std::string_view>> before;  // in this batch
    std::vector<RecordWrite> made;
    made.reserve(writes.size());
    for (const RecordWrite& write : writes) {
      const auto [now, first] = before.try_emplace(write.key);
      if (write.merge) {
        SEMEL_ASSERT(write.value.has_value());
        const std::string* const found = first ? find(write.key) : nullptr;
        if (found != nullptr) now->second = *found;
        if (!merger_->merge(write.key, now->second, *write.value, merged.emplace_back())) {
          return Error{Errc::corrupt, "a record or what is to be merged into it is damaged"};
        }
        now->second = merged.back();
      } else {
        now->second = write.value;
      }
      made.push_back({write.key, now->second});
    }
    put(made);
    return {};
  }

  // REQUIRES: no merges.
  void put(std::span<const RecordWrite> writes) {
    // The observer hears first. Nobody can read before the mutex is free.
    for (const RecordWrite& write : writes) note(sequence_ + 1, std::string(write.key));
    std::vector<Value> values;
    values.reserve(writes.size());
    for (const RecordWrite& write : writes) {
      values.push_back(write.value ? Value(*write.value) : std::nullopt);
    }
    try {
      for (const RecordWrite& write : writes) prepare(write);
    } catch (...) {
      for (const RecordWrite& write : writes) sweep(write.key);
      throw;
    }
    ++sequence_;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      const auto found = records_.find(writes[i].key);
      if (found != records_.end()) supersede(found->second, std::move(values[i]));
    }
    for (const RecordWrite& write : writes) {
      if (!write.value) sweep(write.key);
    }
  }

  void remove(const KeyRange& range) {
    note(sequence_ + 1, range);
    const auto first = records_.lower_bound(range.first);
    const auto end = range.end ? records_.lower_bound(*range.end) : records_.end();
    if (!open_.empty()) {
      for (auto record = first; record != end; ++record) prepare(*record);
    }
    ++sequence_;
    if (open_.empty()) {
      records_.erase(first, end);
      return;
    }
    for (auto record = first; record != end; ++record) supersede(record->second, std::nullopt);
  }

  std::uint64_t open_cursor() {
    open_.insert(sequence_);
    return sequence_;
  }

  void close_cursor(std::uint64_t sequence) {
    open_.erase(open_.find(sequence));
    while (!superseded_.empty() &&
           (open_.empty() || superseded_.front().sequence <= *open_.begin())) {
      const auto found = records_.find(superseded_.front().key);
      if (found != records_.end()) {
        drop_versions(found->second);
        if (!found->second.newest.value && found->second.older.empty()) records_.erase(found);
      }
      superseded_.pop_front();
    }
  }

  // Calls `take` for each record from `key` on, as of `sequence`, until it returns false.
  template <class Take>
  void scan(std::string_view key, std::uint64_t sequence, const Take& take) const {
    for (auto record = records_.lower_bound(key); record != records_.end(); ++record) {
      const std::string* const value = record->second.at(sequence);
      if (value != nullptr && !take(record->first, *value)) return;
    }
  }

  Bytes position() const {
    Bytes bytes;
    Writer w(bytes);
    w.u64(instance_);
    w.u64(sequence_);
    return bytes;
  }

  Result<void> changes_since(ByteView position, ChangeObserver& told) const {
    Reader r(position);
    const std::uint64_t instance = r.u64();
    const std::uint64_t sequence = r.u64();
    if (!r.ok() || r.rest() != 0) return Error{Errc::corrupt, "position of a memory store"};
    if (instance != instance_) return Error{Errc::gap, "a position of another store"};
    if (sequence > sequence_) return Error{Errc::corrupt, "position of a memory store"};
    if (sequence < forgotten_) return Error{Errc::gap, "the log of changes begins later"};
    auto change = std::upper_bound(
        log_.begin(), log_.end(), sequence,
        [](std::uint64_t instant, const Change& later) { return instant < later.sequence; });
    for (; change != log_.end(); ++change) {
      std::visit([&](const auto& what) { told.changed(what); }, change->what);
    }
    return {};
  }

  ChangeObserver* observer = nullptr;
  std::optional<Bytes> checkpoint;

 private:
  using Records = std::map<std::string, Record, std::less<>>;
  struct Change {
    std::uint64_t sequence;
    std::variant<std::string, KeyRange> what;
  };
  struct Superseded {
    std::uint64_t sequence;  // cursors from here on do not see the older version
    std::string key;
  };

  template <class What>
  void note(std::uint64_t sequence, What what) {
    if (observer != nullptr) observer->changed(what);
    log_.push_back({sequence, std::move(what)});
    while (log_.size() > log_keys_) {
      forgotten_ = log_.front().sequence;
      log_.pop_front();
    }
  }

  // These take all memory that the next write needs, so that it happens as a whole or not at all. A
  // record without a value takes the place of a new one.
  void prepare(const RecordWrite& write) {
    const auto found = records_.lower_bound(write.key);
    if (found != records_.end() && found->first == write.key) {
      prepare(*found);
    } else if (write.value) {
      records_.emplace_hint(found, std::string(write.key), Record{{sequence_, std::nullopt}, {}});
    }
  }
  void prepare(Records::value_type& entry) {
    if (open_.empty()) return;
    std::vector<Version>& older = entry.second.older;
    if (older.size() == older.capacity()) older.reserve(2 * older.size() + 1);
    superseded_.push_back({sequence_ + 1, entry.first});
  }

  // REQUIRES: prepare().
  void supersede(Record& record, Value value) {
    const bool unseen = record.newest.sequence == sequence_ ||  // written twice in one write
                        (!record.newest.value && record.older.empty());
    if (!unseen && !open_.empty()) record.older.push_back(std::move(record.newest));
    record.newest = {sequence_, std::move(value)};
    drop_versions(record);
  }

  // Drops the record of a key that has no value at any instant that is still needed.
  void sweep(std::string_view key) {
    const auto found = records_.find(key);
    if (found == records_.end()) return;
    if (!found->second.newest.value && found->second.older.empty()) records_.erase(found);
  }

  // Keeps the newest version, and those that an open cursor sees.
  void drop_versions(Record& record) {
    std::vector<Version>& older = record.older;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < older.size(); ++i) {
      const std::uint64_t end =
          i + 1 < older.size() ? older[i + 1].sequence : record.newest.sequence;
      const auto reader = open_.lower_bound(older[i].sequence);
      if (reader == open_.end() || *reader >= end) continue;
      if (kept != i) older[kept] = std::move(older[i]);
      ++kept;
    }
    older.erase(older.begin() + static_cast<std::ptrdiff_t>(kept), older.end());
    if (older.empty()) older.shrink_to_fit();
  }

  mutable std::shared_mutex mutex_;
  const std::uint64_t instance_ = next_instance();
  const std::size_t log_keys_;
  const Merger* const merger_;
  std::uint64_t sequence_ = 0;  // of the last write
  Records records_;
  std::multiset<std::uint64_t> open_;  // the instants of open cursors
  std::deque<Superseded> superseded_;  // ascending
  std::deque<Change> log_;             // ascending
  std::uint64_t forgotten_ = 0;        // the log is complete after this
};

class MemoryStore::BatchCursor final : public Cursor {
 public:
  explicit BatchCursor(Body& body) : body_(body) {
    const std::unique_lock lock(body_.mutex());
    sequence_ = body_.open_cursor();
  }
  ~BatchCursor() override {
    const std::unique_lock lock(body_.mutex());
    body_.close_cursor(sequence_);
  }
  BatchCursor(const BatchCursor&) = delete;
  BatchCursor& operator=(const BatchCursor&) = delete;

  void seek(std::string_view key) override {
    from_ = key;
    most_ = kFirstBatch;
    take_batch();
  }
  void next() override {
    SEMEL_ASSERT(valid());
    if (++at_ < size_ || ended_) return;
    most_ = std::min(2 * most_, kLargestBatch);
    take_batch();
  }
  bool valid() const override { return at_ < size_; }
  std::string_view key() const override {
    SEMEL_ASSERT(valid());
    return batch_[at_].first;
  }
  std::string_view value() const override {
    SEMEL_ASSERT(valid());
    return batch_[at_].second;
  }
  Result<void> status() const override { return {}; }

 private:
  static constexpr std::size_t kFirstBatch = 4;  // many seeks need only a record or two
  static constexpr std::size_t kLargestBatch = 128;

  void take_batch() {
    at_ = size_ = 0;
    ended_ = true;
    const std::shared_lock lock(body_.mutex());
    body_.scan(from_, sequence_, [&](const std::string& key, const std::string& value) {
      if (size_ == most_) {
        from_ = key;
        ended_ = false;
        return false;
      }
      if (size_ == batch_.size()) batch_.emplace_back();
      batch_[size_].first = key;
      batch_[size_].second = value;
      ++size_;
      return true;
    });
  }

  Body& body_;
  std::uint64_t sequence_ = 0;
  std::string from_;  // where the next batch begins
  std::size_t most_ = kFirstBatch;
  std::vector<std::pair<std::string, std::string>> batch_;  // its strings are used again
  std::size_t at_ = 0;
  std::size_t size_ = 0;  // of the batch
  bool ended_ = true;     // no record follows the batch
};

MemoryStore::MemoryStore(std::size_t log_keys, const Merger* merger)
    : body_(std::make_unique<Body>(log_keys, merger)) {}
MemoryStore::~MemoryStore() = default;

Result<std::optional<std::string>> MemoryStore::get(std::string_view key) const {
  const std::shared_lock lock(body_->mutex());
  const std::string* const value = body_->find(key);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

Result<void> MemoryStore::write(std::span<const RecordWrite> writes) {
  if (writes.empty()) return {};
  const std::unique_lock lock(body_->mutex());
  return body_->write(writes);
}

Result<void> MemoryStore::remove_range(const KeyRange& range) {
  if (range.empty()) return {};
  const std::unique_lock lock(body_->mutex());
  body_->remove(range);
  return {};
}

Result<std::unique_ptr<Cursor>> MemoryStore::cursor() const {
  return std::unique_ptr<Cursor>(std::make_unique<BatchCursor>(*body_));
}

Result<void> MemoryStore::update(std::span<const std::string_view> keys, const Become& become) {
  if (keys.empty()) return {};
  const std::unique_lock lock(body_->mutex());
  std::vector<Value> values;
  std::vector<RecordWrite> writes;
  values.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string* const now = body_->find(keys[i]);
    const auto seen = now == nullptr ? std::nullopt : std::optional<std::string_view>(*now);
    values.push_back(become(i, seen));
    if (values.back() != seen) writes.push_back({keys[i], values.back()});
  }
  if (!writes.empty()) body_->put(writes);
  return {};
}

void MemoryStore::observe(ChangeObserver* observer) {
  const std::unique_lock lock(body_->mutex());
  body_->observer = observer;
}

Result<Bytes> MemoryStore::position() const {
  const std::shared_lock lock(body_->mutex());
  return body_->position();
}

Result<void> MemoryStore::changes_since(ByteView position, ChangeObserver& told) const {
  const std::shared_lock lock(body_->mutex());
  return body_->changes_since(position, told);
}

Result<void> MemoryStore::save_checkpoint(ByteView bytes) {
  const std::unique_lock lock(body_->mutex());
  body_->checkpoint.emplace(bytes.begin(), bytes.end());
  return {};
}

Result<std::optional<Bytes>> MemoryStore::load_checkpoint() const {
  const std::shared_lock lock(body_->mutex());
  return body_->checkpoint;
}

}  // namespace semel
