#include "semel/window/internal/sliding_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"
#include "semel/filter/bloom_math.h"
#include "semel/hash/internal/sealed.h"
#include "semel/window/internal/batch.h"

namespace semel::window_internal {
namespace {

inline constexpr Format kFormat{"SSF", 1, "sliding filter"};

// Cells end before the base does, so the eight bytes from the start of any cell are inside the
// line.
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

// These map times to unsigned numbers in the same order.
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
std::uint64_t to_unsigned(TimeMs time_ms) { return static_cast<std::uint64_t>(time_ms) ^ kSign; }
TimeMs to_signed(std::uint64_t time) { return static_cast<TimeMs>(time ^ kSign); }

constexpr TimeMs kFirstTime = std::numeric_limits<TimeMs>::min();

// Returns the lines of the next filter. It has twice the room of the one before, which had twice
// the error. A load of less than an eighth gets a smaller filter: docs/math/sliding.md, Growth.
std::uint64_t doubled_lines(std::uint64_t lines, std::uint32_t probes) {
  const double wanted = std::ceil(static_cast<double>(lines) * std::exp2(1 + 1.0 / probes));
  return std::min(static_cast<std::uint64_t>(wanted), SlidingShape::kMostLines);
}
constexpr std::uint64_t kShrinkBelow = 8;
constexpr std::uint64_t kShrinkBy = 4;

// Points are mixed, because evenly spaced probes collide. Some of n ids in m cells come near to
// another id in both halves of the digest, and then share all cells with it. That happens at a rate
// of about n / m^2, however many probes there are.
std::uint64_t point_of(Digest id, std::uint32_t probe) { return mix(id.lo + probe * id.hi); }

}  // namespace

SlidingFilter::Filter::Filter(const SlidingShape& shape, std::uint64_t of_lines)
    : lines(of_lines * kLineBytes), expiring(shape.ticks() + 1) {}

Result<SlidingFilter> SlidingFilter::make(const Goal& goal, TimeMs now_ms) {
  return SlidingFilter(SEMEL_TRY(SlidingShape::for_goal(goal)), now_ms);
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

// The last tick is that of at + window, or the end of time if that comes first.
std::uint32_t SlidingFilter::timer_for(TimeMs at_ms) const {
  const TimeMs end_ms = later_by(at_ms, shape_.window_ms);
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

// Returns true if the cell was not live before.
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
[[gnu::always_inline]] inline void SlidingFilter::prefetch_lines(Digest id) const {
  for (const Filter& filter : filters_) {
    for (std::uint32_t i = 0; i < shape_.probes; ++i) {
      prefetch(filter.lines.data() + cell_at(filter, point_of(id, i)).line);
    }
  }
}

void SlidingFilter::touch(Digest id) const { prefetch_lines(id); }

template <class PointOf>
bool SlidingFilter::holds(const Filter& filter, PointOf point, Tick tick) const {
  for (std::uint32_t i = 0; i < shape_.probes; ++i) {
    if (timer_of(filter, cell_at(filter, point(i)), tick) == 0) return false;
  }
  return true;
}

template <class PointOf>
bool SlidingFilter::known(PointOf point, Tick tick) const {
  return std::any_of(filters_.rbegin(), filters_.rend(),
                     [&](const Filter& filter) { return holds(filter, point, tick); });
}

// The first probes identify a new id: the others need not be computed.
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
  for (std::uint32_t i = 0; i < shape_.probes; ++i) {
    prolong(newest, cell_at(newest, points[i]), timer);
  }
}

void SlidingFilter::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  judge_ahead(
      ids, verdicts, [&](Digest id) { prefetch_lines(id); }, [&](Digest id) { return test(id); });
}

void SlidingFilter::test(std::span<const Digest> ids, TimeMs now_ms,
                         std::span<Verdict> verdicts) const {
  const Tick tick = tick_after(now_ms);
  judge_ahead(
      ids, verdicts, [&](Digest id) { prefetch_lines(id); },
      [&](Digest id) { return test_in(tick, id); });
}

void SlidingFilter::insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { prefetch_lines(id); }, [&](Digest id) { return insert(id); });
}

