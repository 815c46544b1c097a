#include "semel/window/internal/lane_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/limits.h"

namespace semel {
namespace {

// A piece of a sweep that takes about a tenth of a millisecond.
constexpr std::uint64_t kSweepLines = 8192;
// A shorter piece is not worth a call.
constexpr std::uint64_t kSweepAtLeast = 64;
// A lane is to be swept when this share of it is used.
constexpr std::uint64_t kSweepShare = 4;

std::uint64_t ones_of(std::uint64_t lanes) {
  return lanes == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << lanes) - 1;
}

// The same id for lanes with odd numbers.
Digest odd_id(Digest id) { return {word_of(id.lo, 1), word_of(id.hi, 1)}; }

// Five standard deviations above the mean of the bits that so many ids set: more of them mean more ids.
double plausible_ones(const LaneShape& shape, double ids) {
  const auto positions = static_cast<double>(shape.positions);
  const double fill = -std::expm1(-ids * shape.probes / positions);
  return positions * fill + 5 * std::sqrt(positions * fill * (1 - fill)) + 1;
}

}  // namespace

LaneTable::LaneTable(const LaneShape& shape, LaneRule rule, std::uint64_t lane_ids, TimeMs begin_ms)
    : array_(shape),
      rule_(rule),
      usable_(shape.lanes),
      lane_ids_(lane_ids),
      ones_limit_(static_cast<std::uint64_t>(plausible_ones(shape, static_cast<double>(lane_ids)))),
      sweep_step_(
          divide_up(kSweepShare * shape.array_lines(), std::max<std::uint64_t>(lane_ids, 1))) {
  SEMEL_ASSERT(shape.lanes > spread_of(rule));
  SEMEL_ASSERT(shape.layout == BloomLayout::plain || spread_of(rule) == 1);
  lanes_.reserve(shape.lanes);
  // As if an empty period had just ended.
  if (spread_of(rule) == 2) {
    constexpr TimeMs kFirst = std::numeric_limits<TimeMs>::min();
    carried_.begin_ms = carried_.end_ms = begin_ms == kFirst ? kFirst : begin_ms - 1;
  }
  for (std::uint32_t i = 0; i < spread_of(rule); ++i) append_lane(begin_ms);
}

std::uint64_t LaneTable::columns_from(std::size_t lane) const {
  const std::uint32_t ring = shape().lanes;
  const std::uint64_t lanes = lane < lanes_.size() ? ones_of(lanes_.size()) & ~ones_of(lane) : 0;
  const std::uint64_t wrapped = oldest_ == 0 ? 0 : lanes >> (ring - oldest_);
  return (lanes << oldest_ | wrapped) & ones_of(ring);
}

// Bit i for the i-th lane from the oldest.
std::uint64_t LaneTable::by_age(std::uint64_t columns) const {
  const std::uint64_t wrapped = oldest_ == 0 ? 0 : columns << (shape().lanes - oldest_);
  return (columns >> oldest_ | wrapped) & ones_of(shape().lanes);
}

// Whether lanes that have all bits of an id mean, by the rule, that it was seen.
bool LaneTable::holds(std::uint64_t columns, std::size_t dropped) const {
  if (columns == 0) return false;
  if (any_lane()) return true;
  const std::uint64_t lanes = by_age(columns);
  if ((lanes & lanes >> 1) != 0) return true;
  return rule_ == LaneRule::pairs_or_oldest && (lanes >> dropped & 1) != 0;
}

std::uint64_t LaneTable::found(Digest id, std::uint64_t columns) const {
  if (rule_ != LaneRule::split_pairs) return array_.test(id, columns);
  return array_.test(id, columns & ~odd_) | array_.test(odd_id(id), columns & odd_);
}

bool LaneTable::recognises_by_rule(Digest id) const { return holds(found(id, live_), 0); }

