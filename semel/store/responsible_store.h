// ResponsibleStore: a part of another store: the ranges that a site answers for.
//
// Contract  As in ordered_store.h, over the keys of the responsibility alone: a call that names
//           another key, or a range that is not covered, is Errc::outside and changes nothing.
//           Cursors pass over what is outside, as of the responsibility when they were opened.
// Changes   When the responsibility changes, what enters or leaves it is told as changed. Changes
//           to records outside may be told too.
// Position  holds the responsibility: changes_since() tells what has entered or left it since.
// Cost      What the store below costs, and a shared lock.
#pragma once

#include <memory>
#include <shared_mutex>

#include "semel/store/ordered_store.h"
#include "semel/store/range_set.h"

namespace semel {

class ResponsibleStore final : public OrderedStore {
 public:
  // REQUIRES: the store outlives this.
  ResponsibleStore(OrderedStore& store, RangeSet responsibility);

  RangeSet responsibility() const;
  // When it returns, no write outside is under way, and none will be.
  void set_responsibility(RangeSet responsibility);
  // All records: for copying what is not yet taken over, and removing what was given up. An observer
  // of this is the observer of the whole.
  OrderedStore& whole() const { return store_; }

  Result<std::optional<std::string>> get(std::string_view key) const override;
  Result<void> write(std::span<const Write> writes) override;
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
  mutable std::shared_mutex mutex_;  // held shared by every call, alone by a change
  std::shared_ptr<const RangeSet> inside_;
  ChangeObserver* observer_ = nullptr;
};

}  // namespace semel
