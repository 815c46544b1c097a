// What the formats of the cuckoo filters have in common (docs/formats/grow_cuckoo_v1.md).
#pragma once

#include <cstdint>
#include <span>

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

// Pairs and fingerprints of the entries, in their order, packed.
std::uint64_t places_size(const CuckooShape& shape, std::uint64_t entries);
void encode_places(Bytes& out, const CuckooShape& shape, std::span<const CuckooEntry> entries);
// Fills the pairs and fingerprints. False if one of them cannot be. REQUIRES: `in` holds
// places_size(entries.size()) bytes.
[[nodiscard]] bool decode_places(Reader& in, const CuckooShape& shape,
                                 std::span<CuckooEntry> entries);

}  // namespace semel::entry_codec
