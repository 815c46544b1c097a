#include "semel/filter/cuckoo_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/limits.h"
#include "semel/filter/cuckoo_bucket.h"

namespace semel {
namespace {

// docs/formats/cuckoo_v1.md. All integers little-endian.
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
//        32        F  fingerprints, slot by slot, packed; F = slots * fingerprint bits / 8
//      32+F        P  payloads, slot by slot, packed; P = slots * payload bits / 8, rounded up
//    32+F+P        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31464353;
constexpr std::size_t kTrailerSize = 8;

// Buckets that a search looks at before it gives up: five moves deep with buckets of 4, and enough
// for a load of 97 %. Beyond, each further percent costs several times as much as the one before.
constexpr std::size_t kSearch = 2048;

}  // namespace

Result<CuckooShape> CuckooShape::for_goal(const Goal& goal) {
  if (goal.keys == 0) return Error{Errc::invalid, "a cuckoo filter needs room for one key"};
  if (!(goal.fpr > 0 && goal.fpr < 1)) return Error{Errc::invalid, "fpr must be within (0, 1)"};
  if (goal.bucket_size != 4 && goal.bucket_size != 8) {
    return Error{Errc::invalid, "buckets have 4 or 8 slots"};
  }
  if (goal.payload_bits > limits::kPayloadBits) {
    return Error{Errc::invalid, "a payload has at most 64 bits"};
  }
  if (goal.keys > limits::kFilterBits)
    return Error{Errc::limit, "more keys than filters have bits"};

  // 95 % of load, and some buckets more: in a small filter chance weighs more (docs/math/cuckoo.md).
  const double ideal = static_cast<double>(goal.keys) / (0.95 * goal.bucket_size);
  const auto buckets = static_cast<std::uint64_t>(std::ceil(ideal + std::sqrt(ideal) / 4 + 2));
  for (const std::uint32_t bits : cuckoo_bucket::kWidths) {
    const CuckooShape shape{goal.bucket_size, bits, goal.payload_bits, buckets, goal.hash};
    if (shape.expected_fpr(goal.keys) > goal.fpr) continue;
    if (!shape.valid()) return Error{Errc::limit, "the filter would need more than 2^46 bits"};
    return shape;
  }
  return Error{Errc::limit, "so low an fpr needs fingerprints of more than 32 bits"};
}

bool CuckooShape::valid() const {
  const auto& widths = cuckoo_bucket::kWidths;
  if (bucket_size != 4 && bucket_size != 8) return false;
  if (std::find(widths.begin(), widths.end(), fingerprint_bits) == widths.end()) return false;
  if (payload_bits > limits::kPayloadBits || !hash.valid()) return false;
  const std::uint64_t bucket_bits = std::uint64_t{bucket_size} * (fingerprint_bits + payload_bits);
  return buckets > 0 && buckets <= limits::kFilterBits / bucket_bits;
}

// An entry meets a fresh key if the fingerprints agree and it belongs to the same two buckets.
double CuckooShape::expected_fpr(std::uint64_t keys) const {
  const double fingerprints = std::exp2(fingerprint_bits) - 1;
  const double meets = std::min(1.0, 2 / (fingerprints * static_cast<double>(buckets)));
  return -std::expm1(static_cast<double>(keys) * std::log1p(-meets));
}

CuckooFilter::CuckooFilter(const CuckooShape& shape)
    : shape_((SEMEL_ASSERT(shape.valid()), shape)),
      fingerprints_(shape.slots(), shape.fingerprint_bits),
      payloads_(shape.slots(), shape.payload_bits) {}

CuckooFilter::Entry CuckooFilter::entry_of(Digest key, std::uint64_t payload) const {
  return {scale(key.lo, shape_.buckets),
          cuckoo_bucket::fingerprint_of(key, shape_.fingerprint_bits), payload};
}

std::uint64_t CuckooFilter::other_bucket(std::uint64_t bucket, std::uint64_t fingerprint) const {
  return cuckoo_bucket::other(bucket, fingerprint, shape_.buckets);
}

std::uint32_t CuckooFilter::matches(std::uint64_t bucket, std::uint64_t fingerprint) const {
  return cuckoo_bucket::visit(shape_, [&](auto kind) {
    return kind.matches(kind.address(fingerprints_.data(), bucket), fingerprint);
  });
}

void CuckooFilter::set_slot(std::uint64_t slot, std::uint64_t fingerprint, std::uint64_t payload) {
  fingerprints_.set(slot, fingerprint);
  payloads_.set(slot, payload);
}

bool CuckooFilter::place_in(std::uint64_t bucket, const Entry& entry) {
  const std::uint32_t free = matches(bucket, 0);
  if (free == 0) return false;
  const auto slot = static_cast<std::uint32_t>(std::countr_zero(free));
  set_slot(bucket * shape_.bucket_size + slot, entry.fingerprint, entry.payload);
  ++size_;
  return true;
}

Result<void> CuckooFilter::insert(Digest key, std::uint64_t payload) {
  SEMEL_ASSERT(shape_.payload_bits == 64 || payload >> shape_.payload_bits == 0);
  const Entry entry = entry_of(key, payload);
  if (place_in(entry.bucket, entry)) return {};
  if (place_in(other_bucket(entry.bucket, entry.fingerprint), entry)) return {};
  if (place_by_moves(entry)) return {};
  return Error{Errc::full, "the cuckoo filter has no room for this key"};
}

// Breadth-first over the buckets that entries could move to. The first free slot found ends the
// shortest chain, which visits no bucket twice: a second visit could only find what the first would
// have found earlier. So the moves, made from the free slot back, do not disturb each other.
bool CuckooFilter::place_by_moves(const Entry& entry) {
  struct Step {
    std::uint64_t bucket;
    std::uint32_t parent;  // the step whose entry would move here
    std::uint32_t slot;    // of that entry, within the parent's bucket
  };
  constexpr std::uint32_t kRoots = 2;
  std::array<Step, kSearch> steps;
  steps[0] = {entry.bucket, 0, 0};
  steps[1] = {other_bucket(entry.bucket, entry.fingerprint), 0, 0};
  std::size_t known = kRoots;
  const std::size_t most = std::min<std::uint64_t>(kSearch, 4 * shape_.slots());

  for (std::uint32_t at = 0; at < known; ++at) {
    const std::uint64_t bucket = steps[at].bucket;
    if (const std::uint32_t free = matches(bucket, 0); free != 0) {
      auto hole = bucket * shape_.bucket_size + static_cast<std::uint32_t>(std::countr_zero(free));
      while (at >= kRoots) {
        const Step& step = steps[at];
        const std::uint64_t from = steps[step.parent].bucket * shape_.bucket_size + step.slot;
        set_slot(hole, fingerprints_.get(from), payloads_.get(from));
        hole = from;
        at = step.parent;
      }
      set_slot(hole, entry.fingerprint, entry.payload);
      ++size_;
      return true;
    }
    for (std::uint32_t slot = 0; slot < shape_.bucket_size && known < most; ++slot) {
      const std::uint64_t f = fingerprints_.get(bucket * shape_.bucket_size + slot);
      const std::uint64_t next = other_bucket(bucket, f);
      if (next == steps[0].bucket || next == steps[1].bucket) continue;  // so copies fail at once
      prefetch(cuckoo_bucket::address(shape_, fingerprints_.data(), next));
      steps[known++] = {next, at, slot};
    }
  }
  return false;
}

std::size_t CuckooFilter::insert(std::span<const Digest> keys) {
  std::size_t done = 0;
  bool full = false;
  for_each_ahead(
      keys.size(),
      [&](std::size_t i) {
        const Entry entry = entry_of(keys[i], 0);
        const std::uint64_t other = other_bucket(entry.bucket, entry.fingerprint);
        prefetch(cuckoo_bucket::address(shape_, fingerprints_.data(), entry.bucket));
        prefetch(cuckoo_bucket::address(shape_, fingerprints_.data(), other));
      },
      [&](std::size_t i) {
        full = full || !insert(keys[i]);
        done += !full;
      });
  return done;
}

bool CuckooFilter::contains(Digest key) const {
  return cuckoo_bucket::visit(shape_, [&](auto kind) {
    return kind.holds(kind.place(fingerprints_.data(), shape_.buckets, key));
  });
}

// Places are worked out once, when they are touched, and wait in a ring for their lines to come.
void CuckooFilter::contains(std::span<const Digest> keys, std::span<bool> found) const {
  SEMEL_ASSERT(keys.size() == found.size());
  const std::uint8_t* const table = fingerprints_.data();
  const std::uint64_t buckets = shape_.buckets;
  cuckoo_bucket::visit(shape_, [&](auto kind) {
    constexpr std::size_t kRing = 64;
    static_assert(kAhead < kRing);
    std::array<cuckoo_bucket::Place, kRing> ring;
    for_each_ahead(
        keys.size(),
        [&](std::size_t i) {
          const cuckoo_bucket::Place place = kind.place(table, buckets, keys[i]);
          prefetch(place.first);
          prefetch(place.second);
          ring[i % kRing] = place;
        },
        [&](std::size_t i) { found[i] = kind.holds(ring[i % kRing]); });
  });
}

// The first slot of the key's buckets with its fingerprint that accept(slot) takes.
template <class Accept>
std::optional<std::uint64_t> CuckooFilter::find(Digest key, Accept accept) const {
  const Entry entry = entry_of(key, 0);
  const std::uint64_t other = other_bucket(entry.bucket, entry.fingerprint);
  for (const std::uint64_t bucket : {entry.bucket, other}) {
    for (std::uint32_t left = matches(bucket, entry.fingerprint); left != 0; left &= left - 1) {
      const std::uint64_t slot =
          bucket * shape_.bucket_size + static_cast<std::uint32_t>(std::countr_zero(left));
      if (accept(slot)) return slot;
    }
    if (other == entry.bucket) break;  // the two are one, and its slots are not to be seen twice
  }
  return std::nullopt;
}

std::vector<std::uint64_t> CuckooFilter::payloads(Digest key) const {
  std::vector<std::uint64_t> all;
  (void)find(key, [&](std::uint64_t slot) {
    all.push_back(payloads_.get(slot));
    return false;
  });
  return all;
}

bool CuckooFilter::remove(Digest key) {
  const auto slot = find(key, [](std::uint64_t) { return true; });
  if (!slot) return false;
  set_slot(*slot, 0, 0);
  --size_;
  return true;
}

bool CuckooFilter::remove(Digest key, std::uint64_t payload) {
  const auto slot = find(key, [&](std::uint64_t at) { return payloads_.get(at) == payload; });
  if (!slot) return false;
  set_slot(*slot, 0, 0);
  --size_;
  return true;
}

void CuckooFilter::encode(Bytes& out) const {
  const std::size_t start = out.size();
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(shape_.hash.kind));
  w.u8(static_cast<std::uint8_t>(shape_.bucket_size));
  w.u8(static_cast<std::uint8_t>(shape_.fingerprint_bits));
  w.u8(static_cast<std::uint8_t>(shape_.payload_bits));
  w.u64(shape_.buckets);
  w.u64(size_);
  w.u64(shape_.hash.seed);
  fingerprints_.encode(out);
  payloads_.encode(out);
  w.u64(checksum(ByteView(out).subspan(start)));
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
  // Length before allocation: until here `buckets` is only a claim.
  if (r.rest() < kTrailerSize) return Error{Errc::truncated, "cuckoo filter: slots"};
  if (r.rest() - kTrailerSize != divide_up(shape.slots() * shape.fingerprint_bits, 8) +
                                     divide_up(shape.slots() * shape.payload_bits, 8)) {
    return Error{Errc::corrupt, "cuckoo filter: size"};
  }
  const std::uint64_t sum = checksum(in.first(in.size() - kTrailerSize));

