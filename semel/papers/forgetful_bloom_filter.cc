#include "semel/papers/forgetful_bloom_filter.h"

#include <algorithm>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/error_rate.h"
#include "semel/core/limits.h"
#include "semel/window/internal/batch.h"

namespace semel::papers {

using window_internal::judge_each;

namespace {

// Algorithm 3 of the paper checks the error each second, and changes the period by one.
constexpr TimeMs kCheckMs = 1000;
constexpr TimeMs kPeriodStepMs = 1000;

TimeMs divide_up_ms(TimeMs a, std::uint32_t b) { return a / b + (a % b != 0); }

// Returns the latest multiple of `step` that is not after `time`.
TimeMs on_grid(TimeMs time, TimeMs step) {
  const TimeMs past = time % step;
  return earlier_by(time, past < 0 ? past + step : past);
}

TimeMs shortest_period(const ForgetfulBloomFilter::Goal& goal, std::uint32_t lanes) {
  return divide_up_ms(goal.window_ms, periods_covered(goal.rule, lanes));
}

Result<void> check(const ForgetfulBloomFilter::Goal& goal) {
  if (goal.window_ms <= 0) return Error{Errc::invalid, "a window must be longer than zero"};
  if (!is_error_rate(goal.fpr)) return error_rate_refused();
  if (goal.ids == 0) return Error{Errc::invalid, "a window needs room for one id"};
  if (goal.past_lanes == 0 || goal.past_lanes > limits::kLanes || goal.lanes() > limits::kLanes) {
    return Error{Errc::invalid, "a filter has 1 to 62 past lanes, or 63 with spread 1"};
  }
  return {};
}

// Calls visit(position) for each probe, as in the plain layout of window/internal/lane_kernel.h.
// Returns false as soon as a visit does.
template <class Visit>
bool visit_probes(const LaneShape& shape, Digest id, bool odd, Visit visit) {
  if (odd) id = {word_of(id.lo, 1), word_of(id.hi, 1)};
  const std::uint64_t turn = fold(id.hi, 0x9e3779b97f4a7c15);
  for (std::uint32_t i = 0; i < shape.probes; ++i) {
    if (!visit(scale(id.lo, shape.positions))) return false;
    id.lo += id.hi;
    id.hi += turn;
  }
  return true;
}

}  // namespace

ForgetfulBloomFilter::ForgetfulBloomFilter(const Goal& goal, const LaneShape& shape, TimeMs now_ms)
    : goal_(goal),
      shape_(shape),
      time_(now_ms),
      most_lanes_(goal.lanes()),
      period_ms_(shortest_period(goal, most_lanes_)),
      next_check_ms_(later_by(on_grid(now_ms, kCheckMs), kCheckMs)) {
  // The filter begins as if an empty period had just ended.
  const TimeMs begin_ms = on_grid(now_ms, period_ms_);
  carried_.begin_ms = carried_.end_ms = earlier_by(begin_ms, 1);
  for (std::size_t i = 0; i < spread(); ++i) append_lane(begin_ms);
  begin_period();
}

Result<ForgetfulBloomFilter> ForgetfulBloomFilter::make(const Goal& goal, TimeMs now_ms) {
  SEMEL_TRY(check(goal));
  const std::uint64_t period_ids = divide_up(goal.ids, periods_covered(goal.rule, goal.lanes()));
  const LaneShape shape = SEMEL_TRY(shape_for(goal.lanes(), goal.rule, period_ids, goal.fpr));
  return ForgetfulBloomFilter(goal, shape, now_ms);
}

Result<ForgetfulBloomFilter> ForgetfulBloomFilter::make(const Goal& goal, const LaneShape& shape,
                                                        TimeMs now_ms) {
  SEMEL_TRY(check(goal));
  if (!shape.valid() || shape.layout != BloomLayout::plain || shape.lanes != goal.lanes()) {
    return Error{Errc::invalid, "a shape that does not fit the goal"};
  }
  return ForgetfulBloomFilter(goal, shape, now_ms);
}

bool ForgetfulBloomFilter::in_lane(const Lane& lane, Digest id) const {
  return visit_probes(shape_, id, lane.odd, [&](std::uint64_t j) { return lane.bits.test(j); });
}

bool ForgetfulBloomFilter::recognises(Digest id) const {
  const bool one_is_enough = goal_.rule == CheckRule::newest || goal_.rule == CheckRule::any;
  bool before = goal_.rule == CheckRule::pairs_or_oldest;  // then the oldest lane alone is enough
  for (const Lane& lane : lanes_) {
    const bool here = in_lane(lane, id);
    if (here && (one_is_enough || before)) return true;
    before = here;
  }
  return false;
}

// Returns true if an id of this time may have been accepted before and forgotten.
bool ForgetfulBloomFilter::late(TimeMs at_ms) const {
  return at_ms < now() && at_ms < promised_from();
}

Verdict ForgetfulBloomFilter::insert(Digest id, TimeMs at_ms) {
  if (late(at_ms)) {
    ++stale_;
    return Verdict::stale;
  }
  const bool known = recognises(id);
  for (std::size_t i = lanes_.size() - spread(); i < lanes_.size(); ++i) {
    visit_probes(shape_, id, lanes_[i].odd, [&](std::uint64_t j) {
      lanes_[i].bits.set(j);
      return true;
    });
  }
  Period& period = present().period;
  ++period.ids;
  period.first_ms = std::min({period.first_ms, at_ms, now()});
  if (overdue()) period.end_ms = now();
  return known ? Verdict::duplicate : Verdict::fresh;
}

Verdict ForgetfulBloomFilter::test_and_insert(Digest id, TimeMs at_ms) {
  return recognises(id) ? Verdict::duplicate : insert(id, at_ms);
}

void ForgetfulBloomFilter::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  judge_each(ids, verdicts, [&](Digest id) { return test(id); });
}
void ForgetfulBloomFilter::insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_each(ids, verdicts, [&](Digest id) { return insert(id); });
}
void ForgetfulBloomFilter::test_and_insert(std::span<const Digest> ids,
                                           std::span<Verdict> verdicts) {
  judge_each(ids, verdicts, [&](Digest id) { return test_and_insert(id); });
}

