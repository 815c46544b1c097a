#include "semel/filter/cuckoo_filter.h"

#include <algorithm>

#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/hash/seal.h"

namespace semel {
namespace {

// docs/formats/cuckoo_v1.md. All integers are little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "SCF1"; a new layout takes a new magic
//         4        1  kind of hash: 0 fast, 1 keyed
//         5        1  bucket size
//         6        1  fingerprint bits
//         7        1  payload bits
//         8        8  buckets
//        16        8  entries inside
//        24        8  seed of the hash, or name of its key
//        32        F  fingerprints, slot by slot, packed; F = slots * fingerprint bits / 8, rounded
//                     up
//      32+F        P  payloads, slot by slot, packed; P = slots * payload bits / 8, rounded up
//    32+F+P        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31464353;
constexpr std::size_t kTrailerSize = 8;

}  // namespace

CuckooFilter::CuckooFilter(const CuckooShape& shape) : table_(shape) {}

Result<void> CuckooFilter::insert(Digest key, std::uint64_t payload) {
  SEMEL_ASSERT(shape().payload_bits == 64 || payload >> shape().payload_bits == 0);
  if (table_.place(shape().spot_of(key), payload)) return {};
  return Error{Errc::full, "the cuckoo filter has no room for this key"};
}

std::size_t CuckooFilter::insert(std::span<const Digest> keys) {
  std::size_t done = 0;
  bool full = false;
  for_each_ahead(
      keys.size(),
      [&](std::size_t i) {
        const CuckooSpot spot = shape().spot_of(keys[i]);
        table_.prefetch(spot.bucket);
        table_.prefetch(shape().other(spot).bucket);
      },
      [&](std::size_t i) {
        full = full || !insert(keys[i]);
        done += !full;
      });
  return done;
}

void CuckooFilter::contains(std::span<const Digest> keys, std::span<bool> found) const {
  table_.contains(keys, found);
}

std::vector<std::uint64_t> CuckooFilter::payloads(Digest key) const {
  std::vector<std::uint64_t> all;
  (void)table_.find(shape().spot_of(key), [&](std::uint64_t slot) {
    all.push_back(table_.payload(slot));
    return false;
  });
  return all;
}

bool CuckooFilter::remove(Digest key) {
  const auto slot = table_.find(shape().spot_of(key), [](std::uint64_t) { return true; });
  if (slot) table_.clear(*slot);
  return slot.has_value();
}

bool CuckooFilter::remove(Digest key, std::uint64_t payload) {
  const auto slot = table_.find(shape().spot_of(key),
                                [&](std::uint64_t at) { return table_.payload(at) == payload; });
  if (slot) table_.clear(*slot);
  return slot.has_value();
}

void CuckooFilter::encode(Sink out) const {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(shape().hash.kind));
  w.u8(static_cast<std::uint8_t>(shape().bucket_size));
  w.u8(static_cast<std::uint8_t>(shape().fingerprint_bits));
  w.u8(static_cast<std::uint8_t>(shape().payload_bits));
  w.u64(shape().buckets);
  w.u64(size());
  w.u64(shape().hash.seed);
  table_.encode(out);
  seal.close();
}

Result<CuckooFilter> CuckooFilter::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  CuckooShape shape{};
  shape.hash.kind = static_cast<HashKind>(r.u8());
  shape.bucket_size = r.u8();
  shape.fingerprint_bits = r.u8();
  shape.payload_bits = r.u8();
  shape.buckets = r.u64();
  const std::uint64_t size = r.u64();
  shape.hash.seed = r.u64();
  if (!r.ok()) return Error{Errc::truncated, "cuckoo filter: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "cuckoo filter: magic"};
  if (!shape.valid()) return Error{Errc::corrupt, "cuckoo filter: shape"};
  // Check the length before allocating: `buckets` is only a claim until then.
  if (r.rest() < kTrailerSize) return Error{Errc::truncated, "cuckoo filter: slots"};
  if (r.rest() - kTrailerSize != divide_up(shape.slots() * shape.fingerprint_bits, 8) +
                                     divide_up(shape.slots() * shape.payload_bits, 8)) {
    return Error{Errc::corrupt, "cuckoo filter: size"};
  }
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(body.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "cuckoo filter: checksum"};
  }
  CuckooFilter filter(shape);
  if (const char* const fault = filter.table_.decode(r)) return Error{Errc::corrupt, fault};
  if (filter.size() != size) return Error{Errc::corrupt, "cuckoo filter: number of entries"};
  return filter;
}

std::vector<CuckooEntry> CuckooFilter::sorted_entries() const {
  std::vector<CuckooEntry> entries;
  entries.reserve(size());
  table_.for_each([&](const CuckooSpot& spot, std::uint64_t slot) {
    entries.push_back({shape().pair_of(spot), spot.fingerprint, table_.payload(slot)});
  });
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool CuckooFilter::operator==(const CuckooFilter& other) const {
  return shape() == other.shape() && size() == other.size() &&
         sorted_entries() == other.sorted_entries();
}

}  // namespace semel
