// TALLY.*: counters that count every operation once.
#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "module/commands/arguments.h"
#include "module/commands/counts.h"
#include "module/commands/defaults.h"
#include "module/commands/families.h"
#include "module/commands/info.h"
#include "module/commands/keys.h"
#include "module/commands/windows.h"
#include "module/types/tally_value.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/parse.h"
#include "semel/core/limits.h"

namespace semel::module {
namespace {

using host::Access;
using host::Call;
using host::command;
using host::CommandKind;
using host::Excerpt;
using host::OpenKey;
using host::Pace;
using tally::Addition;
using tally::Answer;
using tally::OperationId;
using tally::Outcome;
using tally::Recognition;

const Error kDeltaRefused{Errc::invalid, "value is not an integer or out of range"};
const Error kNameTooLong{Errc::limit, "the name of a counter has at most 2048 bytes"};
const Error kIdTooLong{Errc::limit, "an id has at most 1024 bytes"};
const Error kBadSequence{Errc::invalid, "a sequence is a number, 0 or more"};
static_assert(limits::kCounterNameBytes == 2048 && limits::kOperationIdBytes == 1024);

struct TallyFamily {
  using Value = TallyValue;
  using Goal = Recognition;
  static constexpr const char* kReserve = "TALLY.RESERVE";
  static constexpr const char* kNoun = "the table";
  static constexpr std::uint64_t kLeastBytes = Recognition::kLeastBytes;
  static constexpr double kExactFpr = Recognition{}.fpr;  // ignored
  static constexpr std::uint64_t kExactBytes = 32;        // digests of the id and of its content
  static constexpr std::array kKinds = {
      KindWord<Recognition::Kind>{"EXACT", Recognition::Kind::exact},
      KindWord<Recognition::Kind>{"FILTER", Recognition::Kind::filter}};

  static Recognition default_goal() {
    Recognition goal;
    goal.window_ms = defaults.tally_window_ms;
    goal.fpr = defaults.tally_error;
    goal.ids = defaults.tally_capacity;
    return goal;
  }
  // The table and a counter with the longest name.
  static std::uint64_t beside_max_bytes(const TallyValue& value) {
    return value.bytes() + 12 * limits::kCounterNameBytes;
  }
  template <class Goal>
  static auto& kind(Goal& goal) {
    return goal.kind;
  }
};

const char* name_of(Recognition::Kind kind) {
  switch (kind) {
    case Recognition::Kind::clients:
      return "clients";
    case Recognition::Kind::filter:
      return "filter";
    case Recognition::Kind::exact:
      break;
  }
  return "exact";
}

// The table that a command adds to. A missing table is made only after all arguments are checked.
// Its secret is drawn before that, because the ids are hashed with it.
class AddedTable {
 public:
  explicit AddedTable(Call& call)
      : call_(call), key_(call.open(1, Access::write)), value_(key_.get<TallyValue>()) {
    if (value_ != nullptr) return;
    secret_.emplace(Secret::random());
    hasher_.emplace(hasher_of(*secret_));
  }

  const Hasher& hasher() const { return value_ != nullptr ? value_->hasher() : *hasher_; }
  // Returns null if the table is missing.
  const TallyValue* value() const { return value_; }
  // Makes the table if it is missing. Returns null after an error.
  TallyValue* value_to_write() {
    return existing_or_made<TallyValue>(call_, key_, [&] {
      return create<TallyFamily>(call_, key_, TallyFamily::default_goal(), *secret_);
    });
  }

