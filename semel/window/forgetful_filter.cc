#include "semel/window/forgetful_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/error_rate.h"
#include "semel/core/limits.h"
#include "semel/hash/seal.h"
#include "semel/window/internal/batch.h"

namespace semel {
namespace {

// docs/formats/forgetful_v1.md. All integers little-endian.
//
//    OFFSET  SIZE  FIELD
//         0     4  magic, the bytes "SFF1"; a new layout takes a new magic
//         4     1  rule: 0 newest, 1 any, 2 pairs or oldest, 3 split pairs
//         5     1  layout: 0 plain, 1 to 4 blocked with so many lines for an id
//         6     1  schedule: 0 fill, 1 time, 2 paper
//         7     1  bit 0: grows; bit 1: forgets early when full
//         8     1  kind of hash: 0 fast, 1 keyed
//         9     1  past lanes
//        10     2  tables
//        12     4  zero
//        16     8  window_ms
//        24     8  error, an IEEE 754 double
//        32     8  ids
//        40     8  max_bytes
//        48     8  seed of the hash, or name of its key
//        56     8  now_ms
//        64     8  period_ms
//        72     8  next_check_ms
//        80     8  kept_from_ms
//        88    32  backward steps, refused, stale, forgotten early
//       120        tables, from the oldest
//      last     8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31464653;
constexpr std::size_t kTrailerSize = 8;
constexpr std::size_t kTables = 64;

constexpr TimeMs kFarPast = std::numeric_limits<TimeMs>::min();
constexpr TimeMs kFarFuture = std::numeric_limits<TimeMs>::max();

// Algorithm 3 of the paper looks at the error each second, and changes the period by one.
constexpr TimeMs kCheckMs = 1000;
constexpr TimeMs kPeriodStepMs = 1000;

// How much larger the next table may be: less than the first would be too many tables, more than the
// second too much trust in the rate of a moment.
constexpr double kLeastGrowth = 1.25;
constexpr double kMostGrowth = 4;
constexpr double kHeadroom = 1.1;
// A smaller table follows when it can be a quarter as large, and when not too many are still asked.
constexpr std::uint64_t kShrinkBelow = 4;
constexpr std::size_t kShrinkTables = 3;

TimeMs plus(TimeMs a, TimeMs b) {
  TimeMs sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return b > 0 ? kFarFuture : kFarPast;
  return sum;
}
TimeMs minus(TimeMs a, TimeMs b) {
  TimeMs difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) return b > 0 ? kFarPast : kFarFuture;
  return difference;
}

TimeMs divide_up_ms(TimeMs a, std::uint32_t b) { return a / b + (a % b != 0); }

// The latest multiple of `step` that is not after `time`. Lanes begin there, so that those of two sites
// begin together.
TimeMs on_grid(TimeMs time, TimeMs step) {
  const TimeMs past = time % step;
  return minus(time, past < 0 ? past + step : past);
}

Result<void> check(const ForgetfulFilter::Goal& goal) {
  if (goal.window_ms <= 0) return Error{Errc::invalid, "a window must be longer than zero"};
  if (!is_error_rate(goal.fpr)) return kErrorRateRefused;
  if (goal.ids == 0) return Error{Errc::invalid, "a window needs room for one id"};
  if (goal.rule > LaneRule::split_pairs || goal.schedule > LaneSchedule::paper ||
      goal.when_full > WhenFull::forget || !goal.hash.valid()) {
    return Error{Errc::invalid, "no such rule, schedule, policy or hash"};
  }
  if (goal.past_lanes == 0 || goal.past_lanes > limits::kLanes || goal.lanes() > limits::kLanes) {
    return Error{Errc::invalid, "a filter has 1 to 62 past lanes, or 63 with spread 1"};
  }
  if (goal.layout > BloomLayout::blocked4) return Error{Errc::invalid, "no such layout"};
  if (goal.layout != BloomLayout::plain && spread_of(goal.rule) != 1) {
    return Error{Errc::invalid, "blocked layouts are for spread 1"};
  }
  return {};
}

}  // namespace

