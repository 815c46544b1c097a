// EntryStore: the entries of a mergeable cuckoo filter, with room for any number.
//
// Contract  An entry is a pair of buckets, a fingerprint and a payload. Its place has no meaning.
//           No two entries are equal in all three.
//           add() takes as many entries as there are slots. put() takes everything: bucket sizes
//           are soft limits, and entries that do not fit the table overflow into a second place.
//           Every add and removal tries to bring some of the overflow back into the table. So the
//           overflow empties as entries are removed, or while adds still find room.
//           When memory runs out, every entry is still there once. A call for many entries may have
//           taken or removed some of them.
// Layout    few:   everything is in a hash table of packed entries (crdt/internal/packed_entries.h)
//           more:  entries are in a cuckoo table (filter/internal/cuckoo_table.h), once they fill
//                  an eighth of its slots, until they fill less than a thirty-second; the overflow
//                  is in the hash table
// Memory    Follows the entries: an empty store of any shape takes almost nothing. After reserve()
//           there is always a table.
// Cost      A lookup takes two cache misses at once, and one more if entries overflow. A search for
//           room visits at most CuckooTable::kSearch buckets for an add, and on average kQuota for
//           each entry of a merge. A merge does not search at all once the table is nearly full.
// Threads   const members may run at once; any other call needs the object to itself.
// Source    The soft limits, the overflow and its smoothing come from the thesis (section 3.3,
//           algorithm 1). We replace its random walks by breadth-first searches, which fail before
//           they move anything.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/packed_entries.h"
#include "semel/filter/internal/cuckoo_shape.h"
#include "semel/filter/internal/cuckoo_table.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel::crdt_internal {

using filter_internal::CuckooPlaces;
using filter_internal::CuckooSpot;
using filter_internal::CuckooTable;

class EntryStore {
 public:
  static constexpr std::uint64_t kQuota = 128;

  // REQUIRES: shape.valid().
  explicit EntryStore(const CuckooShape& shape);

  // Makes the table now, and keeps it however few the entries are.
  void reserve();

  // Makes the table now if so many entries will need one.
  void expect(std::uint64_t entries) {
    if (!table_ && !few(entries)) make_table();
  }

  // REQUIRES for add and put: the store does not hold this entry.

  // Returns false, and changes nothing, if there is no room: there are as many entries as slots, or
  // as many entries with this pair and fingerprint as two buckets hold.
  bool add(const CuckooSpot& spot, std::uint64_t payload);
  // Takes the entry in any case. A search for room counts against the quota.
  void put(const CuckooSpot& spot, std::uint64_t payload, std::uint64_t& quota);
  // Returns the quota of searching for so many entries.
  static std::uint64_t quota_for(std::uint64_t entries) {
    return 8 * CuckooTable::kSearch + kQuota * entries;
  }
  // Returns false if there is no such entry.
  bool remove(const CuckooSpot& spot, std::uint64_t payload);

  // Returns true if some entry may belong to this key.
  bool contains(Digest key) const {
    if (table_ && table_->contains(key)) return true;
    return spilled_.size() != 0 && spilled_contains(key);
  }
  void contains(std::span<const Digest> keys, std::span<bool> found) const;
  bool contains(const CuckooSpot& spot) const;

  // Returns true if the store holds exactly this entry.
  bool holds(const CuckooSpot& spot, std::uint64_t payload) const;

  // These return, visit or count the payloads of all entries with this pair and fingerprint.
  std::vector<std::uint64_t> payloads(const CuckooSpot& spot) const;
  template <class Visit>
  void for_each_payload(const CuckooSpot& spot, Visit visit) const;
  std::uint64_t count(const CuckooSpot& spot) const;

  // Takes the entries of `other` for which wanted(payload) is true. Returns their number.
  // REQUIRES: equal shapes, and none of these entries is here.
  template <class Wanted>
  std::uint64_t take(const EntryStore& other, Wanted wanted);
  // Takes the entries of `other` that are not here. Returns their number. REQUIRES: equal shapes,
  // and all payloads are 0.
  std::uint64_t unite(const EntryStore& other);
  // Removes the entries for which doomed(payload) is true and that `other` does not hold. Returns
  // their number. REQUIRES: equal shapes.
  template <class Doomed>
  std::uint64_t remove_unless_held(const EntryStore& other, Doomed doomed);

