#include "semel/window/sliding_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/error_rate.h"
#include "semel/core/limits.h"
#include "semel/filter/bloom_math.h"
#include "semel/hash/seal.h"
#include "semel/window/internal/batch.h"

namespace semel {
namespace {

// docs/formats/sliding_v1.md. All integers little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "SSF1"; a new layout takes a new magic
//         4        1  kind of hash: 0 fast, 1 keyed
//         5        1  timer bits
//         6        1  probes
//         7        1  equal timers
//         8        1  growth: 0 density, 1 cardinality, 2 doubling
//         9        1  when full: 0 refuse, 1 forget
//        10        2  zero
//        12        4  filters
//        16        8  window
//        24        8  lines of the first filter, and of all others unless growth is doubling
//        32        8  error goal
//        40        8  cap of memory
//        48        8  seed of the hash, or name of its key
//        56        8  now
//        64        8  the time from which on every id accepted is recognised
//        72           filters, the oldest first: 8 bytes of ids taken, or with doubling of its
//                     lines, then 56 bytes for each line
//                  8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31465353;
constexpr std::size_t kTrailerSize = 8;

constexpr std::size_t kCellBytes = 56;  // of a line; the rest is its base
constexpr std::uint32_t kCellBits = 8 * kCellBytes;

std::uint32_t mask_of(std::uint32_t bits) { return (std::uint32_t{1} << bits) - 1; }

// Cells end before the base does, so that eight bytes from the start of any are inside the line.
std::uint32_t get_code(const std::uint8_t* line, std::uint32_t bit, std::uint32_t bits) {
  return static_cast<std::uint32_t>(load_u64(line + bit / 8) >> (bit % 8)) & mask_of(bits);
}

void set_code(std::uint8_t* line, std::uint32_t bit, std::uint32_t bits, std::uint64_t code) {
  std::uint8_t* const at = line + bit / 8;
  const std::uint64_t hole = ~(std::uint64_t{mask_of(bits)} << (bit % 8));
  store_u64(at, (load_u64(at) & hole) | code << (bit % 8));
}

std::uint64_t base_of(const std::uint8_t* line) { return load_u64(line + kCellBytes); }

// Moves the base of a line by `age` ticks: live codes shrink, and what has expired is cleared.
void rebase(std::uint8_t* line, std::uint32_t bits, std::uint64_t age) {
  store_u64(line + kCellBytes, base_of(line) + age);
  if (age >= mask_of(bits)) {
    std::memset(line, 0, kCellBytes);
  } else if (bits == 8) {  // the default, for which this becomes a few vector instructions
    const auto by = static_cast<std::uint8_t>(age);
    for (std::size_t i = 0; i < kCellBytes; ++i) {
      line[i] = static_cast<std::uint8_t>(std::max(line[i], by) - by);
    }
  } else {
    for (std::uint32_t bit = 0; bit + bits <= kCellBits; bit += bits) {
      const std::uint32_t code = get_code(line, bit, bits);
      if (code != 0) set_code(line, bit, bits, code > age ? code - age : 0);
    }
  }
}

// Times without a sign, in the same order.
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
std::uint64_t to_unsigned(TimeMs time_ms) { return static_cast<std::uint64_t>(time_ms) ^ kSign; }
TimeMs to_signed(std::uint64_t time) { return static_cast<TimeMs>(time ^ kSign); }

constexpr TimeMs kFirstTime = std::numeric_limits<TimeMs>::min();
constexpr TimeMs kLastTime = std::numeric_limits<TimeMs>::max();
TimeMs next_ms(TimeMs time_ms) { return time_ms == kLastTime ? kLastTime : time_ms + 1; }
TimeMs window_before(TimeMs time_ms, TimeMs window_ms) {
  return time_ms < kFirstTime + window_ms ? kFirstTime : time_ms - window_ms;
}

// At which live cells, and at which ids by the formula of a Bloom filter, a filter has used half of
// the error that is left: docs/math/sliding.md, equations 2 and 3.
struct Room {
  std::uint64_t live;
  std::uint64_t ids;
};
Room room_in(std::uint64_t cells, std::uint32_t probes, double error_left) {
  if (!(error_left > 0)) return {0, 0};
  const auto all = static_cast<double>(cells);
  const double share = std::pow(error_left / 2, 1.0 / probes);
  return {static_cast<std::uint64_t>(all * share),
          static_cast<std::uint64_t>(-all / probes * std::log1p(-share))};
}
bool has_room_for_an_id(std::uint64_t cells, std::uint32_t probes, double error_left) {
  const Room room = room_in(cells, probes, error_left);
  return room.live >= probes && room.ids >= 1;
}

// Growth by doubling: twice the room of the filter before, which had twice the error, and a
// smaller filter for a load of less than an eighth: docs/math/sliding.md, Growth.
std::uint64_t doubled_lines(std::uint64_t lines, std::uint32_t probes) {
  const double wanted = std::ceil(static_cast<double>(lines) * std::exp2(1 + 1.0 / probes));
  return std::min(static_cast<std::uint64_t>(wanted), SlidingShape::kMostLines);
}
constexpr std::uint64_t kShrinkBelow = 8;
constexpr std::uint64_t kShrinkBy = 4;

// The chance that of `draws` cells, each drawn with a chance in proportion to its class, at least
// `wanted` are of one class: equation 5. After each class, none[j] * j! is the chance of j draws
// from the classes so far with fewer than `wanted` of any, and some[j] * j! that of the contrary.
double chance_of_equals(std::span<const std::uint64_t> classes, std::uint64_t sum,
                        std::uint32_t draws, std::uint32_t wanted) {
  using Terms = std::array<double, limits::kPlainProbes + 1>;
  Terms none{1}, some{};
  for (const std::uint64_t size : classes) {
    if (size == 0) continue;
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

// Mixed, because evenly spaced probes meet: of n ids in m cells some come near to another in both
// halves of the digest, and then in all cells, at a rate of about n / m^2, however many the probes.
std::uint64_t point_of(Digest id, std::uint32_t probe) { return mix(id.lo + probe * id.hi); }

std::uint32_t most_equal(std::span<const std::uint32_t> timers) {
  std::ptrdiff_t most = 0;
  for (const std::uint32_t timer : timers) {
    most = std::max(most, std::count(timers.begin(), timers.end(), timer));
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace

Result<SlidingShape> SlidingShape::for_goal(const Goal& goal) {
  if (goal.window_ms < 1) return Error{Errc::invalid, "a window lasts a millisecond or longer"};
  if (!is_error_rate(goal.fpr)) return kErrorRateRefused;
  if (goal.ids == 0) return Error{Errc::invalid, "a sliding filter needs room for one id"};
  if (goal.timer_bits < 4 || goal.timer_bits > 16) {
    return Error{Errc::invalid, "a timer has 4 to 16 bits"};
  }
  if (goal.ids > limits::kFilterBits) return Error{Errc::limit, "more ids than filters have bits"};

  SlidingShape shape{
      goal.window_ms, goal.fpr,       goal.timer_bits, 0,        0, goal.equal_timers,
      goal.growth,    goal.when_full, goal.max_bytes,  goal.hash};
  // The last tick of an id is live to its end; the load of a window varies by its square root.
  const auto ids = static_cast<double>(goal.ids);
  const double late = static_cast<double>(shape.tick_ms()) / static_cast<double>(goal.window_ms);
  const double most_ids = std::ceil(ids * (1 + late) + 3 * std::sqrt(ids));
  const bloom_math::Size size =
      bloom_math::plain_size(static_cast<std::uint64_t>(most_ids), goal.fpr / 2);
  if (size.bits == 0) return Error{Errc::limit, "the filter would need more than 2^46 bits"};
  shape.probes = size.probes;
  shape.lines = std::max(divide_up(size.bits, shape.line_cells()), shape.least_lines());
  if (shape.lines > kMostLines) {
    return Error{Errc::limit, "the filter would need more than 2^46 bits"};
  }
  if (goal.equal_timers < 1 || goal.equal_timers > shape.probes) {
    return Error{Errc::invalid, "equal timers are 1 to the number of probes"};
  }
  if (shape.filter_bytes() > goal.max_bytes) {
    return Error{Errc::limit, "the cap leaves no room for one filter"};
  }
  if (!shape.valid()) return Error{Errc::invalid, "no such growth, policy or hash"};
  return shape;
}

bool SlidingShape::valid() const {
  if (window_ms < 1 || !is_error_rate(fpr) || timer_bits < 4 || timer_bits > 16) return false;
  if (probes < 1 || probes > limits::kPlainProbes) return false;
  if (equal_timers < 1 || equal_timers > probes || !hash.valid()) return false;
  if (growth > SlidingGrowth::doubling) return false;
  if (when_full != WhenFull::refuse && when_full != WhenFull::forget) return false;
  if (lines < least_lines() || lines > kMostLines || filter_bytes() > max_bytes) return false;
  return has_room_for_an_id(cells(), probes, fpr);
}

TimeMs SlidingShape::tick_ms() const {
  const TimeMs most = 2 * TimeMs{mask_of(timer_bits)} / 3;
  return window_ms / most + (window_ms % most != 0);
}

std::uint64_t SlidingShape::ticks() const {
  return divide_up(static_cast<std::uint64_t>(window_ms), static_cast<std::uint64_t>(tick_ms()));
}

std::uint32_t SlidingShape::line_cells() const { return kCellBits / timer_bits; }
std::uint64_t SlidingShape::least_lines() const { return divide_up(ticks() + 1, kLineBytes / 8); }
std::uint64_t SlidingShape::filter_bytes(std::uint64_t of_lines) const {
  return of_lines * kLineBytes + (ticks() + 1) * 8;
}

SlidingFilter::Filter::Filter(const SlidingShape& shape, std::uint64_t of_lines)
    : lines(of_lines * kLineBytes), expiring(shape.ticks() + 1) {}

Result<SlidingFilter> SlidingFilter::make(const Goal& goal, TimeMs now_ms) {
  const Result<SlidingShape> shape = SlidingShape::for_goal(goal);
  if (!shape) return shape.error();
  return SlidingFilter(*shape, now_ms);
}

SlidingFilter::SlidingFilter(const SlidingShape& shape, TimeMs now_ms)
    : shape_((SEMEL_ASSERT(shape.valid()), shape)),
      tick_ms_(static_cast<std::uint64_t>(shape.tick_ms())),
      line_cells_(shape.line_cells()),
      time_(now_ms),
      tick_(tick_of(now_ms)),
      slot_(tick_ % (shape.ticks() + 1)),
      kept_from_ms_(kFirstTime) {
  filters_.emplace_back(shape_, shape_.lines);
  plan();
}

SlidingFilter::Tick SlidingFilter::tick_of(TimeMs time_ms) const {
  return to_unsigned(time_ms) / tick_ms_;
}

// The last tick is that of at + window; where this is after the end of time, it is that end.
std::uint32_t SlidingFilter::timer_for(TimeMs at_ms) const {
  TimeMs end_ms = 0;
  if (__builtin_add_overflow(at_ms, shape_.window_ms, &end_ms)) end_ms = kLastTime;
  return static_cast<std::uint32_t>(tick_of(end_ms) - tick_ + 1);
}

SlidingFilter::Cell SlidingFilter::cell_at(const Filter& filter, std::uint64_t point) const {
  const Product place = multiply(point, filter.count());
  const auto cell = static_cast<std::uint32_t>(scale(place.low, line_cells_));
  return {place.high * kLineBytes, cell * shape_.timer_bits};
}

std::uint32_t SlidingFilter::timer_of(const Filter& filter, const Cell& cell, Tick tick) const {
  const std::uint8_t* const line = filter.lines.data() + cell.line;
  const std::uint64_t age = tick - base_of(line);
  const std::uint32_t code = get_code(line, cell.bit, shape_.timer_bits);
  return code > age ? code - static_cast<std::uint32_t>(age) : 0;
}

std::uint64_t& SlidingFilter::expiring(Filter& filter, std::uint32_t timer) const {
  const std::uint64_t slot = slot_ + timer - 1, slots = filter.expiring.size();
  return filter.expiring[slot < slots ? slot : slot - slots];
}

// Whether the cell was not live before.
bool SlidingFilter::prolong(Filter& filter, const Cell& cell, std::uint32_t timer) {
  const std::uint32_t before = timer_of(filter, cell);
  if (before >= timer) return false;
  if (before != 0) {
    --expiring(filter, before);
  } else {
    ++filter.live;
  }
  ++expiring(filter, timer);

  std::uint8_t* const line = filter.lines.data() + cell.line;
  std::uint64_t age = tick_ - base_of(line);
  if (age > mask_of(shape_.timer_bits) - timer) {
    rebase(line, shape_.timer_bits, age);
    age = 0;
  }
  set_code(line, cell.bit, shape_.timer_bits, timer + age);
  return before == 0;
}

// Inlined for the reason that prefetch() is.
[[gnu::always_inline]] inline void SlidingFilter::touch(Digest id) const {
  for (const Filter& filter : filters_) {
    for (std::uint32_t i = 0; i < shape_.probes; ++i) {
      prefetch(filter.lines.data() + cell_at(filter, point_of(id, i)).line);
    }
  }
}

template <class PointOf>
bool SlidingFilter::holds(const Filter& filter, PointOf point, Tick tick) const {
  std::array<std::uint32_t, limits::kPlainProbes> timers;
  for (std::uint32_t i = 0; i < shape_.probes; ++i) {
    timers[i] = timer_of(filter, cell_at(filter, point(i)), tick);
    if (timers[i] == 0) return false;
  }
  return shape_.equal_timers == 1 ||
         most_equal({timers.data(), shape_.probes}) >= shape_.equal_timers;
}

template <class PointOf>
bool SlidingFilter::known(PointOf point, Tick tick) const {
  return std::any_of(filters_.rbegin(), filters_.rend(),
                     [&](const Filter& filter) { return holds(filter, point, tick); });
}

// A new id is told by its first probes: the others need not be worked out.
Verdict SlidingFilter::test_in(Tick tick, Digest id) const {
  return known([&](std::uint32_t i) { return point_of(id, i); }, tick) ? Verdict::duplicate
                                                                       : Verdict::fresh;
}

Verdict SlidingFilter::test(Digest id) const { return test_in(tick_, id); }
Verdict SlidingFilter::test(Digest id, TimeMs now_ms) const {
  return test_in(tick_after(now_ms), id);
}

template <bool kRenew>
Verdict SlidingFilter::put(Digest id, TimeMs at_ms) {
  Points points;
  for (std::uint32_t i = 0; i < shape_.probes; ++i) points[i] = point_of(id, i);
  const bool was_known = known([&](std::uint32_t i) { return points[i]; }, tick_);
  if (was_known && !kRenew) return Verdict::duplicate;
  if (older_than(at_ms, shape_.window_ms, now())) {
    if (was_known) return Verdict::duplicate;
    ++counts_.stale;
    return Verdict::stale;
  }
  if (!make_room(points)) {
    ++counts_.refused;
    return Verdict::full;
  }
  remember(points, timer_for(std::min(at_ms, now())));
  return was_known ? Verdict::duplicate : Verdict::fresh;
}

Verdict SlidingFilter::insert(Digest id) { return put<true>(id, now()); }
Verdict SlidingFilter::insert(Digest id, TimeMs at_ms) { return put<true>(id, at_ms); }
Verdict SlidingFilter::test_and_insert(Digest id) { return put<false>(id, now()); }
Verdict SlidingFilter::test_and_insert(Digest id, TimeMs at_ms) { return put<false>(id, at_ms); }

void SlidingFilter::remember(const Points& points, std::uint32_t timer) {
  Filter& newest = filters_.back();
  bool took_a_cell = false;
  for (std::uint32_t i = 0; i < shape_.probes; ++i) {
    if (prolong(newest, cell_at(newest, points[i]), timer)) took_a_cell = true;
  }
  if (took_a_cell && shape_.growth == SlidingGrowth::cardinality) ++newest.ids;
}

void SlidingFilter::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return test(id); });
}

void SlidingFilter::test(std::span<const Digest> ids, TimeMs now_ms,
                         std::span<Verdict> verdicts) const {
  const Tick tick = tick_after(now_ms);
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return test_in(tick, id); });
}

void SlidingFilter::insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return insert(id); });
}

