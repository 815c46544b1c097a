// TALLY.*: counters that count every operation once.
#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "module/commands/arguments.h"
#include "module/commands/creation.h"
#include "module/commands/defaults.h"
#include "module/commands/families.h"
#include "module/commands/keys.h"
#include "module/host/statistics.h"
#include "module/types/tally_value.h"
#include "semel/core/limits.h"

namespace semel::module {
namespace {

using host::Access;
using host::Call;
using host::command;
using host::Effect;
using host::OpenKey;
using host::Pace;
using host::statistics;
using tally::Addition;
using tally::Answer;
using tally::OperationId;
using tally::Outcome;
using tally::Recogniser;

constexpr const char* kDeltaRefused = "ERR value is not an integer or out of range";
constexpr const char* kNameTooLong = "ERR a counter has a name of at most 2048 bytes";
constexpr const char* kIdTooLong = "ERR an id has at most 1024 bytes";
static_assert(limits::kCounterNameBytes == 2048 && limits::kOperationIdBytes == 1024);

Recogniser::Goal default_goal() {
  Recogniser::Goal goal;
  goal.window_ms = defaults.tally_window_ms;
  goal.fpr = defaults.tally_error;
  goal.ids = defaults.tally_capacity;
  return goal;
}

// Makes the table, and tells the replicas all that it was made of. Null if that was answered with an
// error.
TallyValue* create(Call& call, const OpenKey& key, Recogniser::Goal goal, const Secret& secret) {
  if (!take_limit(call, goal.max_bytes)) return nullptr;
  Result<std::unique_ptr<TallyValue>> made = TallyValue::make(secret, goal, call.now_ms());
  if (!made) {
    call.error(refusal(call, "the table", made.error()));
    return nullptr;
  }
  const std::string window = std::to_string(goal.window_ms);
  const std::string error = text_of(goal.fpr);
  const std::string ids = std::to_string(goal.ids);
  const std::string bytes = std::to_string(goal.max_bytes);
  std::vector<std::string_view> words = {
      "TALLY.CREATE", call[1],        "WINDOW", window,   "ERROR",
      error,          "CAPACITY",     ids,      "ONFULL", text_of(goal.when_full),
      "SECRET",       text_of(secret)};
  if (goal.kind == Recogniser::Kind::exact) words.push_back("EXACT");
  if (goal.max_bytes != kNoCap) words.insert(words.end(), {"MAXBYTES", bytes});
  call.effect(words);
  return &key.set(std::move(*made));
}

// TALLY.CREATE key [WINDOW duration] [ERROR error] [EXACT] [CAPACITY n] [MAXBYTES bytes]
// [ONFULL refuse|forget]
void create_table(Call& call) {
  Recogniser::Goal goal = default_goal();
  std::optional<Secret> secret;
  bool error_given = false;
  Options options(call, 2);
  while (options.more()) {
    if (options.duration("WINDOW", goal.window_ms) ||
        options.count("CAPACITY", 1, std::uint64_t{1} << 38, goal.ids) ||
        take_max_bytes(options, Recogniser::kLeastBytes, goal.max_bytes) ||
        take_when_full(options, goal.when_full) || take_secret(options, call, secret)) {
      continue;
    }
    if (options.error_rate("ERROR", goal.fpr)) {
      error_given = true;
    } else if (options.flag("EXACT")) {
      goal.kind = Recogniser::Kind::exact;
    } else {
      options.unknown();
    }
  }
  if (options.refused()) return;
  if (goal.kind == Recogniser::Kind::exact && error_given && !call.replayed()) {
    return call.error("ERR EXACT and ERROR exclude each other");
  }
  const OpenKey key = call.open(1, Access::write);
  if (!key.empty()) {
    return key.get<TallyValue>() != nullptr ? call.error("ERR the table exists")
                                            : call.wrong_type();
  }
  if (create(call, key, goal, secret ? *secret : Secret::random()) == nullptr) return;
  call.changed();
  call.only_effects();
  call.ok();
}

// Makes the table of a key that has none. Null if that was answered with an error.
TallyValue* make_missing(Call& call, const OpenKey& key, const Secret& secret) {
  if (!key.empty()) {
    call.wrong_type();
    return nullptr;
  }
  return create(call, key, default_goal(), secret);
}

using ReadTable = ReadKey<TallyValue>;

// ID id, OP client seq, or nothing. Null if it is good; what is wrong otherwise.
const char* parse_id(Call& call, std::size_t at, const Hasher& hasher, OperationId& out) {
  if (at == call.size()) return nullptr;
  const std::string_view kind = call[at];
  if (is_word(kind, "ID") && at + 2 == call.size()) {
    const Result<OperationId> id = tally::opaque_id(hasher, call[at + 1]);
    if (!id) return kIdTooLong;
    out = *id;
    return nullptr;
  }
  if (is_word(kind, "OP") && at + 3 == call.size()) {
    const std::optional<std::uint64_t> sequence = parse_count(call[at + 2]);
    if (!sequence) return "ERR a sequence is a number, 0 or more";
    const Result<OperationId> id = tally::numbered_id(hasher, call[at + 1], *sequence);
    if (!id) return kIdTooLong;
    out = *id;
    return nullptr;
  }
  return "ERR syntax error; allowed: ID id, or OP client seq";
}

// Whether it left something in the table: one for which there was no room has left its time.
bool changes(Outcome outcome) { return outcome == Outcome::applied || outcome == Outcome::full; }

void refuse(Call& call, const char* error) {
  ++statistics.tally_refused;
  call.refuse(error);
}

// As a change, at its place among others.
std::uint64_t what(const Answer& answer, std::size_t place) {
  const auto value = static_cast<std::uint64_t>(answer.value.value_or(0));
  return mix(value + place) + static_cast<std::uint64_t>(answer.outcome) + 1;
}

void answer_one(Call& call, const Answer& answer) {
  if (answer.outcome == tally::kUnanswered) return refuse(call, host::kNoMemory);
  switch (answer.outcome) {
    case Outcome::applied:
    case Outcome::duplicate: {
      const bool applied = answer.outcome == Outcome::applied;
      ++(applied ? statistics.tally_applied : statistics.tally_duplicates);
      call.array(2);
      if (answer.value) {
        call.integer(*answer.value);
      } else {
        call.null();
      }
      return call.text(applied ? "applied" : "duplicate");
    }
    case Outcome::stale:
      return refuse(call, "STALE the operation is too old to tell whether it was counted");
    case Outcome::conflict:
      return refuse(call, "CONFLICT the id was used before, for another counter or delta");
    case Outcome::overflow:
      return refuse(call, "ERR increment or decrement would overflow");
    case Outcome::full:
      break;
  }
  refuse(call, "FULL the table has no room to remember the operation; see MAXBYTES and ONFULL");
}

// TALLY.INCRBY key counter delta [ID id | OP client seq]
void increment(Call& call) {
  const std::optional<std::int64_t> delta = parse_integer(call[3]);
  if (!delta) return call.error(kDeltaRefused);
  const std::string_view counter = call[2];
  if (counter.size() > limits::kCounterNameBytes) return call.error(kNameTooLong);
  const OpenKey key = call.open(1, Access::write);
  TallyValue* value = key.get<TallyValue>();
  std::optional<tally::Counters::Seek> seek;
  std::optional<DrawnSecret> drawn;
  if (value != nullptr) {
    seek = value->table().seek(counter);
  } else {
    drawn.emplace();
  }
  // The id before the table: what is wrong makes no table.
  Addition addition{counter, *delta, {}};
  const Hasher& hasher = value != nullptr ? value->hasher() : drawn->hasher;
  if (const char* const wrong = parse_id(call, 4, hasher, addition.id)) return call.error(wrong);
  if (value == nullptr) value = make_missing(call, key, drawn->secret);
  if (value == nullptr) return;

  if (!seek) seek = value->table().seek(counter);
  const Result<Answer> answer = value->table().add(addition, *seek, call.now_ms());
  if (!answer) return call.error(std::string("ERR ").append(answer.error().what));
  if (changes(answer->outcome)) call.changed(what(*answer, 0));
  answer_one(call, *answer);
}

// What TALLY.MINCRBY is asked to add. Null if all is good; what is wrong otherwise.
const char* parse_additions(Call& call, const Hasher& hasher, std::vector<Addition>& out) {
  enum class Ids : std::uint8_t { none, each, numbered };
  std::size_t at = 3;
  Ids ids = Ids::none;
  std::uint64_t sequence = 0;
  std::string_view client;
  if (is_word(call[2], "IDS")) {
    ids = Ids::each;
  } else if (is_word(call[2], "OP")) {
    if (call.size() < 5) return "ERR syntax error; allowed: OP client seq counter delta ...";
    const std::optional<std::uint64_t> first = parse_count(call[4]);
    if (!first) return "ERR a sequence is a number, 0 or more";
    ids = Ids::numbered;
    client = call[3];
    sequence = *first;
    at = 5;
  } else if (!is_word(call[2], "NOID")) {
    return "ERR syntax error; allowed: NOID, IDS, or OP client seq";
  }
  const std::size_t width = ids == Ids::each ? 3 : 2;
  if (at == call.size() || (call.size() - at) % width != 0) {
    return ids == Ids::each ? "ERR syntax error; allowed: counter delta id ..."
                            : "ERR syntax error; allowed: counter delta ...";
  }
  const std::size_t count = (call.size() - at) / width;
  if (ids == Ids::numbered && sequence > std::numeric_limits<std::uint64_t>::max() - count) {
    return "ERR a sequence beyond 64 bits";
  }
  OperationId numbered;
  if (ids == Ids::numbered) {
    const Result<OperationId> id = tally::numbered_id(hasher, client, sequence);
    if (!id) return kIdTooLong;
    numbered = *id;
  }
  for (; at < call.size(); at += width) {
    const std::optional<std::int64_t> delta = parse_integer(call[at + 1]);
    if (!delta) return kDeltaRefused;
    if (call[at].size() > limits::kCounterNameBytes) return kNameTooLong;
    Addition& addition = out.emplace_back(Addition{call[at], *delta, {}});
    if (ids == Ids::each) {
      const Result<OperationId> id = tally::opaque_id(hasher, call[at + 2]);
      if (!id) return kIdTooLong;
      addition.id = *id;
    } else if (ids == Ids::numbered) {
      addition.id = numbered;
      ++numbered.sequence;
    }
  }
  return nullptr;
}

// TALLY.MINCRBY key NOID counter delta ... | IDS counter delta id ... | OP client seq counter delta ...
void increment_many(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  TallyValue* value = key.get<TallyValue>();
  std::optional<DrawnSecret> drawn;
  if (value == nullptr) drawn.emplace();
  const Hasher& hasher = value != nullptr ? value->hasher() : drawn->hasher;
  std::vector<Addition> additions;
  if (const char* const wrong = parse_additions(call, hasher, additions)) return call.error(wrong);
  if (value == nullptr) value = make_missing(call, key, drawn->secret);
  if (value == nullptr) return;

  std::vector<Answer> answers(additions.size());
  try {
    const Result<void> added = value->table().add(additions, answers, call.now_ms());
    if (!added) return call.error(std::string("ERR ").append(added.error().what));
  } catch (const std::bad_alloc&) {
    const auto end = std::find_if(answers.begin(), answers.end(), [](const Answer& answer) {
      return answer.outcome == tally::kUnanswered;
    });
    const auto left_something = [](const Answer& answer) { return changes(answer.outcome); };
    if (std::none_of(answers.begin(), end, left_something)) throw;
    const std::size_t first = is_word(call[2], "OP") ? 5 : 3;
    const std::size_t width = (call.size() - first) / answers.size();
    call.happened(first + static_cast<std::size_t>(end - answers.begin()) * width);
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (changes(answers[i].outcome)) call.changed(what(answers[i], i));
  }
  call.array(answers.size());
  for (const Answer& answer : answers) answer_one(call, answer);
}

void answer_value(Call& call, const std::optional<std::int64_t>& value) {
  if (value) {
    call.integer(*value);
  } else {
    call.null();
  }
}

constexpr const char* kBeyond = "ERR the value is beyond 64 bits";

// TALLY.GET key counter
void get(Call& call) {
  const ReadTable table(call);
  if (table.answered) return;
  if (table.value == nullptr) return call.null();
  const Result<std::optional<std::int64_t>> value = table.value->table().get(call[2]);
  if (!value) return call.error(kBeyond);
  answer_value(call, *value);
}

// TALLY.MGET key counter...
void get_many(Call& call) {
  const ReadTable table(call);
  if (table.answered) return;
  std::vector<std::string_view> counters;
  for (std::size_t i = 2; i < call.size(); ++i) counters.push_back(call[i]);
  std::vector<std::optional<std::int64_t>> values(counters.size());
  if (table.value != nullptr) {
    Result<std::vector<std::optional<std::int64_t>>> found = table.value->table().many(counters);
    if (!found) return call.error(kBeyond);
    values = std::move(*found);
  }
  call.array(values.size());
  for (const std::optional<std::int64_t>& value : values) answer_value(call, value);
}

// A range of names as in ZRANGEBYLEX: - and + are the ends, [a is with a, (a without.
class Range {
 public:
  // Whether `min` and `max` are such.
  bool parse(std::string_view min, std::string_view max) {
    if (min == "+" || max == "-") {
      empty_ = true;
    }
    if (min != "-" && min != "+") {
      if (!bound(min, first_)) return false;
      if (min.front() == '(') first_ += '\0';
    }
    if (max != "+" && max != "-") {
      std::string end;
      if (!bound(max, end)) return false;
      if (max.front() == '[') end += '\0';
      end_ = std::move(end);
    }
    if (end_ && *end_ <= first_) empty_ = true;
    return true;
  }

