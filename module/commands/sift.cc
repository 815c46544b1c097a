// SIFT.*: takes each event once.
#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "module/commands/arguments.h"
#include "module/commands/creation.h"
#include "module/commands/defaults.h"
#include "module/commands/digests.h"
#include "module/commands/families.h"
#include "module/commands/keys.h"
#include "module/host/statistics.h"
#include "module/types/sift_value.h"

namespace semel::module {
namespace {

using host::Access;
using host::Call;
using host::command;
using host::Effect;
using host::OpenKey;
using host::statistics;

constexpr const char* kTimeRefused = "ERR the time of an event is milliseconds since 1970";

const char* name_of(SiftStructure structure) {
  switch (structure) {
    case SiftStructure::forgetful:
      return "forgetful";
    case SiftStructure::timers:
      return "timers";
    case SiftStructure::exact:
      break;
  }
  return "exact";
}

bool take_structure(Options& options, SiftStructure& out) {
  const std::optional<std::string_view> text = options.value("STRUCTURE");
  if (!text) return false;
  if (is_word(*text, "FORGETFUL")) {
    out = SiftStructure::forgetful;
  } else if (is_word(*text, "TIMERS")) {
    out = SiftStructure::timers;
  } else if (is_word(*text, "EXACT")) {
    out = SiftStructure::exact;
  } else {
    options.refuse("ERR STRUCTURE is forgetful, timers or exact");
  }
  return true;
}

SiftGoal default_goal() {
  return {.window_ms = defaults.sift_window_ms,
          .fpr = defaults.sift_error,
          .ids = defaults.sift_capacity};
}

// Makes the sift, and tells the replicas all that it was made of. Null if that was answered with an
// error.
SiftValue* create(Call& call, const OpenKey& key, SiftGoal goal, const Secret& secret) {
  if (!take_limit(call, goal.max_bytes)) return nullptr;
  Result<std::unique_ptr<SiftValue>> made = SiftValue::make(secret, goal, call.now_ms());
  if (!made) {
    call.error(refusal(call, "the sift", made.error()));
    return nullptr;
  }
  const std::string window = std::to_string(goal.window_ms);
  const std::string error = text_of(goal.fpr);
  const std::string ids = std::to_string(goal.ids);
  const std::string bytes = std::to_string(goal.max_bytes);
  std::vector<std::string_view> words = {
      "SIFT.RESERVE", call[1], "STRUCTURE", name_of(goal.structure), "WINDOW", window,
      "CAPACITY",     ids,     "ONFULL",    text_of(goal.when_full), "SECRET", text_of(secret)};
  if (goal.structure != SiftStructure::exact) words.insert(words.end(), {"ERROR", error});
  if (goal.max_bytes != kNoCap) words.insert(words.end(), {"MAXBYTES", bytes});
  call.effect(words);
  return &key.set(std::move(*made));
}

// SIFT.RESERVE key [WINDOW duration] [ERROR error] [CAPACITY n] [STRUCTURE structure]
// [MAXBYTES bytes] [ONFULL refuse|forget]
void reserve(Call& call) {
  SiftGoal goal = default_goal();
  std::optional<Secret> secret;
  bool error_given = false;
  Options options(call, 2);
  while (options.more()) {
    if (options.duration("WINDOW", goal.window_ms) ||
        options.count("CAPACITY", 1, std::uint64_t{1} << 38, goal.ids) ||
        take_structure(options, goal.structure) || take_max_bytes(options, 1, goal.max_bytes) ||
        take_when_full(options, goal.when_full) || take_secret(options, call, secret)) {
      continue;
    }
    if (options.error_rate("ERROR", goal.fpr)) {
      error_given = true;
    } else {
      options.unknown();
    }
  }
  if (options.refused()) return;
  if (goal.structure == SiftStructure::exact) {
    if (error_given) return call.error("ERR STRUCTURE exact and ERROR exclude each other");
    goal.fpr = 0;
  }
  const OpenKey key = call.open(1, Access::write);
  if (!key.empty()) {
    return key.get<SiftValue>() != nullptr ? call.error("ERR the sift exists") : call.wrong_type();
  }
  if (create(call, key, goal, secret ? *secret : Secret::random()) == nullptr) return;
  call.changed();
  call.only_effects();
  call.ok();
}

// The sift of a key, made if it is missing. Null if that was answered with an error.
SiftValue* sift_to_write(Call& call, const OpenKey& key) {
  if (SiftValue* const value = key.get<SiftValue>()) return value;
  if (!key.empty()) {
    call.wrong_type();
    return nullptr;
  }
  return create(call, key, default_goal(), Secret::random());
}

// Whether these events are all too old for a sift that would be made for them: then it is not made.
bool all_too_old(const Call& call, const OpenKey& key, std::span<const TimeMs> times) {
  if (!key.empty()) return false;
  return std::all_of(times.begin(), times.end(), [&](TimeMs at_ms) {
    return older_than(at_ms, defaults.sift_window_ms, call.now_ms());
  });
}

using ReadSift = ReadKey<SiftValue>;

// A refusal leaves its time in the sift, and so is sent to replicas.
void refuse(Call& call, const char* error) {
  ++statistics.sift_refused;
  call.refuse(error);
}

void answer_one(Call& call, Sighting sighting) {
  if (sighting == kUnjudged) return call.refuse(host::kNoMemory);
  switch (sighting) {
    case Sighting::fresh:
      ++statistics.sift_fresh;
      return call.integer(1);
    case Sighting::pending:
    case Sighting::seen:
      ++statistics.sift_duplicates;
      return call.integer(0);
    case Sighting::stale:
      return refuse(call, "STALE the event is too old to tell whether it was seen");
    case Sighting::full:
      break;
  }
  refuse(call, "FULL the sift has no room for another id; see MAXBYTES and ONFULL");
}

// As a change, at its place among others.
std::uint64_t what(Sighting sighting, std::size_t place) {
  return 8 * place + static_cast<std::uint64_t>(sighting) + 1;
}

void answer_all(Call& call, std::span<const Sighting> sightings) {
  call.array(sightings.size());
  for (const Sighting sighting : sightings) answer_one(call, sighting);
}

// SIFT.ADD key id [AT ms]
void add(Call& call) {
  TimeMs at_ms = AnySifter::kAtCall;
  if (call.size() > 3) {
    const bool named = call.size() == 5 && is_word(call[3], "AT");
    if (!named) return call.error("ERR syntax error; allowed: key id, or key id AT ms");
    const std::optional<std::int64_t> time = parse_integer(call[4]);
    if (!time) return call.error(kTimeRefused);
    at_ms = *time;
  }
  const OpenKey key = call.open(1, Access::write);
  if (call.size() > 3 && all_too_old(call, key, {&at_ms, 1})) {
    return answer_one(call, Sighting::stale);
  }
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  const Sighting sighting = value->sifter().add(value->id_of(call[2]), call.now_ms(), at_ms);
  if (changes(sighting)) call.changed(what(sighting, 0));
  answer_one(call, sighting);
}

// The ids from argument `first` on.
void add_from(Call& call, std::size_t first) {
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  const std::vector<Digest> ids = all_digests(call, value->hasher(), first);
  std::vector<Sighting> sightings(ids.size());
  try {
    value->sifter().add(ids, call.now_ms(), sightings);
  } catch (const std::bad_alloc&) {
    const auto end = std::find(sightings.begin(), sightings.end(), kUnjudged);
    if (std::none_of(sightings.begin(), end, [](Sighting s) { return changes(s); })) throw;
    std::fill(end, sightings.end(), kUnjudged);
    call.happened(first + static_cast<std::size_t>(end - sightings.begin()));
  }
  for (std::size_t i = 0; i < sightings.size() && sightings[i] != kUnjudged; ++i) {
    if (changes(sightings[i])) call.changed(what(sightings[i], i));
  }
  answer_all(call, sightings);
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
  std::vector<Sighting> sightings((call.size() - first) / step, kUnjudged);
  if (timed && all_too_old(call, key, times)) {
    std::fill(sightings.begin(), sightings.end(), Sighting::stale);
    return answer_all(call, sightings);
  }
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  std::size_t place = 0;
  try {
    for (std::size_t i = first; i < call.size(); i += step, ++place) {
      const TimeMs at_ms = timed ? times[place] : AnySifter::kAtCall;
      const Digest id = value->id_of(call[i]);
      const Sighting sighting = renew ? value->sifter().insert(id, call.now_ms(), at_ms)
                                      : value->sifter().add(id, call.now_ms(), at_ms);
      const bool changed = changes(sighting) || (renew && sighting == Sighting::seen);
      if (changed) call.changed(what(sighting, place));
      sightings[place] = sighting;
    }
  } catch (const std::bad_alloc&) {
    if (!call.has_changed()) throw;
    call.happened(first + place * step);
  }
  answer_all(call, sightings);
}

// SIFT.TEST key id
void test(Call& call) {
  const ReadSift sift(call);
  if (sift.answered) return;
  if (sift.value == nullptr) return call.integer(0);
  const Digest id = sift.value->id_of(call[2]);
  call.integer(sift.value->sifter().test(id, call.now_ms()) == Sighting::seen ? 1 : 0);
}

// SIFT.MTEST key id...
void test_many(Call& call) {
  const ReadSift sift(call);
  if (sift.answered) return;
  std::vector<Sighting> sightings(call.size() - 2, Sighting::fresh);
  if (sift.value != nullptr) {
    sift.value->sifter().test(all_digests(call, sift.value->hasher(), 2), call.now_ms(), sightings);
  }
  call.array(sightings.size());
  for (const Sighting sighting : sightings) call.integer(sighting == Sighting::seen ? 1 : 0);
}

// SIFT.CLAIM key id owner duration
void claim(Call& call) {
  const std::optional<TimeMs> duration = parse_duration(call[4]);
  if (!duration || *duration < 1) {
    return call.error("ERR a claim lasts for milliseconds, 1 or more, or 30s, 10m, 2h, 7d");
  }
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = sift_to_write(call, key);
  if (value == nullptr) return;
  AnySifter& sifter = value->sifter();
  const TimeMs until_ms = later_by(std::max(call.now_ms(), sifter.now()), *duration);
  const Sighting sighting =
      sifter.claim(value->id_of(call[2]), value->owner_of(call[3]), until_ms, call.now_ms());
  if (changes(sighting)) call.changed();
  switch (sighting) {
    case Sighting::fresh:
      return call.text("fresh");
    case Sighting::pending:
      ++statistics.sift_duplicates;
      return call.text("pending");
    case Sighting::seen:
      ++statistics.sift_duplicates;
      return call.text("seen");
    case Sighting::stale:  // a claim has no time of its own
    case Sighting::full:
      break;
  }
  refuse(call, "FULL the sift has no room for another claim; an eighth of MAXBYTES is for claims");
}

// SIFT.COMMIT key id owner
void commit(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = key.get<SiftValue>();
  if (value == nullptr) return key.empty() ? call.text("lost") : call.wrong_type();
  const Commit outcome =
      value->sifter().commit(value->id_of(call[2]), value->owner_of(call[3]), call.now_ms());
  if (changes(outcome)) call.changed();
  switch (outcome) {
    case Commit::done:
      ++statistics.sift_fresh;
      return call.text("done");
    case Commit::seen:
      return call.text("seen");
    case Commit::lost:
      return call.text("lost");
    case Commit::full:
      break;
  }
  refuse(call,
         "FULL the sift has no room for another id, and the claim stays; see MAXBYTES and ONFULL");
}

// SIFT.RELEASE key id owner
void release(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  SiftValue* const value = key.get<SiftValue>();
  if (value == nullptr) return key.empty() ? call.integer(0) : call.wrong_type();
  const bool released =
      value->sifter().release(value->id_of(call[2]), value->owner_of(call[3]), call.now_ms());
  if (released) call.changed();
  call.integer(released ? 1 : 0);
}

// SIFT.CARD key
void cardinality(Call& call) {
  const ReadSift sift(call);
  if (sift.answered) return;
  if (sift.value == nullptr) return call.integer(0);
  call.integer(static_cast<std::int64_t>(sift.value->sifter().cardinality(call.now_ms())));
}

// SIFT.INFO key
void info(Call& call) {
  const ReadSift sift(call);
  if (sift.answered) return;
  if (sift.value == nullptr) return call.error("ERR not found");
  const AnySifter& sifter = sift.value->sifter();
  const SiftGoal& goal = sifter.goal();
  const WindowCounts counts = sifter.counts();
  const auto number = [&](const char* name, std::uint64_t value) {
    call.text(name);
    call.integer(static_cast<std::int64_t>(value));
  };
  const auto real = [&](const char* name, double value) {
    call.text(name);
    call.number(value);
  };
  const auto cap = [&](const char* name, std::uint64_t value) {
    call.text(name);
    value == kNoCap ? call.null() : call.integer(static_cast<std::int64_t>(value));
  };
  call.map(16);
  number("Ids", sifter.cardinality(call.now_ms()));
  call.text("Structure");
  call.text(name_of(goal.structure));
  number("Window", static_cast<std::uint64_t>(goal.window_ms));
  real("Error rate", goal.fpr);
  real("Error rate now", sifter.false_positive_rate());
  number("Capacity", goal.ids);
  cap("Max bytes", goal.max_bytes);
  call.text("On full");
  call.text(text_of(goal.when_full));
  number("Size", sift.value->bytes());
  number("Claims", sifter.claims());
  cap("Max claims", sifter.most_claims());
  number("Last change", static_cast<std::uint64_t>(sifter.now()));
  number("Recognised since", static_cast<std::uint64_t>(sifter.promise().kept_from_ms));
  number("Refused", counts.refused);
  number("Stale", counts.stale);
  number("Forgotten early", counts.forgotten_early);
}

}  // namespace

std::span<const host::Command> sift_commands() {
  static const std::array kCommands = {
      command<reserve>({
          .name = "SIFT.RESERVE",
          .syntax = "key [WINDOW duration] [ERROR error] [CAPACITY n] "
                    "[STRUCTURE <FORGETFUL | TIMERS | EXACT>] [MAXBYTES bytes] "
                    "[ONFULL <REFUSE | FORGET>]",
          .effect = Effect::writes,
          .summary = "Makes a sift, and says how it recognises ids",
          .complexity = "O(N) with the capacity",
          .reply = "OK",
      }),
      command<add>({
          .name = "SIFT.ADD",
          .syntax = "key id [AT ms]",
          .effect = Effect::writes,
          .summary = "Takes an id if it is the first of the window; AT gives the time of an event "
                     "that comes late",
          .reply = "integer: 1 the first time, 0 if it was seen or is claimed",
      }),
      command<add_many>({
          .name = "SIFT.MADD",
          .syntax = "key id ...",
          .effect = Effect::writes,
          .summary = "Takes many ids, in order",
          .complexity = "O(N) with the number of ids",
          .reply = "array with an answer of SIFT.ADD for each, or an error in its place",
      }),
      command<insert>({
          .name = "SIFT.INSERT",
          .syntax = "key [RENEW] [TIMED] ITEMS <id [ms]> ...",
          .effect = Effect::writes,
          .summary = "Takes many ids, each with the time of its event if TIMED; RENEW remembers "
                     "known ones anew from that time on",
          .complexity = "O(N) with the number of ids",
          .reply = "array as that of SIFT.MADD",
      }),
      command<test>({
          .name = "SIFT.TEST",
          .syntax = "key id",
          .effect = Effect::reads,
          .summary = "Whether an id was seen",
          .reply = "integer: 1 if it was, 0 if not",
      }),
      command<test_many>({
          .name = "SIFT.MTEST",
          .syntax = "key id ...",
          .effect = Effect::reads,
          .summary = "Which of many ids were seen",
          .complexity = "O(N) with the number of ids",
          .reply = "array of integers as that of SIFT.TEST",
      }),
      command<claim>({
          .name = "SIFT.CLAIM",
          .syntax = "key id owner duration",
          .effect = Effect::writes,
          .summary = "Gives an id that was not seen to one owner, until it commits or the time is "
                     "over",
          .reply = "`fresh`: it is the owner's; `pending`: it is another's; `seen`",
      }),
      command<commit>({
          .name = "SIFT.COMMIT",
          .syntax = "key id owner",
          .effect = Effect::writes,
          .summary = "Takes an id that the owner has claimed",
          .reply = "`done`; `seen`: it was taken before; `lost`: the owner has no claim on it",
      }),
      command<release>({
          .name = "SIFT.RELEASE",
          .syntax = "key id owner",
          .effect = Effect::frees,
          .summary = "Gives an id back that the owner has claimed",
          .reply = "integer: 1 if it was the owner's, 0 if not",
      }),
      command<cardinality>({
          .name = "SIFT.CARD",
          .syntax = "key",
          .effect = Effect::reads,
          .summary = "How many ids are remembered, by an estimate unless the structure is exact",
          .reply = "integer",
      }),
      command<info>({
          .name = "SIFT.INFO",
          .syntax = "key",
          .effect = Effect::reads,
          .summary = "What a sift promises, and how it stands: its error, window and memory",
          .reply = "map",
      }),
  };
  return kCommands;
}

}  // namespace semel::module