void SlidingFilter::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return test_and_insert(id); });
}

double SlidingFilter::error_of(const Filter& filter) const {
  const double share = static_cast<double>(filter.live) / static_cast<double>(cells_of(filter));
  return bloom_math::plain_live_fpr(share, shape_.probes);
}

// Of the goal, beside the first `filters`.
double SlidingFilter::error_left(std::size_t filters) const {
  double left = shape_.fpr;
  for (std::size_t i = 0; i < filters; ++i) left -= error_of(filters_[i]);
  return left;
}

// The errors of the older filters change when a tick ends or the filters do, and never in between.
void SlidingFilter::plan() {
  const Room room =
      room_in(cells_of(filters_.back()), shape_.probes, error_left(filters_.size() - 1));
  most_live_ = room.live;
  most_ids_ = shape_.growth == SlidingGrowth::cardinality ? room.ids : ~std::uint64_t{0};
}

// Brings about that the newest filter may take this id; false, and no change, if it may not.
bool SlidingFilter::make_room(const Points& points) {
  if (shape_.growth == SlidingGrowth::doubling) shrink();
  while (true) {
    const Filter& newest = filters_.back();
    std::uint32_t needed = 0;  // cells; counted twice where two probes meet
    for (std::uint32_t i = 0; i < shape_.probes; ++i) {
      if (timer_of(newest, cell_at(newest, points[i])) == 0) ++needed;
    }
    if (needed == 0) return true;
    if (newest.live + needed <= most_live_ && newest.ids < most_ids_) return true;

    if (open_next()) return true;
    if (shape_.when_full == WhenFull::refuse) return false;
    forget_oldest();
  }
}

