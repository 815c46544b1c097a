#include "semel/bits/internal/elias_fano.h"

#include <algorithm>
#include <bit>

#include "semel/bits/internal/packed_array.h"
#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"

namespace semel::inline bits_internal::elias_fano {

Layout layout_of(std::uint64_t n, std::uint64_t last) {
  const uint128 distance = (static_cast<uint128>(last) + 1) / n;  // rounded down, like k
  // A distance of 2^64 has 65 bits, and the cap hides the highest. So k stays below 64, and the
  // shifts stay valid.
  const auto seen = static_cast<std::uint64_t>(std::min<uint128>(distance, ~std::uint64_t{0}));
  const auto width = static_cast<std::uint32_t>(std::bit_width(seen));
  const std::uint32_t low_bits = width == 0 ? 0 : width - 1;
  return {low_bits, static_cast<uint128>(n) + (last >> low_bits)};
}

// Returns at most 2^62 + 2^61: n * k is largest for k = 1 or 2, and there are at most 2^65 high
// bits.
std::uint64_t byte_size(std::uint64_t n, std::uint64_t last) {
  if (n == 0) return 0;
  const Layout layout = layout_of(n, last);
  const uint128 low = (static_cast<uint128>(n) * layout.low_bits + 7) / 8;
  const uint128 high = (layout.high_bits + 7) / 8;
  return static_cast<std::uint64_t>(low + high);
}

void encode(Sink out, std::span<const std::uint64_t> values, std::uint64_t last) {
  encode(out, values.size(), last, [&](auto visit) {
    for (const std::uint64_t value : values) visit(value);
  });
}

Result<std::vector<std::uint64_t>> decode(Reader& in, std::uint64_t n, std::uint64_t last) {
  if (in.rest() < byte_size(n, last)) return Error{Errc::truncated, "ascending numbers"};
  std::vector<std::uint64_t> values;
  if (n == 0) return values;
  const Error kNotAscending{Errc::corrupt, "ascending numbers"};
  const Layout layout = layout_of(n, last);
  const PackedArray low = SEMEL_TRY(PackedArray::decode(in, n, layout.low_bits));
  const PackedArray high =
      SEMEL_TRY(PackedArray::decode(in, static_cast<std::uint64_t>(layout.high_bits), 1));

  values.resize(n);
  std::uint64_t found = 0, before = 0;
  for (std::uint64_t at = 0; at < high.byte_size(); at += 8) {
    // The last load may reach into the slack, which is zero.
    for (std::uint64_t ones = load_u64(high.data() + at); ones != 0; ones &= ones - 1) {
      if (found == n) return kNotAscending;
      const std::uint64_t place = at * 8 + static_cast<unsigned>(std::countr_zero(ones));
      const std::uint64_t value = (place - found) << layout.low_bits | low.get(found);
      if (value < before) return kNotAscending;
      values[found++] = value;
      before = value;
    }
  }
  if (found != n || before > last) return kNotAscending;
  return values;
}

}  // namespace semel::inline bits_internal::elias_fano