ForgetfulFilter::ForgetfulFilter(const Goal& goal, TimeMs now_ms)
    : goal_(goal),
      time_(now_ms),
      period_ms_(divide_up_ms(goal.window_ms, periods_covered(goal.rule, goal.lanes()))),
      next_check_ms_(
          goal.schedule == LaneSchedule::paper ? plus(on_grid(now_ms, kCheckMs), kCheckMs) : 0),
      kept_from_ms_(kFarPast) {}

Result<ForgetfulFilter> ForgetfulFilter::make(const Goal& goal, TimeMs now_ms, double first_share) {
  SEMEL_ASSERT(first_share > 0 && first_share < 1);
  if (const auto sound = check(goal); !sound) return sound.error();
  ForgetfulFilter filter(goal, now_ms);
  const double error =
      filter.bounded() && goal.grows ? first_share * goal.fpr : filter.error_left();
  const std::uint64_t lane_ids = divide_up(goal.ids, periods_covered(goal.rule, goal.lanes()));
  const auto shape =
      forgetful_math::shape_for(goal.layout, goal.lanes(), goal.rule, lane_ids, error);
  if (!shape) return shape.error();
  if (!filter.follow_with(*shape, lane_ids)) {
    return Error{Errc::limit, "the first table would be larger than max_bytes"};
  }
  return filter;
}

Result<ForgetfulFilter> ForgetfulFilter::make(const Goal& goal, const LaneShape& shape,
                                              TimeMs now_ms) {
  if (const auto sound = check(goal); !sound) return sound.error();
  if (!shape.valid() || shape.layout != goal.layout || shape.lanes != goal.lanes()) {
    return Error{Errc::invalid, "a shape that does not fit the goal"};
  }
  ForgetfulFilter filter(goal, now_ms);
  const std::uint64_t lane_ids = forgetful_math::ids_for(shape, goal.rule, filter.error_left());
  if (lane_ids == 0) return Error{Errc::invalid, "a shape without room for one id at this error"};
  if (!filter.follow_with(shape, lane_ids)) {
    return Error{Errc::limit, "the first table would be larger than max_bytes"};
  }
  return filter;
}

// What the next table may contribute to the error: half of what is left, if others may follow it.
double ForgetfulFilter::error_left() const {
  if (!bounded() || !goal_.grows) return goal_.fpr;
  double taken = 0;
  for (const LaneTable& table : tables_) taken += table.rate();
  return (goal_.fpr - taken) / 2;
}

// Whether an id of this time may have come before and be forgotten.
bool ForgetfulFilter::late(TimeMs at_ms) const { return at_ms < now() && at_ms < promised_from(); }

TimeMs ForgetfulFilter::promised_from() const {
  return std::max(kept_from_ms_, minus(now(), goal_.window_ms));
}

Verdict ForgetfulFilter::test(Digest id, TimeMs now_ms) const {
  if (now_ms <= now()) return test(id);
  bool known = false;
  for_each_table_at(now_ms, [&](const LaneTable& table, std::size_t dropped) {
    known = known || table.recognises(id, dropped);
  });
  return known ? Verdict::duplicate : Verdict::fresh;
}

void ForgetfulFilter::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  test(ids, now(), verdicts);
}

void ForgetfulFilter::test(std::span<const Digest> ids, TimeMs now_ms,
                           std::span<Verdict> verdicts) const {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  constexpr std::size_t kChunk = 512;
  for (std::size_t start = 0; start < ids.size(); start += kChunk) {
    const std::size_t n = std::min(kChunk, ids.size() - start);
    std::array<bool, kChunk> found{};
    for_each_table_at(now_ms, [&](const LaneTable& table, std::size_t dropped) {
      table.recognises(ids.subspan(start, n), {found.data(), n}, dropped);
    });
    for (std::size_t i = 0; i < n; ++i) {
      verdicts[start + i] = found[i] ? Verdict::duplicate : Verdict::fresh;
    }
  }
}