// With doubling, a filter of as many lines as the cap allows, and no fewer than the first has.
bool SlidingFilter::open_next() {
  if (shape_.growth != SlidingGrowth::doubling) return open(shape_.lines);
  std::uint64_t lines = doubled_lines(filters_.back().count(), shape_.probes);
  while (lines > shape_.lines && bytes() + shape_.filter_bytes(lines) > shape_.max_bytes) {
    lines = std::max(shape_.lines, lines / 2);
  }
  return open(lines);
}

// Opens a filter of so many lines; false, and no change, if memory or error have no room for it.
bool SlidingFilter::open(std::uint64_t lines) {
  const std::uint64_t needed = shape_.filter_bytes(lines);
  const std::uint64_t cells = lines * line_cells_;
  if (needed > shape_.max_bytes || bytes() > shape_.max_bytes - needed) return false;
  if (!has_room_for_an_id(cells, shape_.probes, error_left(filters_.size()))) return false;
  filters_.emplace_back(shape_, lines);
  plan();
  return true;
}

// A filter that a load has left behind, and that is nearly empty, is followed by a smaller one. It
// goes with its last id.
void SlidingFilter::shrink() {
  const Filter& newest = filters_.back();
  if (filters_.size() > 1 || newest.count() <= shape_.lines) return;
  if (newest.live >= most_live_ / kShrinkBelow) return;
  if (!open(std::max(shape_.lines, newest.count() / kShrinkBy))) return;
  drop_empty();
  plan();
}

