#include "semel/slices/placement.h"

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"

namespace semel {
namespace {

// Seeds of the choices: of the horizontal slice or group, of each function, and inside each group
// of v_h.
constexpr std::uint64_t kWhole = 0;
constexpr std::uint64_t kFunction = 1;
constexpr std::uint64_t kGroup = std::uint64_t{1} << 32;

// Uses both halves of the digest, so that a choice is independent of how filters below use either
// half.
std::size_t choose(Digest id, std::uint64_t choice, std::uint32_t range) {
  return scale(mix(id.lo ^ word_of(id.hi, choice + 1)), range);
}

Digest key_of(Digest id, std::uint32_t function) {
  return {word_of(id.lo, function + 1), word_of(id.hi, function + 1)};
}

}  // namespace

Result<Placement> Placement::make(const Shape& shape) {
  const bool diced = shape.layout == SliceLayout::h_v || shape.layout == SliceLayout::v_h;
  if (!diced && shape.layout != SliceLayout::horizontal && shape.layout != SliceLayout::vertical) {
    return Error{Errc::invalid, "slices: unknown layout"};
  }
  if (shape.slices == 0 || shape.parts == 0)
    return Error{Errc::invalid, "slices: there must be one or more"};
  if (!diced && shape.parts != 1) {
    return Error{Errc::invalid, "slices: only h_v and v_h have parts"};
  }
  if (shape.spread == 0 || shape.spread > kMostSpread) {
    return Error{Errc::invalid, "slices: the spread must be 1 to 32"};
  }
  if (shape.layout == SliceLayout::horizontal && shape.spread != 1) {
    return Error{Errc::invalid, "slices: a horizontal layout has the spread 1"};
  }
  if (std::uint64_t{shape.slices} * shape.parts > kMostSlices) {
    return Error{Errc::limit, "slices: more than 65536"};
  }
  return Placement(shape);
}

SliceProbe Placement::probe(Digest id, std::uint32_t function) const {
  SEMEL_ASSERT(function < shape_.spread);
  switch (shape_.layout) {
    case SliceLayout::horizontal:
      return {choose(id, kWhole, shape_.slices), id};
    case SliceLayout::vertical:
      return {choose(id, kFunction + function, shape_.slices), key_of(id, function)};
    case SliceLayout::h_v: {
      const std::size_t group = choose(id, kWhole, shape_.slices);
      const std::size_t part = choose(id, kFunction + function, shape_.parts);
      return {group * shape_.parts + part, key_of(id, function)};
    }
    case SliceLayout::v_h:
      break;
  }
  const std::size_t group = choose(id, kFunction + function, shape_.slices);
  const std::size_t part = choose(id, kGroup + group, shape_.parts);
  return {group * shape_.parts + part, key_of(id, function)};
}

}  // namespace semel
