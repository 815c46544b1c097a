// ForwardingStore: does what another store does. Whoever changes a part of that derives from it.
#pragma once

#include "semel/store/ordered_store.h"

namespace semel {

class ForwardingStore : public OrderedStore {
 public:
  // REQUIRES: `below` outlives this.
  explicit ForwardingStore(OrderedStore& below) : below_(below) {}

  Result<std::optional<std::string>> get(std::string_view key) const override {
    return below_.get(key);
  }
  Result<void> write(std::span<const Write> writes) override { return below_.write(writes); }
  Result<void> remove_range(const KeyRange& range) override { return below_.remove_range(range); }
  Result<void> sync() override { return below_.sync(); }
  Result<std::unique_ptr<Cursor>> cursor() const override { return below_.cursor(); }
  Result<void> update(std::span<const std::string_view> keys, const Become& become) override {
    return below_.update(keys, become);
  }
  void observe(ChangeObserver* observer) override { below_.observe(observer); }
  Result<Bytes> position() const override { return below_.position(); }
  Result<void> changes_since(ByteView position, ChangeObserver& told) const override {
    return below_.changes_since(position, told);
  }
  Result<void> save_checkpoint(ByteView bytes) override { return below_.save_checkpoint(bytes); }
  Result<std::optional<Bytes>> load_checkpoint() const override { return below_.load_checkpoint(); }

 protected:
  OrderedStore& below() const { return below_; }

 private:
  OrderedStore& below_;
};

}  // namespace semel
