// EntryStore: the entries of a cuckoo filter that merges, with room for as many as come.
//
// Contract  An entry is a pair of buckets, a fingerprint and a payload; where it lies says nothing.
//           add() takes as many entries as there are slots, put() takes everything: bucket sizes
//           are soft limits, and what the table has no room for overflows into a second place. No
//           two entries are equal in all three.
// Layout      few:   everything in a hash table of packed entries (crdt/internal/packed_entries.h)
//             more:  a cuckoo table (filter/cuckoo_table.h), from an eighth of its slots on, until less
//                    than a thirty-second is taken; the overflow in the hash table
//           So memory follows the entries, and an empty store of any shape takes next to nothing;
//           unless reserve() was called: then there is a table from the beginning to the end.
// Overflow  Every add and removal tries to bring some entries of the overflow back into the table.
//           It empties as entries are removed, or while adds still find room.
// Failure   When memory runs out, every entry is still there once; of many that were to be taken or
//           removed, some have been.
// Cost      Two cache misses at once for a lookup, one more where entries overflow. A search for
//           room looks at most at CuckooTable::kSearch buckets for an add, and at kQuota for each
//           entry of a merge in the mean; a merge does not search at all once the table is as good
//           as full.
// Threads   const members may run at once; any other call needs the object to itself.
// Source    The soft limits, the overflow and its smoothing are the thesis' (section 3.3, algorithm
//           1); its random walks are breadth-first searches here, which fail before they move
//           anything.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "semel/crdt/internal/packed_entries.h"
#include "semel/filter/cuckoo_shape.h"
#include "semel/filter/cuckoo_table.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel {

class EntryStore {
 public:
  static constexpr std::uint64_t kQuota = 128;

  // REQUIRES: shape.valid().
  explicit EntryStore(const CuckooShape& shape);

  // Makes the table now, and keeps it however few entries there are.
  void reserve();

  // REQUIRES, of add and put: the store does not hold this entry.

  // False, and no change, if there is no room: there are as many entries as slots, or as many of
  // this pair and fingerprint as two buckets hold.
  bool add(const CuckooSpot& spot, std::uint64_t payload);
  // Takes the entry in any case; a search for room counts against the quota.
  void put(const CuckooSpot& spot, std::uint64_t payload, std::uint64_t& quota);
  // What so many entries may search.
  static std::uint64_t quota_for(std::uint64_t entries) {
    return 8 * CuckooTable::kSearch + kQuota * entries;
  }
  // False if there is no such entry.
  bool remove(const CuckooSpot& spot, std::uint64_t payload);

  // Whether there is an entry that may be of this key.
  bool contains(Digest key) const {
    if (table_ && table_->contains(key)) return true;
    return spilled_.size() != 0 && spilled_contains(shape_.spot_of(key));
  }
  void contains(std::span<const Digest> keys, std::span<bool> found) const;
  bool contains(const CuckooSpot& spot) const;

  // Whether there is this very entry.
  bool holds(const CuckooSpot& spot, std::uint64_t payload) const;

  // The payloads of all entries of this pair and fingerprint, and how many they are.
  std::vector<std::uint64_t> payloads(const CuckooSpot& spot) const;
  template <class Visit>
  void for_each_payload(const CuckooSpot& spot, Visit visit) const;
  std::uint64_t count(const CuckooSpot& spot) const;

  // Takes the entries of `other` for which wanted(payload) holds; the number. REQUIRES: equal
  // shapes, and none of these is here.
  template <class Wanted>
  std::uint64_t take(const EntryStore& other, Wanted wanted);
  // Takes the entries of `other` that are not here; the number. REQUIRES: equal shapes, and
  // payloads of 0.
  std::uint64_t unite(const EntryStore& other);
  // Removes the entries with doomed(payload) that `other` does not hold; the number. REQUIRES:
  // equal shapes.
  template <class Doomed>
  std::uint64_t remove_unless_held(const EntryStore& other, Doomed doomed);

