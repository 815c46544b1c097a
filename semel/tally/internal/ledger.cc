#include "semel/tally/internal/ledger.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/limits.h"

namespace semel::tally::internal {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

std::uint64_t magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? ~bits + 1 : bits;
}

bool fits(int128 value) { return to_int64(value).has_value(); }

// FROZEN: this digest is in the windows of exact tables, and in their journals.
Digest content_of(Operation::Kind kind, std::string_view counter, std::int64_t delta) {
  return digest(counter, mix(static_cast<std::uint64_t>(delta)) + static_cast<std::uint64_t>(kind));
}

}  // namespace

void Ledger::State::encode(Sink out) const {
  Writer w(out);
  w.u16(log.site);
  w.boolean(log.ready);
  w.boolean(log.superseded);
  w.u64(bound);
  log.members.encode(out);
  log.held.encode(out);
  log.folded.encode(out);
  log.heads.encode(out);
  w.u64(log.group);
  w.i64(lag_ms);
}

Result<Ledger::State> Ledger::State::decode(Reader& in) {
  State state;
  state.log.site = in.u16();
  state.log.ready = in.boolean();
  state.log.superseded = in.boolean();
  state.bound = in.u64();
  state.log.members = SEMEL_TRY(Members::decode(in));
  state.log.held = SEMEL_TRY(VersionVector::decode(in));
  state.log.folded = SEMEL_TRY(VersionVector::decode(in));
  state.log.heads = SEMEL_TRY(LogHeads::decode(in));
  state.log.group = in.u64();
  state.lag_ms = in.i64();
  if (!in.ok() || state.lag_ms < 0) return Error{Errc::corrupt, "state of a table: lag"};
  VersionVector all = state.log.held;
  if (all.merge(state.log.folded)) {
    return Error{Errc::corrupt, "state of a table: it has folded what it does not hold"};
  }
  if (!state.log.heads.within(state.log.held)) {
    return Error{Errc::corrupt, "state of a table: heads"};
  }
  return state;
}

Ledger::Ledger(Recogniser recogniser, SiteId site, const OperationLog::Limits& limits)
    : recogniser_(std::move(recogniser)), log_(site, limits) {}

Ledger::Ledger(Recogniser recogniser, OperationLog log, std::uint64_t bound, TimeMs lag_ms)
    : recogniser_(std::move(recogniser)), log_(std::move(log)), bound_(bound), lag_ms_(lag_ms) {}

Result<void> Ledger::become(SiteId site, TimeMs now_ms) {
  SEMEL_TRY(log_.become(site));
  TimeMs ahead_ms = 0;
  const bool overflows = __builtin_sub_overflow(now_ms, recogniser_.now(), &ahead_ms);
  lag_ms_ = overflows ? std::numeric_limits<TimeMs>::max() : std::max<TimeMs>(0, ahead_ms);
  return {};
}

Recogniser::Query Ledger::query(const Addition& addition, Operation::Kind kind) const {
  if (!recogniser_.wants_content()) return {addition.id};
  return {addition.id, content_of(kind, addition.counter, addition.delta)};
}

// Returns true if a value might leave 64 bits, as far as is known without reading.
bool Ledger::may_overflow(std::span<const Addition> additions) const {
  std::uint64_t most = bound_;
  for (const Addition& addition : additions) {
    if (__builtin_add_overflow(most, magnitude(addition.delta), &most)) return true;
  }
  return most > kLargest;
}

void Ledger::raise_bound(std::int64_t delta) {
  if (__builtin_add_overflow(bound_, magnitude(delta), &bound_)) bound_ = ~std::uint64_t{0};
}

