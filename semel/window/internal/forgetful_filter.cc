#include "semel/window/internal/forgetful_filter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/error_rate.h"
#include "semel/core/limits.h"
#include "semel/window/internal/batch.h"

namespace semel::window_internal {
namespace {

constexpr std::size_t kTables = 64;

// The first table leaves this much of the error, so that share_of_next() never exceeds it.
constexpr double kMostFirstShare = 0.75;

constexpr TimeMs kFarPast = std::numeric_limits<TimeMs>::min();

// The next table is larger by a factor between these two. A lower factor would make too many
// tables; a higher one would trust a momentary rate too much.
constexpr double kLeastGrowth = 1.25;
constexpr double kMostGrowth = 4;
constexpr double kHeadroom = 1.1;
// A smaller table follows when it can be a quarter as large, and not too many older tables are
// still queried.
constexpr std::uint64_t kShrinkBelow = 4;
constexpr std::size_t kShrinkTables = 3;

TimeMs divide_up_ms(TimeMs a, std::uint32_t b) { return a / b + (a % b != 0); }

// Returns the latest multiple of `step` that is not after `time`. Lanes begin there, so that those
// of two sites begin together.
TimeMs on_grid(TimeMs time, TimeMs step) {
  const TimeMs past = time % step;
  return earlier_by(time, past < 0 ? past + step : past);
}

Result<void> check(const ForgetfulFilter::Goal& goal) {
  if (goal.window_ms <= 0) return Error{Errc::invalid, "a window must be longer than zero"};
  if (!is_error_rate(goal.fpr)) return error_rate_refused();
  if (goal.ids == 0) return Error{Errc::invalid, "a window needs room for one id"};
  if (goal.on_full > OnFull::forget || !goal.hash.valid()) {
    return Error{Errc::invalid, "a filter of unknown policy or hash"};
  }
  if (goal.past_lanes == 0 || goal.past_lanes >= limits::kLanes) {
    return Error{Errc::invalid, "a filter has 1 to 63 past lanes"};
  }
  if (goal.layout > BloomLayout::blocked4)
    return Error{Errc::invalid, "a filter of unknown layout"};
  return {};
}

}  // namespace

ForgetfulFilter::ForgetfulFilter(const Goal& goal, TimeMs now_ms)
    : goal_(goal),
      time_(now_ms),
      period_ms_(divide_up_ms(goal.window_ms, periods_covered(goal.lanes()))),
      kept_from_ms_(kFarPast) {}

Result<ForgetfulFilter> ForgetfulFilter::make(const Goal& goal, TimeMs now_ms, double first_share) {
  SEMEL_ASSERT(first_share > 0 && first_share <= kMostFirstShare);
  SEMEL_TRY(check(goal));
  ForgetfulFilter filter(goal, now_ms);
  const double error = goal.grows ? first_share * goal.fpr : goal.fpr;
  const std::uint64_t lane_ids = divide_up(goal.ids, periods_covered(goal.lanes()));
  const LaneShape shape =
      SEMEL_TRY(forgetful_math::shape_for(goal.layout, goal.lanes(), lane_ids, error));
  if (!filter.follow_with(shape, lane_ids)) {
    return Error{Errc::limit, "the first table would take more memory than allowed"};
  }
  return filter;
}

// Returns the share of the error that the next table may take: half of what is left, so that others
// may follow it. Inserts leave a quarter after the first table, and half of the rest after each
// other. Tables that were merged may have used more, and that must not refuse new ids.
double ForgetfulFilter::share_of_next() const {
  double taken = 0;
  for (const LaneTable& table : tables_) taken += table.rate();
  const double least = std::ldexp(goal_.fpr, -static_cast<int>(tables_.size()) - 2);
  return std::max((goal_.fpr - taken) / 2, least);
}

// Returns true if an id of this time may have been accepted before and forgotten.
bool ForgetfulFilter::late(TimeMs at_ms) const { return at_ms < now() && at_ms < promised_from(); }

TimeMs ForgetfulFilter::promised_from() const {
  return std::max(kept_from_ms_, earlier_by(now(), goal_.window_ms));
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
    if (recognises(id)) return Verdict::duplicate;
    ++counts_.stale;
    return Verdict::stale;
  }
  const bool known = recognises(id);  // before room is made by forgetting, perhaps even this id
  if (newest().present().ids == 0) shrink();
  if (!make_room()) {
    ++counts_.refused;
    return Verdict::full;
  }
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
  if (overdue() || newest().lane_full() || newest().present().ids == 0) {
    // Rotating, growing and shrinking are expensive: only a new id justifies them.
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

// Makes room for one more id in the newest lane, or in a new lane if that one is full. Returns
// false if it cannot.
bool ForgetfulFilter::make_room() {
  if (!newest().lane_full()) return true;
  for (;;) {
    if (newest().can_rotate()) {
      newest().rotate(now(), now());
      begin_period();
      return true;
    }
    if (goal_.grows && !cannot_grow_ && follow_with(wanted_ids())) return true;
    if (goal_.on_full == OnFull::refuse) {
      cannot_grow_ = true;
      return false;
    }
    forget_early();
  }
}

bool ForgetfulFilter::takes(std::uint64_t ids) const {
  if (kMostGrowth * static_cast<double>(newest().bytes()) < limits::kSmallBlock) return true;
  return newest().present().ids > 0 && (newest().can_rotate() || newest().lane_takes(ids));
}

// Returns how many ids the window would hold at the present rate. A merged lane holds more ids than
// it counts.
std::uint64_t ForgetfulFilter::wanted_ids() const {
  const auto capacity = static_cast<double>(newest().capacity());
  const auto elapsed_ms =
      static_cast<double>(std::max<TimeMs>(1, earlier_by(now(), newest().present().begin_ms)));
  const double at_rate =
      newest().lane_loads().back() / elapsed_ms * static_cast<double>(goal_.window_ms);
  double held = 0;
  for (const LaneTable& table : tables_) {
    for (const double load : table.lane_loads()) held += load;
  }
  const double wanted = kHeadroom * std::max(at_rate, held);
  return static_cast<std::uint64_t>(
      std::ceil(std::clamp(wanted, kLeastGrowth * capacity, kMostGrowth * capacity)));
}

// Adds a table with room for this many ids, or for as many as the memory still allows. Returns
// false if it allows none, which depends on the tables alone and not on `ids`.
bool ForgetfulFilter::follow_with(std::uint64_t ids) {
  const double error = share_of_next();
  const std::uint32_t periods = periods_covered(goal_.lanes());
  const std::uint64_t least = divide_up(std::min(goal_.ids, newest().capacity()), 8);
  for (;; ids = std::max(ids / 2, least)) {
    const std::uint64_t lane_ids = divide_up(ids, periods);
    const auto shape = forgetful_math::shape_for(goal_.layout, goal_.lanes(), lane_ids, error);
    if (shape && follow_with(*shape, lane_ids)) return true;
    if (ids <= least) return false;
  }
}

bool ForgetfulFilter::follow_with(const LaneShape& shape, std::uint64_t lane_ids) {
  if (tables_.size() == kTables) return false;
  const std::uint64_t used = tables_.empty() ? sizeof *this : bytes();
  if (used > goal_.max_bytes || shape.bytes() > goal_.max_bytes - used) return false;
  LaneTable next(shape, lane_ids, on_grid(now(), period_ms_));
  if (used + next.bytes() > goal_.max_bytes) return false;
  if (!tables_.empty()) newest().prolong(now());
  tables_.push_back(std::move(next));
  cannot_grow_ = false;
  begin_period();
  return true;
}

void ForgetfulFilter::forget_expired() {
  for (LaneTable& table : tables_) {
    while (table.can_drop() && older_than(table.oldest().end_ms, goal_.window_ms, now())) {
      table.drop_oldest();
      cannot_grow_ = false;
    }
  }
  // All tables but the newest only answer queries, and are dropped with their last ids.
  const auto gone = [&](const LaneTable& table) {
    return older_than(table.present().end_ms, goal_.window_ms, now());
  };
  const auto kept = std::remove_if(tables_.begin(), tables_.end() - 1, gone);
  if (kept == tables_.end() - 1) return;
  tables_.erase(kept, tables_.end() - 1);
  cannot_grow_ = false;
}

void ForgetfulFilter::lose(const Lane& lane) {
  if (lane.ids == 0 || older_than(lane.end_ms, goal_.window_ms, now())) return;
  counts_.forgotten_early += lane.ids;
  kept_from_ms_ = std::max(kept_from_ms_, later_by(lane.end_ms, 1));
}

void ForgetfulFilter::forget_early() {
  LaneTable& oldest = tables_.front();
  if (oldest.can_drop()) {
    lose(oldest.oldest());
    oldest.drop_oldest();
    return;
  }
  SEMEL_ASSERT(tables_.size() > 1);  // the newest has a lane to drop whenever it has none to start
  lose(oldest.oldest());
  tables_.erase(tables_.begin());
}

// Returns when a period ends. A period that began in the middle, because the one before was full,
// may be up to half a period longer. Otherwise every other lane would be a sliver.
TimeMs ForgetfulFilter::next_period(TimeMs begin_ms) const {
  return later_by(on_grid(later_by(begin_ms, period_ms_ / 2), period_ms_), period_ms_);
}

// The result does not depend on the steps in which the time came.
void ForgetfulFilter::rotate_by_time() {
  while (next_period_ms_ <= now()) {
    forget_expired();
    if (!newest().can_rotate()) return;
    const TimeMs end_ms = std::max(newest().present().end_ms, next_period_ms_ - 1);
    newest().rotate(end_ms, begin_after(end_ms, now()));
    begin_period();
  }
}

// Returns when the next period begins after one that ended at `end_ms`. After a long silence only
// the periods that are still remembered are counted.
TimeMs ForgetfulFilter::begin_after(TimeMs end_ms, TimeMs now_ms) const {
  return on_grid(std::max(later_by(end_ms, 1), earlier_by(now_ms, goal_.window_ms)), period_ms_);
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

// Does what rotate_by_time() and forget_expired() would do, but only to the ends of the lanes.
// REQUIRES: now_ms > now().
std::size_t ForgetfulFilter::lanes_dropped(const LaneTable& table, TimeMs now_ms) const {
  const auto old = [&](TimeMs end_ms) { return older_than(end_ms, goal_.window_ms, now_ms); };
  TimeMs next_ms = next_period_ms_;
  const bool rotates = &table == &newest() && next_ms <= now_ms;
  if (!rotates && !old(table.oldest().end_ms)) return 0;

  // No lane that begins here ends outside of the window, so no more lanes begin than there are.
  std::array<TimeMs, 2 * limits::kLanes> ends;  // the oldest first
  std::size_t count = 0, dropped = 0;
  for (const Lane& lane : table.lanes()) ends[count++] = lane.end_ms;
  const auto forget = [&] {
    while (count - dropped > 1 && old(ends[dropped])) ++dropped;
  };
  for (; rotates && next_ms <= now_ms; next_ms = next_period(next_ms)) {
    forget();
    if (count - dropped >= table.shape().lanes) break;
    SEMEL_ASSERT(count < ends.size());
    TimeMs& end_ms = ends[count - 1];
    end_ms = std::max(end_ms, next_ms - 1);
    next_ms = begin_after(end_ms, now_ms);
    ends[count++] = next_ms;
  }
  forget();
  return dropped;
}

// Adds a smaller table, with the first id of a period, when the load has been low for half a
// window. The larger table keeps what it remembers, so only the rate counts.
void ForgetfulFilter::shrink() {
  if (!goal_.grows || tables_.size() > kShrinkTables) return;
  const std::uint32_t periods = periods_covered(goal_.lanes());
  const std::vector<Lane>& lanes = newest().lanes();
  const std::size_t ended = lanes.size() - 1;
  const std::size_t looked_at = divide_up(periods, 2);
  if (ended < looked_at) return;
  std::uint64_t most = 0;
  for (std::size_t i = ended - looked_at; i < ended; ++i) most = std::max(most, lanes[i].ids);
  const std::uint64_t wanted = std::max(goal_.ids, 2 * most * periods);
  if (wanted > newest().capacity() / kShrinkBelow) return;
  // The larger table keeps its memory until its ids have left. If the load comes back before that,
  // there must be room for another table as large.
  if (bytes() + 2 * newest().bytes() > goal_.max_bytes) return;
  follow_with(wanted);
}

void ForgetfulFilter::advance(TimeMs now_ms) {
  if (!time_.advance(now_ms)) return;
  rotate_by_time();
  forget_expired();
  if (!newest().sweeping()) return;
  newest().sweep_until(static_cast<double>(earlier_by(now(), newest().present().begin_ms)) /
                       static_cast<double>(period_ms_));
}

WindowPromise ForgetfulFilter::promise() const {
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
  Goal goal = other.goal_;
  goal.max_bytes = goal_.max_bytes;
  goal.on_full = goal_.on_full;
  if (goal != goal_) return Error{Errc::mismatch, "forgetful filters of different goals"};
  if (now() != other.now() || tables_.size() != other.tables_.size()) {
    return Error{Errc::mismatch, "forgetful filters of different times"};
  }
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    SEMEL_TRY(tables_[i].check_mergeable(other.tables_[i]));
  }
  for (std::size_t i = 0; i < tables_.size(); ++i) tables_[i].merge(other.tables_[i]);
  cannot_grow_ = false;
  kept_from_ms_ = std::max(kept_from_ms_, other.kept_from_ms_);
  return {};
}

bool ForgetfulFilter::operator==(const ForgetfulFilter& other) const {
  Bytes mine, theirs;
  encode(mine);
  other.encode(theirs);
  return mine == theirs;
}

void ForgetfulFilter::encode(Sink out) const {
  seal(out, kForgetfulFormat, [&](Writer& w) {
    w.i64(goal_.window_ms);
    w.f64(goal_.fpr);
    w.u64(goal_.ids);
    w.u8(static_cast<std::uint8_t>(goal_.past_lanes));
    w.enumeration(goal_.layout);
    w.boolean(goal_.grows);
    w.enumeration(goal_.on_full);
    w.u64(goal_.max_bytes);
    write(w, goal_.hash);
    w.i64(now());
    w.i64(kept_from_ms_);
    w.u32(static_cast<std::uint32_t>(tables_.size()));
    for (const LaneTable& table : tables_) table.encode(w);
  });
}

Result<ForgetfulFilter> ForgetfulFilter::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kForgetfulFormat));
  Goal goal{};
  goal.window_ms = r.i64();
  goal.fpr = r.f64();
  goal.ids = r.u64();
  goal.past_lanes = r.u8();
  goal.layout = r.enumeration(BloomLayout::blocked4);
  goal.grows = r.boolean();
  goal.on_full = r.enumeration(OnFull::forget);
  goal.max_bytes = r.u64();
  goal.hash = read_hash_id(r);
  const TimeMs now_ms = r.i64();
  const TimeMs kept_from_ms = r.i64();
  const std::uint32_t tables = r.u32();
  if (!r.ok() || !check(goal)) return corrupt(kForgetfulFormat, "goal");
  if (tables == 0 || tables > kTables) return corrupt(kForgetfulFormat, "number of tables");

  ForgetfulFilter filter(goal, now_ms);
  filter.kept_from_ms_ = kept_from_ms;
  for (std::uint32_t i = 0; i < tables; ++i) {
    filter.tables_.push_back(SEMEL_TRY(LaneTable::decode(r, goal.layout, goal.lanes(), now_ms)));
  }
  filter.begin_period();
  if (!r.at_end()) return corrupt(kForgetfulFormat, "size");
  return filter;
}

}  // namespace semel::window_internal
