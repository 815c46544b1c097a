// CrashingStore: a store in memory that may lose what was not synced.
//
// Contract  See ordered_store.h, until crash(). A crash loses the last of the writes since the last
//           sync(), any number of them, each as a whole. A write is one call that changes records.
//           Writes that a crash leaves count as synced.
//           A lost write counts as a change: changes_since() reports it, also for positions that
//           were taken in between. The observer is forgotten, like the process that it was in. The
//           checkpoint stays: it was durable when its call returned.
// Cost      That of a MemoryStore, and a copy of what each write replaces, kept until sync().
// Threads   See ordered_store.h. The store starts no threads.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/store/memory_store.h"

namespace semel {

class CrashingStore final : public OrderedStore {
 public:
  // REQUIRES: the merger outlives this.
  explicit CrashingStore(const Merger* merger = nullptr, std::size_t log_keys = kLogKeys);

  std::size_t unsynced() const;       // writes that a crash may lose
  std::size_t crash(Random& random);  // loses any number of them, all equally likely; returns it
  void lose_all_unsynced();

  Result<std::optional<std::string>> get(std::string_view key) const override;
  Result<void> write(std::span<const RecordWrite> writes) override;
  Result<void> remove_range(const KeyRange& range) override;
  Result<void> sync() override;
  Result<std::unique_ptr<Cursor>> cursor() const override;
  Result<void> update(std::span<const std::string_view> keys, const Become& become) override;
  void observe(ChangeObserver* observer) override;
  Result<Bytes> position() const override;
  Result<void> changes_since(ByteView position, ChangeObserver& told) const override;
  Result<void> save_checkpoint(ByteView bytes) override;
  Result<std::optional<Bytes>> load_checkpoint() const override;

 private:
  static constexpr std::size_t kLogKeys = 4096;  // a simulated store is small
  struct Replaced {
    std::string key;
    std::optional<std::string> value;  // nullopt: there was none
  };

  void lose(std::size_t writes);
  // Keeps the replaced values from `first` on as those of one write. Drops them if it failed.
  Result<void> finish(std::size_t first, const Result<void>& written);

  mutable std::mutex mutex_;  // of what follows, and held by whoever changes records
  MemoryStore below_;
  std::vector<Replaced> replaced_;   // since the last sync, in the order of the writes
  std::vector<std::size_t> firsts_;  // of each write, in `replaced_`
};

}  // namespace semel