  // Removes the entries for which doomed(payload) is true. Allocates nothing.
  template <class Doomed>
  void remove_if(Doomed doomed);

  // Calls visit(spot, payload) for every entry.
  template <class Visit>
  void for_each(Visit visit) const;
  // Calls visit(place, payload) for every place that may hold an entry. A free place has the
  // payload 0.
  template <class Visit>
  void for_each_place(Visit visit) const;
  // REQUIRES: the place is not free.
  CuckooEntry entry_at(std::uint64_t place) const;
  std::vector<CuckooEntry> entries() const;  // in no order

  // Prefetches the lines that contains(key) will need first.
  [[gnu::always_inline]] void prefetch(Digest key) const {
    if (!table_) return;  // few entries, usually in the cache
    table_->prefetch(key);
  }
  // Prefetches the lines that a change at this spot will need.
  [[gnu::always_inline]] void prefetch(const CuckooSpot& spot) const {
    if (!table_) return spilled_.prefetch(shape_.pair_of(spot), spot.fingerprint);
    for (const std::uint64_t bucket : {spot.bucket, shape_.other(spot).bucket}) {
      table_->prefetch(bucket);
      if (shape_.payload_bits != 0) table_->prefetch_payloads(bucket);
    }
  }

  const CuckooPlaces& shape() const { return shape_; }
  std::uint64_t size() const { return (table_ ? table_->size() : 0) + spilled_.size(); }
  std::uint64_t overflow() const { return table_ ? spilled_.size() : 0; }
  std::uint64_t bytes() const { return (table_ ? table_->bytes() : 0) + spilled_.bytes(); }

  // Puts all these entries. REQUIRES: they are distinct, and the store is empty.
  void fill(std::span<const CuckooEntry> entries);

  // Returns the digest of the shape XORed with the digests of all entries.
  Digest digest(const Hasher& hasher) const;

  // Returns true if all entries of `other` are here. REQUIRES: equal shapes.
  bool holds_all(const EntryStore& other) const;
  // REQUIRES: equal shapes.
  bool operator==(const EntryStore& other) const {
    return size() == other.size() && holds_all(other);  // entries are distinct
  }

 private:
  // An entry that waits in a pass until its cache lines arrive.
  struct Waiting {
    CuckooSpot spot;
    std::uint64_t payload;
    std::uint64_t slot;
  };
  static constexpr std::size_t kWaiting = 64;

  // Takes many entries. It first tries the bucket that each entry has in the other store, which is
  // the next line of memory. The entries that find no room there come later.
  class Intake {
   public:
    Intake(EntryStore& store, std::uint64_t most);
    void take(const CuckooSpot& spot, std::uint64_t payload);
    std::uint64_t finish();  // returns the number taken

   private:
    EntryStore& store_;
    std::uint64_t before_;
    std::uint64_t quota_;
    std::vector<Waiting> left_;
  };

  bool few(std::uint64_t entries) const { return entries <= shape_.slots() / 8; }
  bool spilled_contains(const CuckooSpot& spot) const;
  // Not in line: contains() then needs no stack, and its misses overlap more.
  [[gnu::noinline]] bool spilled_contains(Digest key) const;
  bool full_of_copies(const CuckooSpot& spot) const;
  void spill(const CuckooSpot& spot, std::uint64_t payload);
  template <class Doomed>
  std::uint64_t remove_spilled(Doomed doomed);
  void make_table();
  void settle();

  CuckooPlaces shape_;
  std::optional<CuckooTable> table_;
  bool reserved_ = false;
  PackedEntries spilled_;
  std::uint64_t cursor_ = 0;  // where the search for spilled entries continues
};