void ForgetfulBloomFilter::append_lane(TimeMs begin_ms) {
  newest_odd_ = !newest_odd_ && goal_.rule == CheckRule::split_pairs;
  lanes_.push_back({{.begin_ms = begin_ms, .end_ms = begin_ms},
                    newest_odd_,
                    BitArray(divide_up(shape_.positions, 64) * 64)});
}

void ForgetfulBloomFilter::rotate(TimeMs end_ms, TimeMs begin_ms) {
  present().period.end_ms = end_ms;
  append_lane(begin_ms);
  // With spread 2 the future lane becomes the present one.
  present().period.begin_ms = present().period.end_ms = begin_ms;
}

// A period that began in the middle may be up to half a period longer.
void ForgetfulBloomFilter::begin_period() {
  const TimeMs middle_ms = later_by(present().period.begin_ms, period_ms_ / 2);
  next_period_ms_ = later_by(on_grid(middle_ms, period_ms_), period_ms_);
}

// The result does not depend on the steps in which the time came. After a long silence only the
// periods that are still remembered are counted.
void ForgetfulBloomFilter::rotate_by_time() {
  while (next_period_ms_ <= now()) {
    forget_expired();
    if (lanes_.size() >= most_lanes_) return;
    const TimeMs end_ms = std::max(present().period.end_ms, next_period_ms_ - 1);
    rotate(end_ms, on_grid(std::max(later_by(end_ms, 1), promised_from()), period_ms_));
    begin_period();
  }
}

void ForgetfulBloomFilter::forget_expired() {
  while (lanes_.size() > spread() && older_than(next_to_forget().end_ms, goal_.window_ms, now())) {
    carried_ = lanes_.front().period;
    lanes_.pop_front();
  }
}

void ForgetfulBloomFilter::adapt() {
  if (goal_.schedule != LaneSchedule::algorithm_3 || now() < next_check_ms_) return;
  next_check_ms_ = later_by(on_grid(now(), kCheckMs), kCheckMs);
  const double rate = false_positive_rate();
  if (rate >= 0.9 * goal_.fpr) {
    most_lanes_ = std::min(2 * most_lanes_, limits::kLanes);
    period_ms_ -= kPeriodStepMs;
  } else if (rate <= 0.1 * goal_.fpr) {
    most_lanes_ = std::max(most_lanes_ - 1, spread_of(goal_.rule) + 1);
    period_ms_ = later_by(period_ms_, kPeriodStepMs);
  }
  period_ms_ = std::clamp(period_ms_, shortest_period(goal_, most_lanes_), goal_.window_ms);
  begin_period();
  if (overdue()) present().period.end_ms = now();  // ids may have come late
}

void ForgetfulBloomFilter::advance(TimeMs now_ms) {
  if (!time_.advance(now_ms)) return;
  rotate_by_time();
  forget_expired();
  adapt();
}

WindowPromise ForgetfulBloomFilter::promise() const {
  TimeMs first_ms = now();
  if (carries(goal_.rule)) first_ms = std::min(first_ms, carried_.first_ms);
  for (const Lane& lane : lanes_) first_ms = std::min(first_ms, lane.period.first_ms);
  return {goal_.window_ms, promised_from(), std::min(first_ms, promised_from())};
}

WindowCounts ForgetfulBloomFilter::counts() const {
  return {.backward_steps = time_.backward_steps(), .stale = stale_};
}

double ForgetfulBloomFilter::false_positive_rate() const {
  std::vector<double> ids;
  if (spread() == 2) ids.push_back(static_cast<double>(carried_.ids));
  for (std::size_t i = 0; i + (spread() - 1) < lanes_.size(); ++i) {
    ids.push_back(static_cast<double>(lanes_[i].period.ids));
  }
  return rate(shape_, goal_.rule, ids);
}

bool ForgetfulBloomFilter::operator==(const ForgetfulBloomFilter& other) const {
  return goal_ == other.goal_ && shape_ == other.shape_ && now() == other.now() &&
         most_lanes_ == other.most_lanes_ && period_ms_ == other.period_ms_ &&
         next_period_ms_ == other.next_period_ms_ && next_check_ms_ == other.next_check_ms_ &&
         carried_ == other.carried_ && lanes_ == other.lanes_;
}

std::uint64_t ForgetfulBloomFilter::bytes() const {
  return sizeof *this + lanes_.size() * (sizeof(Lane) + lanes_.front().bits.size() / 8);
}

}  // namespace semel::papers