Verdict ForgetfulFilter::insert(Digest id, TimeMs at_ms) {
  if (late(at_ms)) {
    ++counts_.stale;
    return Verdict::stale;
  }
  if (newest().present().ids == 0) shrink();
  if (!make_room()) {
    ++counts_.refused;
    return Verdict::full;
  }
  const bool known = recognises(id);
  newest().insert(id, std::min(at_ms, now()));
  if (overdue()) newest().prolong(now());
  return known ? Verdict::duplicate : Verdict::fresh;
}

Verdict ForgetfulFilter::test_and_insert(Digest id, TimeMs at_ms) {
  if (late(at_ms)) {
    if (recognises(id)) return Verdict::duplicate;
    ++counts_.stale;
    return Verdict::stale;
  }
  if (overdue() || (bounded() && (newest().period_full() || newest().present().ids == 0))) {
    // What may come with it costs something: only a new id is worth it.
    return recognises(id) ? Verdict::duplicate : insert(id, at_ms);
  }
  for (std::size_t i = 0; i + 1 < tables_.size(); ++i) {
    if (tables_[i].recognises(id)) return Verdict::duplicate;
  }
  return newest().test_and_insert(id, std::min(at_ms, now())) ? Verdict::fresh : Verdict::duplicate;
}

void ForgetfulFilter::insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return insert(id); });
}

void ForgetfulFilter::touch(Digest id) const {
  for (std::size_t i = 0; i + 1 < tables_.size(); ++i) tables_[i].touch_for_test(id);
  newest().touch(id);
}

void ForgetfulFilter::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return test_and_insert(id); });
}

// Whether the present period can take one more id, or another period could be begun that can.
bool ForgetfulFilter::make_room() {
  if (!bounded() || !newest().period_full()) return true;
  for (;;) {
    if (newest().can_rotate()) {
      newest().rotate(now(), now());
      begin_period();
      return true;
    }
    if (goal_.grows && !cannot_grow_ && follow_with(wanted_ids())) return true;
    if (goal_.when_full == WhenFull::refuse) {
      cannot_grow_ = true;
      return false;
    }
    forget_early();
  }
}

bool ForgetfulFilter::takes(std::uint64_t ids) const {
  if (!bounded() || kMostGrowth * static_cast<double>(newest().bytes()) < limits::kSmallBlock) {
    return true;
  }
  return newest().present().ids > 0 && (newest().can_rotate() || newest().period_takes(ids));
}

// As many as the window would hold at the present rate.
std::uint64_t ForgetfulFilter::wanted_ids() const {
  const auto capacity = static_cast<double>(newest().capacity());
  const Lane& present = newest().present();
  const auto elapsed_ms = static_cast<double>(std::max<TimeMs>(1, minus(now(), present.begin_ms)));
  const double at_rate =
      static_cast<double>(present.ids) / elapsed_ms * static_cast<double>(goal_.window_ms);
  const double wanted = kHeadroom * std::max(at_rate, static_cast<double>(ids()));
  return static_cast<std::uint64_t>(
      std::ceil(std::clamp(wanted, kLeastGrowth * capacity, kMostGrowth * capacity)));
}

// A table with room for so many ids takes over, or for as many as the memory still allows. Whether
// that fails follows from the tables alone, and not from `ids`.
bool ForgetfulFilter::follow_with(std::uint64_t ids) {
  const double error = error_left();
  if (!(error > 0)) return false;
  const std::uint32_t periods = periods_covered(goal_.rule, goal_.lanes());
  const std::uint64_t least = divide_up(std::min(goal_.ids, newest().capacity()), 8);
  for (;; ids = std::max(ids / 2, least)) {
    const std::uint64_t lane_ids = divide_up(ids, periods);
    const auto shape =
        forgetful_math::shape_for(goal_.layout, goal_.lanes(), goal_.rule, lane_ids, error);
    if (shape && follow_with(*shape, lane_ids)) return true;
    if (ids <= least) return false;
  }
}

