#include "semel/window/internal/lane_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"

namespace semel::window_internal {
namespace {

// Sweeping this many lines takes about a tenth of a millisecond.
constexpr std::uint64_t kSweepLines = 8192;
// A shorter sweep is not worth a call.
constexpr std::uint64_t kSweepAtLeast = 64;
// A sweep is complete when one part in this many of the lane is used.
constexpr std::uint64_t kSweepShare = 4;

std::uint64_t ones_of(std::uint64_t lanes) {
  return lanes == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << lanes) - 1;
}

// Returns the mean of the bits that this many ids set, plus five standard deviations. A lane with
// more bits holds more ids.
double plausible_ones(const LaneShape& shape, double ids) {
  const auto positions = static_cast<double>(shape.positions);
  const double fill = -std::expm1(-ids * shape.probes / positions);
  return positions * fill + 5 * std::sqrt(positions * fill * (1 - fill)) + 1;
}

}  // namespace

LaneTable::LaneTable(const LaneShape& shape, std::uint64_t lane_ids, TimeMs begin_ms)
    : array_(shape),
      lane_ids_(lane_ids),
      ones_limit_(static_cast<std::uint64_t>(plausible_ones(shape, static_cast<double>(lane_ids)))),
      sweep_step_(
          divide_up(kSweepShare * shape.array_lines(), std::max<std::uint64_t>(lane_ids, 1))) {
  lanes_.reserve(shape.lanes);
  append_lane(begin_ms);
}

std::uint64_t LaneTable::columns_from(std::size_t lane) const {
  const std::uint32_t ring = shape().lanes;
  const std::uint64_t lanes = lane < lanes_.size() ? ones_of(lanes_.size()) & ~ones_of(lane) : 0;
  const std::uint64_t wrapped = oldest_ == 0 ? 0 : lanes >> (ring - oldest_);
  return (lanes << oldest_ | wrapped) & ones_of(ring);
}

// Returns bit i for the i-th lane from the oldest.
std::uint64_t LaneTable::by_age(std::uint64_t columns) const {
  const std::uint64_t wrapped = oldest_ == 0 ? 0 : columns << (shape().lanes - oldest_);
  return (columns >> oldest_ | wrapped) & ones_of(shape().lanes);
}

void LaneTable::recognises(std::span<const Digest> ids, std::span<bool> found,
                           std::size_t dropped) const {
  SEMEL_ASSERT(ids.size() == found.size());
  const std::uint64_t lanes = columns_from(dropped);
  constexpr std::size_t kChunk = 512;
  std::array<std::uint64_t, kChunk> columns;
  for (std::size_t start = 0; start < ids.size(); start += kChunk) {
    const std::size_t n = std::min(kChunk, ids.size() - start);
    array_.test(ids.subspan(start, n), lanes, {columns.data(), n});
    for (std::size_t i = 0; i < n; ++i) found[start + i] |= columns[i] != 0;
  }
}

void LaneTable::sweep_for_insert() {
  if (!array_.sweeping()) return;
  sweep_owed_ += sweep_step_;
  if (sweep_owed_ < kSweepAtLeast) return;
  array_.sweep(sweep_owed_);
  sweep_owed_ = 0;
}

void LaneTable::sweep_until(double share_of_period) {
  if (!sweeping()) return;
  const double lines = static_cast<double>(shape().array_lines()) *
                       std::min(1.0, double{kSweepShare} * share_of_period);
  const auto due = static_cast<std::uint64_t>(std::max(0.0, lines));
  if (due > array_.swept_lines()) array_.sweep(std::min(kSweepLines, due - array_.swept_lines()));
}

void LaneTable::insert(Digest id, TimeMs at_ms) {
  lanes_.back().ones += array_.set(id, column(lanes_.size() - 1));
  count(at_ms);
}