 private:
  Call& call_;
  OpenKey key_;
  TallyValue* value_;
  std::optional<Secret> secret_;
  std::optional<Hasher> hasher_;
};

using ReadTable = ReadKey<TallyValue>;

// Reads ID id, OP client seq, or nothing, from argument `at` on.
Result<OperationId> parse_id(const Call& call, std::size_t at, const Hasher& hasher) {
  if (at == call.size()) return OperationId::none();
  const std::string_view kind = call[at];
  Result<OperationId> id = kIdTooLong;
  if (is_word(kind, "ID") && at + 2 == call.size()) {
    id = tally::opaque_id(hasher, call[at + 1]);
  } else if (is_word(kind, "OP") && at + 3 == call.size()) {
    const std::optional<std::uint64_t> sequence = parse_unsigned(call[at + 2]);
    if (!sequence) return kBadSequence;
    id = tally::numbered_id(hasher, call[at + 1], *sequence);
  } else {
    return Error{Errc::invalid, "syntax error; allowed: ID id, or OP client seq"};
  }
  return id ? id : kIdTooLong;
}

// Returns true if an operation changed the table. One that found no room has advanced its time.
bool changes(Outcome outcome) { return outcome == Outcome::applied || outcome == Outcome::full; }

void refuse(Call& call, const char* error) {
  ++counts.tally_refused;
  call.refuse(error);
}

// Returns the limit for new counters: the memory that the table may take with them.
std::uint64_t most_bytes(const Call& call) {
  const std::uint64_t limit = max_value_bytes(call);
  return limit == 0 ? kNoCap : limit - std::min<std::uint64_t>(limit, sizeof(TallyValue));
}

// Returns a number for Call::changed: it identifies the change and its place in the call.
std::uint64_t what(const Answer& answer, std::size_t place) {
  const auto value = static_cast<std::uint64_t>(answer.value.value_or(0));
  return mix(value + place) + static_cast<std::uint64_t>(answer.outcome) + 1;
}

void answer_one(Call& call, const Answer& answer) {
  if (answer.outcome == tally::kUnanswered) {
    ++counts.tally_refused;
    return call.refuse_without_memory();
  }
  if (answer.outcome == tally::kTooLarge) return refuse(call, too_large("the table").c_str());
  switch (answer.outcome) {
    case Outcome::applied:
    case Outcome::duplicate: {
      const bool applied = answer.outcome == Outcome::applied;
      ++(applied ? counts.tally_applied : counts.tally_duplicates);
      call.array(2);
      if (answer.value) {
        call.integer(*answer.value);
      } else {
        call.null();
      }
      return call.text(applied ? "applied" : "duplicate");
    }
    case Outcome::stale:
      ++counts.refused_stale;
      return refuse(call, "STALE the operation is too old to tell whether it was counted");
    case Outcome::conflict:
      return refuse(call, "CONFLICT the id was used before, for another counter or delta");
    case Outcome::overflow:
      return refuse(call, "ERR increment or decrement would overflow");
    case Outcome::full:
      break;
  }
  ++counts.refused_full;
  refuse(call, "FULL the table has no room to remember the operation; see MAXBYTES and ONFULL");
}

// TALLY.INCRBY key counter delta [ID id | OP client seq]
void increment(Call& call) {
  const std::optional<std::int64_t> delta = parse_integer(call[3]);
  if (!delta) return call.error(kDeltaRefused);
  const std::string_view counter = call[2];
  if (counter.size() > limits::kCounterNameBytes) return call.error(kNameTooLong);
  AddedTable table(call);
  const Result<OperationId> id = parse_id(call, 4, table.hasher());
  if (!id) return call.error(id.error());
  TallyValue* const value = table.value_to_write();
  if (value == nullptr) return;

  const Result<Answer> answer =
      value->table().add({counter, *delta, *id}, call.now_ms(), most_bytes(call));
  if (!answer) return call.error(answer.error());
  if (changes(answer->outcome)) call.changed(what(*answer, 0));
  answer_one(call, *answer);
}

// Reads the additions of TALLY.MINCRBY.
Result<std::vector<Addition>> parse_additions(const Call& call, const Hasher& hasher) {
  const auto syntax_error = [](const char* words) { return Error{Errc::invalid, words}; };
  enum class Ids : std::uint8_t { none, each, numbered };
  std::size_t at = 3;
  Ids ids = Ids::none;
  std::uint64_t sequence = 0;
  std::string_view client;
  if (is_word(call[2], "IDS")) {
    ids = Ids::each;
  } else if (is_word(call[2], "OP")) {
    if (call.size() < 5)
      return syntax_error("syntax error; allowed: OP client seq counter delta ...");
    const std::optional<std::uint64_t> first = parse_unsigned(call[4]);
    if (!first) return kBadSequence;
    ids = Ids::numbered;
    client = call[3];
    sequence = *first;
    at = 5;
  } else if (!is_word(call[2], "NOID")) {
    return syntax_error("syntax error; allowed: NOID, IDS, or OP client seq");
  }
  const std::size_t width = ids == Ids::each ? 3 : 2;
  if (at == call.size() || (call.size() - at) % width != 0) {
    return syntax_error(ids == Ids::each ? "syntax error; allowed: counter delta id ..."
                                         : "syntax error; allowed: counter delta ...");
  }
  const std::size_t count = (call.size() - at) / width;
  if (ids == Ids::numbered && sequence > std::numeric_limits<std::uint64_t>::max() - count) {
    return Error{Errc::limit, "a sequence has at most 64 bits"};
  }
  OperationId numbered;
  if (ids == Ids::numbered) {
    const Result<OperationId> id = tally::numbered_id(hasher, client, sequence);
    if (!id) return kIdTooLong;
    numbered = *id;
  }
  std::vector<Addition> out;
  out.reserve(count);
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
  return out;
}

// Sends a batch without the additions that the limit refused: a replica would make their counters.
// Numbers of operations follow from places, so every gap begins another effect.
void send_without_refused(Call& call, Excerpt& effect, std::span<const Answer> answers) {
  const auto is_refused = [](const Answer& answer) { return answer.outcome == tally::kTooLarge; };
  if (std::none_of(answers.begin(), answers.end(), is_refused)) return;
  call.only_effects();
  const bool numbered = is_word(call[2], "OP");
  const std::uint64_t sequence = numbered ? parse_unsigned(call[4]).value_or(0) : 0;
  const std::size_t first = numbered ? 5 : 3;
  const std::size_t width = (call.size() - first) / answers.size();
  std::size_t place = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (is_refused(answers[i]) || answers[i].outcome == tally::kUnanswered) {
      if (numbered) effect.send();
      continue;
    }
    if (effect.empty()) {
      effect.keep(1, numbered ? 3 : 2);
      if (numbered) effect.number(sequence + i);
      place = 0;
    }
    effect.keep(first + i * width, width);
    if (changes(answers[i].outcome)) effect.changed(what(answers[i], place));
    ++place;
  }
  effect.send();
}

// TALLY.MINCRBY key NOID counter delta ... | IDS counter delta id ... | OP client seq counter delta
// ...
void increment_many(Call& call) {
  AddedTable table(call);
  const Result<std::vector<Addition>> parsed = parse_additions(call, table.hasher());
  if (!parsed) return call.error(parsed.error());
  const std::vector<Addition>& additions = *parsed;
  TallyValue* const value = table.value_to_write();
  if (value == nullptr) return;

  std::vector<Answer> answers(additions.size());
  Excerpt effect(call, "TALLY.MINCRBY");
  try {
    const Result<void> added =
        value->table().add(additions, answers, call.now_ms(), most_bytes(call));
    if (!added) return call.error(added.error());
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
  send_without_refused(call, effect, answers);
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

const Error kBeyond{Errc::limit, "the value does not fit into 64 bits"};

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
    Result<std::vector<std::optional<std::int64_t>>> found = table.value->table().get(counters);
    if (!found) return call.error(kBeyond);
    values = std::move(*found);
  }
  call.array(values.size());
  for (const std::optional<std::int64_t>& value : values) answer_value(call, value);
}

// A range of names as in ZRANGEBYLEX: - and + are the ends, [a includes a, (a excludes it.
class Range {
 public:
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

// Reads [min max] at the end of a command. Returns false after an error.
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
  if (table.value == nullptr) return call.error(kNotFound);
  const tally::TableInfo info = table.value->table().info();
  const Recognition& goal = info.recognition;
  const WindowCounts& counts = info.counts;
  answer_info(call, {{"Counters", static_cast<std::uint64_t>(table.value->table().sum({}).count)},
                     {"Window", static_cast<std::uint64_t>(goal.window_ms)},
                     {"Recognition", name_of(goal.kind)},
                     {"Error rate", goal.kind == Recognition::Kind::exact ? 0 : goal.fpr},
                     {"Error rate now", info.false_positive_rate},
                     {"Expected under-count", info.expected_undercount},
                     {"Capacity", goal.ids},
                     {"Max bytes", goal.max_bytes, kNoCap},
                     {"On full", text_of(goal.on_full)},
                     {"Size", table.value->bytes()},
                     {"Recogniser size", info.recogniser_bytes},
                     {"Last change", static_cast<std::uint64_t>(info.now_ms)},
                     {"Recognised since", static_cast<std::uint64_t>(info.promise.kept_from_ms)},
                     {"Refused", counts.refused},
                     {"Stale", counts.stale},
                     {"Forgotten early", counts.forgotten_early}});
}

}  // namespace

