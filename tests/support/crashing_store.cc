#include "tests/support/crashing_store.h"

#include <utility>

#include "semel/core/assert.h"

namespace semel {

CrashingStore::CrashingStore(const Merger* merger, std::size_t log_keys)
    : below_(log_keys, merger) {}

std::size_t CrashingStore::unsynced() const {
  const std::lock_guard lock(mutex_);
  return firsts_.size();
}

std::size_t CrashingStore::crash(Random& random) {
  const std::lock_guard lock(mutex_);
  const std::size_t lost = random.below(firsts_.size() + 1);
  lose(lost);
  return lost;
}

void CrashingStore::lose_all_unsynced() {
  const std::lock_guard lock(mutex_);
  lose(firsts_.size());
}

void CrashingStore::lose(std::size_t writes) {
  below_.observe(nullptr);
  if (writes > 0) {
    const std::size_t first = firsts_[firsts_.size() - writes];
    std::vector<RecordWrite> back;  // the newest first: of equal keys in a write the last counts
    for (std::size_t i = replaced_.size(); i > first; --i) {
      back.push_back({replaced_[i - 1].key, replaced_[i - 1].value});
    }
    SEMEL_ASSERT(below_.write(back));
  }
  replaced_.clear();
  firsts_.clear();
}

Result<void> CrashingStore::finish(std::size_t first, const Result<void>& written) {
  if (!written) {
    replaced_.erase(replaced_.begin() + static_cast<std::ptrdiff_t>(first), replaced_.end());
  } else if (first < replaced_.size()) {
    firsts_.push_back(first);
  }
  return written;
}

Result<std::optional<std::string>> CrashingStore::get(std::string_view key) const {
  return below_.get(key);
}

Result<void> CrashingStore::write(std::span<const RecordWrite> writes) {
  const std::lock_guard lock(mutex_);
  const std::size_t first = replaced_.size();
  for (const RecordWrite& write : writes) {
    replaced_.push_back({std::string(write.key), *below_.get(write.key)});
  }
  return finish(first, below_.write(writes));
}

Result<void> CrashingStore::remove_range(const KeyRange& range) {
  const std::lock_guard lock(mutex_);
  const std::size_t first = replaced_.size();
  const std::unique_ptr<Cursor> cursor = *below_.cursor();
  for (cursor->seek(range.first); cursor->valid() && range.contains(cursor->key());
       cursor->next()) {
    replaced_.push_back({std::string(cursor->key()), std::string(cursor->value())});
  }
  return finish(first, below_.remove_range(range));
}

Result<void> CrashingStore::update(std::span<const std::string_view> keys, const Become& become) {
  const std::lock_guard lock(mutex_);
  const std::size_t first = replaced_.size();
  const auto watched = [&](std::size_t i, std::optional<std::string_view> now) {
    std::optional<std::string> next = become(i, now);
    if (next != now) {
      replaced_.push_back(
          {std::string(keys[i]), now ? std::optional<std::string>(*now) : std::nullopt});
    }
    return next;
  };
  return finish(first, below_.update(keys, watched));
}

Result<void> CrashingStore::sync() {
  const std::lock_guard lock(mutex_);
  replaced_.clear();
  firsts_.clear();
  return {};
}

Result<std::unique_ptr<Cursor>> CrashingStore::cursor() const { return below_.cursor(); }

void CrashingStore::observe(ChangeObserver* observer) { below_.observe(observer); }

Result<Bytes> CrashingStore::position() const { return below_.position(); }

Result<void> CrashingStore::changes_since(ByteView position, ChangeObserver& told) const {
  return below_.changes_since(position, told);
}

Result<void> CrashingStore::save_checkpoint(ByteView bytes) {
  return below_.save_checkpoint(bytes);
}

Result<std::optional<Bytes>> CrashingStore::load_checkpoint() const {
  return below_.load_checkpoint();
}

}  // namespace semel