bool ForgetfulFilter::follow_with(const LaneShape& shape, std::uint64_t lane_ids) {
  if (tables_.size() == kTables) return false;
  const std::uint64_t used = tables_.empty() ? sizeof *this : bytes();
  if (used > goal_.max_bytes || shape.bytes() > goal_.max_bytes - used) return false;
  LaneTable next(shape, goal_.rule, lane_ids, on_grid(now(), period_ms_));
  if (used + next.bytes() > goal_.max_bytes) return false;
  if (!tables_.empty()) newest().close(now());
  tables_.push_back(std::move(next));
  cannot_grow_ = false;
  begin_period();
  return true;
}

void ForgetfulFilter::forget_expired() {
  for (LaneTable& table : tables_) {
    while (table.can_drop() && older_than(table.next_to_forget().end_ms, goal_.window_ms, now())) {
      table.drop_oldest();
      cannot_grow_ = false;
    }
  }
  // All but the newest are only asked, and go with their last ids.
  const auto gone = [&](const LaneTable& table) {
    return older_than(table.present().end_ms, goal_.window_ms, now());
  };
  const auto kept = std::remove_if(tables_.begin(), tables_.end() - 1, gone);
  if (kept == tables_.end() - 1) return;
  tables_.erase(kept, tables_.end() - 1);
  cannot_grow_ = false;
}

void ForgetfulFilter::lose(const Lane& period) {
  if (period.ids == 0 || older_than(period.end_ms, goal_.window_ms, now())) return;
  counts_.forgotten_early += period.ids;
  kept_from_ms_ = std::max(kept_from_ms_, plus(period.end_ms, 1));
}

void ForgetfulFilter::forget_early() {
  LaneTable& oldest = tables_.front();
  if (oldest.can_drop()) {
    lose(oldest.next_to_forget());
    oldest.drop_oldest();
    return;
  }
  SEMEL_ASSERT(tables_.size() > 1);  // the newest has a lane to drop whenever it has none to begin
  if (carries(oldest.rule())) lose(oldest.next_to_forget());
  for (const Lane& lane : oldest.lanes()) lose(lane);
  tables_.erase(tables_.begin());
}

// When the present period is over. One that began in the middle, because the one before was full, may
// be up to half a period longer: or every other lane would be a sliver.
TimeMs ForgetfulFilter::next_period(TimeMs begin_ms) const {
  return plus(on_grid(plus(begin_ms, period_ms_ / 2), period_ms_), period_ms_);
}

// Nothing here depends on the steps in which the time came.
void ForgetfulFilter::rotate_by_time() {
  while (next_period_ms_ <= now()) {
    forget_expired();
    if (!newest().can_rotate()) return;
    const TimeMs end_ms = std::max(newest().present().end_ms, next_period_ms_ - 1);
    newest().rotate(end_ms, begin_after(end_ms, now()));
    begin_period();
  }
}

// When a period begins after one that ended then: of a long silence only those that are still
// remembered.
TimeMs ForgetfulFilter::begin_after(TimeMs end_ms, TimeMs now_ms) const {
  return on_grid(std::max(plus(end_ms, 1), minus(now_ms, goal_.window_ms)), period_ms_);
}

template <class Visit>
void ForgetfulFilter::for_each_table_at(TimeMs now_ms, Visit visit) const {
  for (const LaneTable& table : tables_) {
    if (now_ms <= now()) {
      visit(table, 0);
    } else if (&table == &newest() ||
               !older_than(table.present().end_ms, goal_.window_ms, now_ms)) {
      visit(table, lanes_dropped(table, now_ms));
    }
  }
}