void SlidingFilter::forget_oldest() {
  Filter& oldest = filters_.front();
  SEMEL_ASSERT(oldest.live > 0);  // valid() has room for an id in a filter that is alone and empty
  const auto zeros = static_cast<double>(cells_of(oldest) - oldest.live);
  counts_.forgotten_early += static_cast<std::uint64_t>(
      std::ceil(bloom_math::plain_cardinality(cells_of(oldest), shape_.probes, zeros)));

  auto latest = static_cast<std::uint32_t>(oldest.expiring.size());
  while (expiring(oldest, latest) == 0) --latest;
  TimeMs last_ms = now();
  if (latest < timer_for(now())) {  // else it may have been accepted now
    const Tick end = (tick_ + latest) * tick_ms_;
    const auto window = static_cast<std::uint64_t>(shape_.window_ms);
    last_ms = to_signed(end > window ? end - window - 1 : 0);
  }
  kept_from_ms_ = std::max(kept_from_ms_, next_ms(last_ms));

  if (filters_.size() > 1) {
    filters_.erase(filters_.begin());
  } else {
    oldest.lines = LineArray<std::uint8_t>(oldest.lines.size());
    std::fill(oldest.expiring.begin(), oldest.expiring.end(), std::uint64_t{0});
    oldest.live = oldest.ids = 0;
  }
  plan();
}

