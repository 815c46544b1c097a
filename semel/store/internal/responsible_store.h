// ResponsibleStore: the part of another store that a site answers for.
//
// Contract  As in ordered_store.h, for the keys of the responsibility only. A call with another
//           key, or with a range that is not covered, returns Errc::outside and changes nothing.
//           Cursors skip records that were outside when they were opened. When the responsibility
//           changes, all keys that enter or leave it are reported as changed. Changes to records
//           outside may be reported too. A position holds the responsibility, so changes_since()
//           reports what has entered or left it since.
// Cost      The cost of the store below, and a shared lock.
#pragma once

#include <memory>
#include <shared_mutex>

#include "semel/store/ordered_store.h"
#include "semel/store/range_set.h"

namespace semel::store_internal {

class ResponsibleStore final : public OrderedStore {
 public:
  // REQUIRES: the store outlives this.
  ResponsibleStore(OrderedStore& store, RangeSet responsibility);

  RangeSet responsibility() const;
  // When this returns, no write outside is running, and none will begin.
  void set_responsibility(RangeSet responsibility);
  // Returns the store with all records, for copying records that are not yet taken over and
  // removing those that were given up. An observer of this store observes the whole store.
  OrderedStore& whole() const { return store_; }

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
  class InsideCursor;

  OrderedStore& store_;
  mutable std::shared_mutex mutex_;  // shared by calls, exclusive for a change of responsibility
  std::shared_ptr<const RangeSet> inside_;
  ChangeObserver* observer_ = nullptr;
};

}  // namespace semel::store_internal