void LaneTable::recognises(std::span<const Digest> ids, std::span<bool> found,
                           std::size_t dropped) const {
  SEMEL_ASSERT(ids.size() == found.size());
  if (rule_ == LaneRule::split_pairs) {
    for (std::size_t i = 0; i < ids.size(); ++i) found[i] |= recognises(ids[i], dropped);
    return;
  }
  const std::uint64_t lanes = columns_from(dropped);
  constexpr std::size_t kChunk = 512;
  std::array<std::uint64_t, kChunk> columns;
  for (std::size_t start = 0; start < ids.size(); start += kChunk) {
    const std::size_t n = std::min(kChunk, ids.size() - start);
    array_.test(ids.subspan(start, n), lanes, {columns.data(), n});
    for (std::size_t i = 0; i < n; ++i) found[start + i] |= holds(columns[i], dropped);
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
  for (std::size_t lane = lanes_.size() - spread_of(rule_); lane < lanes_.size(); ++lane) {
    const bool odd = rule_ == LaneRule::split_pairs && (odd_ >> column(lane) & 1) != 0;
    lanes_[lane].ones += array_.set(odd ? odd_id(id) : id, column(lane));
  }
  count(at_ms);
}

bool LaneTable::test_and_insert(Digest id, TimeMs at_ms) {
  if (rule_ != LaneRule::newest) {
    if (recognises(id)) return false;
    insert(id, at_ms);
    return true;
  }
  const auto [found, ones] = array_.test_and_set(id, live_, column(lanes_.size() - 1));
  if (found != 0) return false;
  lanes_.back().ones += ones;
  count(at_ms);
  return true;
}

void LaneTable::count(TimeMs at_ms) {
  Lane& period = open_period();
  ++period.ids;
  period.first_ms = std::min(period.first_ms, at_ms);
  sweep_for_insert();
}

bool LaneTable::period_full() const {
  return present().ids >= lane_ids_ || lanes_.back().ones > ones_limit_;
}

bool LaneTable::period_takes(std::uint64_t ids) const {
  return present().ids + ids <= lane_ids_ &&
         lanes_.back().ones + ids * shape().probes <= ones_limit_;
}

void LaneTable::append_lane(TimeMs begin_ms) {
  lanes_.push_back({.begin_ms = begin_ms, .end_ms = begin_ms});
  if (rule_ == LaneRule::split_pairs) newest_odd_ = !newest_odd_;
  const std::uint64_t bit = std::uint64_t{1} << column(lanes_.size() - 1);
  odd_ = newest_odd_ ? odd_ | bit : odd_ & ~bit;
  update_live();
  if ((dirty_ & bit) == 0) return;
  array_.begin_sweep(dirty_);  // one pass for all that wait for it
  dirty_ = 0;
  sweep_owed_ = 0;
}

void LaneTable::rotate(TimeMs end_ms, TimeMs begin_ms) {
  SEMEL_ASSERT(can_rotate());
  finish_sweep();
  open_period().end_ms = end_ms;
  append_lane(begin_ms);
  open_period().begin_ms = begin_ms;  // with spread 2 the future lane becomes the present one
  open_period().end_ms = begin_ms;
}

void LaneTable::drop_oldest() {
  SEMEL_ASSERT(can_drop());
  if (lanes_.front().ones != 0) dirty_ |= std::uint64_t{1} << oldest_;
  if (spread_of(rule_) == 2) carried_ = lanes_.front();
  oldest_ = column(1);
  lanes_.erase(lanes_.begin());
  update_live();
}

std::uint64_t LaneTable::capacity() const { return lane_ids_ * periods_covered(rule_, usable_); }

std::uint64_t LaneTable::ids(std::size_t dropped) const {
  std::uint64_t sum = carries(rule_) && dropped == 0 ? carried_.ids : 0;
  const std::size_t first = dropped - (carries(rule_) && dropped > 0 ? 1 : 0);
  for (std::size_t i = first; i < lanes_.size(); ++i) sum += lanes_[i].ids;
  return sum;
}

TimeMs LaneTable::first_ms() const {
  TimeMs first = carries(rule_) ? carried_.first_ms : Lane::kNever;
  for (const Lane& lane : lanes_) first = std::min(first, lane.first_ms);
  return first;
}

// The ids of each period, as forgetful_math wants them. A lane with more bits than its ids can have set
// was merged, and holds more: what its bits stand for counts.
std::vector<double> LaneTable::period_ids() const {
  const bool two = spread_of(rule_) == 2;
  std::vector<double> ids;
  double before = two ? static_cast<double>(carried_.ids) : 0;
  if (two) ids.push_back(before);
  for (std::size_t i = 0; i + (two ? 1 : 0) < lanes_.size(); ++i) {
    auto own = static_cast<double>(lanes_[i].ids);
    const auto ones = static_cast<double>(lanes_[i].ones);
    if (!two) before = 0;
    if (ones > plausible_ones(shape(), before + own)) {
      own = std::max(own, forgetful_math::ids_that_set(shape(), ones) - before);
    }
    ids.push_back(own);
    before = own;
  }
  return ids;
}

double LaneTable::rate() const { return forgetful_math::rate(shape(), rule_, period_ids()); }

double LaneTable::paper_rate() const { return forgetful_math::paper_rate(shape(), period_ids()); }

Result<void> LaneTable::check_mergeable(const LaneTable& other) const {
  const auto same_time = [](const Lane& a, const Lane& b) {
    return a.begin_ms == b.begin_ms && a.end_ms == b.end_ms;
  };
  if (shape() != other.shape() || rule_ != other.rule_ || lane_ids_ != other.lane_ids_ ||
      usable_ != other.usable_) {
    return Error{Errc::mismatch, "forgetful filters of different shapes"};
  }
  if (!std::equal(lanes_.begin(), lanes_.end(), other.lanes_.begin(), other.lanes_.end(),
                  same_time) ||
      !same_time(carried_, other.carried_) || newest_odd_ != other.newest_odd_) {
    return Error{Errc::mismatch, "forgetful filters with lanes of different times"};
  }
  return {};
}

void LaneTable::merge(const LaneTable& other) {
  finish_sweep();
  const auto unite = [](Lane& into, const Lane& from) {
    into.first_ms = std::min(into.first_ms, from.first_ms);
    into.ids = std::max(into.ids, from.ids);
  };
  unite(carried_, other.carried_);
  for (std::size_t i = 0; i < lanes_.size(); ++i) unite(lanes_[i], other.lanes_[i]);

  const std::uint64_t theirs = other.live_;
  std::array<std::uint64_t, limits::kLanes> ones{};
  for (std::uint64_t j = 0; j < shape().positions; ++j) {
    // From the ring of the other by age, and from there into ours.
    const std::uint64_t lanes = other.by_age(other.array_.word(j) & theirs);
    const std::uint64_t wrapped = oldest_ == 0 ? 0 : lanes >> (shape().lanes - oldest_);
    array_.set_word(j, array_.word(j) | ((lanes << oldest_ | wrapped) & ones_of(shape().lanes)));
  }
  array_.count({ones.data(), shape().lanes});
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].ones = ones[column(i)];
}