  CuckooFilter filter(shape);
  const bool padded = filter.fingerprints_.decode(r) && filter.payloads_.decode(r);
  if (r.u64() != sum) return Error{Errc::corrupt, "cuckoo filter: checksum"};
  SEMEL_ASSERT(r.ok() && r.rest() == 0);  // follows from the length check
  if (!padded) return Error{Errc::corrupt, "cuckoo filter: bits past the last payload"};
  for (std::uint64_t slot = 0; slot < shape.slots(); ++slot) {
    if (filter.fingerprints_.get(slot) != 0) {
      ++filter.size_;
    } else if (filter.payloads_.get(slot) != 0) {
      return Error{Errc::corrupt, "cuckoo filter: a payload in a free slot"};
    }
  }
  if (filter.size_ != size) return Error{Errc::corrupt, "cuckoo filter: number of entries"};
  return filter;
}

// Each entry under the lesser of its buckets: the form that does not depend on its moves.
std::vector<CuckooFilter::Entry> CuckooFilter::sorted_entries() const {
  std::vector<Entry> entries;
  entries.reserve(size_);
  for (std::uint64_t slot = 0; slot < shape_.slots(); ++slot) {
    const std::uint64_t f = fingerprints_.get(slot);
    if (f == 0) continue;
    const std::uint64_t bucket = slot / shape_.bucket_size;
    entries.push_back({std::min(bucket, other_bucket(bucket, f)), f, payloads_.get(slot)});
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool CuckooFilter::operator==(const CuckooFilter& other) const {
  return shape_ == other.shape_ && size_ == other.size_ &&
         sorted_entries() == other.sorted_entries();
}

}  // namespace semel
