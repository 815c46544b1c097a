// What the formats of the cuckoo filters have in common (docs/formats/grow_cuckoo_v1.md).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "semel/bits/packed_writer.h"
#include "semel/core/codec.h"
#include "semel/filter/cuckoo_shape.h"

namespace semel::entry_codec {

inline constexpr std::size_t kTrailerSize = 8;

// Kind of hash, bucket size, fingerprint bits, a zero, buckets, seed: 20 bytes. The payload bits go
// without saying.
void write_shape(Writer& out, const CuckooShape& shape);
// A shape that is not valid() if the bytes describe none, or are too few.
CuckooShape read_shape(Reader& in, std::uint32_t payload_bits);

// The bits that a number of a pair takes.
std::uint32_t pair_bits(const CuckooShape& shape);

// Pairs and fingerprints of the entries, in their order, packed: blocks of kBlockEntries, and in
// each first the pairs. A full block is whole bytes.
inline constexpr std::size_t kBlockEntries = 4096;
std::uint64_t places_size(const CuckooShape& shape, std::uint64_t entries);

// Writes them one after another, in the memory of a block.
class PlacesWriter {
 public:
  PlacesWriter(Sink out, const CuckooShape& shape)
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
  std::array<std::uint64_t, kBlockEntries> fingerprints_;  // of the block, which follow its pairs
  std::size_t size_ = 0;
};

void encode_places(Sink out, const CuckooShape& shape, std::span<const CuckooEntry> entries);
// Fills the pairs and fingerprints. False if one of them cannot be. REQUIRES: `in` holds
// places_size(entries.size()) bytes.
[[nodiscard]] bool decode_places(Reader& in, const CuckooShape& shape,
                                 std::span<CuckooEntry> entries);

}  // namespace semel::entry_codec
