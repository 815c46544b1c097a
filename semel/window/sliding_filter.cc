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
#include "semel/window/batch.h"

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
//         8        1  growth: 0 density, 1 cardinality
//         9        1  when full: 0 refuse, 1 forget
//        10        2  zero
//        12        4  filters
//        16        8  window
//        24        8  lines of each filter
//        32        8  error goal
//        40        8  cap of memory
//        48        8  seed of the hash, or name of its key
//        56        8  now
//        64        8  the time from which on every id accepted is recognised
//        72           filters, the oldest first: 8 bytes of ids taken, then 56 bytes for each line
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
Room room_in(const SlidingShape& shape, double error_left) {
  if (!(error_left > 0)) return {0, 0};
  const auto cells = static_cast<double>(shape.cells());
  const double share = std::pow(error_left / 2, 1.0 / shape.probes);
  return {static_cast<std::uint64_t>(cells * share),
          static_cast<std::uint64_t>(-cells / shape.probes * std::log1p(-share))};
}
bool has_room_for_an_id(const Room& room, const SlidingShape& shape) {
  return room.live >= shape.probes && room.ids >= 1;
}

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
  if (growth != SlidingGrowth::density && growth != SlidingGrowth::cardinality) return false;
  if (when_full != WhenFull::refuse && when_full != WhenFull::forget) return false;
  if (lines < least_lines() || lines > kMostLines || filter_bytes() > max_bytes) return false;
  return has_room_for_an_id(room_in(*this, fpr), *this);
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
std::uint64_t SlidingShape::filter_bytes() const { return lines * kLineBytes + (ticks() + 1) * 8; }

SlidingFilter::Filter::Filter(const SlidingShape& shape)
    : lines(shape.lines * kLineBytes), expiring(shape.ticks() + 1) {}

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
  filters_.emplace_back(shape_);
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

// Mixed, because evenly spaced probes meet: of n ids in m cells some come near to another in both
// halves of the digest, and then in all cells, at a rate of about n / m^2, however many the probes.
SlidingFilter::Cell SlidingFilter::cell_of(Digest id, std::uint32_t probe) const {
  const Product place = multiply(mix(id.lo + probe * id.hi), shape_.lines);
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
      prefetch(filter.lines.data() + cell_of(id, i).line);
    }
  }
}

template <class CellOf>
bool SlidingFilter::holds(const Filter& filter, CellOf cell, Tick tick) const {
  std::array<std::uint32_t, limits::kPlainProbes> timers;
  for (std::uint32_t i = 0; i < shape_.probes; ++i) {
    timers[i] = timer_of(filter, cell(i), tick);
    if (timers[i] == 0) return false;
  }
  return shape_.equal_timers == 1 ||
         most_equal({timers.data(), shape_.probes}) >= shape_.equal_timers;
}

template <class CellOf>
bool SlidingFilter::known(CellOf cell, Tick tick) const {
  return std::any_of(filters_.rbegin(), filters_.rend(),
                     [&](const Filter& filter) { return holds(filter, cell, tick); });
}

// A new id is told by its first probes: the others need not be worked out.
Verdict SlidingFilter::test_in(Tick tick, Digest id) const {
  return known([&](std::uint32_t i) { return cell_of(id, i); }, tick) ? Verdict::duplicate
                                                                      : Verdict::fresh;
}

Verdict SlidingFilter::test(Digest id) const { return test_in(tick_, id); }
Verdict SlidingFilter::test(Digest id, TimeMs now_ms) const {
  return test_in(tick_after(now_ms), id);
}

template <bool kRenew>
Verdict SlidingFilter::put(Digest id, TimeMs at_ms) {
  Cells cells;
  for (std::uint32_t i = 0; i < shape_.probes; ++i) cells[i] = cell_of(id, i);
  const bool was_known = known([&](std::uint32_t i) { return cells[i]; }, tick_);
  if (was_known && !kRenew) return Verdict::duplicate;
  if (older_than(at_ms, shape_.window_ms, now())) {
    if (was_known) return Verdict::duplicate;
    ++counts_.stale;
    return Verdict::stale;
  }
  if (!make_room(cells)) {
    ++counts_.refused;
    return Verdict::full;
  }
  remember(cells, timer_for(std::min(at_ms, now())));
  return was_known ? Verdict::duplicate : Verdict::fresh;
}