// Returns the refusal of a new operation for any reason but the recogniser's. `value` is the value
// of its counter, nullptr if it does not matter (Judged::judges_by_value()).
std::optional<Outcome> Ledger::refusal(const Addition& addition, const Call& call,
                                       const std::optional<int128>* value, const Base& base) const {
  const bool adds = call.kind == Operation::Kind::add;
  if (adds && log_.knows(addition.id)) return Outcome::duplicate;
  if (adds && value != nullptr && !fits(value->value_or(0) + addition.delta)) {
    return Outcome::overflow;
  }
  if (adds && call.few_counters && !*value && !base.has_room(addition.counter)) return kTooLarge;
  return log_.may_take(1) ? std::nullopt : std::optional(Outcome::full);
}

// Returns the answer that an operation would get at this time, unless the recogniser has no room.
// The recogniser decides first, but a retry of an operation that is not folded is known however old
// it is.
Outcome Ledger::refused_as(const Recogniser::Query& query, TimeMs now_ms,
                           std::optional<Outcome> otherwise) const {
  const Outcome seen = recogniser_.test(query, now_ms);
  if (seen == Outcome::conflict) return seen;
  if (seen == Outcome::full && otherwise == kTooLarge) return kTooLarge;  // it must leave no trace
  if (seen == Outcome::applied || otherwise == Outcome::duplicate) return otherwise.value_or(seen);
  return seen;
}

Result<Ledger::Judged> Ledger::judge(const Call& call, const Base& base) const {
  SEMEL_ASSERT(call.additions.size() == call.answers.size());
  SEMEL_ASSERT(call.kind == Operation::Kind::add || call.additions.size() == 1);
  const bool one = call.additions.size() == 1;
  // A counter is two cache misses away, the bits of an id one. Both are loaded at once.
  if (one) recogniser_.touch(call.additions.front().id);
  for (const Addition& addition : call.additions) {
    if (addition.counter.size() > limits::kCounterNameBytes) {
      return Error{Errc::limit, "the name of a counter is longer than 2048 bytes"};
    }
  }
  const Result<void> room = log_.may_take(call.additions.size());
  if (!room && room.error().code != Errc::full) return room.error();
  for (Answer& answer : call.answers) answer.outcome = kUnanswered;
  Judged judged(call);
  judged.may_overflow_ = may_overflow(call.additions);
  judged.plain_ = room && call.kind == Operation::Kind::add && !judged.may_overflow_ &&
                  !call.few_counters && log_.alone() && (!call.values || base.knows_sums());
  if (one) base.prefetch(call.additions.front().counter);

  // If time stands still, a refused operation leaves no trace anyway.
  const TimeMs now_ms = time_of(call.now_ms);
  if (now_ms <= recogniser_.now()) return judged;
  for (std::size_t& i = judged.refused_; i < call.additions.size(); ++i) {
    const Addition& addition = call.additions[i];
    std::optional<int128> value;
    const bool by_value = judged.judges_by_value();
    if (by_value) value = SEMEL_TRY(value_of(addition.counter, base));
    std::optional<Outcome> otherwise;
    if (!judged.plain_) otherwise = refusal(addition, call, by_value ? &value : nullptr, base);
    const Outcome outcome = refused_as(query(addition, call.kind), now_ms, otherwise);
    if (outcome == Outcome::applied || outcome == Outcome::full) break;
    if (call.values && !by_value) value = SEMEL_TRY(value_of(addition.counter, base));
    call.answers[i] = {outcome, call.values ? to_int64(value) : std::nullopt};
  }
  return judged;
}

// Vectors that each piece of a call uses again.
struct Ledger::Buffers {
  std::vector<Recogniser::Query> queries;
  std::vector<Outcome> recognised;
  std::vector<NamedShard> folds;
  std::vector<int128> sums;
  std::vector<std::string_view> read;
  std::vector<std::optional<int128>> before;
};

// Counts a refusal that was found by a test. The windows count only what they are asked to insert.
void Ledger::note_refusal(Outcome outcome) {
  if (outcome == Outcome::stale) recogniser_.count_stale();
}