// rotate_by_time() and forget_expired() on the ends of the lanes alone. REQUIRES: now_ms > now().
std::size_t ForgetfulFilter::lanes_dropped(const LaneTable& table, TimeMs now_ms) const {
  const std::size_t spread = spread_of(goal_.rule), carried = carries(goal_.rule) ? 1 : 0;
  const auto old = [&](TimeMs end_ms) { return older_than(end_ms, goal_.window_ms, now_ms); };
  TimeMs next_ms = next_period_ms_;
  const bool rotates = &table == &newest() && next_ms <= now_ms;
  if (!rotates && !old(table.next_to_forget().end_ms)) return 0;

  // In the order in which they are forgotten. No lane that begins here ends outside of the window, so
  // that no more begin than there are.
  std::array<TimeMs, 2 * limits::kLanes + 1> ends;
  std::size_t count = 0, dropped = 0;
  if (carried != 0) ends[count++] = table.next_to_forget().end_ms;
  for (const Lane& lane : table.lanes()) ends[count++] = lane.end_ms;
  const auto lanes = [&] { return count - carried - dropped; };
  const auto forget = [&] {
    while (lanes() > spread && old(ends[dropped])) ++dropped;
  };
  for (; rotates && next_ms <= now_ms; next_ms = next_period(next_ms)) {
    forget();
    if (lanes() >= table.usable_lanes()) break;
    SEMEL_ASSERT(count < ends.size());
    TimeMs& end_ms = ends[count - spread];
    end_ms = std::max(end_ms, next_ms - 1);
    next_ms = begin_after(end_ms, now_ms);
    ends[count++] = next_ms;
    ends[count - spread] = next_ms;
  }
  forget();
  return dropped;
}

// When the load has been low for half a window a smaller table follows, with the first id of a period.
// What the larger one remembers stays there, so that only the rate counts.
void ForgetfulFilter::shrink() {
  if (!bounded() || !goal_.grows || tables_.size() > kShrinkTables) return;
  const std::uint32_t periods = periods_covered(goal_.rule, newest().usable_lanes());
  const std::vector<Lane>& lanes = newest().lanes();
  const std::size_t ended = lanes.size() - spread_of(goal_.rule);
  const std::size_t looked_at = divide_up(periods, 2);
  if (ended < looked_at) return;
  std::uint64_t most = 0;
  for (std::size_t i = ended - looked_at; i < ended; ++i) most = std::max(most, lanes[i].ids);
  const std::uint64_t wanted = std::max(goal_.ids, 2 * most * periods);
  if (wanted > newest().capacity() / kShrinkBelow) return;
  // Until the larger table has left it takes its memory, and the load may come back before: then there
  // must be room for another one as large.
  if (bytes() + 2 * newest().bytes() > goal_.max_bytes) return;
  follow_with(wanted);
}

// Algorithm 3 of the paper, made safe: lanes are dropped by age alone, whatever their number, and the
// period never becomes shorter than the lanes can cover the window with.
void ForgetfulFilter::adapt() {
  if (now() < next_check_ms_) return;
  next_check_ms_ = plus(on_grid(now(), kCheckMs), kCheckMs);
  const double rate = false_positive_rate();
  const std::uint32_t lanes = newest().usable_lanes();
  const std::uint32_t least = spread_of(goal_.rule) + 1;
  if (rate >= 0.9 * goal_.fpr) {
    use_lanes(std::min(2 * lanes, limits::kLanes));
    period_ms_ -= kPeriodStepMs;
  } else if (rate <= 0.1 * goal_.fpr) {
    use_lanes(std::max(lanes - 1, least));
    period_ms_ = plus(period_ms_, kPeriodStepMs);
  }
  const std::uint32_t periods = periods_covered(goal_.rule, newest().usable_lanes());
  period_ms_ = std::clamp(period_ms_, divide_up_ms(goal_.window_ms, periods), goal_.window_ms);
  begin_period();
  if (overdue()) newest().prolong(now());  // ids may have come when it was not yet
}