  bool empty() const { return empty_; }
  tally::NameRange names() const { return {first_, end_}; }

  static constexpr const char* kAllowed =
      "ERR min or max not valid string range item; allowed: -, +, [name, (name";

 private:
  static bool bound(std::string_view text, std::string& out) {
    if (text.empty() || (text.front() != '[' && text.front() != '(')) return false;
    out = text.substr(1);
    return true;
  }

  std::string first_;
  std::optional<std::string> end_;
  bool empty_ = false;
};

// TALLY.RANGE key min max [LIMIT n]
void range(Call& call) {
  Range names;
  if (!names.parse(call[2], call[3])) return call.error(Range::kAllowed);
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  Options options(call, 4);
  while (options.more()) {
    if (!options.count("LIMIT", 1, most, most)) options.unknown();
  }
  if (options.refused()) return;
  const ReadTable table(call);
  if (table.answered) return;
  if (table.value == nullptr || names.empty()) return call.map(0);
  std::uint64_t found = 0;
  call.begin_map();
  table.value->table().scan(names.names(), [&](std::string_view counter, int128 sum) {
    call.text(counter);
    const auto value = static_cast<std::int64_t>(sum);
    if (value == sum) {
      call.integer(value);
    } else {
      call.error(kBeyond);
    }
    return ++found < most;
  });
  call.end_map();
}

// Of [min max] at the end of a command. False if that was answered with an error.
bool parse_range(Call& call, Range& names) {
  if (call.size() == 2) return true;
  if (call.size() == 4 && names.parse(call[2], call[3])) return true;
  call.error(call.size() == 4 ? Range::kAllowed : "ERR syntax error; allowed: key, or key min max");
  return false;
}

// TALLY.SUM key [min max]
void sum(Call& call) {
  Range names;
  if (!parse_range(call, names)) return;
  const ReadTable table(call);
  if (table.answered) return;
  if (table.value == nullptr || names.empty()) return call.integer(0);
  const int128 total = table.value->table().sum(names.names()).sum;
  const auto value = static_cast<std::int64_t>(total);
  if (value != total) return call.error(kBeyond);
  call.integer(value);
}

// TALLY.COUNT key [min max]
void count(Call& call) {
  Range names;
  if (!parse_range(call, names)) return;
  const ReadTable table(call);
  if (table.answered) return;
  if (table.value == nullptr || names.empty()) return call.integer(0);
  call.integer(static_cast<std::int64_t>(table.value->table().sum(names.names()).count));
}

// TALLY.DEL key counter...
void remove(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  TallyValue* const value = key.get<TallyValue>();
  if (value == nullptr) return key.empty() ? call.integer(0) : call.wrong_type();
  std::int64_t removed = 0;
  for (std::size_t i = 2; i < call.size(); ++i) {
    if (call[i].size() > limits::kCounterNameBytes) continue;
    const Result<std::optional<std::int64_t>> there = value->table().get(call[i]);
    if (there && !*there) continue;
    const Result<Answer> answer =
        value->table().remove(call[i], OperationId::none(), call.now_ms());
    if (answer && answer->outcome == Outcome::applied) ++removed;
  }
  if (removed > 0) call.changed();
  call.integer(removed);
}

// TALLY.INFO key
void info(Call& call) {
  const ReadTable table(call);
  if (table.answered) return;
  if (table.value == nullptr) return call.error("ERR not found");
  const Recogniser& recogniser = table.value->table().recogniser();
  const Recogniser::Goal& goal = recogniser.goal();
  const Promise promise = recogniser.promise();
  const WindowCounts counts = recogniser.counts();
  const auto number = [&](const char* name, std::uint64_t value) {
    call.text(name);
    call.integer(static_cast<std::int64_t>(value));
  };
  const auto real = [&](const char* name, double value) {
    call.text(name);
    call.number(value);
  };
  call.map(15);
  number("Counters", table.value->table().sum({}).count);
  number("Window", static_cast<std::uint64_t>(goal.window_ms));
  call.text("Recognition");
  call.text(goal.kind == Recogniser::Kind::exact ? "exact" : "filter");
  real("Error rate", goal.kind == Recogniser::Kind::exact ? 0 : goal.fpr);
  real("Error rate now", recogniser.false_positive_rate());
  real("Expected under-count", recogniser.expected_undercount());
  number("Capacity", goal.ids);
  call.text("Max bytes");
  goal.max_bytes == kNoCap ? call.null() : call.integer(static_cast<std::int64_t>(goal.max_bytes));
  call.text("On full");
  call.text(text_of(goal.when_full));
  number("Size", table.value->bytes());
  number("Recogniser size", recogniser.bytes());
  number("Last change", static_cast<std::uint64_t>(recogniser.now()));
  number("Recognised since", static_cast<std::uint64_t>(promise.kept_from_ms));
  number("Refused", counts.refused + counts.stale);
  number("Forgotten early", counts.forgotten_early);
}

}  // namespace

std::span<const host::Command> tally_commands() {
  static const std::array kCommands = {
      command<create_table>({
          .name = "TALLY.CREATE",
          .syntax = "key [WINDOW duration] [ERROR error] [EXACT] [CAPACITY n] [MAXBYTES bytes] "
                    "[ONFULL <REFUSE | FORGET>]",
          .effect = Effect::writes,
          .summary = "Makes a table of counters, and says how it recognises retries",
          .reply = "OK",
      }),
      command<increment>({
          .name = "TALLY.INCRBY",
          .syntax = "key counter delta [ID id | OP client seq]",
          .effect = Effect::writes,
          .summary = "Adds to a counter, once for each operation id",
          .reply = "array of the value and `applied` or `duplicate`",
      }),
      command<increment_many>({
          .name = "TALLY.MINCRBY",
          .syntax = "key <NOID <counter delta> ... | IDS <counter delta id> ... | "
                    "OP client seq <counter delta> ...>",
          .effect = Effect::writes,
          .summary = "Adds to many counters, once for each operation id; the i-th of OP has the "
                     "number seq + i",
          .complexity = "O(N) with the number of counters",
          .reply = "array with an answer of TALLY.INCRBY for each, or an error in its place",
      }),
      command<get>({
          .name = "TALLY.GET",
          .syntax = "key counter",
          .effect = Effect::reads,
          .summary = "The value of a counter",
          .reply = "integer, or null if there is no such counter",
      }),
      command<get_many>({
          .name = "TALLY.MGET",
          .syntax = "key counter ...",
          .effect = Effect::reads,
          .summary = "The values of many counters",
          .complexity = "O(N) with the number of counters",
          .reply = "array of integers and nulls",
      }),
      command<range>({
          .name = "TALLY.RANGE",
          .syntax = "key min max [LIMIT n]",
          .effect = Effect::reads,
          .pace = Pace::slow,
          .summary = "Counters in the order of their names, and their values; min and max as in "
                     "ZRANGEBYLEX",
          .complexity = "O(log N + M) with N counters in the table and M in the answer",
          .reply = "map of counters and values",
      }),
      command<sum>({
          .name = "TALLY.SUM",
          .syntax = "key [min max]",
          .effect = Effect::reads,
          .summary = "The sum over all counters, or those of a range",
          .complexity = "O(log N) with the number of counters",
          .reply = "integer",
      }),
      command<count>({
          .name = "TALLY.COUNT",
          .syntax = "key [min max]",
          .effect = Effect::reads,
          .summary = "How many counters there are, or are in a range",
          .complexity = "O(log N) with the number of counters",
          .reply = "integer",
      }),
      command<remove>({
          .name = "TALLY.DEL",
          .syntax = "key counter ...",
          .effect = Effect::frees,
          .summary = "Takes counters out of the table; what is remembered of ids stays",
          .complexity = "O(N) with the number of counters",
          .reply = "integer: how many there were",
      }),
      command<info>({
          .name = "TALLY.INFO",
          .syntax = "key",
          .effect = Effect::reads,
          .summary = "What a table promises, and how it stands: its error, window and memory",
          .reply = "map",
      }),
  };
  return kCommands;
}

}  // namespace semel::module