Result<void> Ledger::apply(const Judged& judged, Base& base) {
  const Call& call = judged.call_;
  for (const Answer& answer : call.answers.first(judged.refused_)) note_refusal(answer.outcome);
  if (judged.refused_ == call.additions.size()) return {};
  advance(call.now_ms);
  if (call.additions.size() == 1) return apply_in_turn(call.additions, call.answers, judged, base);

  // If reading the base may fail, it is read before anything changes; then the call is one piece.
  const std::size_t most = judged.plain_ || base.knows_sums() ? kPiece : call.additions.size();
  Buffers buffers;
  for (std::size_t first = judged.refused_; first < call.additions.size(); first += most) {
    const std::size_t size = std::min(most, call.additions.size() - first);
    const auto piece = call.additions.subspan(first, size);
    const auto answers = call.answers.subspan(first, size);
    if (judged.plain_ && recogniser_.takes(size)) {
      apply_at_once(piece, answers, call.values, base, buffers);
    } else {
      // Memory may run out in the middle. In turn it is known which operations took effect.
      SEMEL_TRY(apply_in_turn(piece, answers, judged, base));
    }
  }
  return {};
}

// Judges and applies operations that only the recogniser can refuse. REQUIRES: recogniser_.takes().
void Ledger::apply_at_once(std::span<const Addition> additions, std::span<Answer> answers,
                           bool values, Base& base, Buffers& buffers) {
  auto& [queries, recognised, folds, sums, read, before] = buffers;
  queries.clear();
  for (const Addition& addition : additions) {
    queries.push_back(query(addition, Operation::Kind::add));
  }
  recognised.resize(additions.size());
  folds.reserve(additions.size());
  read.reserve(additions.size());
  before.reserve(additions.size());
  sums.reserve(additions.size());
  std::unordered_map<std::string_view, int128> now(values ? additions.size() : 0);
  base.reserve(additions);
  recogniser_.test_and_insert(queries, recognised);

  folds.clear();
  for (std::size_t i = 0; i < additions.size(); ++i) {
    answers[i] = {recognised[i]};
    if (answers[i].outcome != Outcome::applied) continue;
    const Addition& addition = additions[i];
    folds.push_back({addition.counter, {log_.site(), 0, 1, addition.delta}});
    raise_bound(addition.delta);
    if (addition.id.kind != OperationId::Kind::none) base.remember(queries[i]);
  }
  std::uint64_t number = log_.count(folds.size()).counter - folds.size();
  for (NamedShard& fold : folds) fold.shard.clock = ++number;

  // A refused operation is answered with the value at its turn. That is the value before the call,
  // unless an applied operation came first.
  read.clear();
  for (std::size_t i = 0; values && i < additions.size(); ++i) {
    if (answers[i].outcome != Outcome::applied) read.push_back(additions[i].counter);
  }
  before.resize(read.size());
  const Result<void> known = base.sums_of(read, before);
  SEMEL_ASSERT(known);  // such a base does not fail to read

  sums.resize(values ? folds.size() : 0);
  base.fold_all(folds, sums);
  if (!values) return;
  std::size_t folded = 0, refused = 0;
  for (std::size_t i = 0; i < additions.size(); ++i) {
    if (answers[i].outcome == Outcome::applied) {
      answers[i].value = to_int64(sums[folded]);
      if (refused < read.size()) now[additions[i].counter] = sums[folded];
      ++folded;
    } else {
      const auto changed = now.find(additions[i].counter);
      answers[i].value = to_int64(changed == now.end() ? before[refused] : changed->second);
      ++refused;
    }
  }
}