void ForgetfulFilter::use_lanes(std::uint32_t lanes) {
  LaneShape shape = newest().shape();
  const std::uint32_t word_bits = shape.word_bits();
  shape.lanes = lanes;
  // Lanes beyond the width of a word, or so few that a word of half the width would do, need another
  // table. Where there is no memory for it, the lanes stay as they are.
  if (lanes > newest().shape().lanes || shape.word_bits() < word_bits) {
    follow_with(shape, newest().lane_ids());
  } else {
    newest().limit_lanes(lanes);
  }
}

void ForgetfulFilter::advance(TimeMs now_ms) {
  if (!time_.advance(now_ms)) return;
  rotate_by_time();
  forget_expired();
  if (goal_.schedule == LaneSchedule::paper) adapt();
  if (!newest().sweeping()) return;
  newest().sweep_until(static_cast<double>(minus(now(), newest().present().begin_ms)) /
                       static_cast<double>(period_ms_));
}

Promise ForgetfulFilter::promise() const {
  TimeMs first_ms = now();
  for (const LaneTable& table : tables_) first_ms = std::min(first_ms, table.first_ms());
  return {goal_.window_ms, promised_from(), std::min(first_ms, promised_from())};
}

WindowCounts ForgetfulFilter::counts() const {
  WindowCounts counts = counts_;
  counts.backward_steps += time_.backward_steps();
  return counts;
}

double ForgetfulFilter::false_positive_rate() const {
  double none = 1;
  for (const LaneTable& table : tables_) none *= 1 - table.rate();
  return 1 - none;
}

double ForgetfulFilter::full_false_positive_rate() const {
  return forgetful_math::full_rate(newest().shape(), goal_.rule,
                                   static_cast<double>(newest().lane_ids()));
}

std::uint64_t ForgetfulFilter::ids() const {
  std::uint64_t sum = 0;
  for (const LaneTable& table : tables_) sum += table.ids();
  return sum;
}

std::uint64_t ForgetfulFilter::ids(TimeMs now_ms) const {
  std::uint64_t sum = 0;
  for_each_table_at(
      now_ms, [&](const LaneTable& table, std::size_t dropped) { sum += table.ids(dropped); });
  return sum;
}

std::uint64_t ForgetfulFilter::bytes() const {
  std::uint64_t sum = sizeof *this;
  for (const LaneTable& table : tables_) sum += table.bytes();
  return sum;
}

Result<void> ForgetfulFilter::merge(const ForgetfulFilter& other) {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "forgetful filters of different goals"};
  if (now() != other.now() || period_ms_ != other.period_ms_ ||
      next_check_ms_ != other.next_check_ms_ || tables_.size() != other.tables_.size()) {
    return Error{Errc::mismatch, "forgetful filters of different times"};
  }
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (const auto same = tables_[i].check_mergeable(other.tables_[i]); !same) return same.error();
  }
  for (std::size_t i = 0; i < tables_.size(); ++i) tables_[i].merge(other.tables_[i]);
  cannot_grow_ = false;
  kept_from_ms_ = std::max(kept_from_ms_, other.kept_from_ms_);
  const WindowCounts mine = counts(), theirs = other.counts();
  time_ = WindowTime(now());
  counts_ = {std::max(mine.backward_steps, theirs.backward_steps),
             std::max(mine.refused, theirs.refused), std::max(mine.stale, theirs.stale),
             std::max(mine.forgotten_early, theirs.forgotten_early)};
  return {};
}

bool ForgetfulFilter::operator==(const ForgetfulFilter& other) const {
  Bytes mine, theirs;
  encode(mine, {});
  other.encode(theirs, {});
  return mine == theirs;
}

void ForgetfulFilter::encode(Sink out) const { encode(out, counts()); }

