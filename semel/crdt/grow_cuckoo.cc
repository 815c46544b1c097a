#include "semel/crdt/grow_cuckoo.h"

#include <algorithm>
#include <vector>

#include "semel/bits/internal/elias_fano.h"
#include "semel/bits/internal/packed_array.h"
#include "semel/bits/internal/packed_writer.h"
#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/crdt/internal/entries_in_order.h"
#include "semel/crdt/internal/entry_codec.h"
#include "semel/crdt/internal/entry_store.h"
#include "semel/crdt/internal/partial_order.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

using crdt_internal::ByPlace;
using crdt_internal::CuckooEntry;
using crdt_internal::CuckooPlaces;
using crdt_internal::CuckooSpot;
using crdt_internal::EntriesInOrder;
using crdt_internal::EntryStore;
using crdt_internal::order_of;
using crdt_internal::pair_bits;
using crdt_internal::read_shape;

namespace {

// docs/formats/grow_cuckoo_v1.md.
//
//    OFFSET     SIZE  FIELD OF THE BODY
//         0       20  shape, as in cuckoo_v1
//        20        8  entries
//        28        E  entries, ascending by pair and fingerprint: their upper bits, Elias-Fano
//      28+E        R  the remaining bits of their fingerprints, packed; usually nothing
constexpr Format kFormat{"SGC", 1, "grow-only cuckoo filter"};

// The number of an entry: its pair, and as many bits of its fingerprint as fit in 64 bits.
struct Numbering {
  explicit Numbering(const CuckooPlaces& shape)
      : shared(std::min(shape.fingerprint_bits, 64 - pair_bits(shape))),
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
  const Numbering numbering(shape);
  seal(out, kFormat, [&](Writer& w) {
    shape.encode(w.sink());
    w.u64(entries);
    if (w.sink().only_measures(numbering.byte_size(entries))) return;
    elias_fano::encode(w.sink(), entries, numbering.last, [&](auto visit) {
      for_each([&](const CuckooEntry& entry) { visit(numbering.number(entry)); });
    });
    PackedWriter rests(w.sink());
    if (numbering.left > 0) {
      for_each([&](const CuckooEntry& entry) { rests.put(numbering.rest(entry), numbering.left); });
    }
    rests.finish();
  });
}

struct Decoded {
  CuckooShape shape;
  std::vector<CuckooEntry> entries;
};

Result<Decoded> decode_entries(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Result<CuckooShape> shape = read_shape(r, 0);
  if (!shape) return shape.error().about(kFormat.what);
  const std::uint64_t count = r.u64();
  const CuckooPlaces places(*shape);
  const Numbering numbering(*shape);
  // An entry takes more than a bit, so the sizes below do not overflow.
  if (!r.ok() || count / 8 > r.rest() || numbering.byte_size(count) != r.rest()) {
    return corrupt(kFormat, "size");
  }
  const auto numbers = elias_fano::decode(r, count, numbering.last);
  if (!numbers) return corrupt(kFormat, "entries");
  const auto rests = PackedArray::decode(r, count, numbering.left);
  if (!rests) return corrupt(kFormat, "fingerprints");
  Decoded decoded{*shape, {}};
  decoded.entries.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const CuckooEntry entry = numbering.entry((*numbers)[i], rests->get(i));
    if (entry.fingerprint == 0 || !places.is_pair(entry.pair, entry.fingerprint) ||
        (i > 0 && entry <= decoded.entries.back())) {
      return corrupt(kFormat, "an entry that cannot be");
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
  const Decoded decoded = SEMEL_TRY(decode_entries(in));
  CuckooDelta delta(decoded.shape);
  for (const CuckooEntry& entry : decoded.entries)
    delta.entries_.insert(delta.entries_.end(), entry);
  return delta;
}

Result<CuckooShape> GrowCuckoo::shape_for(std::uint64_t keys, double fpr, HashId hash) {
  return CuckooShape::for_goal({.keys = keys, .fpr = fpr, .hash = hash});
}

GrowCuckoo::GrowCuckoo(const Shape& shape) : entries_(std::in_place, shape) {
  SEMEL_ASSERT(shape.payload_bits == 0);
}

void GrowCuckoo::reserve() { entries_->reserve(); }
bool GrowCuckoo::contains(Digest key) const { return entries_->contains(key); }
void GrowCuckoo::prefetch(Digest key) const { entries_->prefetch(key); }
const CuckooShape& GrowCuckoo::shape() const { return entries_->shape(); }
std::uint64_t GrowCuckoo::cardinality() const { return entries_->size(); }
std::uint64_t GrowCuckoo::overflow() const { return entries_->overflow(); }
std::uint64_t GrowCuckoo::bytes() const { return entries_->bytes(); }

Result<bool> GrowCuckoo::add(Digest key, Delta* delta) {
  SEMEL_ASSERT(delta == nullptr || delta->shape_ == shape());
  if (entries_->contains(key)) return false;
  const CuckooSpot spot = entries_->shape().spot_of(key);
  if (!entries_->add(spot, 0)) {
    return Error{Errc::full, "the grow-only cuckoo filter has no room for this key"};
  }
  if (delta != nullptr)
    delta->entries_.insert({entries_->shape().pair_of(spot), spot.fingerprint, 0});
  return true;
}

std::size_t GrowCuckoo::add(std::span<const Digest> keys, std::span<bool> added, Delta* delta) {
  SEMEL_ASSERT(keys.size() == added.size());
  std::size_t done = 0;
  for_each_ahead(
      keys.size(), [&](std::size_t i) { entries_->prefetch(entries_->shape().spot_of(keys[i])); },
      [&](std::size_t i) {
        if (done != i) return;  // an earlier one found no room
        const Result<bool> result = add(keys[i], delta);
        added[i] = result && *result;
        done += result.has_value();
      });
  return done;
}

void GrowCuckoo::contains(std::span<const Digest> keys, std::span<bool> found) const {
  entries_->contains(keys, found);
}

Result<bool> GrowCuckoo::merge(const GrowCuckoo& other) {
  if (shape() != other.shape()) {
    return Error{Errc::mismatch, "grow-only cuckoo filters of different shapes"};
  }
  if (this == &other) return false;
  return entries_->unite(*other.entries_) != 0;
}

Result<void> GrowCuckoo::admits(const Delta& delta) const {
  if (shape() != delta.shape_) {
    return Error{Errc::mismatch, "a delta of another shape than the grow-only cuckoo filter"};
  }
  return {};
}

Result<bool> GrowCuckoo::merge(const Delta& delta) {
  SEMEL_TRY(admits(delta));
  const std::uint64_t before = entries_->size();
  std::uint64_t quota = EntryStore::quota_for(delta.entries_.size());
  for (const CuckooEntry& entry : delta.entries_) {
    const CuckooSpot spot = entries_->shape().spot_of(entry.pair, entry.fingerprint);
    if (!entries_->contains(spot)) entries_->put(spot, 0, quota);
  }
  return entries_->size() != before;
}

Result<std::partial_ordering> GrowCuckoo::compare(const GrowCuckoo& other) const {
  if (shape() != other.shape()) {
    return Error{Errc::mismatch, "grow-only cuckoo filters of different shapes"};
  }
  return order_of(other.entries_->holds_all(*entries_), entries_->holds_all(*other.entries_));
}

double GrowCuckoo::load() const {
  return static_cast<double>(entries_->size()) / static_cast<double>(shape().slots());
}

Digest GrowCuckoo::digest(const Hasher& hasher) const { return entries_->digest(hasher); }

void GrowCuckoo::encode(Sink out) const {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  EntriesInOrder<ByPlace> ordered(*entries_);
  encode_entries(out, shape(), entries_->size(), [&](auto visit) {
    ordered.for_each({0, 0}, {kLast, kLast}, [&](const auto& item) { visit(ordered.entry(item)); });
  });
}

Result<GrowCuckoo> GrowCuckoo::decode(ByteView in) {
  const Decoded decoded = SEMEL_TRY(decode_entries(in));
  GrowCuckoo filter(decoded.shape);
  filter.entries_->fill(decoded.entries);
  return filter;
}

bool GrowCuckoo::operator==(const GrowCuckoo& other) const {
  return shape() == other.shape() && entries_ == other.entries_;
}

}  // namespace semel