// Judges operations one by one, each after the one before has taken effect.
Result<void> Ledger::apply_in_turn(std::span<const Addition> additions, std::span<Answer> answers,
                                   const Judged& judged, Base& base) {
  const Call& call = judged.call_;
  const bool adds = call.kind == Operation::Kind::add;
  const bool follow = !judged.plain_ && adds && judged.reads();
  std::unordered_map<std::string_view, std::optional<int128>> now;
  if (follow) {
    std::vector<std::string_view> counters;
    for (const Addition& addition : additions) {
      if (now.try_emplace(addition.counter).second) counters.push_back(addition.counter);
    }
    std::vector<std::optional<int128>> values(counters.size());
    SEMEL_TRY(read_values(counters, values, base));
    for (std::size_t i = 0; i < counters.size(); ++i) now[counters[i]] = values[i];
  }
  for (std::size_t i = 0; i < additions.size(); ++i) {
    const Addition& addition = additions[i];
    std::optional<int128>* const value = follow ? &now[addition.counter] : nullptr;
    Applied applied = apply_one(addition, judged, value, base);
    if (value != nullptr) {
      if (applied.outcome == Outcome::applied) *value = value->value_or(0) + addition.delta;
      applied.sum = *value;
    } else if (call.values && applied.outcome != Outcome::applied) {
      applied.sum = SEMEL_TRY(value_of(addition.counter, base));
    }
    answers[i] = {applied.outcome, call.values ? to_int64(applied.sum) : std::nullopt};
  }
  return {};
}

// Judges one operation, and applies it if it counts.
Ledger::Applied Ledger::apply_one(const Addition& addition, const Judged& judged,
                                  const std::optional<int128>* value, Base& base) {
  const Call& call = judged.call_;
  const Operation::Kind kind = call.kind;
  const Recogniser::Query asked = query(addition, kind);
  if (!judged.plain_) {
    if (const std::optional<Outcome> otherwise = refusal(addition, call, value, base)) {
      const Outcome refused = refused_as(asked, recogniser_.now(), otherwise);
      note_refusal(refused);
      return {refused};
    }
  }
  if (!call.few_counters) {
    if (kind != Operation::Kind::remove) base.reserve({&addition, 1});
  } else if (!*value) {
    base.make_room(addition.counter);
  }
  const Outcome outcome = recogniser_.test_and_insert(asked);
  if (outcome != Outcome::applied) return {outcome};
  if (addition.id.kind != OperationId::Kind::none) base.remember(asked);
  raise_bound(addition.delta);
  return {outcome, take_effect(addition, kind, base)};
}

// Returns the sum of the counter afterwards, if it is known. REQUIRES: judged, and remembered.
std::optional<int128> Ledger::take_effect(const Addition& addition, Operation::Kind kind,
                                          Base& base) {
  if (!log_.alone()) {
    log_.append({{},
                 kind,
                 addition.id,
                 std::string(addition.counter),
                 addition.delta,
                 {},
                 recogniser_.now()},
                base);
    return kind == Operation::Kind::reset ? std::optional<int128>(0) : std::nullopt;
  }
  const Dot dot = log_.count(1);
  if (kind != Operation::Kind::add) base.clear(addition.counter);
  if (kind == Operation::Kind::remove) return std::nullopt;
  const std::optional<int128> sum =
      base.fold(addition.counter, {dot.site, dot.counter, 1, addition.delta});
  return kind == Operation::Kind::reset ? std::optional<int128>(0) : sum;
}

bool Ledger::receive(std::span<const Operation> operations, Base& base) {
  bool all = true;
  const auto arrive = [&](Operation operation) {
    const Recogniser::Query asked =
        query({operation.counter, operation.delta, operation.id}, operation.kind);
    if (operation.id.kind != OperationId::Kind::none) {
      // An id that cannot be remembered must not be acknowledged: its retries would count here.
      if (recogniser_.insert(asked, recogniser_.now()) != Outcome::applied) return false;
      base.remember(asked);
    }
    raise_bound(operation.delta);
    log_.arrive(std::move(operation), base);
    return true;
  };
  for (const Operation& operation : operations) {
    switch (log_.place(operation)) {
      case OperationLog::Arrival::known:
        break;
      case OperationLog::Arrival::next:
        if (!arrive(operation)) all = false;
        break;
      case OperationLog::Arrival::waiting:
        log_.wait(operation);
        all = false;
        break;
      case OperationLog::Arrival::forked:
        log_.note_fork(operation.dot);
        all = false;
        break;
    }
  }
  while (std::optional<Operation> operation = log_.take_waiting()) {
    if (arrive(*operation)) continue;
    log_.wait(*operation);
    all = false;
    break;
  }
  log_.fold(base);
  return all;
}