void SlidingFilter::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { prefetch_lines(id); },
      [&](Digest id) { return test_and_insert(id); });
}

bool SlidingFilter::takes(std::uint64_t ids) const {
  const Filter& newest = filters_.back();
  if (shape_.filter_bytes(doubled_lines(newest.count(), shape_.probes)) < limits::kSmallBlock) {
    return true;
  }
  return !outlived() && newest.live < most_live_ &&
         ids <= (most_live_ - newest.live) / shape_.probes;
}

double SlidingFilter::error_of(const Filter& filter) const {
  const double share = static_cast<double>(filter.live) / static_cast<double>(cells_of(filter));
  return bloom_math::plain_live_fpr(share, shape_.probes);
}

// Returns what the first `filters` leave of the goal. Inserts leave half of it each time, at least.
// Filters that were merged may have used more, and that must not refuse new ids.
double SlidingFilter::error_left(std::size_t filters) const {
  double left = shape_.fpr;
  for (std::size_t i = 0; i < filters; ++i) left -= error_of(filters_[i]);
  return std::max(left, std::ldexp(shape_.fpr, -static_cast<int>(filters)));
}

// The errors of the older filters change only when a tick ends or the filters change.
void SlidingFilter::plan() {
  most_live_ =
      most_live_in(cells_of(filters_.back()), shape_.probes, error_left(filters_.size() - 1));
}

// Makes room for this id in the newest filter. Returns false, and changes nothing, if it cannot.
bool SlidingFilter::make_room(const Points& points) {
  if (outlived()) shrink();
  while (true) {
    const Filter& newest = filters_.back();
    std::uint32_t needed = 0;  // cells; counted twice where two probes meet
    for (std::uint32_t i = 0; i < shape_.probes; ++i) {
      if (timer_of(newest, cell_at(newest, points[i])) == 0) ++needed;
    }
    if (needed == 0) return true;
    if (newest.live + needed <= most_live_) return true;

    if (open_next()) return true;
    if (shape_.on_full == OnFull::refuse) return false;
    forget_oldest();
  }
}

// Returns the lines of the filter that follows the newest. Twice its room is enough for the share
// of the error that is left, unless a cap made the filters smaller and a merge has filled them.
std::uint64_t SlidingFilter::lines_of_next(double left) const {
  std::uint64_t lines = doubled_lines(filters_.back().count(), shape_.probes);
  while (shape_.filter_bytes(2 * lines) < limits::kSmallBlock &&
         !has_room_for_an_id(lines * line_cells_, shape_.probes, left)) {
    lines *= 2;
  }
  return lines;
}

// Opens a filter of as many lines as the cap allows, and no fewer than the first has.
bool SlidingFilter::open_next() {
  if (bytes() + shape_.filter_bytes() > shape_.max_bytes) return false;
  const double left = error_left(filters_.size());
  std::uint64_t lines = lines_of_next(left);
  while (lines > shape_.lines && bytes() + shape_.filter_bytes(lines) > shape_.max_bytes) {
    lines = std::max(shape_.lines, lines / 2);
  }
  return open(lines, left);
}

// Opens a filter of this many lines. Returns false, and changes nothing, if memory or the error
// that is left are too little for it.
bool SlidingFilter::open(std::uint64_t lines, double left) {
  const std::uint64_t needed = shape_.filter_bytes(lines);
  const std::uint64_t cells = lines * line_cells_;
  if (needed > shape_.max_bytes || bytes() > shape_.max_bytes - needed) return false;
  if (!has_room_for_an_id(cells, shape_.probes, left)) return false;
  filters_.emplace_back(shape_, lines);
  plan();
  return true;
}

