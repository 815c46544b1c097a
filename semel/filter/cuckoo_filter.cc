#include "semel/filter/cuckoo_filter.h"

#include <algorithm>
#include <utility>

#include "semel/bits/internal/line_array.h"
#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/filter/internal/cuckoo_table.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

using filter_internal::CuckooEntry;
using filter_internal::CuckooSpot;
using filter_internal::CuckooTable;

namespace {

// docs/formats/cuckoo_v1.md.
//
//    OFFSET     SIZE  FIELD OF THE BODY
//         0       20  shape (cuckoo_shape.cc)
//        20        8  entries inside
//        28        F  fingerprints, slot by slot, packed; F = slots * fingerprint bits / 8, rounded
//                     up
//      28+F        P  payloads, slot by slot, packed; P = slots * payload bits / 8, rounded up
constexpr Format kFormat{"SCF", 1, "cuckoo filter"};

}  // namespace

CuckooFilter::CuckooFilter(const CuckooShape& shape) : table_(std::in_place, shape) {}
CuckooFilter::CuckooFilter(CuckooTable table) : table_(std::in_place, std::move(table)) {}

const CuckooShape& CuckooFilter::shape() const { return table_->shape(); }
std::uint64_t CuckooFilter::size() const { return table_->size(); }
bool CuckooFilter::contains(Digest key) const { return table_->contains(key); }

Result<void> CuckooFilter::insert(Digest key, std::uint64_t payload) {
  SEMEL_ASSERT(shape().payload_bits == 64 || payload >> shape().payload_bits == 0);
  if (table_->place(table_->places().spot_of(key), payload)) return {};
  return Error{Errc::full, "the cuckoo filter has no room for this key"};
}

std::size_t CuckooFilter::insert(std::span<const Digest> keys) {
  std::size_t done = 0;
  bool full = false;
  for_each_ahead(
      keys.size(), [&](std::size_t i) { table_->prefetch(keys[i]); },
      [&](std::size_t i) {
        full = full || !insert(keys[i]);
        done += !full;
      });
  return done;
}

void CuckooFilter::contains(std::span<const Digest> keys, std::span<bool> found) const {
  table_->contains(keys, found);
}

std::vector<std::uint64_t> CuckooFilter::payloads(Digest key) const {
  std::vector<std::uint64_t> all;
  (void)table_->find(table_->places().spot_of(key), [&](std::uint64_t slot) {
    all.push_back(table_->payload(slot));
    return false;
  });
  return all;
}

bool CuckooFilter::remove(Digest key) {
  const auto slot = table_->find(table_->places().spot_of(key), [](std::uint64_t) { return true; });
  if (slot) table_->clear(*slot);
  return slot.has_value();
}

bool CuckooFilter::remove(Digest key, std::uint64_t payload) {
  const auto slot = table_->find(table_->places().spot_of(key),
                                 [&](std::uint64_t at) { return table_->payload(at) == payload; });
  if (slot) table_->clear(*slot);
  return slot.has_value();
}

void CuckooFilter::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    shape().encode(w.sink());
    w.u64(size());
    table_->encode(w.sink());
  });
}

Result<CuckooFilter> CuckooFilter::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Result<CuckooShape> shape = CuckooShape::decode(r);
  if (!shape) return shape.error().about(kFormat.what);
  const std::uint64_t size = r.u64();
  // Check the length before allocating: the shape is only a claim until then.
  if (!r.ok() || r.rest() != shape->bytes()) return corrupt(kFormat, "size");
  Result<CuckooTable> table = CuckooTable::decode(r, *shape);
  if (!table) return table.error().about(kFormat.what);
  if (table->size() != size) return corrupt(kFormat, "number of entries");
  return CuckooFilter(*std::move(table));
}

std::vector<CuckooEntry> CuckooFilter::sorted_entries() const {
  std::vector<CuckooEntry> entries;
  entries.reserve(size());
  table_->for_each([&](const CuckooSpot& spot, std::uint64_t slot) {
    entries.push_back({table_->places().pair_of(spot), spot.fingerprint, table_->payload(slot)});
  });
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool CuckooFilter::operator==(const CuckooFilter& other) const {
  return shape() == other.shape() && size() == other.size() &&
         sorted_entries() == other.sorted_entries();
}

}  // namespace semel
