#include "semel/crdt/grow_cuckoo.h"

#include <algorithm>
#include <vector>

#include "semel/bits/elias_fano.h"
#include "semel/bits/packed_array.h"
#include "semel/bits/packed_writer.h"
#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/crdt/entry_codec.h"
#include "semel/crdt/internal/entries_in_order.h"
#include "semel/crdt/internal/partial_order.h"
#include "semel/hash/seal.h"

namespace semel {
namespace {

// docs/formats/grow_cuckoo_v1.md. All integers are little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "SGC1"; a new layout takes a new magic
//         4       20  shape (crdt/entry_codec.h)
//        24        8  entries
//        32        E  entries, ascending by pair and fingerprint: their upper bits, Elias-Fano
//      32+E        R  the remaining bits of their fingerprints, packed; usually nothing
//    32+E+R        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31434753;

// The number of an entry: its pair, and as many bits of its fingerprint as fit in 64 bits.
struct Numbering {
  explicit Numbering(const CuckooShape& shape)
      : shared(std::min(shape.fingerprint_bits, 64 - entry_codec::pair_bits(shape))),
        left(shape.fingerprint_bits - shared),
        last((shape.pairs() << shared) - 1) {}  // wraps to 2^64 - 1 where it should

  std::uint64_t number(const CuckooEntry& entry) const {
    return entry.pair << shared | entry.fingerprint >> left;
  }
  std::uint64_t rest(const CuckooEntry& entry) const {
    return entry.fingerprint & ((std::uint64_t{1} << left) - 1);
  }
  CuckooEntry entry(std::uint64_t number, std::uint64_t rest) const {
    return {number >> shared, (number & ((std::uint64_t{1} << shared) - 1)) << left | rest, 0};
  }
  std::uint64_t byte_size(std::uint64_t entries) const {
    return elias_fano::byte_size(entries, last) + divide_up(entries * left, 8);
  }

  std::uint32_t shared;  // bits of the fingerprint in the number
  std::uint32_t left;    // bits of the fingerprint outside the number
  std::uint64_t last;
};

// for_each(visit) must call visit(entry) for each entry in ascending order. It is called at most
// three times.
template <class ForEach>
void encode_entries(Sink out, const CuckooShape& shape, std::uint64_t entries, ForEach for_each) {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  entry_codec::write_shape(w, shape);
  w.u64(entries);
  const Numbering numbering(shape);
  if (!out.only_measures(numbering.byte_size(entries))) {
    elias_fano::encode(out, entries, numbering.last, [&](auto visit) {
      for_each([&](const CuckooEntry& entry) { visit(numbering.number(entry)); });
    });
    PackedWriter rests(out);
    if (numbering.left > 0) {
      for_each([&](const CuckooEntry& entry) { rests.put(numbering.rest(entry), numbering.left); });
    }
    rests.finish();
  }
  seal.close();
}

struct Decoded {
  CuckooShape shape;
  std::vector<CuckooEntry> entries;
};

Result<Decoded> decode_entries(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  Decoded decoded{entry_codec::read_shape(r, 0), {}};
  const CuckooShape& shape = decoded.shape;
  const std::uint64_t count = r.u64();
  if (!r.ok() || r.rest() < entry_codec::kTrailerSize) {
    return Error{Errc::truncated, "grow-only cuckoo filter: header"};
  }
  if (magic != kMagic) return Error{Errc::unsupported, "grow-only cuckoo filter: magic"};
  if (!shape.valid()) return Error{Errc::corrupt, "grow-only cuckoo filter: shape"};
  const Numbering numbering(shape);
  const std::size_t body = r.rest() - entry_codec::kTrailerSize;
  // An entry takes more than a bit, so the sizes below do not overflow.
  if (count / 8 > body || numbering.byte_size(count) != body) {
    return Error{Errc::corrupt, "grow-only cuckoo filter: size"};
  }
  if (checksum(in.first(in.size() - entry_codec::kTrailerSize)) !=
      load_u64(in.data() + in.size() - entry_codec::kTrailerSize)) {
    return Error{Errc::corrupt, "grow-only cuckoo filter: checksum"};
  }
  std::vector<std::uint64_t> numbers;
  if (!elias_fano::decode(r, count, numbering.last, numbers)) {
    return Error{Errc::corrupt, "grow-only cuckoo filter: entries"};
  }
  PackedArray rests(count, numbering.left);
  if (!rests.decode(r)) return Error{Errc::corrupt, "grow-only cuckoo filter: fingerprints"};
  decoded.entries.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const CuckooEntry entry = numbering.entry(numbers[i], rests.get(i));
    if (entry.fingerprint == 0 || !shape.is_pair(entry.pair, entry.fingerprint) ||
        (i > 0 && entry <= decoded.entries.back())) {
      return Error{Errc::corrupt, "grow-only cuckoo filter: an entry that cannot be"};
    }
    decoded.entries.push_back(entry);
  }
  return decoded;
}

}  // namespace

CuckooDelta::CuckooDelta(const CuckooShape& shape) : shape_(shape) {
  SEMEL_ASSERT(shape.valid() && shape.payload_bits == 0);
}