// Returns true if a load has passed that left the only filter nearly empty, and larger than the
// first.
bool SlidingFilter::outlived() const {
  const Filter& newest = filters_.back();
  return filters_.size() == 1 && newest.count() > shape_.lines &&
         newest.live < most_live_ / kShrinkBelow;
}

// Adds a smaller filter after an outlived one, which is dropped with its last id.
// REQUIRES: outlived().
void SlidingFilter::shrink() {
  const std::uint64_t lines = std::max(shape_.lines, filters_.back().count() / kShrinkBy);
  if (!open(lines, error_left(filters_.size()))) return;
  drop_empty();
  plan();
}

void SlidingFilter::forget_oldest() {
  Filter& oldest = filters_.front();
  SEMEL_ASSERT(oldest.live > 0);  // valid(): an empty filter alone has room
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
  kept_from_ms_ = std::max(kept_from_ms_, later_by(last_ms, 1));

  if (filters_.size() > 1) {
    filters_.erase(filters_.begin());
  } else {
    oldest.lines = LineArray<std::uint8_t>(oldest.lines.size());
    std::fill(oldest.expiring.begin(), oldest.expiring.end(), std::uint64_t{0});
    oldest.live = 0;
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
  filters_.erase(std::remove_if(filters_.begin(), newest,
                                [](const Filter& filter) { return filter.live == 0; }),
                 newest);
}

TimeMs SlidingFilter::kept_from() const {
  return std::max(kept_from_ms_, earlier_by(now(), shape_.window_ms));
}

WindowPromise SlidingFilter::promise() const {
  const std::uint64_t tick_begin = tick_ * tick_ms_;
  const auto window = static_cast<std::uint64_t>(shape_.window_ms);
  return {.window_ms = shape_.window_ms,
          .kept_from_ms = kept_from(),
          .forgotten_before_ms = to_signed(tick_begin > window ? tick_begin - window : 0)};
}

WindowCounts SlidingFilter::counts() const {
  WindowCounts counts = counts_;
  counts.backward_steps = time_.backward_steps();
  return counts;
}

double SlidingFilter::false_positive_rate() const {
  double silent = 0;  // the logarithm of the chance that no filter has a false positive
  for (const Filter& filter : filters_) silent += std::log1p(-error_of(filter));
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
  SlidingShape shape = other.shape_;
  shape.max_bytes = shape_.max_bytes;
  shape.on_full = shape_.on_full;
  if (shape != shape_) return Error{Errc::mismatch, "sliding filters of different shapes"};
  if (now() != other.now()) return Error{Errc::mismatch, "sliding filters of different times"};
  if (!std::equal(filters_.begin(), filters_.end(), other.filters_.begin(), other.filters_.end(),
                  [](const Filter& a, const Filter& b) { return a.count() == b.count(); })) {
    return Error{Errc::mismatch, "sliding filters of different numbers or sizes of filters"};
  }
  kept_from_ms_ = std::max(kept_from_ms_, other.kept_from_ms_);
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    Filter& into = filters_[i];
    const Filter& from = other.filters_[i];
    for_each_cell(into, [&](const Cell& cell) { prolong(into, cell, other.timer_of(from, cell)); });
  }
  plan();
  return {};
}

void SlidingFilter::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    w.i64(shape_.window_ms);
    w.f64(shape_.fpr);
    w.u8(static_cast<std::uint8_t>(shape_.timer_bits));
    w.u8(static_cast<std::uint8_t>(shape_.probes));
    w.enumeration(shape_.on_full);
    w.u64(shape_.lines);
    w.u64(shape_.max_bytes);
    write(w, shape_.hash);
    w.i64(now());
    w.i64(kept_from());
    w.u32(static_cast<std::uint32_t>(filters_.size()));
    for (const Filter& filter : filters_) write_filter(w, filter);
  });
}

