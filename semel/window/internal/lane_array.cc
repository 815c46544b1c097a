#include "semel/window/internal/lane_array.h"

#include <algorithm>
#include <array>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"

namespace semel::window_internal {
namespace {

using lane_kernel::kLineWords;

}  // namespace

bool LaneShape::valid() const {
  if (lanes < 2 || lanes > limits::kLanes || probes == 0) return false;
  if (positions == 0 || positions > limits::kFilterBits / word_bits()) return false;
  if (layout == BloomLayout::plain) return probes <= limits::kPlainProbes;
  return lines() <= limits::kBlockedLines && probes % lines() == 0 &&
         probes / lines() <= limits::kLaneProbes &&
         positions % (std::uint64_t{line_positions()} * lines()) == 0;
}

std::uint64_t LaneShape::bytes() const {
  return array_lines() * kLineBytes + divide_up(array_lines(), 64) * 8;
}

LaneArray::LaneArray(const LaneShape& shape)
    : shape_((SEMEL_ASSERT(shape.valid()), shape)),
      words_(shape.array_lines() * kLineWords),
      cleaned_(divide_up(shape.array_lines(), 64)),
      view_{.words = words_.data(),
            .cleaned = cleaned_.data(),
            .positions = shape.positions,
            .blocks = shape.lines() == 0 ? 0 : shape.array_lines() / shape.lines(),
            .swept = 0,
            .sweeping = 0,
            .word_bits = shape.word_bits(),
            .sections = shape.lines(),
            .probes = shape.lines() == 0 ? shape.probes : shape.probes / shape.lines()} {
  view_.test = lane_kernel::test_for(view_);
  view_.set = lane_kernel::set_for(view_);
}

LaneArray::LaneArray(const LaneArray& other)
    : shape_(other.shape_), words_(other.words_), cleaned_(other.cleaned_), view_(other.view_) {
  view_.words = words_.data();
  view_.cleaned = cleaned_.data();
}

void LaneArray::begin_sweep(std::uint64_t lanes) {
  SEMEL_ASSERT(!sweeping() && lanes != 0);
  view_.sweeping = lanes;
  view_.swept = 0;
}

void LaneArray::sweep(std::uint64_t lines) {
  if (!sweeping()) return;
  std::uint64_t gone = view_.sweeping;
  for (std::uint32_t bits = shape_.word_bits(); bits < 64; bits *= 2) gone |= gone << bits;
  const std::uint64_t end = view_.swept + std::min(lines, lines_left());
  for (std::uint64_t line = view_.swept; line < end; ++line) {
    const std::uint64_t bit = std::uint64_t{1} << (line % 64);
    std::uint64_t& cleaned = cleaned_[line / 64];
    const std::uint64_t keep = (cleaned & bit) != 0 ? ~std::uint64_t{0} : ~gone;
    cleaned &= ~bit;  // the next pass finds none
    for (std::uint64_t i = 0; i < kLineWords; ++i) words_[line * kLineWords + i] &= keep;
  }
  view_.swept = end;
  if (end == shape_.array_lines()) view_.sweeping = 0;
}

void LaneArray::count(std::span<std::uint64_t> ones) const {
  SEMEL_ASSERT(ones.size() == shape_.lanes);
  std::fill(ones.begin(), ones.end(), 0);
  for (std::uint64_t j = 0; j < shape_.positions; ++j) {
    for (std::uint64_t rest = word(j); rest != 0; rest &= rest - 1) {
      ++ones[static_cast<std::size_t>(std::countr_zero(rest))];
    }
  }
}

void LaneArray::set_word(std::uint64_t j, std::uint64_t lanes) {
  SEMEL_ASSERT(!sweeping() && j < shape_.positions);
  lane_kernel::store(view_, j, lanes);
}

}  // namespace semel::window_internal
