#include "semel/filter/internal/cuckoo_table.h"

#include <algorithm>
#include <array>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"

namespace semel::filter_internal {

CuckooTable::CuckooTable(const CuckooShape& shape)
    : shape_((SEMEL_ASSERT(shape.valid()), shape)),
      fingerprints_(shape.slots(), shape.fingerprint_bits),
      payloads_(shape.slots(), shape.payload_bits) {}

void CuckooTable::set(std::uint64_t slot, std::uint64_t fingerprint, std::uint64_t payload) {
  fingerprints_.set(slot, fingerprint);
  payloads_.set(slot, payload);
}

void CuckooTable::clear(std::uint64_t slot) {
  SEMEL_ASSERT(fingerprint(slot) != 0);
  set(slot, 0, 0);
  --size_;
}

void CuckooTable::place_in(const CuckooSpot& spot, std::uint32_t free, std::uint64_t payload) {
  const auto slot = static_cast<std::uint32_t>(std::countr_zero(free));
  set(spot.bucket * shape_.bucket_size + slot, spot.fingerprint, payload);
  ++size_;
}

bool CuckooTable::place_here(const CuckooSpot& spot, std::uint64_t payload) {
  const std::uint32_t free = matches({spot.bucket, 0});
  if (free != 0) place_in(spot, free, payload);
  return free != 0;
}

bool CuckooTable::place(const CuckooSpot& spot, std::uint64_t payload, std::uint64_t& quota) {
  return place_here(spot, payload) || place_here(shape_.other(spot), payload) ||
         place_by_moves(spot, payload, quota);
}

bool CuckooTable::place_evenly(const CuckooSpot& spot, std::uint64_t payload,
                               std::uint64_t& quota) {
  const CuckooSpot other = shape_.other(spot);
  const std::uint32_t here = matches({spot.bucket, 0});
  const std::uint32_t there = matches({other.bucket, 0});
  if ((here | there) == 0) return place_by_moves(spot, payload, quota);
  if (std::popcount(here) >= std::popcount(there)) {
    place_in(spot, here, payload);
  } else {
    place_in(other, there, payload);
  }
  return true;
}

// Searches breadth-first through the buckets that entries could move to. The first free slot found
// ends the shortest chain. That chain visits no bucket twice: a second visit could only find what
// the first would have found earlier. So the moves, made backwards from the free slot, do not
// disturb each other.
template <class Kind>
bool CuckooTable::search(Kind kind, const CuckooSpot& spot, std::uint64_t payload,
                         std::uint64_t& quota) {
  struct Step {
    std::uint64_t bucket;
    std::uint32_t parent;  // the step whose entry would move here
    std::uint32_t slot;    // of that entry in the parent's bucket
  };
  constexpr std::uint32_t kRoots = 2;
  const std::uint8_t* const table = fingerprints_.data();
  const std::size_t most = std::min({kSearch, 4 * shape_.slots(), quota});
  if (most < kRoots) return false;
  std::array<Step, kSearch> steps;
  steps[0] = {spot.bucket, 0, 0};
  steps[1] = {shape_.other(spot).bucket, 0, 0};
  std::size_t known = kRoots;

  for (std::size_t begin = 0; begin < known;) {
    const std::size_t end = known;
    // Looks at a whole depth before it loads the next: most searches end at the first.
    for (std::size_t at = begin; at < end; ++at) {
      const std::uint32_t free = kind.matches(table, steps[at].bucket, 0);
      if (free == 0) continue;
      std::uint64_t hole =
          steps[at].bucket * kind.kSlots + static_cast<std::uint32_t>(std::countr_zero(free));
      while (at >= kRoots) {
        const Step& step = steps[at];
        const std::uint64_t from = steps[step.parent].bucket * kind.kSlots + step.slot;
        set(hole, fingerprints_.get(from), payloads_.get(from));
        hole = from;
        at = step.parent;
      }
      set(hole, spot.fingerprint, payload);
      ++size_;
      quota -= known;
      return true;
    }
    for (std::size_t at = begin; at < end; ++at) {
      const std::uint64_t bucket = steps[at].bucket;
      for (std::uint32_t slot = 0; slot < kind.kSlots && known < most; ++slot) {
        const std::uint64_t f = kind.get(table, bucket, slot);
        const std::uint64_t next = cuckoo_bucket::other(bucket, f, shape_.buckets);
        // A cycle makes no room. So copies of one key fail at once.
        if (next == steps[0].bucket || next == steps[1].bucket) continue;
        semel::prefetch(kind.address(table, next));
        steps[known++] = {next, static_cast<std::uint32_t>(at), slot};
      }
    }
    begin = end;
  }
  quota -= known;
  return false;
}

bool CuckooTable::place_by_moves(const CuckooSpot& spot, std::uint64_t payload,
                                 std::uint64_t& quota) {
  return cuckoo_bucket::visit(shape_,
                              [&](auto kind) { return search(kind, spot, payload, quota); });
}

void CuckooTable::prefetch_moves(std::uint64_t bucket) const {
  cuckoo_bucket::visit(shape_, [&](auto kind) {
    for (std::uint32_t slot = 0; slot < kind.kSlots; ++slot) {
      const std::uint64_t f = kind.get(fingerprints_.data(), bucket, slot);
      prefetch(cuckoo_bucket::other(bucket, f, shape_.buckets));
    }
  });
}

// Computes each place once, when it is touched. A ring keeps the places until their lines arrive.
void CuckooTable::contains(std::span<const Digest> keys, std::span<bool> found) const {
  SEMEL_ASSERT(keys.size() == found.size());
  const std::uint8_t* const table = fingerprints_.data();
  const std::uint64_t buckets = shape_.buckets;
  cuckoo_bucket::visit(shape_, [&](auto kind) {
    constexpr std::size_t kRing = 64;
    static_assert(kAhead < kRing);
    std::array<typename decltype(kind)::Place, kRing> ring;
    for_each_ahead(
        keys.size(),
        [&](std::size_t i) {
          const auto place = kind.place(buckets, keys[i]);
          semel::prefetch(kind.address(table, place.first));
          semel::prefetch(kind.address(table, place.second));
          ring[i % kRing] = place;
        },
        [&](std::size_t i) { found[i] = kind.holds(table, ring[i % kRing]); });
  });
}

void CuckooTable::encode(Sink out) const {
  fingerprints_.encode(out);
  payloads_.encode(out);
}

CuckooTable::CuckooTable(const CuckooShape& shape, PackedArray fingerprints, PackedArray payloads)
    : shape_(shape), fingerprints_(std::move(fingerprints)), payloads_(std::move(payloads)) {}

Result<CuckooTable> CuckooTable::decode(Reader& in, const CuckooShape& shape) {
  if (in.rest() < shape.bytes()) return Error{Errc::truncated, "slots"};
  PackedArray fingerprints =
      SEMEL_TRY(PackedArray::decode(in, shape.slots(), shape.fingerprint_bits));
  PackedArray payloads = SEMEL_TRY(PackedArray::decode(in, shape.slots(), shape.payload_bits));
  CuckooTable table(shape, std::move(fingerprints), std::move(payloads));
  for (std::uint64_t slot = 0; slot < shape.slots(); ++slot) {
    if (table.fingerprint(slot) != 0) {
      ++table.size_;
    } else if (table.payload(slot) != 0) {
      return Error{Errc::corrupt, "a payload in a free slot"};
    }
  }
  return table;
}

}  // namespace semel::filter_internal