void SlidingFilter::advance(TimeMs now_ms) {
  if (!time_.advance(now_ms)) return;
  const Tick tick = tick_of(now_ms);
  if (tick == tick_) return;
  for (Filter& filter : filters_) {
    const std::uint64_t slots = filter.expiring.size();
    const auto ended = static_cast<std::uint32_t>(std::min(tick - tick_, slots));
    for (std::uint32_t timer = 1; timer <= ended; ++timer) {
      std::uint64_t& cells = expiring(filter, timer);
      filter.live -= cells;
      cells = 0;
    }
  }
  tick_ = tick;
  slot_ = tick % (shape_.ticks() + 1);
  drop_empty();
  plan();
}

void SlidingFilter::drop_empty() {
  const auto newest = filters_.end() - 1;
  if (newest->live == 0) newest->ids = 0;  // as good as new
  filters_.erase(std::remove_if(filters_.begin(), newest,
                                [](const Filter& filter) { return filter.live == 0; }),
                 newest);
}

TimeMs SlidingFilter::kept_from() const {
  return std::max(kept_from_ms_, window_before(now(), shape_.window_ms));
}

Promise SlidingFilter::promise() const {
  const std::uint64_t tick_begin = tick_ * tick_ms_;
  const auto window = static_cast<std::uint64_t>(shape_.window_ms);
  return {.window_ms = shape_.window_ms,
          .kept_from_ms = shape_.equal_timers == 1 ? kept_from() : next_ms(now()),
          .forgotten_before_ms = to_signed(tick_begin > window ? tick_begin - window : 0)};
}

