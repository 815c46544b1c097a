// The common parts of the formats of the cuckoo filters (docs/formats/grow_cuckoo_v1.md).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "semel/bits/internal/packed_writer.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/filter/internal/cuckoo_shape.h"

namespace semel::crdt_internal {

using filter_internal::CuckooEntry;
using filter_internal::CuckooPlaces;

// Reads a shape. Errc::corrupt unless it has so many payload bits.
Result<CuckooShape> read_shape(Reader& in, std::uint32_t payload_bits);

// Returns the number of bits that a pair number takes.
std::uint32_t pair_bits(const CuckooPlaces& shape);

// The pairs and fingerprints of the entries, in their order, packed in blocks of kBlockEntries. In
// each block the pairs come first. A full block takes whole bytes.
inline constexpr std::size_t kBlockEntries = 4096;
std::uint64_t places_size(const CuckooPlaces& shape, std::uint64_t entries);

// Writes entries one after another, with the memory of one block.
class PlacesWriter {
 public:
  PlacesWriter(Sink out, const CuckooPlaces& shape)
      : bits_(out), pair_bits_(pair_bits(shape)), fingerprint_bits_(shape.fingerprint_bits) {}
  void put(const CuckooEntry& entry) {
    bits_.put(entry.pair, pair_bits_);
    fingerprints_[size_++] = entry.fingerprint;
    if (size_ == kBlockEntries) finish();
  }
  // Ends the last block.
  void finish();

 private:
  PackedWriter bits_;
  std::uint32_t pair_bits_, fingerprint_bits_;
  std::array<std::uint64_t, kBlockEntries> fingerprints_;  // of the block; they follow its pairs
  std::size_t size_ = 0;
};

void encode_places(Sink out, const CuckooPlaces& shape, std::span<const CuckooEntry> entries);
// Fills in the pairs and fingerprints of the entries. Errc::truncated if too few bytes are left.
// Errc::corrupt if a place is impossible.
Result<void> decode_places(Reader& in, const CuckooPlaces& shape, std::span<CuckooEntry> entries);

}  // namespace semel::crdt_internal