std::span<const host::CommandRow> tally_commands() {
  static const std::array kCommands = {
      command<reserve<TallyFamily>>({
          .name = "TALLY.RESERVE",
          .syntax = "key [WINDOW duration] [ERROR error] [CAPACITY n] [EXACT | FILTER] "
                    "[MAXBYTES bytes] [ONFULL <REFUSE | FORGET>]",
          .kind = CommandKind::writes,
          .summary = "Makes a table of counters, and sets how it recognises retries",
          .reply = "OK",
      }),
      command<increment>({
          .name = "TALLY.INCRBY",
          .syntax = "key counter delta [ID id | OP client seq]",
          .kind = CommandKind::writes,
          .summary = "Adds to a counter, once for each operation id",
          .reply = "array of the value and `applied` or `duplicate`; the value is null if the "
                   "operation is a duplicate and there is no such counter. Errors: `STALE`, if "
                   "the operation is too old to tell; `FULL`, if there is no room to remember it; "
                   "`CONFLICT`, if the table is `EXACT` and the id was used for another counter "
                   "or delta",
      }),
      command<increment_many>({
          .name = "TALLY.MINCRBY",
          .syntax = "key <NOID <counter delta> ... | IDS <counter delta id> ... | "
                    "OP client seq <counter delta> ...>",
          .kind = CommandKind::writes,
          .summary =
              "Adds to many counters, once for each operation id; with OP the i-th addition has "
              "the number seq + i, from i = 0",
          .complexity = "O(N) with the number of counters",
          .reply = "array with the reply of TALLY.INCRBY, or its error, for each",
      }),
      command<get>({
          .name = "TALLY.GET",
          .syntax = "key counter",
          .kind = CommandKind::reads,
          .summary = "Returns the value of a counter",
          .reply = "integer, or null if there is no such counter",
      }),
      command<get_many>({
          .name = "TALLY.MGET",
          .syntax = "key counter ...",
          .kind = CommandKind::reads,
          .summary = "Returns the values of many counters",
          .complexity = "O(N) with the number of counters",
          .reply = "array of integers and nulls",
      }),
      command<range>({
          .name = "TALLY.RANGE",
          .syntax = "key min max [LIMIT n]",
          .kind = CommandKind::reads,
          .pace = Pace::slow,
          .summary =
              "Returns counters and their values in the order of their names; min and max as in "
              "ZRANGEBYLEX",
          .complexity = "O(log N + M) with N counters in the table and M in the answer",
          .reply = "map of counters and values",
      }),
      command<sum>({
          .name = "TALLY.SUM",
          .syntax = "key [min max]",
          .kind = CommandKind::reads,
          .summary = "Returns the sum over all counters, or over a range",
          .complexity = "O(log N) with the number of counters",
          .reply = "integer",
      }),
      command<count>({
          .name = "TALLY.COUNT",
          .syntax = "key [min max]",
          .kind = CommandKind::reads,
          .summary = "Returns the number of counters, in all or in a range",
          .complexity = "O(log N) with the number of counters",
          .reply = "integer",
      }),
      command<remove>({
          .name = "TALLY.DEL",
          .syntax = "key counter ...",
          .kind = CommandKind::frees,
          .summary = "Removes counters from the table; the ids stay remembered",
          .complexity = "O(N) with the number of counters",
          .reply = "integer: how many counters were removed",
      }),
      command<info>({
          .name = "TALLY.INFO",
          .syntax = "key",
          .kind = CommandKind::reads,
          .summary =
              "Returns what a table promises and its present state: error, window and memory",
          .reply =
              "map; `Refused` counts ids for which there was no room, `Stale` those too old to "
              "judge, `Forgotten early` those that left before their time",
      }),
  };
  return kCommands;
}

}  // namespace semel::module