void ForgetfulFilter::encode(Sink out, const WindowCounts& counted) const {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(goal_.rule));
  w.u8(static_cast<std::uint8_t>(goal_.layout));
  w.u8(static_cast<std::uint8_t>(goal_.schedule));
  w.u8(static_cast<std::uint8_t>((goal_.grows ? 1 : 0) |
                                 (goal_.when_full == WhenFull::forget ? 2 : 0)));
  w.u8(static_cast<std::uint8_t>(goal_.hash.kind));
  w.u8(static_cast<std::uint8_t>(goal_.past_lanes));
  w.u16(static_cast<std::uint16_t>(tables_.size()));
  w.u32(0);
  w.u64(static_cast<std::uint64_t>(goal_.window_ms));
  w.u64(std::bit_cast<std::uint64_t>(goal_.fpr));
  w.u64(goal_.ids);
  w.u64(goal_.max_bytes);
  w.u64(goal_.hash.seed);
  w.u64(static_cast<std::uint64_t>(now()));
  w.u64(static_cast<std::uint64_t>(period_ms_));
  w.u64(static_cast<std::uint64_t>(next_check_ms_));
  w.u64(static_cast<std::uint64_t>(kept_from_ms_));
  w.u64(counted.backward_steps);
  w.u64(counted.refused);
  w.u64(counted.stale);
  w.u64(counted.forgotten_early);
  for (const LaneTable& table : tables_) table.encode(out);
  seal.close();
}

Result<ForgetfulFilter> ForgetfulFilter::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  Goal goal{};
  goal.rule = static_cast<LaneRule>(r.u8());
  goal.layout = static_cast<BloomLayout>(r.u8());
  goal.schedule = static_cast<LaneSchedule>(r.u8());
  const std::uint8_t flags = r.u8();
  goal.grows = (flags & 1) != 0;
  goal.when_full = (flags & 2) != 0 ? WhenFull::forget : WhenFull::refuse;
  goal.hash.kind = static_cast<HashKind>(r.u8());
  goal.past_lanes = r.u8();
  const std::size_t tables = r.u16();
  const std::uint32_t zero = r.u32();
  goal.window_ms = static_cast<TimeMs>(r.u64());
  goal.fpr = std::bit_cast<double>(r.u64());
  goal.ids = r.u64();
  goal.max_bytes = r.u64();
  goal.hash.seed = r.u64();
  const auto now_ms = static_cast<TimeMs>(r.u64());
  const auto period_ms = static_cast<TimeMs>(r.u64());
  const auto next_check_ms = static_cast<TimeMs>(r.u64());
  const auto kept_from_ms = static_cast<TimeMs>(r.u64());
  WindowCounts counts;
  counts.backward_steps = r.u64();
  counts.refused = r.u64();
  counts.stale = r.u64();
  counts.forgotten_early = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "forgetful filter: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "forgetful filter: magic"};
  if (flags > 3 || zero != 0 || !check(goal) || tables == 0 || tables > kTables) {
    return Error{Errc::corrupt, "forgetful filter: goal"};
  }

  ForgetfulFilter filter(goal, now_ms);
  if (goal.schedule != LaneSchedule::paper ? period_ms != filter.period_ms_
                                           : period_ms <= 0 || period_ms > goal.window_ms) {
    return Error{Errc::corrupt, "forgetful filter: period"};
  }
  filter.period_ms_ = period_ms;
  filter.next_check_ms_ = next_check_ms;
  filter.kept_from_ms_ = kept_from_ms;
  filter.counts_ = filter.decoded_counts_ = counts;
  for (std::size_t i = 0; i < tables; ++i) {
    auto table = LaneTable::decode(r, goal.layout, goal.rule, now_ms);
    if (!table) return table.error();
    if (goal.schedule != LaneSchedule::paper && table->shape().lanes != goal.lanes()) {
      return Error{Errc::corrupt, "forgetful filter: lanes"};
    }
    filter.tables_.push_back(*std::move(table));
  }
  filter.begin_period();
  if (r.rest() != kTrailerSize) return Error{Errc::corrupt, "forgetful filter: size"};
  if (r.u64() != checksum(in.first(in.size() - kTrailerSize))) {
    return Error{Errc::corrupt, "forgetful filter: checksum"};
  }
  return filter;
}

}  // namespace semel