bool LaneTable::test_and_insert(Digest id, TimeMs at_ms) {
  const auto [found, ones] = array_.test_and_set(id, live_, column(lanes_.size() - 1));
  if (found != 0) return false;
  lanes_.back().ones += ones;
  count(at_ms);
  return true;
}

void LaneTable::count(TimeMs at_ms) {
  Lane& lane = lanes_.back();
  ++lane.ids;
  lane.first_ms = std::min(lane.first_ms, at_ms);
  sweep_for_insert();
}

bool LaneTable::lane_full() const {
  return present().ids >= lane_ids_ || present().ones > ones_limit_;
}

bool LaneTable::lane_takes(std::uint64_t ids) const {
  return present().ids + ids <= lane_ids_ && present().ones + ids * shape().probes <= ones_limit_;
}

void LaneTable::append_lane(TimeMs begin_ms) {
  lanes_.push_back({.begin_ms = begin_ms, .end_ms = begin_ms});
  const std::uint64_t bit = std::uint64_t{1} << column(lanes_.size() - 1);
  update_live();
  if ((dirty_ & bit) == 0) return;
  array_.begin_sweep(dirty_);  // one pass for all lanes that wait for it
  dirty_ = 0;
  sweep_owed_ = 0;
}

void LaneTable::rotate(TimeMs end_ms, TimeMs begin_ms) {
  SEMEL_ASSERT(can_rotate());
  finish_sweep();
  lanes_.back().end_ms = end_ms;
  append_lane(begin_ms);
}

void LaneTable::drop_oldest() {
  SEMEL_ASSERT(can_drop());
  if (oldest().ones != 0) dirty_ |= std::uint64_t{1} << oldest_;
  oldest_ = column(1);
  lanes_.erase(lanes_.begin());
  update_live();
}

std::uint64_t LaneTable::capacity() const { return lane_ids_ * periods_covered(shape().lanes); }

std::uint64_t LaneTable::ids(std::size_t dropped) const {
  std::uint64_t sum = 0;
  for (std::size_t i = dropped; i < lanes_.size(); ++i) sum += lanes_[i].ids;
  return sum;
}

TimeMs LaneTable::first_ms() const {
  TimeMs first = Lane::kNever;
  for (const Lane& lane : lanes_) first = std::min(first, lane.first_ms);
  return first;
}

// A lane with more bits than its ids can have set was merged and holds more ids, so the estimate
// from its bits is used.
std::vector<double> LaneTable::lane_loads() const {
  std::vector<double> loads;
  for (const Lane& lane : lanes_) {
    auto load = static_cast<double>(lane.ids);
    const auto ones = static_cast<double>(lane.ones);
    if (ones > plausible_ones(shape(), load)) {
      load = std::max(load, forgetful_math::ids_that_set(shape(), ones));
    }
    loads.push_back(load);
  }
  return loads;
}

double LaneTable::rate() const { return forgetful_math::rate(shape(), lane_loads()); }

Result<void> LaneTable::check_mergeable(const LaneTable& other) const {
  const auto same_time = [](const Lane& a, const Lane& b) {
    return a.begin_ms == b.begin_ms && a.end_ms == b.end_ms;
  };
  if (shape() != other.shape() || lane_ids_ != other.lane_ids_) {
    return Error{Errc::mismatch, "forgetful filters of different shapes"};
  }
  if (!std::equal(lanes_.begin(), lanes_.end(), other.lanes_.begin(), other.lanes_.end(),
                  same_time)) {
    return Error{Errc::mismatch, "forgetful filters with lanes of different times"};
  }
  return {};
}

