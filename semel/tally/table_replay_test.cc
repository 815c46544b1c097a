// Table and its copies: a decoded copy goes on like the original, and a copy that gets only the
// changing calls ends with the same bytes. The replicas of a server are such copies.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "semel/tally/internal/ledger.h"
#include "semel/tally/table.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"
#include "tests/support/table_probe.h"

namespace semel::tally {

using namespace internal;

namespace {

constexpr TimeMs kNow = 1'700'000'000'000;
constexpr TimeMs kWindowMs = 700;

// One call. There are few counters and ids, so that they come again. `burst` calls follow each
// other with consecutive ids, so that windows grow.
struct Call {
  enum class Kind { opaque, numbered, none, batch, reset, remove, large };
  Kind kind;
  std::uint64_t counter;
  std::uint64_t id;
  std::uint64_t burst;
  TimeMs step_ms;
};

std::ostream& operator<<(std::ostream& out, const Call& call) {
  return out << '{' << static_cast<int>(call.kind) << ", " << call.counter << ", " << call.id
             << ", " << call.burst << ", " << call.step_ms << '}';
}

rc::Gen<Call> a_call() {
  using Kind = Call::Kind;
  const auto kind =
      rc::gen::element(Kind::opaque, Kind::opaque, Kind::opaque, Kind::numbered, Kind::numbered,
                       Kind::none, Kind::batch, Kind::reset, Kind::remove, Kind::large);
  const auto step =
      rc::gen::element<TimeMs>(0, 0, 0, 1, 5, 30, 99, 100, 101, 250, -20, kWindowMs, 3 * kWindowMs);
  return rc::gen::apply(
      [](Kind of, std::uint64_t counter, std::uint64_t id, std::uint64_t burst, TimeMs step_ms) {
        return Call{of, counter, id, burst, step_ms};
      },
      kind, rc::gen::inRange<std::uint64_t>(0, 4),
      rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 400),
                     rc::gen::inRange<std::uint64_t>(0, 100000)),
      rc::gen::element<std::uint64_t>(1, 1, 1, 7, 100), step);
}

std::vector<Recognition> goals() {
  std::vector<Recognition> all;
  for (const auto kind :
       {Recognition::Kind::clients, Recognition::Kind::filter, Recognition::Kind::exact}) {
    for (const std::uint64_t cap : {kNoCap, std::uint64_t{10000}}) {
      for (const auto on_full : {OnFull::refuse, OnFull::forget}) {
        all.push_back({.kind = kind,
                       .window_ms = kWindowMs,
                       .fpr = 0.01,
                       .ids = 16,
                       .max_bytes = cap,
                       .on_full = on_full});
      }
    }
  }
  return all;
}

Table made(const Recognition& goal) { return *Table::make({.recognition = goal}, kNow); }

Table copied(const Table& table) {
  Result<Table> copy = Table::decode(encoded(table));
  RC_ASSERT(copy.has_value());
  return *std::move(copy);
}

Addition addition_of(const Call& call, std::uint64_t n, std::string_view name) {
  // The delta follows from the id; otherwise an exact table would call most retries a conflict.
  const std::int64_t delta = call.kind == Call::Kind::large
                                 ? std::numeric_limits<std::int64_t>::max() / 2
                                 : static_cast<std::int64_t>(call.id + n) - 100;
  OperationId id;
  if (call.kind == Call::Kind::numbered) id = OperationId::numbered(key(call.id % 5), call.id + n);
  if (call.kind == Call::Kind::opaque || call.kind == Call::Kind::batch) {
    id = OperationId::opaque(key(call.id + n));
  }
  return {name, delta, id};
}

// Returns the answers, one for each call of the burst.
std::vector<Answer> answered(Table& table, const Call& call, TimeMs now_ms, bool at_once) {
  const std::string name = "counter " + std::to_string(call.counter);
  const OperationId id = call.id % 2 == 0 ? OperationId() : OperationId::opaque(key(call.id));
  if (call.kind == Call::Kind::reset) return {*table.reset(name, id, now_ms)};
  if (call.kind == Call::Kind::remove) return {*table.remove(name, id, now_ms)};
  std::vector<Addition> additions;
  for (std::uint64_t n = 0; n < call.burst; ++n) additions.push_back(addition_of(call, n, name));
  std::vector<Answer> answers(additions.size());
  if (at_once) {
    RC_ASSERT(table.add(additions, answers, now_ms).has_value());
  } else {
    for (std::size_t i = 0; i < additions.size(); ++i) {
      answers[i] = *table.add(additions[i], now_ms);
    }
  }
  return answers;
}
std::vector<Answer> answered(Table& table, const Call& call, TimeMs now_ms) {
  return answered(table, call, now_ms, call.kind == Call::Kind::batch);
}