WindowCounts SlidingFilter::counts() const {
  WindowCounts counts = counts_;
  counts.backward_steps = time_.backward_steps();
  return counts;
}

double SlidingFilter::false_positive_rate() const {
  double silent = 0;  // the logarithm of the chance that no filter claims an id it never saw
  for (const Filter& filter : filters_) {
    double error = error_of(filter);
    if (shape_.equal_timers > 1 && filter.live > 0) {
      error *= chance_of_equals(filter.expiring, filter.live, shape_.probes, shape_.equal_timers);
    }
    silent += std::log1p(-error);
  }
  return -std::expm1(silent);
}

std::uint64_t SlidingFilter::ids(TimeMs now_ms) const {
  const Tick passed = tick_after(now_ms) - tick_;
  double sum = 0;
  for (const Filter& filter : filters_) {
    const std::uint64_t slots = filter.expiring.size();
    std::uint64_t live = filter.live;
    for (std::uint64_t n = 0; n < std::min(passed, slots); ++n) {
      live -= filter.expiring[(slot_ + n) % slots];
    }
    const auto zeros = static_cast<double>(cells_of(filter) - live);
    sum += bloom_math::plain_cardinality(cells_of(filter), shape_.probes, zeros);
  }
  return static_cast<std::uint64_t>(std::llround(sum));
}

std::uint64_t SlidingFilter::bytes() const {
  std::uint64_t sum = 0;
  for (const Filter& filter : filters_) sum += shape_.filter_bytes(filter.count());
  return sum;
}

