#include "semel/papers/timed_series.h"

#include <algorithm>
#include <cmath>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/filter/bloom_math.h"
#include "semel/window/internal/batch.h"

namespace semel::papers {

using window_internal::judge_each;

namespace {

// These turn times into unsigned numbers in the same order, and back.
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
std::uint64_t to_unsigned(TimeMs time_ms) { return static_cast<std::uint64_t>(time_ms) ^ kSign; }
TimeMs to_signed(std::uint64_t time) { return static_cast<TimeMs>(time ^ kSign); }

// Returns the chance that at least `wanted` of `draws` cells are of one class, if each class is
// drawn in proportion to its share: equation 5 of docs/math/sliding.md. After each class, none[j] *
// j! is the chance of j draws from the classes so far with fewer than `wanted` of any, and some[j]
// * j! that of the contrary.
double chance_of_equals(const std::map<std::uint64_t, std::uint64_t>& classes, std::uint64_t sum,
                        std::uint32_t draws, std::uint32_t wanted) {
  using Terms = std::array<double, limits::kPlainProbes + 1>;
  Terms none{1}, some{};
  for (const auto& [tick, size] : classes) {
    Terms power{1};  // p^i / i!
    for (std::uint32_t i = 1; i <= draws; ++i) {
      power[i] = power[i - 1] * static_cast<double>(size) / (static_cast<double>(sum) * i);
    }
    for (std::uint32_t j = draws; j > 0; --j) {  // downwards, so that those below are still old
      for (std::uint32_t i = 1; i <= j; ++i) {
        some[j] += power[i] * (i >= wanted ? none[j - i] + some[j - i] : some[j - i]);
        if (i < wanted) none[j] += power[i] * none[j - i];
      }
    }
  }
  return std::min(1.0, some[draws] * std::tgamma(draws + 1.0));
}

std::uint32_t most_equal(std::span<const std::uint64_t> values) {
  std::ptrdiff_t most = 0;
  for (const std::uint64_t value : values) {
    most = std::max(most, std::count(values.begin(), values.end(), value));
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace

Result<TimedShape> TimedShape::for_goal(const window_internal::SlidingShape::Goal& goal,
                                        SeriesGrowth growth, std::uint32_t equal_timers) {
  const TimedShape shape{SEMEL_TRY(window_internal::SlidingShape::for_goal(goal)), growth,
                         equal_timers};
  if (!shape.valid()) return Error{Errc::invalid, "equal timers are 1 to the number of probes"};
  return shape;
}

bool TimedShape::valid() const {
  return filter.valid() && equal_timers >= 1 && equal_timers <= filter.probes;
}

TimedSeries::TimedSeries(const TimedShape& shape, TimeMs now_ms)
    : shape_((SEMEL_ASSERT(shape.valid()), shape)),
      tick_ms_(static_cast<std::uint64_t>(shape.filter.tick_ms())),
      time_(now_ms),
      tick_(tick_of(now_ms)),
      filters_(1, Filter(shape.filter.cells())),
      kept_from_ms_(std::numeric_limits<TimeMs>::min()) {
  plan();
}

TimedSeries::Tick TimedSeries::tick_of(TimeMs time_ms) const {
  return to_unsigned(time_ms) / tick_ms_;
}

TimedSeries::Tick TimedSeries::end_for(TimeMs at_ms) const {
  return tick_of(later_by(at_ms, shape_.filter.window_ms)) + 1;
}

// The points are those of SlidingFilter (docs/formats/sliding_v1.md).
TimedSeries::Cells TimedSeries::cells_of(Digest id) const {
  Cells cells;
  for (std::uint32_t i = 0; i < probes(); ++i) {
    cells[i] = scale(mix(id.lo + i * id.hi), shape_.filter.cells());
  }
  return cells;
}

bool TimedSeries::holds(const Filter& filter, const Cells& cells) const {
  std::array<Tick, limits::kPlainProbes> ends;
  for (std::uint32_t i = 0; i < probes(); ++i) {
    ends[i] = filter.ends[cells[i]];
    if (ends[i] <= tick_) return false;
  }
  return shape_.equal_timers == 1 || most_equal({ends.data(), probes()}) >= shape_.equal_timers;
}

bool TimedSeries::known(const Cells& cells) const {
  return std::any_of(filters_.begin(), filters_.end(),
                     [&](const Filter& filter) { return holds(filter, cells); });
}

Verdict TimedSeries::test(Digest id) const {
  return known(cells_of(id)) ? Verdict::duplicate : Verdict::fresh;
}

Verdict TimedSeries::put(Digest id, TimeMs at_ms, bool renews) {
  const Cells cells = cells_of(id);
  const bool was_known = known(cells);
  if (was_known && !renews) return Verdict::duplicate;
  if (older_than(at_ms, shape_.filter.window_ms, now())) {
    if (was_known) return Verdict::duplicate;
    ++counts_.stale;
    return Verdict::stale;
  }
  if (!make_room(cells)) {
    ++counts_.refused;
    return Verdict::full;
  }
  remember(cells, end_for(std::min(at_ms, now())));
  return was_known ? Verdict::duplicate : Verdict::fresh;
}

void TimedSeries::remember(const Cells& cells, Tick end) {
  Filter& newest = filters_.back();
  bool took_a_cell = false;
  for (std::uint32_t i = 0; i < probes(); ++i) {
    Tick& cell = newest.ends[cells[i]];
    if (cell >= end) continue;
    if (cell > tick_) {
      if (--newest.expiring[cell] == 0) newest.expiring.erase(cell);
    } else {
      ++newest.live;
      took_a_cell = true;
    }
    ++newest.expiring[end];
    cell = end;
  }
  if (took_a_cell && shape_.growth == SeriesGrowth::cardinality) ++newest.ids;
}

void TimedSeries::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  judge_each(ids, verdicts, [&](Digest id) { return test(id); });
}
void TimedSeries::insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_each(ids, verdicts, [&](Digest id) { return insert(id); });
}
void TimedSeries::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_each(ids, verdicts, [&](Digest id) { return test_and_insert(id); });
}

double TimedSeries::error_of(const Filter& filter) const {
  const auto cells = static_cast<double>(shape_.filter.cells());
  return bloom_math::plain_live_fpr(static_cast<double>(filter.live) / cells, probes());
}

// Returns the error that all filters but the newest leave of the goal.
double TimedSeries::error_left() const {
  double left = shape_.filter.fpr;
  for (std::size_t i = 0; i + 1 < filters_.size(); ++i) left -= error_of(filters_[i]);
  return left;
}

// Equations 2 and 3 of docs/math/sliding.md. The errors of the older filters change only when a
// tick ends or the filters change.
void TimedSeries::plan() {
  const auto cells = static_cast<double>(shape_.filter.cells());
  const double left = std::max(0.0, error_left());
  const double share = std::pow(left / 2, 1.0 / probes());
  most_live_ = static_cast<std::uint64_t>(cells * share);
  most_ids_ = shape_.growth == SeriesGrowth::cardinality
                  ? static_cast<std::uint64_t>(-cells / probes() * std::log1p(-share))
                  : ~std::uint64_t{0};
}

// Makes room for this id in the newest filter. Returns false, and changes nothing, if it cannot.
bool TimedSeries::make_room(const Cells& cells) {
  while (true) {
    const Filter& newest = filters_.back();
    std::uint32_t needed = 0;  // cells; counted twice where two probes meet
    for (std::uint32_t i = 0; i < probes(); ++i) {
      if (newest.ends[cells[i]] <= tick_) ++needed;
    }
    if (needed == 0) return true;
    if (newest.live + needed <= most_live_ && newest.ids < most_ids_) return true;

    if (bytes() + shape_.filter.filter_bytes() <= shape_.filter.max_bytes) {
      filters_.emplace_back(shape_.filter.cells());
      plan();
      if (most_live_ >= probes() && most_ids_ > 0) return true;
      filters_.pop_back();
      plan();
    }
    if (shape_.filter.on_full == OnFull::refuse) return false;
    forget_oldest();
  }
}

void TimedSeries::forget_oldest() {
  Filter& oldest = filters_.front();
  const std::uint64_t cells = shape_.filter.cells();
  counts_.forgotten_early += static_cast<std::uint64_t>(std::ceil(
      bloom_math::plain_cardinality(cells, probes(), static_cast<double>(cells - oldest.live))));

  TimeMs last_ms = now();
  const Tick end = oldest.expiring.rbegin()->first;
  if (end < end_for(now())) {  // else it may have been accepted now
    const auto window = static_cast<std::uint64_t>(shape_.filter.window_ms);
    last_ms = to_signed(end * tick_ms_ > window ? end * tick_ms_ - window - 1 : 0);
  }
  kept_from_ms_ = std::max(kept_from_ms_, later_by(last_ms, 1));
  filters_.erase(filters_.begin());
  if (filters_.empty()) filters_.emplace_back(cells);
  plan();
}

void TimedSeries::advance(TimeMs now_ms) {
  if (!time_.advance(now_ms) || tick_of(now_ms) == tick_) return;
  tick_ = tick_of(now_ms);
  for (Filter& filter : filters_) {
    while (!filter.expiring.empty() && filter.expiring.begin()->first <= tick_) {
      filter.live -= filter.expiring.begin()->second;
      filter.expiring.erase(filter.expiring.begin());
    }
  }
  const auto newest = filters_.end() - 1;
  if (newest->live == 0) newest->ids = 0;  // as good as new
  filters_.erase(std::remove_if(filters_.begin(), newest,
                                [](const Filter& filter) { return filter.live == 0; }),
                 newest);
  plan();
}

TimeMs TimedSeries::kept_from() const {
  if (shape_.equal_timers > 1) return later_by(now(), 1);
  return std::max(kept_from_ms_, earlier_by(now(), shape_.filter.window_ms));
}

WindowPromise TimedSeries::promise() const {
  const std::uint64_t tick_begin = tick_ * tick_ms_;
  const auto window = static_cast<std::uint64_t>(shape_.filter.window_ms);
  return {.window_ms = shape_.filter.window_ms,
          .kept_from_ms = kept_from(),
          .forgotten_before_ms = to_signed(tick_begin > window ? tick_begin - window : 0)};
}

WindowCounts TimedSeries::counts() const {
  WindowCounts counts = counts_;
  counts.backward_steps = time_.backward_steps();
  return counts;
}

double TimedSeries::false_positive_rate() const {
  double silent = 0;  // the logarithm of the chance that no filter has a false positive
  for (const Filter& filter : filters_) {
    double error = error_of(filter);
    if (shape_.equal_timers > 1 && filter.live > 0) {
      error *= chance_of_equals(filter.expiring, filter.live, probes(), shape_.equal_timers);
    }
    silent += std::log1p(-error);
  }
  return -std::expm1(silent);
}

bool TimedSeries::operator==(const TimedSeries& other) const {
  if (shape_ != other.shape_ || now() != other.now() || kept_from() != other.kept_from()) {
    return false;
  }
  const auto live_end = [&](Tick end) { return end > tick_ ? end : 0; };
  return std::equal(filters_.begin(), filters_.end(), other.filters_.begin(), other.filters_.end(),
                    [&](const Filter& a, const Filter& b) {
                      return a.ids == b.ids && a.expiring == b.expiring &&
                             std::equal(a.ends.begin(), a.ends.end(), b.ends.begin(),
                                        [&](Tick x, Tick y) { return live_end(x) == live_end(y); });
                    });
}

}  // namespace semel::papers