  // Removes the entries with doomed(payload), and allocates nothing.
  template <class Doomed>
  void remove_if(Doomed doomed);

  // Calls visit(spot, payload) for every entry.
  template <class Visit>
  void for_each(Visit visit) const;
  // Calls visit(place, payload) for every place that may hold an entry; a free one has the payload
  // 0.
  template <class Visit>
  void for_each_place(Visit visit) const;
  // REQUIRES: the place is not free.
  CuckooEntry entry_at(std::uint64_t place) const;
  std::vector<CuckooEntry> entries() const;  // in no order

  // Brings the lines that contains(key) will need first.
  [[gnu::always_inline]] void prefetch(Digest key) const {
    if (!table_) return;  // few entries, and as a rule in the cache
    const CuckooSpot spot = shape_.spot_of(key);
    table_->prefetch(spot.bucket);
    table_->prefetch(shape_.other(spot).bucket);
  }
  // Brings the lines that a change at this spot will need.
  [[gnu::always_inline]] void prefetch(const CuckooSpot& spot) const {
    if (!table_) return spilled_.prefetch(shape_.pair_of(spot), spot.fingerprint);
    for (const std::uint64_t bucket : {spot.bucket, shape_.other(spot).bucket}) {
      table_->prefetch(bucket);
      if (shape_.payload_bits != 0) table_->prefetch_payloads(bucket);
    }
  }

  const CuckooShape& shape() const { return shape_; }
  std::uint64_t size() const { return (table_ ? table_->size() : 0) + spilled_.size(); }
  std::uint64_t overflow() const { return table_ ? spilled_.size() : 0; }
  std::uint64_t bytes() const { return (table_ ? table_->bytes() : 0) + spilled_.bytes(); }

  // Puts all these entries. REQUIRES: they are distinct, and the store is empty.
  void fill(std::span<const CuckooEntry> entries);

  // The shape, and the XOR over all entries of what the hasher makes of them.
  Digest digest(const Hasher& hasher) const;

  // Whether all entries of `other` are here. REQUIRES: equal shapes.
  bool holds_all(const EntryStore& other) const;
  // REQUIRES: equal shapes.
  bool operator==(const EntryStore& other) const {
    return size() == other.size() && holds_all(other);  // entries are distinct
  }

 private:
  // An entry on its way through a pass, while the lines that it needs are on theirs.
  struct Waiting {
    CuckooSpot spot;
    std::uint64_t payload;
    std::uint64_t slot;
  };
  static constexpr std::size_t kWaiting = 64;

  // Takes many entries: first those that find room in the bucket where they lie in the other store,
  // which is the next line of memory, then the others.
  class Intake {
   public:
    Intake(EntryStore& store, std::uint64_t most);
    void take(const CuckooSpot& spot, std::uint64_t payload);
    std::uint64_t finish();  // how many were taken

   private:
    EntryStore& store_;
    std::uint64_t before_;
    std::uint64_t quota_;
    std::vector<Waiting> left_;
  };

  bool few(std::uint64_t entries) const { return entries <= shape_.slots() / 8; }
  bool spilled_contains(const CuckooSpot& spot) const;
  bool full_of_copies(const CuckooSpot& spot) const;
  void spill(const CuckooSpot& spot, std::uint64_t payload);
  template <class Doomed>
  std::uint64_t remove_spilled(Doomed doomed);
  void make_table();
  void settle();

  CuckooShape shape_;
  std::optional<CuckooTable> table_;
  bool reserved_ = false;
  PackedEntries spilled_;
  std::uint64_t cursor_ = 0;  // where the next attempt begins to bring spilled entries back
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
  Intake intake(*this, other.size());
  other.for_each([&](const CuckooSpot& spot, std::uint64_t payload) {
    if (wanted(payload)) intake.take(spot, payload);
  });
  return intake.finish();
}

// An erasure moves entries up, into slots that are looked at again, or from before the first slot
// to the end: those have been looked at.
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
      // As a rule it lies in the same slot there, which costs no further line.
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

}  // namespace semel