// Returns true if a call left a trace. A call that finds no room leaves its time, and counts in the
// expected under-count.
bool left_something(std::span<const Answer> answers) {
  return std::any_of(answers.begin(), answers.end(), [](const Answer& answer) {
    return answer.outcome == Outcome::applied || answer.outcome == Outcome::full;
  });
}

std::vector<Call> some_calls() {
  return *rc::gen::resize(300, rc::gen::container<std::vector<Call>>(a_call()));
}

// Applies one more operation, so that all tables have the same time.
void end(Table& table, TimeMs now_ms) { RC_ASSERT(table.add({"end", 1, {}}, now_ms).has_value()); }

RC_GTEST_PROP(TableReplay, ADecodedOneGoesOnAsTheFirst, ()) {
  const Recognition goal = *rc::gen::elementOf(goals());
  const std::vector<Call> calls = some_calls();
  Table first = made(goal);
  std::vector<Table> copies;
  TimeMs now_ms = kNow;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i % (1 + calls.size() / 3) == 0) copies.push_back(copied(first));
    now_ms += calls[i].step_ms;
    const std::vector<Answer> answers = answered(first, calls[i], now_ms);
    for (Table& copy : copies) RC_ASSERT(answered(copy, calls[i], now_ms) == answers);
  }
  for (const Table& copy : copies) RC_ASSERT(encoded(copy) == encoded(first));
  RC_CLASSIFY(TableProbe::recogniser(first).counts().refused > 0, "refuses");
  RC_CLASSIFY(TableProbe::recogniser(first).counts().forgotten_early > 0, "forgets early");
}

// A burst is forwarded one by one, as a server does; a batch as a whole.
RC_GTEST_PROP(TableReplay, WhatChangedNothingLeavesNoTrace, ()) {
  const Recognition goal = *rc::gen::elementOf(goals());
  const std::vector<Call> calls = some_calls();
  Table first = made(goal);
  std::vector<Table> replicas;
  replicas.push_back(made(goal));
  TimeMs now_ms = kNow;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i == calls.size() / 2) replicas.push_back(copied(first));
    now_ms += calls[i].step_ms;
    Call call = calls[i];
    const std::uint64_t repeats = call.kind == Call::Kind::batch ? 1 : call.burst;
    if (call.kind != Call::Kind::batch) call.burst = 1;
    for (std::uint64_t n = 0; n < repeats; ++n, ++call.id) {
      const std::vector<Answer> answers = answered(first, call, now_ms);
      if (!left_something(answers)) continue;
      for (Table& replica : replicas) {
        RC_ASSERT(answered(replica, call, TableProbe::recogniser(first).now()) == answers);
      }
    }
  }
  end(first, now_ms);
  for (Table& replica : replicas) {
    end(replica, TableProbe::recogniser(first).now());
    RC_ASSERT(encoded(replica) == encoded(first));
  }
}

RC_GTEST_PROP(TableReplay, OneByOneOrInBatchesIsTheSame, ()) {
  const Recognition goal = *rc::gen::elementOf(goals());
  Table single = made(goal), batched = made(goal);
  TimeMs now_ms = kNow;
  for (const Call& call : some_calls()) {
    now_ms += call.step_ms;
    const std::vector<Answer> answers = answered(single, call, now_ms, false);
    const bool adds = call.kind != Call::Kind::reset && call.kind != Call::Kind::remove;
    RC_ASSERT(answered(batched, call, now_ms, adds) == answers);
  }
  RC_ASSERT(encoded(batched) == encoded(single));
}

// Time may advance in steps, by calls that change nothing.
RC_GTEST_PROP(TableReplay, TimeInStepsIsTimeAtOnce, ()) {
  const Recognition goal = *rc::gen::elementOf(goals());
  Table first = made(goal);
  TimeMs now_ms = kNow;
  for (const Call& call : some_calls()) {
    now_ms += call.step_ms;
    (void)answered(first, call, now_ms);
  }
  const TimeMs from_ms = TableProbe::recogniser(first).now();
  Recogniser stepped = *Recogniser::decode(encoded(TableProbe::recogniser(first)));
  Recogniser jumped = *Recogniser::decode(encoded(TableProbe::recogniser(first)));
  const TimeMs to_ms = from_ms + *rc::gen::inRange<TimeMs>(0, 3 * kWindowMs);
  const auto steps =
      *rc::gen::container<std::vector<TimeMs>>(rc::gen::inRange<TimeMs>(0, kWindowMs / 2));
  TimeMs at_ms = from_ms;
  for (const TimeMs step_ms : steps) {
    at_ms = std::min(to_ms, at_ms + step_ms);
    stepped.advance(at_ms);
  }
  stepped.advance(to_ms);
  jumped.advance(to_ms);
  RC_ASSERT(encoded(stepped) == encoded(jumped));
}

}  // namespace
}  // namespace semel::tally