Verdict SlidingFilter::insert(Digest id) { return put<true>(id, now()); }
Verdict SlidingFilter::insert(Digest id, TimeMs at_ms) { return put<true>(id, at_ms); }
Verdict SlidingFilter::test_and_insert(Digest id) { return put<false>(id, now()); }
Verdict SlidingFilter::test_and_insert(Digest id, TimeMs at_ms) { return put<false>(id, at_ms); }

void SlidingFilter::remember(const Cells& cells, std::uint32_t timer) {
  Filter& newest = filters_.back();
  bool took_a_cell = false;
  for (std::uint32_t i = 0; i < shape_.probes; ++i) {
    if (prolong(newest, cells[i], timer)) took_a_cell = true;
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
  const double share = static_cast<double>(filter.live) / static_cast<double>(shape_.cells());
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
  const Room room = room_in(shape_, error_left(filters_.size() - 1));
  most_live_ = room.live;
  most_ids_ = shape_.growth == SlidingGrowth::cardinality ? room.ids : ~std::uint64_t{0};
}

// Brings about that the newest filter may take this id; false, and no change, if it may not.
bool SlidingFilter::make_room(const Cells& cells) {
  while (true) {
    const Filter& newest = filters_.back();
    std::uint32_t needed = 0;  // cells; counted twice where two probes meet
    for (std::uint32_t i = 0; i < shape_.probes; ++i) {
      if (timer_of(newest, cells[i]) == 0) ++needed;
    }
    if (needed == 0) return true;
    if (newest.live + needed <= most_live_ && newest.ids < most_ids_) return true;

    if (filters_.size() < shape_.max_bytes / shape_.filter_bytes() &&
        has_room_for_an_id(room_in(shape_, error_left(filters_.size())), shape_)) {
      filters_.emplace_back(shape_);
      plan();
      return true;
    }
    if (shape_.when_full == WhenFull::refuse) return false;
    forget_oldest();
  }
}

void SlidingFilter::forget_oldest() {
  Filter& oldest = filters_.front();
  SEMEL_ASSERT(oldest.live > 0);  // valid() has room for an id in a filter that is alone and empty
  const auto zeros = static_cast<double>(shape_.cells() - oldest.live);
  counts_.forgotten_early += static_cast<std::uint64_t>(
      std::ceil(bloom_math::plain_cardinality(shape_.cells(), shape_.probes, zeros)));

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
    const auto zeros = static_cast<double>(shape_.cells() - live);
    sum += bloom_math::plain_cardinality(shape_.cells(), shape_.probes, zeros);
  }
  return static_cast<std::uint64_t>(std::llround(sum));
}

template <class Visit>
void SlidingFilter::for_each_cell(Visit visit) const {
  for (std::uint64_t line = 0; line < shape_.lines * kLineBytes; line += kLineBytes) {
    for (std::uint32_t cell = 0; cell < line_cells_; ++cell) {
      visit(Cell{line, cell * shape_.timer_bits});
    }
  }
}

Result<void> SlidingFilter::merge(const SlidingFilter& other) {
  if (shape_ != other.shape_) return Error{Errc::mismatch, "sliding filters of different shapes"};
  if (now() != other.now()) return Error{Errc::mismatch, "sliding filters of different times"};
  if (filters() != other.filters()) {
    return Error{Errc::mismatch, "sliding filters of different numbers of filters"};
  }
  kept_from_ms_ = std::max(kept_from_ms_, other.kept_from_ms_);
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    Filter& into = filters_[i];
    const Filter& from = other.filters_[i];
    into.ids = std::max(into.ids, from.ids);
    for_each_cell([&](const Cell& cell) { prolong(into, cell, other.timer_of(from, cell)); });
  }
  plan();
  return {};
}

