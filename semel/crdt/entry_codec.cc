#include "semel/crdt/entry_codec.h"

#include <algorithm>
#include <bit>

#include "semel/bits/packed_array.h"
#include "semel/core/arithmetic.h"

namespace semel::entry_codec {

void write_shape(Writer& out, const CuckooShape& shape) {
  out.u8(static_cast<std::uint8_t>(shape.hash.kind));
  out.u8(static_cast<std::uint8_t>(shape.bucket_size));
  out.u8(static_cast<std::uint8_t>(shape.fingerprint_bits));
  out.u8(0);
  out.u64(shape.buckets);
  out.u64(shape.hash.seed);
}

CuckooShape read_shape(Reader& in, std::uint32_t payload_bits) {
  CuckooShape shape{};
  shape.hash.kind = static_cast<HashKind>(in.u8());
  shape.bucket_size = in.u8();
  shape.fingerprint_bits = in.u8();
  const std::uint8_t zero = in.u8();
  shape.payload_bits = payload_bits;
  shape.buckets = in.u64();
  shape.hash.seed = in.u64();
  if (zero != 0) shape.buckets = 0;
  return shape;
}

std::uint32_t pair_bits(const CuckooShape& shape) {
  return static_cast<std::uint32_t>(std::bit_width(shape.pairs() - 1));
}

std::uint64_t places_size(const CuckooShape& shape, std::uint64_t entries) {
  return divide_up(entries * pair_bits(shape), 8) + divide_up(entries * shape.fingerprint_bits, 8);
}

void PlacesWriter::finish() {
  bits_.finish();
  for (std::size_t i = 0; i < size_; ++i) bits_.put(fingerprints_[i], fingerprint_bits_);
  bits_.finish();
  size_ = 0;
}

void encode_places(Sink out, const CuckooShape& shape, std::span<const CuckooEntry> entries) {
  PlacesWriter places(out, shape);
  for (const CuckooEntry& entry : entries) places.put(entry);
  places.finish();
}

namespace {

bool decode_block(Reader& in, const CuckooShape& shape, std::span<CuckooEntry> entries) {
  PackedArray pairs(entries.size(), pair_bits(shape));
  PackedArray fingerprints(entries.size(), shape.fingerprint_bits);
  if (!pairs.decode(in) || !fingerprints.decode(in)) return false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].pair = pairs.get(i);
    entries[i].fingerprint = fingerprints.get(i);
    if (entries[i].fingerprint == 0 || !shape.is_pair(entries[i].pair, entries[i].fingerprint)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool decode_places(Reader& in, const CuckooShape& shape, std::span<CuckooEntry> entries) {
  for (; !entries.empty(); entries = entries.subspan(std::min(entries.size(), kBlockEntries))) {
    if (!decode_block(in, shape, entries.first(std::min(entries.size(), kBlockEntries)))) {
      return false;
    }
  }
  return true;
}

}  // namespace semel::entry_codec
