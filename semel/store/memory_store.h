// MemoryStore: an OrderedStore in memory.
//
// Contract  As in ordered_store.h. Positions are valid only for this object, and as far back as the
//           log of changed keys goes. The checkpoint is kept in memory. A write merges at once. A
//           damaged merge is Errc::corrupt, and nothing is written.
//           A cursor reads the versions of its instant; writers keep them as long as an open cursor
//           needs them. It reads records in batches, so a scan delays a writer by at most some
//           microseconds.
// Cost      get, write: O(log n). Closing the oldest cursor: O(changes since it was opened).
// Memory    About 145 bytes for a record beyond its key and value, and the log. If memory runs out
//           during a call, the call has changed nothing.
// Threads   Readers run at the same time; a writer runs alone.
#pragma once

#include <cstddef>
#include <memory>

#include "semel/core/api.h"
#include "semel/store/ordered_store.h"

namespace semel {

class SEMEL_API MemoryStore final : public OrderedStore {
 public:
  static constexpr std::size_t kLogKeys = std::size_t{1} << 16;

  // `log_keys`: the age, in changes, up to which positions are valid. `merger`: nullptr for none.
  // REQUIRES: the merger outlives this.
  explicit MemoryStore(std::size_t log_keys = kLogKeys, const Merger* merger = nullptr);
  ~MemoryStore() override;

  Result<std::optional<std::string>> get(std::string_view key) const override;
  Result<void> write(std::span<const RecordWrite> writes) override;
  Result<void> remove_range(const KeyRange& range) override;
  Result<void> sync() override { return {}; }
  Result<std::unique_ptr<Cursor>> cursor() const override;
  Result<void> update(std::span<const std::string_view> keys, const Become& become) override;
  void observe(ChangeObserver* observer) override;
  Result<Bytes> position() const override;
  Result<void> changes_since(ByteView position, ChangeObserver& told) const override;
  Result<void> save_checkpoint(ByteView bytes) override;
  Result<std::optional<Bytes>> load_checkpoint() const override;

 private:
  class SEMEL_LOCAL Body;
  class SEMEL_LOCAL BatchCursor;
  std::unique_ptr<Body> body_;
};

}  // namespace semel
