#include "semel/store/internal/responsible_store.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "semel/core/assert.h"

namespace semel::store_internal {
namespace {

const Error kOutside = {Errc::outside, "this store does not answer for the key"};

// A position consists of the number of ranges, the ranges, and the position of the store below. A
// range is its first key, then 1 and its end, or 0. Strings and bytes begin with their length.
// Numbers are varints.

}  // namespace

class ResponsibleStore::InsideCursor final : public Cursor {
 public:
  InsideCursor(std::unique_ptr<Cursor> below, std::shared_ptr<const RangeSet> inside)
      : below_(std::move(below)), inside_(std::move(inside)) {}

  void seek(std::string_view key) override {
    range_ = inside_->at_or_after(key);
    if (range_ == nullptr) return;
    below_->seek(std::max<std::string_view>(key, range_->first));
    settle();
  }
  void next() override {
    SEMEL_ASSERT(valid());
    below_->next();
    settle();
  }
  bool valid() const override { return range_ != nullptr && below_->valid(); }
  std::string_view key() const override { return below_->key(); }
  std::string_view value() const override { return below_->value(); }
  Result<void> status() const override { return below_->status(); }

 private:
  // Moves on to the next record inside the responsibility.
  void settle() {
    while (below_->valid() && !range_->contains(below_->key())) {
      range_ = inside_->at_or_after(below_->key());
      if (range_ == nullptr) return;
      if (below_->key() < range_->first) below_->seek(range_->first);
    }
  }

  std::unique_ptr<Cursor> below_;
  std::shared_ptr<const RangeSet> inside_;
  const KeyRange* range_ = nullptr;  // the range of the cursor; nullptr: at the end, or not yet set
};

ResponsibleStore::ResponsibleStore(OrderedStore& store, RangeSet responsibility)
    : store_(store), inside_(std::make_shared<const RangeSet>(std::move(responsibility))) {}

RangeSet ResponsibleStore::responsibility() const {
  const std::shared_lock lock(mutex_);
  return *inside_;
}

void ResponsibleStore::set_responsibility(RangeSet responsibility) {
  auto inside = std::make_shared<const RangeSet>(std::move(responsibility));
  const std::unique_lock lock(mutex_);
  const RangeSet changed = difference(*inside_, *inside);
  inside_ = std::move(inside);
  if (observer_ == nullptr) return;
  for (const KeyRange& range : changed.ranges()) observer_->changed(range);
}

Result<std::optional<std::string>> ResponsibleStore::get(std::string_view key) const {
  const std::shared_lock lock(mutex_);
  if (!inside_->contains(key)) return kOutside;
  return store_.get(key);
}

Result<void> ResponsibleStore::write(std::span<const RecordWrite> writes) {
  const std::shared_lock lock(mutex_);
  for (const RecordWrite& write : writes) {
    if (!inside_->contains(write.key)) return kOutside;
  }
  return store_.write(writes);
}

Result<void> ResponsibleStore::remove_range(const KeyRange& range) {
  const std::shared_lock lock(mutex_);
  if (!inside_->covers(range)) return kOutside;
  return store_.remove_range(range);
}

Result<void> ResponsibleStore::sync() { return store_.sync(); }

Result<std::unique_ptr<Cursor>> ResponsibleStore::cursor() const {
  const std::shared_lock lock(mutex_);
  std::unique_ptr<Cursor> below = SEMEL_TRY(store_.cursor());
  return std::unique_ptr<Cursor>(std::make_unique<InsideCursor>(std::move(below), inside_));
}

Result<void> ResponsibleStore::update(std::span<const std::string_view> keys,
                                      const Become& become) {
  const std::shared_lock lock(mutex_);
  for (const std::string_view key : keys) {
    if (!inside_->contains(key)) return kOutside;
  }
  return store_.update(keys, become);
}

void ResponsibleStore::observe(ChangeObserver* observer) {
  const std::unique_lock lock(mutex_);
  observer_ = observer;
  store_.observe(observer);
}

Result<Bytes> ResponsibleStore::position() const {
  const std::shared_lock lock(mutex_);
  const Bytes below = SEMEL_TRY(store_.position());
  Bytes bytes;
  Writer w(bytes);
  w.varint(inside_->ranges().size());
  for (const KeyRange& range : inside_->ranges()) semel::write(w, range);
  w.bytes(below);
  return bytes;
}

Result<void> ResponsibleStore::changes_since(ByteView position, ChangeObserver& told) const {
  Reader r(position);
  RangeSet then;
  for (std::uint64_t left = r.varint(); left > 0; --left) {
    const KeyRange range = read_key_range(r);
    if (!r.ok()) break;
    then.add(range);
  }
  if (!r.ok()) return Error{Errc::corrupt, "position of a store with a responsibility"};
  const std::shared_lock lock(mutex_);
  const Result<void> below = store_.changes_since(position.last(r.rest()), told);
  if (!below) return below;
  const RangeSet changed = difference(then, *inside_);
  for (const KeyRange& range : changed.ranges()) told.changed(range);
  return {};
}

Result<void> ResponsibleStore::save_checkpoint(ByteView bytes) {
  return store_.save_checkpoint(bytes);
}

Result<std::optional<Bytes>> ResponsibleStore::load_checkpoint() const {
  return store_.load_checkpoint();
}

}  // namespace semel::store_internal