template <class Visit>
void SlidingFilter::for_each_cell(const Filter& filter, Visit visit) const {
  for (std::uint64_t line = 0; line < filter.lines.size(); line += kLineBytes) {
    for (std::uint32_t cell = 0; cell < line_cells_; ++cell) {
      visit(Cell{line, cell * shape_.timer_bits});
    }
  }
}

Result<void> SlidingFilter::merge(const SlidingFilter& other) {
  if (shape_ != other.shape_) return Error{Errc::mismatch, "sliding filters of different shapes"};
  if (now() != other.now()) return Error{Errc::mismatch, "sliding filters of different times"};
  if (!std::equal(filters_.begin(), filters_.end(), other.filters_.begin(), other.filters_.end(),
                  [](const Filter& a, const Filter& b) { return a.count() == b.count(); })) {
    return Error{Errc::mismatch, "sliding filters of different numbers or sizes of filters"};
  }
  kept_from_ms_ = std::max(kept_from_ms_, other.kept_from_ms_);
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    Filter& into = filters_[i];
    const Filter& from = other.filters_[i];
    into.ids = std::max(into.ids, from.ids);
    for_each_cell(into, [&](const Cell& cell) { prolong(into, cell, other.timer_of(from, cell)); });
  }
  plan();
  return {};
}

void SlidingFilter::encode(Sink out) const {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(shape_.hash.kind));
  w.u8(static_cast<std::uint8_t>(shape_.timer_bits));
  w.u8(static_cast<std::uint8_t>(shape_.probes));
  w.u8(static_cast<std::uint8_t>(shape_.equal_timers));
  w.u8(static_cast<std::uint8_t>(shape_.growth));
  w.u8(static_cast<std::uint8_t>(shape_.when_full));
  w.u16(0);
  w.u32(static_cast<std::uint32_t>(filters_.size()));
  w.u64(static_cast<std::uint64_t>(shape_.window_ms));
  w.u64(shape_.lines);
  w.u64(std::bit_cast<std::uint64_t>(shape_.fpr));
  w.u64(shape_.max_bytes);
  w.u64(shape_.hash.seed);
  w.u64(static_cast<std::uint64_t>(now()));
  w.u64(static_cast<std::uint64_t>(kept_from()));
  for (const Filter& filter : filters_) {
    w.u64(shape_.growth == SlidingGrowth::doubling ? filter.count() : filter.ids);
    if (out.only_measures(filter.lines.size() / kLineBytes * kCellBytes)) continue;
    for (std::size_t at = 0; at < filter.lines.size(); at += kLineBytes) {
      std::array<std::uint8_t, kLineBytes> line;
      std::copy_n(filter.lines.begin() + static_cast<std::ptrdiff_t>(at), kLineBytes, line.begin());
      rebase(line.data(), shape_.timer_bits, tick_ - base_of(line.data()));
      w.bytes(ByteView(line).first(kCellBytes));
    }
  }
  seal.close();
}

