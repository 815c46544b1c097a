#include "semel/crdt/internal/entry_codec.h"

#include <algorithm>
#include <bit>

#include "semel/bits/internal/packed_array.h"
#include "semel/core/internal/arithmetic.h"

namespace semel::crdt_internal {

Result<CuckooShape> read_shape(Reader& in, std::uint32_t payload_bits) {
  const CuckooShape shape = SEMEL_TRY(CuckooShape::decode(in));
  if (shape.payload_bits != payload_bits) return Error{Errc::corrupt, "shape"};
  return shape;
}

std::uint32_t pair_bits(const CuckooPlaces& shape) {
  return static_cast<std::uint32_t>(std::bit_width(shape.pairs() - 1));
}

std::uint64_t places_size(const CuckooPlaces& shape, std::uint64_t entries) {
  return divide_up(entries * pair_bits(shape), 8) + divide_up(entries * shape.fingerprint_bits, 8);
}

void PlacesWriter::finish() {
  bits_.finish();
  for (std::size_t i = 0; i < size_; ++i) bits_.put(fingerprints_[i], fingerprint_bits_);
  bits_.finish();
  size_ = 0;
}

void encode_places(Sink out, const CuckooPlaces& shape, std::span<const CuckooEntry> entries) {
  PlacesWriter places(out, shape);
  for (const CuckooEntry& entry : entries) places.put(entry);
  places.finish();
}

namespace {

Result<void> decode_block(Reader& in, const CuckooPlaces& shape, std::span<CuckooEntry> entries) {
  const auto pairs = SEMEL_TRY(PackedArray::decode(in, entries.size(), pair_bits(shape)));
  const auto fingerprints =
      SEMEL_TRY(PackedArray::decode(in, entries.size(), shape.fingerprint_bits));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].pair = pairs.get(i);
    entries[i].fingerprint = fingerprints.get(i);
    if (entries[i].fingerprint == 0 || !shape.is_pair(entries[i].pair, entries[i].fingerprint)) {
      return Error{Errc::corrupt, "an entry that cannot be"};
    }
  }
  return {};
}

}  // namespace

Result<void> decode_places(Reader& in, const CuckooPlaces& shape, std::span<CuckooEntry> entries) {
  for (; !entries.empty(); entries = entries.subspan(std::min(entries.size(), kBlockEntries))) {
    SEMEL_TRY(decode_block(in, shape, entries.first(std::min(entries.size(), kBlockEntries))));
  }
  return {};
}

}  // namespace semel::crdt_internal
