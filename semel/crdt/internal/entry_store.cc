#include "semel/crdt/internal/entry_store.h"

#include <algorithm>
#include <utility>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"

namespace semel::crdt_internal {

EntryStore::EntryStore(const CuckooShape& shape)
    : shape_((SEMEL_ASSERT(shape.valid()), shape)), spilled_(shape) {}

bool EntryStore::spilled_contains(const CuckooSpot& spot) const {
  return spilled_.contains(shape_.pair_of(spot), spot.fingerprint);
}

bool EntryStore::spilled_contains(Digest key) const {
  return spilled_contains(shape_.spot_of(key));
}

bool EntryStore::contains(const CuckooSpot& spot) const {
  if (table_ && table_->find(spot, [](std::uint64_t) { return true; })) return true;
  return spilled_contains(spot);
}

void EntryStore::contains(std::span<const Digest> keys, std::span<bool> found) const {
  SEMEL_ASSERT(keys.size() == found.size());
  if (table_) {
    table_->contains(keys, found);
  } else {
    std::fill(found.begin(), found.end(), false);
  }
  if (spilled_.size() == 0) return;
  for_each_ahead(
      keys.size(),
      [&](std::size_t i) {
        const CuckooSpot spot = shape_.spot_of(keys[i]);
        spilled_.prefetch(shape_.pair_of(spot), spot.fingerprint);
      },
      [&](std::size_t i) { found[i] = found[i] || spilled_contains(keys[i]); });
}

bool EntryStore::holds(const CuckooSpot& spot, std::uint64_t payload) const {
  if (table_ &&
      table_->find(spot, [&](std::uint64_t slot) { return table_->payload(slot) == payload; })) {
    return true;
  }
  return spilled_.size() != 0 &&
         spilled_.find(shape_.pair_of(spot), spot.fingerprint,
                       [&](std::uint64_t slot) { return spilled_.payload(slot) == payload; });
}

std::vector<std::uint64_t> EntryStore::payloads(const CuckooSpot& spot) const {
  std::vector<std::uint64_t> all;
  for_each_payload(spot, [&](std::uint64_t payload) { all.push_back(payload); });
  return all;
}

std::uint64_t EntryStore::count(const CuckooSpot& spot) const {
  std::uint64_t found = 0;
  for_each_payload(spot, [&](std::uint64_t) { ++found; });
  return found;
}

// Returns true if there are as many copies as two buckets of a table hold, wherever they lie.
bool EntryStore::full_of_copies(const CuckooSpot& spot) const {
  const bool single = shape_.other(spot).bucket == spot.bucket;
  return count(spot) >= std::uint64_t{shape_.bucket_size} * (single ? 1 : 2);
}

void EntryStore::spill(const CuckooSpot& spot, std::uint64_t payload) {
  spilled_.insert({shape_.pair_of(spot), spot.fingerprint, payload});
}

// A refusal depends on the entries alone, not on where they lie. So a store that was encoded and
// decoded takes and refuses the same entries.
bool EntryStore::add(const CuckooSpot& spot, std::uint64_t payload) {
  if (size() >= shape_.slots() || full_of_copies(spot)) return false;
  if (!table_ && !few(size() + 1)) make_table();
  if (!table_) {
    spill(spot, payload);
    return true;
  }
  std::uint64_t quota = CuckooTable::kSearch;
  if (!table_->place_evenly(spot, payload, quota)) spill(spot, payload);
  settle();
  return true;
}

void EntryStore::put(const CuckooSpot& spot, std::uint64_t payload, std::uint64_t& quota) {
  if (!table_ && !few(size() + 1)) make_table();
  if (!table_) return spill(spot, payload);
  // Beyond this load most searches fail, and take long.
  const std::uint64_t most = shape_.slots() - shape_.slots() / (shape_.bucket_size == 4 ? 32 : 64);
  std::uint64_t none = 0;
  if (!table_->place_evenly(spot, payload, table_->size() < most ? quota : none)) {
    spill(spot, payload);
  }
}

bool EntryStore::remove(const CuckooSpot& spot, std::uint64_t payload) {
  if (table_) {
    const auto slot =
        table_->find(spot, [&](std::uint64_t at) { return table_->payload(at) == payload; });
    if (slot) {
      table_->clear(*slot);
      settle();
      return true;
    }
  }
  const auto slot = spilled_.find(shape_.pair_of(spot), spot.fingerprint, [&](std::uint64_t at) {
    return spilled_.payload(at) == payload;
  });
  if (slot) {
    spilled_.erase(*slot);
    settle();
  }
  return slot.has_value();
}

void EntryStore::reserve() {
  if (!table_) make_table();
  reserved_ = true;
}

void EntryStore::make_table() {
  CuckooTable table(shape_);
  PackedEntries rest(shape_);
  std::uint64_t quota = quota_for(spilled_.size());
  for (std::uint64_t slot = 0; slot < spilled_.slots(); ++slot) {
    if (spilled_.free(slot)) continue;
    const CuckooEntry entry = spilled_.at(slot);
    const CuckooSpot spot = shape_.spot_of(entry.pair, entry.fingerprint);
    if (!table.place_evenly(spot, entry.payload, quota)) rest.insert(entry);
  }
  table_ = std::move(table);
  spilled_ = std::move(rest);
}

// Runs after a change. Gives up the table if few entries are left, or else brings some of the
// overflow back.
void EntryStore::settle() {
  if (!table_) return spilled_.trim();
  if (!reserved_ && size() < shape_.slots() / 32) {
    PackedEntries all = spilled_;
    table_->for_each([&](const CuckooSpot& spot, std::uint64_t slot) {
      all.insert({shape_.pair_of(spot), spot.fingerprint, table_->payload(slot)});
    });
    spilled_ = std::move(all);
    table_.reset();
    return;
  }
  constexpr std::uint64_t kLooks = 4;
  std::uint64_t quota = 64;
  for (std::uint64_t look = 0; look < kLooks && spilled_.size() != 0; ++look) {
    if (++cursor_ >= spilled_.slots()) cursor_ = 0;
    if (spilled_.free(cursor_)) continue;
    const CuckooEntry entry = spilled_.at(cursor_);
    const CuckooSpot spot = shape_.spot_of(entry.pair, entry.fingerprint);
    if (table_->place_evenly(spot, entry.payload, quota)) spilled_.erase(cursor_);
  }
  spilled_.trim();
}

EntryStore::Intake::Intake(EntryStore& store, std::uint64_t most)
    : store_(store), before_(store.size()), quota_(quota_for(most)) {
  if (!store.table_ && !store.few(most)) store.make_table();
}

void EntryStore::Intake::take(const CuckooSpot& spot, std::uint64_t payload) {
  if (!store_.table_) return store_.put(spot, payload, quota_);
  if (!store_.table_->place_here(spot, payload)) left_.push_back({spot, payload, 0});
}

std::uint64_t EntryStore::Intake::finish() {
  // Places the entries that find room in their other bucket, in the order of the list. The rest
  // moves up.
  std::size_t rest = 0;
  for_each_ahead(
      left_.size(),
      [&](std::size_t i) {
        const std::uint64_t bucket = store_.shape_.other(left_[i].spot).bucket;
        store_.table_->prefetch(bucket);
        store_.table_->prefetch_payloads(bucket);
      },
      [&](std::size_t i) {
        const Waiting& entry = left_[i];
        if (store_.table_->place_here(store_.shape_.other(entry.spot), entry.payload)) return;
        left_[rest++] = entry;
      });
  // Searches a few dozen at a time: the first lines of each arrive while the others run.
  left_.resize(rest);
  for (std::size_t begin = 0; begin < rest; begin += kWaiting) {
    const std::size_t end = std::min(begin + kWaiting, rest);
    for (std::size_t i = begin; i < end; ++i) store_.prefetch(left_[i].spot);
    for (std::size_t i = begin; i < end; ++i) {
      store_.table_->prefetch_moves(left_[i].spot.bucket);
    }
    for (std::size_t i = begin; i < end; ++i) {
      store_.put(left_[i].spot, left_[i].payload, quota_);
    }
  }
  store_.settle();
  return store_.size() - before_;
}

std::uint64_t EntryStore::unite(const EntryStore& other) {
  SEMEL_ASSERT(shape_ == other.shape_);
  Intake intake(*this, other.size());
  std::array<Waiting, kWaiting> waiting;
  std::size_t size = 0;
  const auto flush = [&] {
    for (std::size_t i = 0; i < size; ++i) {
      if (!contains(waiting[i].spot)) intake.take(waiting[i].spot, 0);
    }
    size = 0;
  };
  other.for_each([&](const CuckooSpot& spot, std::uint64_t) {
    if (size == kWaiting) flush();
    prefetch(spot);
    waiting[size++] = {spot, 0, 0};
  });
  flush();
  return intake.finish();
}

CuckooEntry EntryStore::entry_at(std::uint64_t place) const {
  const std::uint64_t slots = table_ ? shape_.slots() : 0;
  if (place >= slots) return spilled_.at(place - slots);
  const CuckooSpot spot{place / shape_.bucket_size, table_->fingerprint(place)};
  return {shape_.pair_of(spot), spot.fingerprint, table_->payload(place)};
}

std::vector<CuckooEntry> EntryStore::entries() const {
  std::vector<CuckooEntry> all;
  all.reserve(size());
  for_each([&](const CuckooSpot& spot, std::uint64_t payload) {
    all.push_back({shape_.pair_of(spot), spot.fingerprint, payload});
  });
  return all;
}

void EntryStore::fill(std::span<const CuckooEntry> entries) {
  SEMEL_ASSERT(size() == 0);
  if (!few(entries.size())) make_table();
  std::uint64_t quota = quota_for(entries.size());
  for_each_ahead(
      entries.size(),
      [&](std::size_t i) { prefetch(shape_.spot_of(entries[i].pair, entries[i].fingerprint)); },
      [&](std::size_t i) {
        put(shape_.spot_of(entries[i].pair, entries[i].fingerprint), entries[i].payload, quota);
      });
}

// The shape contributes six numbers, so that it cannot be mistaken for an entry.
Digest EntryStore::digest(const Hasher& hasher) const {
  Digest sum = hasher.of_numbers(shape_.bucket_size, shape_.fingerprint_bits, shape_.payload_bits,
                                 shape_.buckets, shape_.hash.kind, shape_.hash.seed);
  for_each([&](const CuckooSpot& spot, std::uint64_t payload) {
    sum ^= hasher.of_numbers(shape_.pair_of(spot), spot.fingerprint, payload);
  });
  return sum;
}

bool EntryStore::holds_all(const EntryStore& other) const {
  SEMEL_ASSERT(shape_ == other.shape_);
  if (other.size() > size()) return false;
  bool all = true;
  other.for_each(
      [&](const CuckooSpot& spot, std::uint64_t payload) { all = all && holds(spot, payload); });
  return all;
}

}  // namespace semel::crdt_internal