Result<SlidingFilter> SlidingFilter::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  SlidingShape shape{};
  shape.hash.kind = static_cast<HashKind>(r.u8());
  shape.timer_bits = r.u8();
  shape.probes = r.u8();
  shape.equal_timers = r.u8();
  shape.growth = static_cast<SlidingGrowth>(r.u8());
  shape.when_full = static_cast<WhenFull>(r.u8());
  const std::uint16_t zero = r.u16();
  const std::uint32_t filters = r.u32();
  shape.window_ms = static_cast<TimeMs>(r.u64());
  shape.lines = r.u64();
  shape.fpr = std::bit_cast<double>(r.u64());
  shape.max_bytes = r.u64();
  shape.hash.seed = r.u64();
  const auto now_ms = static_cast<TimeMs>(r.u64());
  const auto kept_from_ms = static_cast<TimeMs>(r.u64());
  if (!r.ok()) return Error{Errc::truncated, "sliding filter: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "sliding filter: magic"};
  if (zero != 0 || !shape.valid()) return Error{Errc::corrupt, "sliding filter: shape"};
  if (filters == 0 || filters > shape.max_bytes / shape.filter_bytes()) {
    return Error{Errc::corrupt, "sliding filter: number of filters"};
  }
  if (kept_from_ms < window_before(now_ms, shape.window_ms) || kept_from_ms > next_ms(now_ms)) {
    return Error{Errc::corrupt, "sliding filter: times"};
  }
  if (r.rest() < kTrailerSize) return Error{Errc::truncated, "sliding filter: filters"};
  // Length before allocation: until here `filters` and `lines` are only claims.
  if (filters > (r.rest() - kTrailerSize) / (8 + shape.lines * kCellBytes)) {
    return Error{Errc::corrupt, "sliding filter: size"};
  }
  if (load_u64(in.last(kTrailerSize).data()) != checksum(in.first(in.size() - kTrailerSize))) {
    return Error{Errc::corrupt, "sliding filter: checksum"};
  }

  SlidingFilter sliding(shape, now_ms);
  sliding.kept_from_ms_ = kept_from_ms;
  sliding.filters_.clear();
  for (std::uint32_t i = 0; i < filters; ++i) {
    if (const Result<void> read = sliding.read_filter(r); !read) return read.error();
    if (sliding.filters_.back().live == 0 && i + 1 < filters) {
      return Error{Errc::corrupt, "sliding filter: an empty filter that is not the newest"};
    }
  }
  if (r.rest() != kTrailerSize) return Error{Errc::corrupt, "sliding filter: size"};
  if (sliding.bytes() > shape.max_bytes) return Error{Errc::corrupt, "sliding filter: cap"};
  sliding.plan();
  return sliding;
}

// Reads one filter more. A timer runs no longer than a window from now, and no bit past the last cell
// of a line is set.
Result<void> SlidingFilter::read_filter(Reader& in) {
  const bool doubling = shape_.growth == SlidingGrowth::doubling;
  const std::uint64_t number = in.u64();
  const std::uint64_t lines = doubling ? number : shape_.lines;
  // Length before allocation: until here `lines` is only a claim.
  if (!in.ok() || lines < shape_.lines || lines > in.rest() / kCellBytes) {
    return Error{Errc::corrupt, "sliding filter: size"};
  }
  Filter& filter = filters_.emplace_back(shape_, lines);
  if (!doubling) filter.ids = number;
  const std::uint32_t longest = timer_for(now());
  const std::uint32_t end = line_cells_ * shape_.timer_bits;
  for (std::uint64_t at = 0; at < filter.lines.size(); at += kLineBytes) {
    constexpr Error kBad{Errc::corrupt, "sliding filter: cells"};
    std::uint8_t* const line = filter.lines.data() + at;
    in.bytes({line, kCellBytes});
    // What follows the last cell is padding, if any, and the base: still 0, as the filter is new.
    if (get_code(line, end, shape_.timer_bits) != 0) return kBad;
    store_u64(line + kCellBytes, tick_);
    for (std::uint32_t bit = 0; bit < end; bit += shape_.timer_bits) {
      const std::uint32_t timer = get_code(line, bit, shape_.timer_bits);
      if (timer > longest) return kBad;
      if (timer == 0) continue;
      ++filter.live;
      ++expiring(filter, timer);
    }
  }
  const bool counted = filter.live > 0 && shape_.growth == SlidingGrowth::cardinality;
  if (filter.ids != 0 && !counted) return Error{Errc::corrupt, "sliding filter: number of ids"};
  return {};
}

bool SlidingFilter::operator==(const SlidingFilter& other) const {
  if (shape_ != other.shape_ || now() != other.now() || kept_from() != other.kept_from() ||
      filters() != other.filters()) {
    return false;
  }
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    const Filter &a = filters_[i], &b = other.filters_[i];
    if (a.count() != b.count() || a.ids != b.ids || a.expiring != b.expiring) return false;
    bool equal = true;
    for_each_cell(a, [&](const Cell& cell) {
      equal = equal && timer_of(a, cell) == other.timer_of(b, cell);
    });
    if (!equal) return false;
  }
  return true;
}

}  // namespace semel
