#include "semel/tally/internal/ledger.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/limits.h"

namespace semel::tally {
namespace {

// Flags of an encoded state.
constexpr std::uint8_t kReady = 1;
constexpr std::uint8_t kSuperseded = 2;

constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

std::uint64_t magnitude(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? ~bits + 1 : bits;
}

bool fits(int128 value) { return narrowed(value).has_value(); }

Outcome outcome_of(Recognised recognised) {
  switch (recognised) {
    case Recognised::fresh:
      return Outcome::applied;
    case Recognised::duplicate:
      return Outcome::duplicate;
    case Recognised::stale:
      return Outcome::stale;
    case Recognised::full:
      return Outcome::full;
    case Recognised::conflict:
      return Outcome::conflict;
  }
  return Outcome::full;
}

Result<void> check_name(std::string_view counter) {
  if (counter.size() <= limits::kCounterNameBytes) return {};
  return Error{Errc::limit, "the name of a counter of more than 2048 bytes"};
}

// FROZEN: it is in the windows of exact tables, and in their logs.
Digest content_of(Operation::Kind kind, std::string_view counter, std::int64_t delta) {
  return digest(counter, mix(static_cast<std::uint64_t>(delta)) + static_cast<std::uint64_t>(kind));
}

}  // namespace

void Ledger::State::encode(Sink out) const {
  Writer w(out);
  w.u16(log.site);
  w.u8((log.ready ? kReady : 0) | (log.superseded ? kSuperseded : 0));
  w.u64(bound);
  log.members.encode(out);
  log.held.encode(out);
  log.folded.encode(out);
  log.heads.encode(out);
  w.u64(log.group);
  w.u64(static_cast<std::uint64_t>(lag_ms));
}

Result<Ledger::State> Ledger::State::decode(Reader& in) {
  State state;
  state.log.site = in.u16();
  const std::uint8_t flags = in.u8();
  state.bound = in.u64();
  if (!in.ok() || flags > (kReady | kSuperseded)) return Error{Errc::corrupt, "state of a table"};
  state.log.ready = (flags & kReady) != 0;
  state.log.superseded = (flags & kSuperseded) != 0;
  Result<Members> members = Members::decode(in);
  if (!members) return members.error();
  Result<VersionVector> held = VersionVector::decode(in);
  if (!held) return held.error();
  Result<VersionVector> folded = VersionVector::decode(in);
  if (!folded) return folded.error();
  VersionVector all = *held;
  if (all.merge(*folded)) {
    return Error{Errc::corrupt, "state of a table: folded what it does not hold"};
  }
  Result<LogHeads> heads = LogHeads::decode(in);
  if (!heads) return heads.error();
  state.log.group = in.u64();
  state.lag_ms = static_cast<TimeMs>(in.u64());
  if (state.lag_ms < 0) return Error{Errc::corrupt, "state of a table: lag"};
  if (!in.ok() || !heads->within(*held)) return Error{Errc::corrupt, "state of a table: heads"};
  state.log.heads = std::move(*heads);
  state.log.members = std::move(*members);
  state.log.held = std::move(*held);
  state.log.folded = std::move(*folded);
  return state;
}

Ledger::Ledger(Recogniser recogniser, SiteId site, const OperationLog::Limits& limits)
    : recogniser_(std::move(recogniser)), log_(site, limits) {}

Ledger::Ledger(Recogniser recogniser, OperationLog log, std::uint64_t bound, TimeMs lag_ms)
    : recogniser_(std::move(recogniser)), log_(std::move(log)), bound_(bound), lag_ms_(lag_ms) {}

Result<void> Ledger::become(SiteId site, TimeMs now_ms) {
  if (Result<void> became = log_.become(site); !became) return became;
  TimeMs behind_ms = 0;
  const bool overflows = __builtin_sub_overflow(now_ms, recogniser_.now(), &behind_ms);
  lag_ms_ = overflows ? std::numeric_limits<TimeMs>::max() : std::max<TimeMs>(0, behind_ms);
  return {};
}

Recogniser::Query Ledger::query(const OperationId& id, Operation::Kind kind,
                                std::string_view counter, std::int64_t delta) const {
  if (!recogniser_.wants_content()) return {id};
  return {id, content_of(kind, counter, delta)};
}

bool Ledger::might_overflow(std::span<const Addition> additions) const {
  std::uint64_t most = bound_;
  for (const Addition& addition : additions) {
    if (__builtin_add_overflow(most, magnitude(addition.delta), &most)) return true;
  }
  return most > kLargest;
}

void Ledger::raise_bound(std::int64_t delta) {
  if (__builtin_add_overflow(bound_, magnitude(delta), &bound_)) bound_ = ~std::uint64_t{0};
}

// Used for one piece of a batch after the other, and given back with it.
struct Ledger::Buffers {
  std::vector<Recogniser::Query> queries;
  std::vector<Recognised> recognised;
  std::vector<Counters::Addition> folds;
  std::vector<int128> sums;
  std::vector<std::string_view> read;
  std::vector<std::optional<int128>> before;
};

Result<void> Ledger::add(std::span<const Addition> additions, std::span<Answer> answers,
                         bool values, Base& base) {
  SEMEL_ASSERT(additions.size() == answers.size());
  for (const Addition& addition : additions) {
    if (Result<void> named = check_name(addition.counter); !named) return named;
  }
  const Result<void> may = log_.may_take(additions.size());
  if (!may && may.error().code != Errc::full) return may;
  const bool quick = may && log_.alone() && (!values || base.tells_sums());
  const bool at_once = quick && !might_overflow(additions);
  // A base that may fail to read is read before anything changes: the batch is one piece then.
  const std::size_t most = at_once || base.tells_sums() ? kPiece : additions.size();
  Buffers buffers;
  for (std::size_t first = 0; first < additions.size(); first += most) {
    const std::size_t size = std::min(most, additions.size() - first);
    const auto piece = additions.subspan(first, size);
    const auto said = answers.subspan(first, size);
    // Where memory may run out in the middle, one by one: then it is known how far it came.
    const Result<void> added = at_once && recogniser_.takes(size)
                                   ? add_at_once(piece, said, values, base, buffers)
                                   : add_one_by_one(piece, said, values, base);
    if (!added) return added;
  }
  return {};
}

Result<bool> Ledger::answer_refused(std::span<const Addition> additions, std::span<Answer> answers,
                                    TimeMs now_ms, const Base& base) const {
  SEMEL_ASSERT(additions.size() == answers.size());
  for (const Addition& addition : additions) {
    if (const Result<void> named = check_name(addition.counter); !named) return named.error();
  }
  const Result<void> may = log_.may_take(additions.size());
  if (!may && may.error().code != Errc::full) return may.error();
  const bool watched = might_overflow(additions);
  for (std::size_t i = 0; i < additions.size(); ++i) {
    const Addition& addition = additions[i];
    Outcome outcome = test_alone(addition, now_ms);
    if (outcome != Outcome::conflict && log_.knows(addition.id)) outcome = Outcome::duplicate;
    if (outcome == Outcome::applied && !watched) return false;
    const Result<std::vector<std::optional<int128>>> value =
        values_of({&addition.counter, 1}, base);
    if (!value) return value.error();
    if (outcome == Outcome::applied) {
      if (fits(value->front().value_or(0) + addition.delta)) return false;
      outcome = Outcome::overflow;
    }
    answers[i] = {outcome, narrowed(value->front())};
  }
  return true;
}

std::optional<Dot> Ledger::alone(const Addition& addition) const {
  if (addition.counter.size() > limits::kCounterNameBytes) return std::nullopt;
  if (might_overflow({&addition, 1})) return std::nullopt;
  return log_.next_alone();
}

Outcome Ledger::test_alone(const Addition& addition, TimeMs now_ms) const {
  if (addition.id.kind == OperationId::Kind::none) return Outcome::applied;
  return outcome_of(recogniser_.test(
      query(addition.id, Operation::Kind::add, addition.counter, addition.delta), time_of(now_ms)));
}

Outcome Ledger::add_alone(const Addition& addition, Dot dot) {
  const Outcome outcome = outcome_of(recogniser_.test_and_insert(
      query(addition.id, Operation::Kind::add, addition.counter, addition.delta)));
  if (outcome == Outcome::applied) {
    raise_bound(addition.delta);
    log_.count_alone(dot);
  }
  return outcome;
}

Result<void> Ledger::add_at_once(std::span<const Addition> additions, std::span<Answer> answers,
                                 bool values, Base& base, Buffers& buffers) {
  auto& [queries, recognised, folds, sums, read, before] = buffers;
  queries.clear();
  for (const Addition& addition : additions) {
    queries.push_back(query(addition.id, Operation::Kind::add, addition.counter, addition.delta));
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
    answers[i] = {outcome_of(recognised[i])};
    if (recognised[i] != Recognised::fresh) continue;
    const Addition& addition = additions[i];
    folds.push_back({addition.counter, {log_.site(), 0, 1, addition.delta}});
    raise_bound(addition.delta);
    if (addition.id.kind != OperationId::Kind::none) base.remember(queries[i]);
  }
  std::uint64_t number = log_.count(folds.size()).counter - folds.size();
  for (Counters::Addition& fold : folds) fold.shard.clock = ++number;

  // What is not applied is answered with the value of its turn: that of before, unless one that is
  // applied came first.
  read.clear();
  for (std::size_t i = 0; values && i < additions.size(); ++i) {
    if (recognised[i] != Recognised::fresh) read.push_back(additions[i].counter);
  }
  before.resize(read.size());
  if (const Result<void> known = base.sums_of(read, before); !known) return known;

  sums.resize(values ? folds.size() : 0);
  base.fold_all(folds, sums);
  if (!values) return {};
  std::size_t folded = 0, known = 0;
  for (std::size_t i = 0; i < additions.size(); ++i) {
    if (answers[i].outcome == Outcome::applied) {
      answers[i].value = narrowed(sums[folded]);
      if (known < read.size()) now[additions[i].counter] = sums[folded];
      ++folded;
    } else {
      const auto changed = now.find(additions[i].counter);
      answers[i].value = narrowed(changed == now.end() ? before[known] : changed->second);
      ++known;
    }
  }
  return {};
}

Result<void> Ledger::add_one_by_one(std::span<const Addition> additions, std::span<Answer> answers,
                                    bool values, Base& base) {
  const bool watched = values || might_overflow(additions);
  std::unordered_map<std::string_view, std::optional<int128>> now;
  if (watched) {
    std::vector<std::string_view> counters;
    for (const Addition& addition : additions) {
      if (now.try_emplace(addition.counter).second) counters.push_back(addition.counter);
    }
    const Result<std::vector<std::optional<int128>>> read = values_of(counters, base);
    if (!read) return read.error();
    for (std::size_t i = 0; i < counters.size(); ++i) now[counters[i]] = (*read)[i];
  }
  for (std::size_t i = 0; i < additions.size(); ++i) {
    const Addition& addition = additions[i];
    const Recogniser::Query asked =
        query(addition.id, Operation::Kind::add, addition.counter, addition.delta);
    std::optional<int128>* value = watched ? &now[addition.counter] : nullptr;
    Recognised recognised = recogniser_.test(asked);
    if (recognised != Recognised::conflict && log_.knows(addition.id)) {
      recognised = Recognised::duplicate;
    }
    Outcome outcome = outcome_of(recognised);
    if (recognised == Recognised::fresh) {
      if (value != nullptr && !fits(value->value_or(0) + addition.delta)) {
        outcome = Outcome::overflow;
      } else if (!log_.may_take(1)) {
        outcome = Outcome::full;
      } else {
        base.reserve({&addition, 1});
        recognised = recogniser_.test_and_insert(asked);
        outcome = outcome_of(recognised);
      }
    }
    if (outcome == Outcome::applied) {
      if (addition.id.kind != OperationId::Kind::none) base.remember(asked);
      raise_bound(addition.delta);
      take_effect(Operation::Kind::add, addition.counter, addition.delta, addition.id, base);
      if (value != nullptr) *value = value->value_or(0) + addition.delta;
    }
    answers[i] = {outcome, values ? narrowed(*value) : std::nullopt};
  }
  return {};
}

// REQUIRES: judged, and remembered.
void Ledger::take_effect(Operation::Kind kind, std::string_view counter, std::int64_t delta,
                         const OperationId& id, Base& base) {
  if (!log_.alone()) {
    log_.append({{}, kind, id, std::string(counter), delta, {}, recogniser_.now()}, base);
    return;
  }
  const Dot dot = log_.count(1);
  if (kind != Operation::Kind::add) base.clear(counter);
  if (kind != Operation::Kind::remove) base.fold(counter, {dot.site, dot.counter, 1, delta});
}

Result<Answer> Ledger::change(Operation::Kind kind, std::string_view counter, const OperationId& id,
                              Base& base) {
  SEMEL_ASSERT(kind != Operation::Kind::add);
  if (const Result<void> named = check_name(counter); !named) return named.error();
  const Result<void> may = log_.may_take(1);
  if (!may && may.error().code != Errc::full) return may.error();

  const Recogniser::Query asked = query(id, kind, counter, 0);
  Recognised recognised = recogniser_.test(asked);
  Answer answer;
  if (recognised == Recognised::fresh && !may) {
    answer.outcome = Outcome::full;
  } else {
    if (recognised == Recognised::fresh) recognised = recogniser_.test_and_insert(asked);
    answer.outcome = outcome_of(recognised);
  }
  if (answer.outcome != Outcome::applied) {
    const Result<std::vector<std::optional<int128>>> now = values_of({&counter, 1}, base);
    if (!now) return now.error();
    answer.value = narrowed(now->front());
    return answer;
  }
  if (id.kind != OperationId::Kind::none) base.remember(asked);
  take_effect(kind, counter, 0, id, base);
  if (kind == Operation::Kind::reset) answer.value = 0;
  return answer;
}

bool Ledger::take(std::span<const Operation> operations, Base& base) {
  bool all = true;
  const auto arrive = [&](Operation operation) {
    const Recogniser::Query asked =
        query(operation.id, operation.kind, operation.counter, operation.delta);
    if (operation.id.kind != OperationId::Kind::none) {
      // What cannot be remembered must not be acknowledged: its retries would count here.
      if (recogniser_.insert(asked, recogniser_.now()) != Recognised::fresh) return false;
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

Result<void> Ledger::hear(SiteId from, const SiteView& view, Base& base) {
  if (Result<void> ours = log_.concerns(view); !ours) return ours;
  log_.hear(from, view);
  log_.fold(base);
  return {};
}

void Ledger::say(const SiteView& view, Base& base) {
  log_.say(view);
  log_.fold(base);
}

Result<void> Ledger::retire(SiteId site, Base& base) {
  if (const Result<void> retired = log_.retire(site); !retired) return retired;
  log_.fold(base);
  return {};
}

Result<std::vector<std::optional<int128>>> Ledger::values_of(
    std::span<const std::string_view> counters, const Base& base) const {
  std::vector<std::optional<int128>> values(counters.size());
  const Result<void> read = base.sums_of(counters, values);
  if (!read) return read.error();
  if (log_.alone()) return values;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const std::optional<OperationLog::Overlay> overlay = log_.overlay(counters[i]);
    if (overlay && (values[i] || overlay->live > 0)) {
      values[i] = values[i].value_or(0) + overlay->sum;
    }
  }
  return values;
}

Result<std::vector<std::optional<std::int64_t>>> Ledger::many(
    std::span<const std::string_view> counters, const Base& base) const {
  const Result<std::vector<std::optional<int128>>> values = values_of(counters, base);
  if (!values) return values.error();
  std::vector<std::optional<std::int64_t>> narrow(counters.size());
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const std::optional<int128>& value = (*values)[i];
    if (value && !fits(*value)) {
      return Error{Errc::limit, "the value of a counter is beyond 64 bits"};
    }
    narrow[i] = narrowed(value);
  }
  return narrow;
}

Result<std::optional<std::int64_t>> Ledger::get(std::string_view counter, const Base& base) const {
  const Result<std::vector<std::optional<std::int64_t>>> values = many({&counter, 1}, base);
  if (!values) return values.error();
  return values->front();
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
  const Result<void> read = base.sums_of(live, sums);
  if (!read) return read.error();
  folded.count += static_cast<std::uint64_t>(
      std::count_if(sums.begin(), sums.end(), [](const auto& sum) { return !sum; }));
  return folded;
}

std::uint64_t Ledger::bytes() const { return recogniser_.bytes() + log_.bytes(); }

}  // namespace semel::tally