Result<void> CuckooDelta::merge(const CuckooDelta& other) {
  if (shape_ != other.shape_) return Error{Errc::mismatch, "deltas of different shapes"};
  entries_.insert(other.entries_.begin(), other.entries_.end());
  return {};
}

void CuckooDelta::encode(Sink out) const {
  encode_entries(out, shape_, entries_.size(), [&](auto visit) {
    for (const CuckooEntry& entry : entries_) visit(entry);
  });
}

Result<CuckooDelta> CuckooDelta::decode(ByteView in) {
  const Result<Decoded> decoded = decode_entries(in);
  if (!decoded) return decoded.error();
  CuckooDelta delta(decoded->shape);
  for (const CuckooEntry& entry : decoded->entries)
    delta.entries_.insert(delta.entries_.end(), entry);
  return delta;
}

Result<CuckooShape> GrowCuckoo::shape_for(std::uint64_t keys, double fpr, HashId hash) {
  return CuckooShape::for_goal({.keys = keys, .fpr = fpr, .hash = hash});
}

GrowCuckoo::GrowCuckoo(const Shape& shape) : entries_(shape) {
  SEMEL_ASSERT(shape.payload_bits == 0);
}

Result<bool> GrowCuckoo::add(Digest key) { return add_to(key, nullptr); }
Result<bool> GrowCuckoo::add(Digest key, Delta& delta) { return add_to(key, &delta); }

Result<bool> GrowCuckoo::add_to(Digest key, Delta* delta) {
  SEMEL_ASSERT(delta == nullptr || delta->shape_ == shape());
  if (entries_.contains(key)) return false;
  const CuckooSpot spot = shape().spot_of(key);
  if (!entries_.add(spot, 0)) {
    return Error{Errc::full, "the grow-only cuckoo filter has no room for this key"};
  }
  if (delta != nullptr) delta->entries_.insert({shape().pair_of(spot), spot.fingerprint, 0});
  return true;
}

std::size_t GrowCuckoo::add(std::span<const Digest> keys, std::span<bool> added) {
  return add_to(keys, added, nullptr);
}
std::size_t GrowCuckoo::add(std::span<const Digest> keys, std::span<bool> added, Delta& delta) {
  return add_to(keys, added, &delta);
}

std::size_t GrowCuckoo::add_to(std::span<const Digest> keys, std::span<bool> added, Delta* delta) {
  SEMEL_ASSERT(keys.size() == added.size());
  std::size_t done = 0;
  for_each_ahead(
      keys.size(), [&](std::size_t i) { entries_.prefetch(shape().spot_of(keys[i])); },
      [&](std::size_t i) {
        if (done != i) return;  // an earlier one found no room
        const Result<bool> result = add_to(keys[i], delta);
        added[i] = result && *result;
        done += result.has_value();
      });
  return done;
}

void GrowCuckoo::contains(std::span<const Digest> keys, std::span<bool> found) const {
  entries_.contains(keys, found);
}

Result<bool> GrowCuckoo::merge(const GrowCuckoo& other) {
  if (shape() != other.shape()) {
    return Error{Errc::mismatch, "grow-only cuckoo filters of different shapes"};
  }
  if (this == &other) return false;
  return entries_.unite(other.entries_) != 0;
}

Result<void> GrowCuckoo::admits(const Delta& delta) const {
  if (shape() != delta.shape_) {
    return Error{Errc::mismatch, "a delta of another shape than the grow-only cuckoo filter"};
  }
  return {};
}

Result<bool> GrowCuckoo::merge(const Delta& delta) {
  if (Result<void> sound = admits(delta); !sound) return sound.error();
  const std::uint64_t before = entries_.size();
  std::uint64_t quota = EntryStore::quota_for(delta.entries_.size());
  for (const CuckooEntry& entry : delta.entries_) {
    const CuckooSpot spot = shape().spot_of(entry.pair, entry.fingerprint);
    if (!entries_.contains(spot)) entries_.put(spot, 0, quota);
  }
  return entries_.size() != before;
}

Result<std::partial_ordering> GrowCuckoo::compare(const GrowCuckoo& other) const {
  if (shape() != other.shape()) {
    return Error{Errc::mismatch, "grow-only cuckoo filters of different shapes"};
  }
  return order_of(other.entries_.holds_all(entries_), entries_.holds_all(other.entries_));
}

double GrowCuckoo::load() const {
  return static_cast<double>(entries_.size()) / static_cast<double>(shape().slots());
}

Digest GrowCuckoo::digest(const Hasher& hasher) const { return entries_.digest(hasher); }

void GrowCuckoo::encode(Sink out) const {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  EntriesInOrder<ByPlace> ordered(entries_);
  encode_entries(out, shape(), entries_.size(), [&](auto visit) {
    ordered.for_each({0, 0}, {kLast, kLast}, [&](const auto& item) { visit(ordered.entry(item)); });
  });
}

Result<GrowCuckoo> GrowCuckoo::decode(ByteView in) {
  const Result<Decoded> decoded = decode_entries(in);
  if (!decoded) return decoded.error();
  GrowCuckoo filter(decoded->shape);
  filter.entries_.fill(decoded->entries);
  return filter;
}

bool GrowCuckoo::operator==(const GrowCuckoo& other) const {
  return shape() == other.shape() && entries_ == other.entries_;
}

}  // namespace semel
