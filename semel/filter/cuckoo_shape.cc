#include "semel/filter/internal/cuckoo_shape.h"

#include <algorithm>
#include <cmath>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"
#include "semel/hash/internal/sealed.h"

namespace semel {

namespace cuckoo_bucket = filter_internal::cuckoo_bucket;

namespace {

// The load is 95 %, plus some extra buckets: chance matters more in a small filter
// (docs/math/cuckoo.md).
constexpr double kLoad = 0.95;

double buckets_for(double keys, std::uint32_t bucket_size) {
  const double ideal = keys / (kLoad * bucket_size);
  return std::ceil(ideal + std::sqrt(ideal) / 4 + 2);
}

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
  if (goal.keys > limits::kFilterBits) {
    return Error{Errc::limit, "more keys than filters have bits"};
  }

  const auto buckets =
      static_cast<std::uint64_t>(buckets_for(static_cast<double>(goal.keys), goal.bucket_size));
  for (const std::uint32_t bits : cuckoo_bucket::kWidths) {
    const CuckooShape shape{goal.bucket_size, bits, goal.payload_bits, buckets, goal.hash};
    if (shape.expected_fpr(goal.keys) > goal.fpr) continue;
    if (!shape.valid()) return Error{Errc::limit, "the filter would need more than 2^46 bits"};
    return shape;
  }
  return Error{Errc::limit, "so low an fpr needs fingerprints of more than 56 bits"};
}

// docs/formats/cuckoo_v1.md: bucket size (1), fingerprint bits (1), payload bits (1), buckets (8),
// kind and seed of the hash (9).
void CuckooShape::encode(Sink out) const {
  Writer w(out);
  w.u8(static_cast<std::uint8_t>(bucket_size));
  w.u8(static_cast<std::uint8_t>(fingerprint_bits));
  w.u8(static_cast<std::uint8_t>(payload_bits));
  w.u64(buckets);
  write(w, hash);
}

Result<CuckooShape> CuckooShape::decode(Reader& in) {
  CuckooShape shape{};
  shape.bucket_size = in.u8();
  shape.fingerprint_bits = in.u8();
  shape.payload_bits = in.u8();
  shape.buckets = in.u64();
  shape.hash = read_hash_id(in);
  if (!in.ok() || !shape.valid()) return Error{Errc::corrupt, "shape"};
  return shape;
}

std::uint64_t CuckooShape::bytes() const {
  return divide_up(slots() * fingerprint_bits, 8) + divide_up(slots() * payload_bits, 8);
}

bool CuckooShape::valid() const {
  const auto& widths = cuckoo_bucket::kWidths;
  if (bucket_size != 4 && bucket_size != 8) return false;
  if (std::find(widths.begin(), widths.end(), fingerprint_bits) == widths.end()) return false;
  if (payload_bits > limits::kPayloadBits || !hash.valid()) return false;
  const std::uint64_t bucket_bits = std::uint64_t{bucket_size} * (fingerprint_bits + payload_bits);
  return buckets > 0 && buckets <= limits::kFilterBits / bucket_bits;
}

// Inverts buckets_for(): with x = sqrt(ideal), x^2 + x / 4 + 2 = buckets.
std::uint64_t CuckooShape::capacity() const {
  if (buckets < 3) return 1;
  const double spare = static_cast<double>(buckets) - 2;
  const double x = (std::sqrt(0.0625 + 4 * spare) - 0.25) / 2;
  auto keys = static_cast<std::uint64_t>(x * x * kLoad * bucket_size);
  // Rounding may have lost the last key, or added one too many.
  const auto fits = [&](std::uint64_t n) {
    return buckets_for(static_cast<double>(n), bucket_size) <= static_cast<double>(buckets);
  };
  while (fits(keys + 1)) ++keys;
  while (keys > 1 && !fits(keys)) --keys;
  return std::max<std::uint64_t>(keys, 1);
}

// An entry matches a new key if the fingerprints agree and the two buckets are the same.
double CuckooShape::expected_fpr(std::uint64_t keys) const {
  const double fingerprints = std::exp2(fingerprint_bits) - 1;
  const double meets = std::min(1.0, 2 / (fingerprints * static_cast<double>(buckets)));
  return -std::expm1(static_cast<double>(keys) * std::log1p(-meets));
}

}  // namespace semel
