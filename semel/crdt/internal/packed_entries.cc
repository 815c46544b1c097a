#include "semel/crdt/internal/packed_entries.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "semel/core/assert.h"

namespace semel::crdt_internal {

PackedEntries::PackedEntries(const CuckooPlaces& shape)
    : pairs_(kLeastSlots, static_cast<std::uint32_t>(std::bit_width(shape.pairs() - 1))),
      fingerprints_(kLeastSlots, shape.fingerprint_bits),
      payloads_(kLeastSlots, shape.payload_bits) {}

void PackedEntries::set(std::uint64_t slot, const CuckooEntry& entry) {
  pairs_.set(slot, entry.pair);
  fingerprints_.set(slot, entry.fingerprint);
  payloads_.set(slot, entry.payload);
}

void PackedEntries::put(const CuckooEntry& entry) {
  std::uint64_t slot = home(entry.pair, entry.fingerprint);
  while (!free(slot)) slot = next(slot);
  set(slot, entry);
}

void PackedEntries::insert(const CuckooEntry& entry) {
  SEMEL_ASSERT(entry.fingerprint != 0);
  if (4 * (size_ + 1) > 3 * slots()) resize(slots() + slots() / 2);
  put(entry);
  ++size_;
}

// Moves up, one after another, the later entries that the hole would hide.
void PackedEntries::erase(std::uint64_t slot) {
  SEMEL_ASSERT(!free(slot));
  std::uint64_t hole = slot;
  for (std::uint64_t at = next(hole); !free(at); at = next(at)) {
    const CuckooEntry entry = this->at(at);
    const std::uint64_t from = home(entry.pair, entry.fingerprint);
    // A lookup still finds the entry if its home lies between the hole and its slot, wrapping
    // around the end.
    const bool stays = hole <= at ? hole < from && from <= at : hole < from || from <= at;
    if (stays) continue;
    set(hole, entry);
    hole = at;
  }
  set(hole, {0, 0, 0});
  --size_;
}

void PackedEntries::trim() {
  if (slots() > kLeastSlots && 4 * size_ < slots()) {
    resize(std::max(kLeastSlots, 2 * size_));
  }
}

void PackedEntries::resize(std::uint64_t slots) {
  PackedArray pairs(slots, pairs_.width());
  PackedArray fingerprints(slots, fingerprints_.width());
  PackedArray payloads(slots, payloads_.width());
  std::swap(pairs, pairs_);
  std::swap(fingerprints, fingerprints_);
  std::swap(payloads, payloads_);
  for (std::uint64_t slot = 0; slot < fingerprints.size(); ++slot) {
    const std::uint64_t fingerprint = fingerprints.get(slot);
    if (fingerprint != 0) put({pairs.get(slot), fingerprint, payloads.get(slot)});
  }
}

}  // namespace semel::crdt_internal