void SlidingFilter::write_filter(Writer& w, const Filter& filter) const {
  w.u64(filter.count());
  if (w.sink().only_measures(filter.count() * kCellBytes)) return;
  for (std::size_t at = 0; at < filter.lines.size(); at += kLineBytes) {
    std::array<std::uint8_t, kLineBytes> line;
    std::copy_n(filter.lines.begin() + static_cast<std::ptrdiff_t>(at), kLineBytes, line.begin());
    rebase(line.data(), shape_.timer_bits, tick_ - base_of(line.data()));
    w.bytes(ByteView(line).first(kCellBytes));
  }
}

Result<SlidingFilter> SlidingFilter::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  SlidingShape shape{};
  shape.window_ms = r.i64();
  shape.fpr = r.f64();
  shape.timer_bits = r.u8();
  shape.probes = r.u8();
  shape.on_full = r.enumeration(OnFull::forget);
  shape.lines = r.u64();
  shape.max_bytes = r.u64();
  shape.hash = read_hash_id(r);
  const TimeMs now_ms = r.i64();
  const TimeMs kept_from_ms = r.i64();
  const std::uint32_t filters = r.u32();
  if (!r.ok() || !shape.valid()) return corrupt(kFormat, "shape");
  if (kept_from_ms < earlier_by(now_ms, shape.window_ms) || kept_from_ms > later_by(now_ms, 1)) {
    return corrupt(kFormat, "times");
  }
  // Length before allocation: until here `filters` and `lines` are only claims.
  if (filters == 0 || filters > r.rest() / (8 + shape.lines * kCellBytes)) {
    return corrupt(kFormat, "number of filters");
  }

  SlidingFilter sliding(shape, now_ms);
  sliding.kept_from_ms_ = kept_from_ms;
  sliding.filters_.clear();
  for (std::uint32_t i = 0; i < filters; ++i) {
    SEMEL_TRY(sliding.read_filter(r));
    if (sliding.filters_.back().live == 0 && i + 1 < filters) {
      return corrupt(kFormat, "an empty filter that is not the newest");
    }
  }
  if (!r.at_end()) return corrupt(kFormat, "size");
  sliding.plan();
  return sliding;
}

// Reads one more filter. Fails if a timer runs longer than a window from now, or a bit past the
// last cell of a line is set.
Result<void> SlidingFilter::read_filter(Reader& in) {
  const std::uint64_t lines = in.u64();
  // Length before allocation: until here `lines` is only a claim.
  if (!in.ok() || lines < shape_.lines || lines > in.rest() / kCellBytes) {
    return corrupt(kFormat, "size of a filter");
  }
  Filter& filter = filters_.emplace_back(shape_, lines);
  const std::uint32_t longest = timer_for(now());
  const std::uint32_t end = line_cells_ * shape_.timer_bits;
  for (std::uint64_t at = 0; at < filter.lines.size(); at += kLineBytes) {
    std::uint8_t* const line = filter.lines.data() + at;
    in.bytes({line, kCellBytes});
    // After the last cell come padding, if any, and the base. The base is still 0, as the filter is
    // new.
    if (get_code(line, end, shape_.timer_bits) != 0) return corrupt(kFormat, "cells");
    store_u64(line + kCellBytes, tick_);
    for (std::uint32_t bit = 0; bit < end; bit += shape_.timer_bits) {
      const std::uint32_t timer = get_code(line, bit, shape_.timer_bits);
      if (timer > longest) return corrupt(kFormat, "cells");
      if (timer == 0) continue;
      ++filter.live;
      ++expiring(filter, timer);
    }
  }
  return {};
}

bool SlidingFilter::operator==(const SlidingFilter& other) const {
  if (shape_ != other.shape_ || now() != other.now() || kept_from() != other.kept_from() ||
      filters() != other.filters()) {
    return false;
  }
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    const Filter &a = filters_[i], &b = other.filters_[i];
    if (a.count() != b.count() || a.expiring != b.expiring) return false;
    bool equal = true;
    for_each_cell(a, [&](const Cell& cell) {
      equal = equal && timer_of(a, cell) == other.timer_of(b, cell);
    });
    if (!equal) return false;
  }
  return true;
}

}  // namespace semel::window_internal