template <class Visit>
void EntryStore::for_each_payload(const CuckooSpot& spot, Visit visit) const {
  if (table_) {
    (void)table_->find(spot, [&](std::uint64_t slot) {
      visit(table_->payload(slot));
      return false;
    });
  }
  if (spilled_.size() == 0) return;
  (void)spilled_.find(shape_.pair_of(spot), spot.fingerprint, [&](std::uint64_t slot) {
    visit(spilled_.payload(slot));
    return false;
  });
}

template <class Visit>
void EntryStore::for_each(Visit visit) const {
  if (table_) {
    table_->for_each(
        [&](const CuckooSpot& spot, std::uint64_t slot) { visit(spot, table_->payload(slot)); });
  }
  for (std::uint64_t slot = 0; slot < spilled_.slots(); ++slot) {
    if (spilled_.free(slot)) continue;
    const CuckooEntry entry = spilled_.at(slot);
    visit(shape_.spot_of(entry.pair, entry.fingerprint), entry.payload);
  }
}

template <class Visit>
void EntryStore::for_each_place(Visit visit) const {
  if (table_) table_->for_each_payload(visit);
  const std::uint64_t first = table_ ? shape_.slots() : 0;
  for (std::uint64_t slot = 0; slot < spilled_.slots(); ++slot) {
    visit(first + slot, spilled_.payload(slot));
  }
}

template <class Wanted>
std::uint64_t EntryStore::take(const EntryStore& other, Wanted wanted) {
  SEMEL_ASSERT(shape_ == other.shape_);
  Intake intake(*this, other.size());
  other.for_each([&](const CuckooSpot& spot, std::uint64_t payload) {
    if (wanted(payload)) intake.take(spot, payload);
  });
  return intake.finish();
}

// An erasure moves later entries up, into slots that this loop looks at again. It may also move
// entries from the first slots around to the end; those have been looked at.
template <class Doomed>
std::uint64_t EntryStore::remove_spilled(Doomed doomed) {
  std::uint64_t removed = 0;
  for (std::uint64_t slot = 0; slot < spilled_.slots(); ++slot) {
    while (!spilled_.free(slot)) {
      const CuckooEntry entry = spilled_.at(slot);
      if (!doomed(shape_.spot_of(entry.pair, entry.fingerprint), entry.payload)) break;
      spilled_.erase(slot);
      ++removed;
    }
  }
  return removed;
}

template <class Doomed>
void EntryStore::remove_if(Doomed doomed) {
  if (table_) {
    table_->for_each([&](const CuckooSpot&, std::uint64_t slot) {
      if (doomed(table_->payload(slot))) table_->clear(slot);
    });
  }
  remove_spilled([&](const CuckooSpot&, std::uint64_t payload) { return doomed(payload); });
}

template <class Doomed>
std::uint64_t EntryStore::remove_unless_held(const EntryStore& other, Doomed doomed) {
  SEMEL_ASSERT(shape_ == other.shape_);
  std::uint64_t removed = 0;
  if (table_) {
    std::array<Waiting, kWaiting> waiting;
    std::size_t size = 0;
    const auto flush = [&] {
      for (std::size_t i = 0; i < size; ++i) {
        if (other.holds(waiting[i].spot, waiting[i].payload)) continue;
        table_->clear(waiting[i].slot);
        ++removed;
      }
      size = 0;
    };
    table_->for_each([&](const CuckooSpot& spot, std::uint64_t slot) {
      const std::uint64_t payload = table_->payload(slot);
      if (!doomed(payload)) return;
      // The entry usually lies in the same slot there. This pass reads those lines in order.
      if (other.table_ && other.table_->fingerprint(slot) == spot.fingerprint &&
          other.table_->payload(slot) == payload) {
        return;
      }
      if (size == kWaiting) flush();
      if (other.table_) {
        const std::uint64_t bucket = shape_.other(spot).bucket;
        other.table_->prefetch(bucket);
        other.table_->prefetch_payloads(bucket);
      }
      waiting[size++] = {spot, payload, slot};
    });
    flush();
  }
  removed += remove_spilled([&](const CuckooSpot& spot, std::uint64_t payload) {
    return doomed(payload) && !other.holds(spot, payload);
  });
  settle();
  return removed;
}

}  // namespace semel::crdt_internal