void SlidingFilter::encode(Bytes& out) const {
  const std::size_t start = out.size();
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
    w.u64(filter.ids);
    for (std::size_t at = 0; at < filter.lines.size(); at += kLineBytes) {
      std::array<std::uint8_t, kLineBytes> line;
      std::copy_n(filter.lines.begin() + static_cast<std::ptrdiff_t>(at), kLineBytes, line.begin());
      rebase(line.data(), shape_.timer_bits, tick_ - base_of(line.data()));
      w.bytes(ByteView(line).first(kCellBytes));
    }
  }
  w.u64(checksum(ByteView(out).subspan(start)));
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
  // Length before allocation: until here `filters` and `lines` are only claims.
  if (r.rest() < kTrailerSize) return Error{Errc::truncated, "sliding filter: filters"};
  const std::uint64_t body = r.rest() - kTrailerSize, each = 8 + shape.lines * kCellBytes;
  if (body / each != filters || body % each != 0) {
    return Error{Errc::corrupt, "sliding filter: size"};
  }
  if (load_u64(in.last(kTrailerSize).data()) != checksum(in.first(in.size() - kTrailerSize))) {
    return Error{Errc::corrupt, "sliding filter: checksum"};
  }

  SlidingFilter sliding(shape, now_ms);
  sliding.kept_from_ms_ = kept_from_ms;
  sliding.filters_.reserve(filters);
  for (std::uint32_t i = 0; i < filters; ++i) {
    if (i > 0) sliding.filters_.emplace_back(shape);
    if (!sliding.read_newest(r)) return Error{Errc::corrupt, "sliding filter: cells"};
    const Filter& filter = sliding.filters_.back();
    const bool ids_fit =
        filter.ids == 0 || (filter.live > 0 && shape.growth == SlidingGrowth::cardinality);
    if (!ids_fit) return Error{Errc::corrupt, "sliding filter: number of ids"};
    if (filter.live == 0 && i + 1 < filters) {
      return Error{Errc::corrupt, "sliding filter: an empty filter that is not the newest"};
    }
  }
  sliding.plan();
  return sliding;
}

// False if a timer runs longer than a window from now, or a bit past the last cell of a line is
// set.
bool SlidingFilter::read_newest(Reader& in) {
  Filter& filter = filters_.back();
  const std::uint32_t longest = timer_for(now());
  const std::uint32_t end = line_cells_ * shape_.timer_bits;
  filter.ids = in.u64();
  for (std::uint64_t at = 0; at < filter.lines.size(); at += kLineBytes) {
    std::uint8_t* const line = filter.lines.data() + at;
    in.bytes({line, kCellBytes});
    // What follows the last cell is padding, if any, and the base: still 0, as the filter is new.
    if (get_code(line, end, shape_.timer_bits) != 0) return false;
    store_u64(line + kCellBytes, tick_);
    for (std::uint32_t bit = 0; bit < end; bit += shape_.timer_bits) {
      const std::uint32_t timer = get_code(line, bit, shape_.timer_bits);
      if (timer > longest) return false;
      if (timer == 0) continue;
      ++filter.live;
      ++expiring(filter, timer);
    }
  }
  return true;
}

bool SlidingFilter::operator==(const SlidingFilter& other) const {
  if (shape_ != other.shape_ || now() != other.now() || kept_from() != other.kept_from() ||
      filters() != other.filters()) {
    return false;
  }
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    const Filter &a = filters_[i], &b = other.filters_[i];
    if (a.ids != b.ids || a.expiring != b.expiring) return false;
    bool equal = true;
    for_each_cell(
        [&](const Cell& cell) { equal = equal && timer_of(a, cell) == other.timer_of(b, cell); });
    if (!equal) return false;
  }
  return true;
}

}  // namespace semel