void LaneTable::encode(Sink out) const {
  Writer w(out);
  w.u8(static_cast<std::uint8_t>(shape().lanes));
  w.u8(static_cast<std::uint8_t>(usable_));
  w.u8(static_cast<std::uint8_t>(lanes_.size()));
  w.u8(newest_odd_ ? 1 : 0);
  w.u32(shape().probes);
  w.u64(shape().positions);
  w.u64(lane_ids_);
  const auto lane = [&](const Lane& l) {
    w.u64(static_cast<std::uint64_t>(l.begin_ms));
    w.u64(static_cast<std::uint64_t>(l.end_ms));
    w.u64(static_cast<std::uint64_t>(l.first_ms));
    w.u64(l.ids);
  };
  lane(carried_);
  for (const Lane& l : lanes_) lane(l);

  const std::uint32_t bytes = shape().word_bits() / 8;
  const std::uint64_t columns = live_;
  if (out.only_measures(shape().positions * bytes)) return;
  out.reserve(shape().positions * bytes);
  constexpr std::size_t kAtOnce = 4096;  // whole words of any size
  std::array<std::uint8_t, kAtOnce + sizeof(std::uint64_t)> some;
  std::size_t used = 0;
  for (std::uint64_t j = 0; j < shape().positions; ++j) {
    store_u64(&some[used], by_age(array_.word(j) & columns));
    used += bytes;
    if (used < kAtOnce) continue;
    w.bytes(ByteView(some).first(used));
    used = 0;
  }
  w.bytes(ByteView(some).first(used));
}

