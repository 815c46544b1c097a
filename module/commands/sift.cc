// SIFT.*: accepts each event once.
#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "module/commands/arguments.h"
#include "module/commands/counts.h"
#include "module/commands/defaults.h"
#include "module/commands/digests.h"
#include "module/commands/families.h"
#include "module/commands/info.h"
#include "module/commands/keys.h"
#include "module/commands/windows.h"
#include "module/types/sift_value.h"
#include "semel/core/internal/parse.h"

namespace semel::module {
namespace {

using host::Access;
using host::Call;
using host::command;
using host::CommandKind;
using host::OpenKey;

constexpr const char* kTimeRefused = "ERR the time of an event is milliseconds since 1970";

struct SiftFamily {
  using Value = SiftValue;
  using Goal = Sifter::Goal;
  static constexpr const char* kReserve = "SIFT.RESERVE";
  static constexpr const char* kNoun = "the sift";
  static constexpr std::uint64_t kLeastBytes = 1;
  static constexpr double kExactFpr = 0;
  static constexpr std::uint64_t kExactBytes = sizeof(Digest);
  static constexpr std::array kKinds = {
      KindWord<Window::Structure>{"EXACT", Window::Structure::exact},
      KindWord<Window::Structure>{"TIMERS", Window::Structure::timers}};

