// OrderedStore: what an index and a sync need from a store of records.
//
// Contract  A map from key to value, both any bytes, in the order of the keys' bytes. A write is
//           all or nothing, and visible to every later call. A cursor sees one instant.
//           Changes: the observer hears of every change after it is visible and before the call
//           that made it returns. The store reports the key, or a range if it cannot say more.
//           Changes that do not come through the calls below (ingested files, records that a
//           compaction drops) are reported as ranges.
//           Positions: position() names the present state. All changes before it have been
//           reported. When the store is opened again, even after a crash, changes_since() reports
//           at least everything that has changed since a position, or says that it cannot.
//           Errors: Errc::io if the store below fails. Errc::unsupported for a write to a store
//           that is open for reading only, and for a merge in a store without a Merger.
// Threads   Any number of threads may call at once. A cursor belongs to one thread. Destroy it
//           before its store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/store/key_range.h"

namespace semel {

struct RecordWrite {
  std::string_view key;
  std::optional<std::string_view> value;  // nullopt: remove
  bool merge = false;  // the value is an operand that the store's Merger adds to the record
};

// Adds operands to a record without reading it first. Operands of one key are added in the order of
// their writes. Neighbouring operands may be merged into one first, so merge() must be associative.
class SEMEL_API Merger {
 public:
  virtual ~Merger() = default;
  // Returns a name that is kept with the records. They open only with a merger of this name.
  virtual const char* name() const = 0;
  // Sets `merged` to the present record, or to an earlier operand, with `operand` added. `now` is
  // that record or operand; nullopt if there is none. Returns false if one of the two is damaged;
  // then reading the record is Errc::corrupt.
  virtual bool merge(std::string_view key, std::optional<std::string_view> now,
                     std::string_view operand, std::string& merged) const = 0;
};

class SEMEL_API Cursor {
 public:
  virtual ~Cursor() = default;
  virtual void seek(std::string_view key) = 0;  // to the first record at or after the key
  virtual void next() = 0;                      // REQUIRES: valid()
  virtual bool valid() const = 0;               // false at the end, after an error, before a seek
  // The views are valid until the cursor moves. REQUIRES: valid().
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  virtual Result<void> status() const = 0;  // the error that ended the cursor, if any
};

// Hears of changes, in the thread that makes them. An observer must not call the store.
class SEMEL_API ChangeObserver {
 public:
  virtual ~ChangeObserver() = default;
  virtual void changed(std::string_view key) = 0;
  virtual void changed(const KeyRange& range) = 0;
};

class SEMEL_API OrderedStore {
 public:
  virtual ~OrderedStore() = default;

  virtual Result<std::optional<std::string>> get(std::string_view key) const = 0;
  virtual Result<void> write(std::span<const RecordWrite> writes) = 0;
  virtual Result<void> remove_range(const KeyRange& range) = 0;
  // Waits until all earlier writes are on disk.
  virtual Result<void> sync() = 0;
  virtual Result<std::unique_ptr<Cursor>> cursor() const = 0;

  // Replaces the value of each key by the result of `become` for the present value. No other write
  // comes in between, and all changes are one write. Unchanged values are not written. REQUIRES:
  // `keys` differ; `become` does not call the store.
  using Become = std::function<std::optional<std::string>(std::size_t index,
                                                          std::optional<std::string_view> now)>;
  virtual Result<void> update(std::span<const std::string_view> keys, const Become& become) = 0;

  // Sets the only observer; nullptr for none. REQUIRES: no other call at the same time.
  virtual void observe(ChangeObserver* observer) = 0;

  virtual Result<Bytes> position() const = 0;
  // Returns Errc::gap if the store cannot tell. Then anything may have changed.
  virtual Result<void> changes_since(ByteView position, ChangeObserver& told) const = 0;

  // These replace and read one small file beside the records, durably and as a whole. nullopt means
  // that there is no file.
  virtual Result<void> save_checkpoint(ByteView bytes) = 0;
  virtual Result<std::optional<Bytes>> load_checkpoint() const = 0;
};

// Forwards every call to another store. Derive from it to change some of the calls.
class SEMEL_API ForwardingStore : public OrderedStore {
 public:
  // REQUIRES: `below` outlives this.
  explicit ForwardingStore(OrderedStore& below) : below_(below) {}

  Result<std::optional<std::string>> get(std::string_view key) const override {
    return below_.get(key);
  }
  Result<void> write(std::span<const RecordWrite> writes) override { return below_.write(writes); }
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
