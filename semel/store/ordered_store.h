// OrderedStore: what an index and a sync need of a store of records, and no more.
//
// Contract  A map from key to value, both any bytes, in the order of the keys' bytes. A write is
//           all or nothing, and visible to every later call. A cursor sees one instant.
// Changes   Whatever changes a record tells the observer, after the change is visible and before
//           the call that made it returns: by its key, or by a range if the store cannot say more.
//           Changes that go past the calls below (files taken in, records dropped by a compaction)
//           are told too, as ranges.
// Position  position() names the present state: all changes before it have been told. After the
//           store was closed, or its process killed, and opened again, changes_since() tells at
//           least all that has changed since that position, or says that it cannot.
// Threads   Any number of threads may call at once. A cursor belongs to one thread, and goes before
//           its store.
// Error     Errc::io if the store below fails, Errc::unsupported for a write to a store that was
//           opened read-only, and for a merge in one without a Merger.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/store/key_range.h"

namespace semel {

struct Write {
  std::string_view key;
  std::optional<std::string_view> value;  // nullopt: remove
  bool merge = false;  // the value is an operand, which the store's Merger adds to the record
};

// Adds an operand to a record that nobody has to read for it. Operands of one key are added in the
// order of their writes, but two neighbours may first be made one: merge() is associative.
class Merger {
 public:
  virtual ~Merger() = default;
  // Kept with the records: they are opened again only with a merger of this name.
  virtual const char* name() const = 0;
  // The record, or the operand before, with `operand` added; nullopt: there is none. False if one
  // of the two is damaged; then a read of the record is Errc::corrupt.
  virtual bool merge(std::string_view key, std::optional<std::string_view> now,
                     std::string_view operand, std::string& merged) const = 0;
};

class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual void seek(std::string_view key) = 0;  // to the first record whose key is not less
  virtual void next() = 0;                      // REQUIRES: valid()
  virtual bool valid() const = 0;               // false at the end, after an error, before a seek
  virtual std::string_view key() const = 0;     // REQUIRES: valid(). Good until the cursor moves.
  virtual std::string_view value() const = 0;   // the same
  virtual Result<void> status() const = 0;      // why the cursor is not valid, if not for the end
};

// Told of changes, by any thread that makes one. Does not call the store.
class ChangeObserver {
 public:
  virtual ~ChangeObserver() = default;
  virtual void changed(std::string_view key) = 0;
  virtual void changed(const KeyRange& range) = 0;
};

class OrderedStore {
 public:
  virtual ~OrderedStore() = default;

  virtual Result<std::optional<std::string>> get(std::string_view key) const = 0;
  virtual Result<void> write(std::span<const Write> writes) = 0;
  virtual Result<void> remove_range(const KeyRange& range) = 0;
  // All writes that have returned are on disk when it returns.
  virtual Result<void> sync() = 0;
  virtual Result<std::unique_ptr<Cursor>> cursor() const = 0;

  // For each key what becomes of its value, given what it is now. No write comes between the look
  // and the change; all changes are one write. What stays as it is, is not written.
  // REQUIRES: `keys` differ; `become` does not call the store.
  using Become = std::function<std::optional<std::string>(std::size_t index,
                                                          std::optional<std::string_view> now)>;
  virtual Result<void> update(std::span<const std::string_view> keys, const Become& become) = 0;

  // At most one; nullptr for none. REQUIRES: no other call at the same time.
  virtual void observe(ChangeObserver* observer) = 0;

  virtual Result<Bytes> position() const = 0;
  // Errc::gap if the store cannot tell: then anything may have changed.
  virtual Result<void> changes_since(ByteView position, ChangeObserver& told) const = 0;

  // One small file beside the records, replaced as a whole and durably. nullopt if there is none.
  virtual Result<void> save_checkpoint(ByteView bytes) = 0;
  virtual Result<std::optional<Bytes>> load_checkpoint() const = 0;
};

}  // namespace semel