void LaneTable::merge(const LaneTable& other) {
  finish_sweep();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].first_ms = std::min(lanes_[i].first_ms, other.lanes_[i].first_ms);
    lanes_[i].ids = std::max(lanes_[i].ids, other.lanes_[i].ids);
  }

  const std::uint64_t theirs = other.live_;
  std::array<std::uint64_t, limits::kLanes> ones{};
  for (std::uint64_t j = 0; j < shape().positions; ++j) {
    // Maps the other's columns to lanes by age, and these to our columns.
    const std::uint64_t lanes = other.by_age(other.array_.word(j) & theirs);
    const std::uint64_t wrapped = oldest_ == 0 ? 0 : lanes >> (shape().lanes - oldest_);
    array_.set_word(j, array_.word(j) | ((lanes << oldest_ | wrapped) & ones_of(shape().lanes)));
  }
  array_.count({ones.data(), shape().lanes});
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].ones = ones[column(i)];
}

void LaneTable::encode(Writer& w) const {
  w.u32(shape().probes);
  w.u32(static_cast<std::uint32_t>(lanes_.size()));
  w.u64(shape().positions);
  w.u64(lane_ids_);
  for (const Lane& lane : lanes_) {
    w.i64(lane.begin_ms);
    w.i64(lane.end_ms);
    w.i64(lane.first_ms);
    w.u64(lane.ids);
  }

  Sink out = w.sink();
  const std::uint32_t bytes = shape().word_bits() / 8;
  if (out.only_measures(shape().positions * bytes)) return;
  out.reserve(shape().positions * bytes);
  constexpr std::size_t kAtOnce = 4096;  // whole words of any size
  std::array<std::uint8_t, kAtOnce + sizeof(std::uint64_t)> some;
  std::size_t used = 0;
  for (std::uint64_t j = 0; j < shape().positions; ++j) {
    store_u64(&some[used], by_age(array_.word(j) & live_));
    used += bytes;
    if (used < kAtOnce) continue;
    w.bytes(ByteView(some).first(used));
    used = 0;
  }
  w.bytes(ByteView(some).first(used));
}

Result<LaneTable> LaneTable::decode(Reader& in, BloomLayout layout, std::uint32_t lanes,
                                    TimeMs now_ms) {
  const Error bad_shape = corrupt(kForgetfulFormat, "shape of a table");
  LaneShape shape{layout, lanes, in.u32(), 0};
  const std::uint32_t used = in.u32();
  shape.positions = in.u64();
  const std::uint64_t lane_ids = in.u64();
  if (!in.ok() || !shape.valid() || used == 0 || used > lanes || lane_ids == 0 ||
      lane_ids > shape.positions) {
    return bad_shape;
  }
  // Length before allocation: until here `positions` is only a claim.
  const std::uint64_t words = shape.positions * (shape.word_bits() / 8);
  constexpr std::uint64_t kLane = 32;
  if (in.rest() < words || in.rest() - words < kLane * used) return bad_shape;

  LaneTable table(shape, lane_ids, 0);
  table.lanes_.clear();
  for (std::uint32_t i = 0; i < used; ++i) {
    Lane& lane = table.lanes_.emplace_back();
    lane.begin_ms = in.i64();
    lane.end_ms = in.i64();
    lane.first_ms = in.i64();
    lane.ids = in.u64();
    if (lane.begin_ms > now_ms || lane.end_ms > now_ms || lane.ids > limits::kFilterBits ||
        (lane.ids == 0 ? lane.first_ms != Lane::kNever : lane.first_ms > now_ms)) {
      return corrupt(kForgetfulFormat, "times of a lane");
    }
  }
  table.update_live();

  for (std::uint64_t j = 0; j < shape.positions; ++j) {
    const std::uint64_t word = shape.word_bits() == 8    ? in.u8()
                               : shape.word_bits() == 16 ? in.u16()
                               : shape.word_bits() == 32 ? in.u32()
                                                         : in.u64();
    if ((word & ~ones_of(used)) != 0) return corrupt(kForgetfulFormat, "bits of no lane");
    table.array_.set_word(j, word);
  }
  std::array<std::uint64_t, limits::kLanes> ones{};
  table.array_.count({ones.data(), shape.lanes});
  for (std::uint32_t i = 0; i < used; ++i) table.lanes_[i].ones = ones[i];
  return table;
}

}  // namespace semel::window_internal
