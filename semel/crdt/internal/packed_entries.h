// PackedEntries: a bag of cuckoo entries in a hash table as dense as their bits allow.
//
// Contract  Holds the entries that do not fit a cuckoo table, or all entries while they are few.
//           Entries may be equal in all but their payload.
// Cost      One or two cache misses for a lookup and as many for a change. Now and then a pass over
//           everything, to grow or to shrink.
// Memory    (bits of a pair + fingerprint_bits + payload_bits) / 8 bytes for each slot. Half to
//           three quarters of the slots are taken while entries come. trim() after removals leaves
//           at least a quarter.
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <cstdint>
#include <optional>

#include "semel/bits/internal/packed_array.h"
#include "semel/bits/internal/prefetch.h"
#include "semel/filter/internal/cuckoo_shape.h"

namespace semel::crdt_internal {

using filter_internal::CuckooEntry;
using filter_internal::CuckooPlaces;

class PackedEntries {
 public:
  // REQUIRES: shape.valid().
  explicit PackedEntries(const CuckooPlaces& shape);

  void insert(const CuckooEntry& entry);
  // Moves later entries up and allocates nothing. REQUIRES: slot < slots(), and it is not free.
  void erase(std::uint64_t slot);
  // Frees memory if little of it is in use.
  void trim();

  // Returns the first slot with this pair and fingerprint for which accept(slot) is true.
  template <class Accept>
  std::optional<std::uint64_t> find(std::uint64_t pair, std::uint64_t fingerprint,
                                    Accept accept) const;
  bool contains(std::uint64_t pair, std::uint64_t fingerprint) const {
    return find(pair, fingerprint, [](std::uint64_t) { return true; }).has_value();
  }

  // Prefetches the line that a lookup will need first.
  [[gnu::always_inline]] void prefetch(std::uint64_t pair, std::uint64_t fingerprint) const {
    semel::prefetch(fingerprints_.data() + home(pair, fingerprint) * fingerprints_.width() / 8);
  }

  // REQUIRES for these: slot < slots().
  bool free(std::uint64_t slot) const { return fingerprints_.get(slot) == 0; }
  CuckooEntry at(std::uint64_t slot) const {
    return {pairs_.get(slot), fingerprints_.get(slot), payloads_.get(slot)};
  }
  std::uint64_t payload(std::uint64_t slot) const { return payloads_.get(slot); }

  std::uint64_t slots() const { return fingerprints_.size(); }
  std::uint64_t size() const { return size_; }
  std::uint64_t bytes() const {
    return pairs_.byte_size() + fingerprints_.byte_size() + payloads_.byte_size();
  }

 private:
  static constexpr std::uint64_t kLeastSlots = 8;

  std::uint64_t home(std::uint64_t pair, std::uint64_t fingerprint) const {
    return scale(mix(pair * 0x9e3779b97f4a7c15 + fingerprint), slots());
  }
  std::uint64_t next(std::uint64_t slot) const { return slot + 1 == slots() ? 0 : slot + 1; }
  void set(std::uint64_t slot, const CuckooEntry& entry);
  void put(const CuckooEntry& entry);
  void resize(std::uint64_t slots);

  // Linear probing: an entry lies in the first slot, from its home on, that was free when it came.
  PackedArray pairs_;
  PackedArray fingerprints_;  // 0: free
  PackedArray payloads_;
  std::uint64_t size_ = 0;
};

template <class Accept>
std::optional<std::uint64_t> PackedEntries::find(std::uint64_t pair, std::uint64_t fingerprint,
                                                 Accept accept) const {
  if (size_ == 0) return std::nullopt;
  for (std::uint64_t slot = home(pair, fingerprint);; slot = next(slot)) {
    const std::uint64_t there = fingerprints_.get(slot);
    if (there == 0) return std::nullopt;
    if (there == fingerprint && pairs_.get(slot) == pair && accept(slot)) return slot;
  }
}

}  // namespace semel::crdt_internal