  static Sifter::Goal default_goal() {
    return {{.window_ms = defaults.sift_window_ms,
             .fpr = defaults.sift_error,
             .ids = defaults.sift_capacity}};
  }
  static std::uint64_t beside_max_bytes(const SiftValue& /*value*/) { return 0; }
  template <class Goal>
  static auto& kind(Goal& goal) {
    return goal.structure;
  }
};

const char* name_of(Window::Structure structure) {
  switch (structure) {
    case Window::Structure::forgetful:
      return "forgetful";
    case Window::Structure::timers:
      return "timers";
    case Window::Structure::exact:
      break;
  }
  return "exact";
}

// Returns the sift of a key, and makes it if it is missing. Returns null after an error.
SiftValue* sift_to_write(Call& call, const OpenKey& key) {
  return existing_or_made<SiftValue>(call, key, [&] {
    return create<SiftFamily>(call, key, SiftFamily::default_goal(), Secret::random());
  });
}

// Returns true if the key is empty and all events are too old for a new sift. Then none is made.
bool all_too_old(const Call& call, const OpenKey& key, std::span<const TimeMs> times) {
  if (!key.empty()) return false;
  return std::all_of(times.begin(), times.end(), [&](TimeMs at_ms) {
    return older_than(at_ms, defaults.sift_window_ms, call.now_ms());
  });
}

using ReadSift = ReadKey<SiftValue>;

// A refusal advances the time of the sift, so it is sent to replicas.
void refuse_full(Call& call, const char* error) {
  ++counts.sift_refused;
  ++counts.refused_full;
  call.refuse(error);
}

void refuse_stale(Call& call) {
  ++counts.sift_refused;
  ++counts.refused_stale;
  call.refuse("STALE the event is too old to tell whether it was seen");
}

void answer_one(Call& call, ClaimAnswer answer) {
  if (answer == Sifter::kUnjudged) return call.refuse_without_memory();
  switch (answer) {
    case ClaimAnswer::fresh:
      ++counts.sift_fresh;
      return call.integer(1);
    case ClaimAnswer::pending:
    case ClaimAnswer::seen:
      ++counts.sift_duplicates;
      return call.integer(0);
    case ClaimAnswer::stale:
      return refuse_stale(call);
    default:
      break;
  }
  refuse_full(call, "FULL the sift has no room for another id; see MAXBYTES and ONFULL");
}

// Returns a number for Call::changed: it identifies the change and its place in the call.
std::uint64_t what(ClaimAnswer answer, std::size_t place) {
  return 8 * place + static_cast<std::uint64_t>(answer) + 1;
}

void answer_claim(Call& call, ClaimAnswer answer) {
  if (answer == Sifter::kUnjudged) return call.refuse_without_memory();
  switch (answer) {
    case ClaimAnswer::fresh:
      return call.text("fresh");
    case ClaimAnswer::pending:
      ++counts.sift_duplicates;
      return call.text("pending");
    case ClaimAnswer::seen:
      ++counts.sift_duplicates;
      return call.text("seen");
    default:
      break;
  }
  refuse_full(call,
              "FULL the sift has no room for another claim; an eighth of MAXBYTES is for claims");
}

void answer_commit(Call& call, ClaimAnswer answer) {
  if (answer == Sifter::kUnjudged) return call.refuse_without_memory();
  switch (answer) {
    case ClaimAnswer::done:
      ++counts.sift_fresh;
      return call.text("done");
    case ClaimAnswer::seen:
      return call.text("seen");
    case ClaimAnswer::lost:
      return call.text("lost");
    default:
      break;
  }
  refuse_full(
      call,
      "FULL the sift has no room for another id, and the claim stays; see MAXBYTES and ONFULL");
}

void answer_release(Call& call, ClaimAnswer answer) {
  call.integer(answer == ClaimAnswer::done ? 1 : 0);
}

using AnswerOne = void (*)(Call&, ClaimAnswer);

void answer_all(Call& call, std::span<const ClaimAnswer> answers, AnswerOne one = answer_one) {
  call.array(answers.size());
  for (const ClaimAnswer answer : answers) one(call, answer);
}

// SIFT.ADD key id [AT ms]
void add(Call& call) {
  TimeMs at_ms = Sifter::kAtCall;
  if (call.size() > 3) {
    const bool named = call.size() == 5 && is_word(call[3], "AT");
    if (!named) return call.error("ERR syntax error; allowed: key id, or key id AT ms");
    const std::optional<std::int64_t> time = parse_integer(call[4]);
    if (!time) return call.error(kTimeRefused);
    at_ms = *time;
  }
  const OpenKey key = call.open(1, Access::write);
  if (call.size() > 3 && all_too_old(call, key, {&at_ms, 1})) {
    return answer_one(call, ClaimAnswer::stale);
  }
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  const ClaimAnswer answer =
      value->sifter().test_and_insert(value->id_of(call[2]), call.now_ms(), at_ms);
  if (changes(answer)) call.changed(what(answer, 0));
  answer_one(call, answer);
}

// Judges the ids from argument `first` on, by judge(ids, answers). If memory runs out, the ids that
// have no answer are kUnjudged, and are not sent to replicas. Throws if nothing has changed.
template <class Judge>
std::vector<ClaimAnswer> judge_from(Call& call, const SiftValue& value, std::size_t first,
                                    Judge judge) {
  const std::vector<Digest> ids = all_digests(call, value.hasher(), first);
  std::vector<ClaimAnswer> answers(ids.size());
  try {
    judge(std::span<const Digest>(ids), std::span(answers));
  } catch (const std::bad_alloc&) {
    const auto end = std::find(answers.begin(), answers.end(), Sifter::kUnjudged);
    if (std::none_of(answers.begin(), end, [](ClaimAnswer answer) { return changes(answer); }))
      throw;
    std::fill(end, answers.end(), Sifter::kUnjudged);
    call.happened(first + static_cast<std::size_t>(end - answers.begin()));
  }
  for (std::size_t i = 0; i < answers.size() && answers[i] != Sifter::kUnjudged; ++i) {
    if (changes(answers[i])) call.changed(what(answers[i], i));
  }
  return answers;
}

// Adds the ids from argument `first` on.
void add_from(Call& call, std::size_t first) {
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  answer_all(call, judge_from(call, *value, first, [&](auto ids, auto answers) {
               value->sifter().test_and_insert(ids, call.now_ms(), answers);
             }));
}

// SIFT.MADD key id...
void add_many(Call& call) { add_from(call, 2); }

// SIFT.INSERT key [RENEW] [TIMED] ITEMS id [ms] [id [ms] ...]
void insert(Call& call) {
  bool renew = false, timed = false;
  std::size_t first = 0;
  Options options(call, 2);
  while (options.more()) {
    if (options.flag("RENEW")) {
      renew = true;
    } else if (options.flag("TIMED")) {
      timed = true;
    } else if (!options.rest("ITEMS", first)) {
      options.unknown();
    }
  }
  if (options.refused()) return;
  const std::size_t step = timed ? 2 : 1;
  if (first == 0 || first == call.size() || (call.size() - first) % step != 0) {
    return call.error(timed ? "ERR TIMED takes ITEMS id ms [id ms ...]"
                            : "ERR syntax error; allowed: [RENEW] [TIMED] ITEMS id [id ...]");
  }
  if (!renew && !timed) return add_from(call, first);

  std::vector<TimeMs> times;
  for (std::size_t i = first + 1; timed && i < call.size(); i += step) {
    const std::optional<std::int64_t> time = parse_integer(call[i]);
    if (!time) return call.error(kTimeRefused);
    times.push_back(*time);
  }
  const OpenKey key = call.open(1, Access::write);
  std::vector<ClaimAnswer> answers((call.size() - first) / step, Sifter::kUnjudged);
  if (timed && all_too_old(call, key, times)) {
    std::fill(answers.begin(), answers.end(), ClaimAnswer::stale);
    return answer_all(call, answers);
  }
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  std::size_t place = 0;
  try {
    for (std::size_t i = first; i < call.size(); i += step, ++place) {
      const TimeMs at_ms = timed ? times[place] : Sifter::kAtCall;
      const Digest id = value->id_of(call[i]);
      const ClaimAnswer answer = renew ? value->sifter().insert(id, call.now_ms(), at_ms)
                                       : value->sifter().test_and_insert(id, call.now_ms(), at_ms);
      const bool changed = changes(answer) || (renew && answer == ClaimAnswer::seen);
      if (changed) call.changed(what(answer, place));
      answers[place] = answer;
    }
  } catch (const std::bad_alloc&) {
    if (!call.has_changed()) throw;
    call.happened(first + place * step);
  }
  answer_all(call, answers);
}

// SIFT.TEST key id
void test(Call& call) {
  const ReadSift sift(call);
  if (sift.answered) return;
  if (sift.value == nullptr) return call.integer(0);
  const Digest id = sift.value->id_of(call[2]);
  call.integer(sift.value->sifter().test(id, call.now_ms()) == ClaimAnswer::seen ? 1 : 0);
}

// SIFT.MTEST key id...
void test_many(Call& call) {
  const ReadSift sift(call);
  if (sift.answered) return;
  std::vector<ClaimAnswer> answers(call.size() - 2, ClaimAnswer::fresh);
  if (sift.value != nullptr) {
    sift.value->sifter().test(all_digests(call, sift.value->hasher(), 2), call.now_ms(), answers);
  }
  call.array(answers.size());
  for (const ClaimAnswer answer : answers) call.integer(answer == ClaimAnswer::seen ? 1 : 0);
}

// Reads how long a claim lasts. Returns nothing after an error.
std::optional<TimeMs> claim_duration(Call& call, std::size_t index) {
  const std::optional<TimeMs> duration = parse_duration_ms(call[index]);
  if (duration && *duration >= 1) return duration;
  call.error("ERR a claim lasts for milliseconds, 1 or more, or 30s, 10m, 2h, 7d");
  return std::nullopt;
}

TimeMs claim_end(const Call& call, const Sifter& sifter, TimeMs duration) {
  return later_by(std::max(call.now_ms(), sifter.now()), duration);
}

// SIFT.CLAIM key id owner duration
void claim(Call& call) {
  const std::optional<TimeMs> duration = claim_duration(call, 4);
  if (!duration) return;
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  Sifter& sifter = value->sifter();
  const ClaimAnswer answer = sifter.claim(value->id_of(call[2]), value->owner_of(call[3]),
                                          claim_end(call, sifter, *duration), call.now_ms());
  if (changes(answer)) call.changed();
  answer_claim(call, answer);
}

// SIFT.MCLAIM key owner duration id...
void claim_many(Call& call) {
  const std::optional<TimeMs> duration = claim_duration(call, 3);
  if (!duration) return;
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  Sifter& sifter = value->sifter();
  const std::uint64_t owner = value->owner_of(call[2]);
  const TimeMs until_ms = claim_end(call, sifter, *duration);
  answer_all(call,
             judge_from(call, *value, 4,
                        [&](auto ids, auto answers) {
                          sifter.claim(ids, owner, until_ms, call.now_ms(), answers);
                        }),
             answer_claim);
}

// SIFT.COMMIT key id owner
void commit(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = key.get<SiftValue>();
  if (value == nullptr) return key.empty() ? call.text("lost") : call.wrong_type();
  const ClaimAnswer outcome =
      value->sifter().commit(value->id_of(call[2]), value->owner_of(call[3]), call.now_ms());
  if (changes(outcome)) call.changed();
  answer_commit(call, outcome);
}

// SIFT.RELEASE key id owner
void release(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = key.get<SiftValue>();
  if (value == nullptr) return key.empty() ? call.integer(0) : call.wrong_type();
  const ClaimAnswer answer =
      value->sifter().release(value->id_of(call[2]), value->owner_of(call[3]), call.now_ms());
  if (changes(answer)) call.changed();
  answer_release(call, answer);
}

// Ends claims of one owner: the key, the owner and the ids are the arguments.
// end(sifter, ids, owner, answers) does it.
template <class End>
void end_many(Call& call, AnswerOne one, End end) {
  constexpr std::size_t kFirst = 3;
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = key.get<SiftValue>();
  if (value == nullptr && !key.empty()) return call.wrong_type();
  if (value == nullptr) {
    const std::vector<ClaimAnswer> lost(call.size() - kFirst, ClaimAnswer::lost);
    return answer_all(call, lost, one);
  }
  const std::uint64_t owner = value->owner_of(call[2]);
  answer_all(call,
             judge_from(call, *value, kFirst,
                        [&](auto ids, auto answers) { end(value->sifter(), ids, owner, answers); }),
             one);
}

// SIFT.MCOMMIT key owner id...
void commit_many(Call& call) {
  end_many(call, answer_commit, [&](Sifter& sifter, auto ids, std::uint64_t owner, auto answers) {
    sifter.commit(ids, owner, call.now_ms(), answers);
  });
}

// SIFT.MRELEASE key owner id...
void release_many(Call& call) {
  end_many(call, answer_release, [&](Sifter& sifter, auto ids, std::uint64_t owner, auto answers) {
    sifter.release(ids, owner, call.now_ms(), answers);
  });
}

// SIFT.CARD key
void cardinality(Call& call) {
  const ReadSift sift(call);
  if (sift.answered) return;
  if (sift.value == nullptr) return call.integer(0);
  call.integer(static_cast<std::int64_t>(sift.value->sifter().ids(call.now_ms())));
}

// SIFT.INFO key
void info(Call& call) {
  const ReadSift sift(call);
  if (sift.answered) return;
  if (sift.value == nullptr) return call.error(kNotFound);
  const Sifter& sifter = sift.value->sifter();
  const Sifter::Goal& goal = sifter.goal();
  const WindowCounts counts = sifter.counts();
  answer_info(call,
              {{"Ids", sifter.ids(call.now_ms())},
               {"Structure", name_of(goal.structure)},
               {"Window", static_cast<std::uint64_t>(goal.window_ms)},
               {"Error rate", goal.fpr},
               {"Error rate now", sifter.false_positive_rate()},
               {"Capacity", goal.ids},
               {"Max bytes", goal.max_bytes, kNoCap},
               {"On full", text_of(goal.on_full)},
               {"Size", sift.value->bytes()},
               {"Claims", sifter.claims()},
               {"Max claims", sifter.most_claims(), kNoCap},
               {"Last change", static_cast<std::uint64_t>(sifter.now())},
               {"Recognised since", static_cast<std::uint64_t>(sifter.promise().kept_from_ms)},
               {"Refused", counts.refused},
               {"Stale", counts.stale},
               {"Forgotten early", counts.forgotten_early}});
}

}  // namespace

std::span<const host::CommandRow> sift_commands() {
  static const std::array kCommands = {
      command<reserve<SiftFamily>>({
          .name = "SIFT.RESERVE",
          .syntax = "key [WINDOW duration] [ERROR error] [CAPACITY n] [EXACT | TIMERS] "
                    "[MAXBYTES bytes] [ONFULL <REFUSE | FORGET>]",
          .kind = CommandKind::writes,
          .summary = "Makes a sift, and sets how it recognises ids",
          .complexity = "O(N) with the capacity",
          .reply = "OK",
      }),
      command<add>({
          .name = "SIFT.ADD",
          .syntax = "key id [AT ms]",
          .kind = CommandKind::writes,
          .summary =
              "Accepts an id that was not seen within the window; AT is the time of an event that "
              "comes late",
          .reply = "integer: 1 if it is new, 0 if it was seen or is claimed",
      }),
      command<add_many>({
          .name = "SIFT.MADD",
          .syntax = "key id ...",
          .kind = CommandKind::writes,
          .summary = "Accepts many ids, in order",
          .complexity = "O(N) with the number of ids",
          .reply = "array with the reply of SIFT.ADD, or an error, for each",
      }),
      command<insert>({
          .name = "SIFT.INSERT",
          .syntax = "key [RENEW] [TIMED] ITEMS <id [ms]> ...",
          .kind = CommandKind::writes,
          .summary =
              "Accepts many ids; with TIMED, each id is followed by the time of its event; with "
              "RENEW, a known id is remembered again from that time on",
          .complexity = "O(N) with the number of ids",
          .reply = "array, as SIFT.MADD",
      }),
      command<test>({
          .name = "SIFT.TEST",
          .syntax = "key id",
          .kind = CommandKind::reads,
          .summary = "Tells whether an id was seen",
          .reply = "integer: 1 if it was, 0 if not",
      }),
      command<test_many>({
          .name = "SIFT.MTEST",
          .syntax = "key id ...",
          .kind = CommandKind::reads,
          .summary = "Tells which of many ids were seen",
          .complexity = "O(N) with the number of ids",
          .reply = "array of integers, as SIFT.TEST",
      }),
      command<claim>({
          .name = "SIFT.CLAIM",
          .syntax = "key id owner duration",
          .kind = CommandKind::writes,
          .summary =
              "Gives an id that was not seen to one owner, until the owner commits it or the "
              "time is over",
          .reply = "`fresh`: the owner has it; `pending`: another owner has it; `seen`",
      }),
      command<claim_many>({
          .name = "SIFT.MCLAIM",
          .syntax = "key owner duration id ...",
          .kind = CommandKind::writes,
          .summary = "Claims many ids for one owner, in order",
          .complexity = "O(N) with the number of ids",
          .reply = "array with the reply of SIFT.CLAIM, or an error, for each",
      }),
      command<commit>({
          .name = "SIFT.COMMIT",
          .syntax = "key id owner",
          .kind = CommandKind::writes,
          .summary = "Marks an id that the owner has claimed as seen",
          .reply = "`done`; `seen`: it was seen before; `lost`: the owner has no claim on it",
      }),
      command<commit_many>({
          .name = "SIFT.MCOMMIT",
          .syntax = "key owner id ...",
          .kind = CommandKind::writes,
          .summary = "Commits many ids of one owner, in order",
          .complexity = "O(N) with the number of ids",
          .reply = "array with the reply of SIFT.COMMIT, or an error, for each",
      }),
      command<release>({
          .name = "SIFT.RELEASE",
          .syntax = "key id owner",
          .kind = CommandKind::frees,
          .summary = "Gives up the owner's claim on an id",
          .reply = "integer: 1 if the owner had a claim, 0 if not",
      }),
      command<release_many>({
          .name = "SIFT.MRELEASE",
          .syntax = "key owner id ...",
          .kind = CommandKind::frees,
          .summary = "Gives up the owner's claims on many ids",
          .complexity = "O(N) with the number of ids",
          .reply = "array of integers, as SIFT.RELEASE",
      }),
      command<cardinality>({
          .name = "SIFT.CARD",
          .syntax = "key",
          .kind = CommandKind::reads,
          .summary = "Returns how many ids are remembered: an estimate, unless the sift is exact",
          .reply = "integer",
      }),
      command<info>({
          .name = "SIFT.INFO",
          .syntax = "key",
          .kind = CommandKind::reads,
          .summary = "Returns what a sift promises and its present state: error, window and memory",
          .reply =
              "map; `Refused` counts ids for which there was no room, `Stale` those too old to "
              "judge, `Forgotten early` those that left before their time",
      }),
  };
  return kCommands;
}

}  // namespace semel::module
