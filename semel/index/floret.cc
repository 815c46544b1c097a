#include "semel/index/floret.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"

namespace semel {
namespace {

constexpr std::size_t kFewest = 2;
constexpr std::size_t kMost = std::size_t{1} << 20;

// Up to this variance hardly any counter has wrapped: docs/math/floret.md, 'Wrapping'.
constexpr double kMostVariance = 1500;

std::size_t place_of(const Digest& entry, const DigestKey& key, std::size_t counters) {
  std::array<std::uint8_t, 16> bytes;
  store_u64(bytes.data(), entry.lo);
  store_u64(bytes.data() + 8, entry.hi);
  const Digest keyed = key(text_of(bytes));
  return scale(keyed.lo, counters);
}

// Returns the unbiased variance of the differences of counters. Their mean is known from the
// counts. A difference modulo 256 stands for the number nearest to the mean.
double variance_of(ByteView a, ByteView b, double mean) {
  const double centre = std::round(mean);
  const auto centre_byte = static_cast<std::uint8_t>(static_cast<int>(std::fmod(centre, 256)));
  const double rest = mean - centre;
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto off_centre = static_cast<std::int8_t>(a[i] - b[i] - centre_byte);
    squares += (off_centre - rest) * (off_centre - rest);
  }
  return squares / static_cast<double>(a.size() - 1);
}

}  // namespace

Floret::Floret(std::uint32_t counters) : counters_(counters) {
  SEMEL_ASSERT(counters >= kFewest && counters <= kMost);
}

Result<Floret> Floret::of_bytes(ByteView counters) {
  if (counters.size() < kFewest || counters.size() > kMost) {
    return Error{Errc::limit, "a floret has 2 to 2^20 counters"};
  }
  Floret floret(static_cast<std::uint32_t>(counters.size()));
  floret.counters_.assign(counters.begin(), counters.end());
  return floret;
}

void Floret::add(const Digest& entry, const DigestKey& key) {
  ++counters_[place_of(entry, key, counters_.size())];
}

void Floret::remove(const Digest& entry, const DigestKey& key) {
  --counters_[place_of(entry, key, counters_.size())];
}

Floret& Floret::operator+=(const Floret& other) {
  SEMEL_ASSERT(counters_.size() == other.counters_.size());
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    counters_[i] = static_cast<std::uint8_t>(counters_[i] + other.counters_[i]);
  }
  return *this;
}

Floret& Floret::operator-=(const Floret& other) {
  SEMEL_ASSERT(counters_.size() == other.counters_.size());
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    counters_[i] = static_cast<std::uint8_t>(counters_[i] - other.counters_[i]);
  }
  return *this;
}

DifferenceEstimate estimate(const Floret& a, std::uint64_t count_a, const Floret& b,
                            std::uint64_t count_b) {
  SEMEL_ASSERT(a.bytes().size() == b.bytes().size());
  const auto counters = static_cast<double>(a.bytes().size());
  const auto in_a = static_cast<double>(count_a);
  const auto in_b = static_cast<double>(count_b);
  const double excess = in_a - in_b;  // |A - B| minus |B - A|
  const double variance = variance_of(a.bytes(), b.bytes(), excess / counters);
  const double least = std::abs(excess);
  const double most = in_a + in_b;

  // Equations 2 and 3 of docs/math/floret.md.
  const double total = std::clamp(counters * variance, least, most);
  const double error =
      least == most ? 0 : std::sqrt(2 * total * std::max(total - 1, 0.0) / (counters - 1));
  DifferenceEstimate made = estimate_of_total({total, error}, count_a, count_b);
  made.reliable = least == most || std::max(variance, least / counters) <= kMostVariance;
  return made;
}

DifferenceEstimate estimate_of_total(Estimated total, std::uint64_t count_a,
                                     std::uint64_t count_b) {
  const auto in_a = static_cast<double>(count_a);
  const auto in_b = static_cast<double>(count_b);
  const double excess = in_a - in_b;
  total.value = std::clamp(total.value, std::abs(excess), in_a + in_b);
  const double only_a = (total.value + excess) / 2;
  const double only_b = (total.value - excess) / 2;
  const double shared = in_a - only_a;
  const double together = in_a + only_b;
  const double error = total.error / 2;  // of one side

  // `shared` shrinks by as much as `together` grows.
  const double jaccard_error =
      together > 0 ? error * (together + shared) / (together * together) : 0;
  return {.only_a = {only_a, error},
          .only_b = {only_b, error},
          .total = total,
          .shared = {shared, error},
          .together = {together, error},
          .jaccard = {together > 0 ? shared / together : 1, jaccard_error},
          .containment = {in_a > 0 ? shared / in_a : 1, in_a > 0 ? error / in_a : 0}};
}

}  // namespace semel