Result<void> Ledger::receive_view(SiteId from, const SiteView& view, Base& base) {
  SEMEL_TRY(log_.check_group(view));
  log_.receive(from, view);
  log_.fold(base);
  return {};
}

void Ledger::record_published(const SiteView& view, Base& base) {
  log_.record_published(view);
  log_.fold(base);
}

Result<void> Ledger::retire(SiteId site, Base& base) {
  SEMEL_TRY(log_.retire(site));
  log_.fold(base);
  return {};
}

Result<void> Ledger::read_values(std::span<const std::string_view> counters,
                                 std::span<std::optional<int128>> values, const Base& base) const {
  SEMEL_TRY(base.sums_of(counters, values));
  if (log_.alone()) return {};
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const std::optional<OperationLog::Overlay> overlay = log_.overlay(counters[i]);
    if (overlay && (values[i] || overlay->live > 0)) {
      values[i] = values[i].value_or(0) + overlay->sum;
    }
  }
  return {};
}

Result<std::optional<int128>> Ledger::value_of(std::string_view counter, const Base& base) const {
  std::optional<int128> value;
  SEMEL_TRY(read_values({&counter, 1}, {&value, 1}, base));
  return value;
}

Result<std::vector<std::optional<std::int64_t>>> Ledger::get(
    std::span<const std::string_view> counters, const Base& base) const {
  std::vector<std::optional<int128>> values(counters.size());
  SEMEL_TRY(read_values(counters, values, base));
  std::vector<std::optional<std::int64_t>> narrow(counters.size());
  for (std::size_t i = 0; i < counters.size(); ++i) {
    narrow[i] = to_int64(values[i]);
    if (values[i] && !narrow[i]) {
      return Error{Errc::limit, "the value of a counter is beyond 64 bits"};
    }
  }
  return narrow;
}

Result<RangeSum> Ledger::with_overlays(RangeSum folded, const NameRange& range,
                                       const Base& base) const {
  std::vector<std::string_view> live;
  log_.overlays(range.first, range.end, [&](std::string_view counter, const auto& overlay) {
    folded.sum += overlay.sum;
    if (overlay.live > 0) live.push_back(counter);
    return true;
  });
  std::vector<std::optional<int128>> sums(live.size());
  SEMEL_TRY(base.sums_of(live, sums));
  folded.count += static_cast<std::uint64_t>(
      std::count_if(sums.begin(), sums.end(), [](const auto& sum) { return !sum; }));
  return folded;
}

TableInfo Ledger::info() const {
  WindowPromise promise = recogniser_.promise();
  promise.kept_from_ms = clock_of(promise.kept_from_ms);
  promise.forgotten_before_ms = clock_of(promise.forgotten_before_ms);
  TableInfo info;
  info.recognition = recogniser_.goal();
  info.now_ms = clock_of(recogniser_.now());
  info.promise = promise;
  info.counts = recogniser_.counts();
  info.false_positive_rate = recogniser_.false_positive_rate();
  info.expected_undercount = recogniser_.expected_undercount();
  info.recogniser_bytes = recogniser_.bytes();
  info.site = log_.site();
  info.members = log_.members();
  info.held = log_.held();
  info.folded = log_.state().folded;
  info.unfolded = log_.unfolded();
  info.ready = log_.ready();
  info.superseded = log_.superseded();
  info.forked = {log_.forked().begin(), log_.forked().end()};
  info.waiting_for = log_.waiting_for();
  return info;
}

std::uint64_t Ledger::bytes() const { return recogniser_.bytes() + log_.bytes(); }

}  // namespace semel::tally::internal