Result<LaneTable> LaneTable::decode(Reader& in, BloomLayout layout, LaneRule rule, TimeMs now_ms) {
  LaneShape shape{};
  shape.layout = layout;
  shape.lanes = in.u8();
  const std::uint32_t usable = in.u8();
  const std::uint32_t used = in.u8();
  const std::uint8_t odd = in.u8();
  shape.probes = in.u32();
  shape.positions = in.u64();
  const std::uint64_t lane_ids = in.u64();
  if (!in.ok()) return Error{Errc::corrupt, "lanes: header"};
  if (!shape.valid() || usable > shape.lanes || usable <= spread_of(rule) || used > usable ||
      used < spread_of(rule) || odd > 1 || lane_ids == 0 || lane_ids > shape.positions) {
    return Error{Errc::corrupt, "lanes: shape"};
  }
  const std::uint64_t words = shape.positions * (shape.word_bits() / 8);
  constexpr std::uint64_t kLane = 32;
  if (in.rest() < words || in.rest() - words < kLane * (1 + used)) {
    return Error{Errc::corrupt, "lanes: size"};
  }

  const auto lane = [&] {
    Lane l;
    l.begin_ms = static_cast<TimeMs>(in.u64());
    l.end_ms = static_cast<TimeMs>(in.u64());
    l.first_ms = static_cast<TimeMs>(in.u64());
    l.ids = in.u64();
    return l;
  };
  LaneTable table(shape, rule, lane_ids, 0);
  table.usable_ = usable;
  table.carried_ = lane();
  table.lanes_.clear();
  for (std::uint32_t i = 0; i < used; ++i) {
    table.lanes_.push_back(lane());
    const bool is_odd = ((used - 1 - i) % 2 == 0) == (odd == 1);
    table.odd_ = (table.odd_ & ~(std::uint64_t{1} << i)) | (std::uint64_t{is_odd} << i);
  }
  table.newest_odd_ = odd == 1;
  table.update_live();

  const auto sound = [&](const Lane& l) {
    return l.begin_ms <= now_ms && l.end_ms <= now_ms && l.ids <= limits::kFilterBits &&
           (l.ids == 0 ? l.first_ms == Lane::kNever : l.first_ms <= now_ms);
  };
  const bool carried = spread_of(rule) == 2 ? sound(table.carried_) : table.carried_ == Lane{};
  if (!carried || !std::all_of(table.lanes_.begin(), table.lanes_.end(), sound)) {
    return Error{Errc::corrupt, "lanes: times"};
  }

  for (std::uint64_t j = 0; j < shape.positions; ++j) {
    const std::uint64_t word = shape.word_bits() == 8    ? in.u8()
                               : shape.word_bits() == 16 ? in.u16()
                               : shape.word_bits() == 32 ? in.u32()
                                                         : in.u64();
    if ((word & ~ones_of(used)) != 0) return Error{Errc::corrupt, "lanes: bits of no lane"};
    table.array_.set_word(j, word);
  }
  std::array<std::uint64_t, limits::kLanes> ones{};
  table.array_.count({ones.data(), shape.lanes});
  for (std::uint32_t i = 0; i < used; ++i) table.lanes_[i].ones = ones[i];
  return table;
}

}  // namespace semel
