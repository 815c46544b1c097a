// BF.*: Bloom filters that scale and merge, as clients of RedisBloom know them.
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "module/commands/arguments.h"
#include "module/commands/filters.h"
#include "module/commands/info.h"
#include "module/types/bloom_value.h"
#include "semel/core/assert.h"
#include "semel/core/internal/error_rate.h"

namespace semel::module {
namespace {

using host::Access;
using host::Call;
using host::command;
using host::CommandKind;
using host::OpenKey;

constexpr std::int64_t kMostExpansion = std::numeric_limits<std::uint32_t>::max();

BloomValue::Goal default_goal() {
  return {.error = defaults.bf_error_rate,
          .capacity = defaults.bf_initial_size,
          .expansion = static_cast<std::uint32_t>(defaults.bf_expansion)};
}

struct BloomFamily {
  using Value = BloomValue;
  static constexpr const char* kLoad = "BF.LOADCHUNK";
  static constexpr const char* kMergeEvent = "bf.merge";
  static constexpr const char* kNotMade = "ERR could not create filter";
  static constexpr const char* kFull = "ERR non scaling filter is full";
  static constexpr const char* kNoMore = "ERR problem inserting into filter";
  static constexpr std::int64_t kFirstDump = std::numeric_limits<std::int64_t>::min();
  static constexpr const char* kBadDump = "Second argument must be numeric";
  static constexpr bool kEndsInNull = false;
  static constexpr std::int64_t kFirstLoad = std::numeric_limits<std::int64_t>::min();
  static constexpr const char* kBadLoad = "ERR Second argument must be numeric";
  static constexpr const char* kTakenLoad = "ERR received bad data";

  static const char* bad_header(Errc /*why*/) { return kTakenLoad; }

  static const char* bad_chunk(Errc why) {
    switch (why) {
      case Errc::invalid:
        return "ERR invalid offset - no link found";
      case Errc::limit:
        return "ERR invalid chunk - Too big for current filter";
      default:
        return kTakenLoad;
    }
  }

  // REQUIRES: a new filter.
  static void begin(const Call& /*call*/, BloomValue& value, const Tags& tags) {
    const Result<void> begun =
        value.begin_chain(tags.chain ? *tags.chain : fresh_tag(value.chains()));
    SEMEL_ASSERT(begun.has_value());
  }

  static void tell(Call& call, const BloomValue& value) {
    const BloomValue::Goal goal = value.goal();
    const std::string error = text_of(goal.error);
    const std::string capacity = std::to_string(goal.capacity);
    const std::string expansion = std::to_string(goal.expansion);
    const std::string tag = std::to_string(value.chains().tag(*value.chains().own()));
    call.effect({"BF.RESERVE", call[1], error, capacity, "EXPANSION", expansion, "SECRET",
                 text_of(value.secret()), "TAG", tag});
  }
};

// Gives the filter a chain of its own. Returns false after an error.
bool begin_chain(Call& call, BloomValue& value) {
  if (!value.begin_chain(fresh_tag(value.chains()))) {
    call.error("ERR the filter has 4096 chains, and cannot begin another");
    return false;
  }
  BloomFamily::tell(call, value);
  return true;
}

// BF.RESERVE key error capacity [EXPANSION n] [NONSCALING]. Effects have EXPANSION 0 for
// NONSCALING, and also SECRET and TAG, which gives an existing filter a new own chain.
void reserve(Call& call) {
  BloomValue::Goal goal = default_goal();
  const std::optional<double> error = parse_number(call[2]);
  if (!error) return call.error("ERR bad error rate");
  if (!(*error > 0 && *error < 1)) return call.error("ERR (0 < error rate range < 1) ");
  if (!is_error_rate(*error)) {
    return call.error(std::string("ERR error rate too low; allowed: ").append(kErrorRatesAllowed));
  }
  goal.error = *error;
  const std::optional<std::int64_t> capacity = parse_integer(call[3]);
  if (!capacity) return call.error("ERR bad capacity");
  if (*capacity <= 0) return call.error("ERR (capacity should be larger than 0)");
  goal.capacity = static_cast<std::uint64_t>(*capacity);

  bool scaling = true, expansion_given = false;
  std::optional<Secret> secret;
  Tags tags;
  Options options(call, 4);
  while (options.more()) {
    if (options.flag("NONSCALING")) {
      scaling = false;
    } else if (options.is("EXPANSION") && options.last()) {
      options.refuse("ERR no expansion");
    } else if (const auto text = options.value("EXPANSION")) {
      const std::optional<std::int64_t> expansion = parse_integer(*text);
      if (!expansion || *expansion > kMostExpansion) {
        options.refuse("ERR bad expansion");
      } else if (*expansion < (call.replayed() ? 0 : 1)) {
        options.refuse("ERR expansion should be greater or equal to 1");
      } else {
        goal.expansion = static_cast<std::uint32_t>(*expansion);
        expansion_given = true;
      }
    } else if (!take_secret(options, call, secret) && !take_tag(options, call, "TAG", tags.chain)) {
      options.unknown();
    }
  }
  if (options.refused()) return;
  if (!scaling && expansion_given) return call.error("Nonscaling filters cannot expand");
  if (!scaling) goal.expansion = 0;

  const OpenKey key = call.open(1, Access::write);
  if (BloomValue* const value = key.get<BloomValue>(); value != nullptr && tags.chain) {
    if (!value->begin_chain(*tags.chain)) return call.error(kItemExists);
    return made(call);
  }
  if (!is_free<BloomValue>(call, key, kItemExists)) return;
  const Secret own = secret ? *secret : Secret::random();
  if (create<BloomFamily>(call, key, goal, own, tags) != nullptr) made(call);
}

void answer_added(Call& call, bool added, std::uint64_t place = 0) {
  ++(added ? counts.filter_added : counts.filter_known);
  if (added) call.changed(1 + place);
  call.boolean(added);
}

// BF.ADD key item
void add(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  BloomValue* const value = filter_to_write<BloomFamily>(call, key, default_goal());
  if (value == nullptr) return;
  const Digest digest = value->hasher()(call[2]);
  if (!value->chains().own()) {
    if (value->contains(digest)) return answer_added(call, false);
    if (!begin_chain(call, *value)) return;
  }
  const Result<bool> added = value->add(digest, max_value_bytes(call));
  if (!added) return call.error(refusal_of<BloomFamily>(*value, added.error()));
  answer_added(call, *added);
}

// Adds the arguments from `first` on, and answers. The array ends at the first refusal.
void add_items(Call& call, BloomValue& value, std::size_t first) {
  const std::vector<Digest> keys = all_digests(call, value.hasher(), first);
  const auto added = std::make_unique<bool[]>(keys.size());
  const std::span<bool> answers(added.get(), keys.size());
  std::size_t done = keys.size();
  std::string refusal;
  bool some_new = true;
  if (!value.chains().own()) {
    value.contains(keys, answers);
    some_new = std::find(answers.begin(), answers.end(), false) != answers.end();
    std::fill(answers.begin(), answers.end(), false);
    if (some_new && !begin_chain(call, value)) return;
  }
  if (some_new) {
    try {
      const Result<void> all = value.add(keys, answers, max_value_bytes(call), done);
      if (!all) refusal = refusal_of<BloomFamily>(value, all.error());
    } catch (const std::bad_alloc&) {
      ++host::counters.refused_oom;
      refusal = host::kNoMemory;
    }
  }
  call.array(done + (refusal.empty() ? 0 : 1));
  for (std::size_t i = 0; i < done; ++i) answer_added(call, answers[i], i);
  if (refusal.empty()) return;
  call.happened(first + done);
  call.refuse(refusal.c_str());
}

// BF.MADD key item...
void add_many(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  BloomValue* const value = filter_to_write<BloomFamily>(call, key, default_goal());
  if (value != nullptr) add_items(call, *value, 2);
}

// Takes an option of BF.INSERT. An option without its value is a wrong number of arguments, as in
// RedisBloom.
std::optional<std::string_view> value_of(Options& options, const char* word) {
  if (options.is(word) && options.last()) options.wrong_arity();
  return options.value(word);
}

// Returns true if the filter of a key can hold this many items. For an empty key, this is about the
// filter that `goal` would make. Answers with an error if not.
bool can_reach(Call& call, const OpenKey& key, const BloomValue::Goal& goal, std::uint64_t items) {
  const BloomValue* value = key.get<BloomValue>();
  std::unique_ptr<BloomValue> model;
  if (value == nullptr) {
    if (!key.empty()) return true;  // whoever opens the filter answers
    auto made = BloomValue::make(Secret::random(), goal);
    if (!made) {
      call.error(not_made<BloomFamily>(call, made.error()));
      return false;
    }
    model = std::move(*made);
    value = model.get();
  }
  const std::uint64_t reach = value->reach(items, max_value_bytes(call));
  if (reach >= items) return true;
  const std::string room = std::to_string(reach) + " items";
  call.error(value->goal().expansion == 0
                 ? "ERR the filter does not scale: it has room for " + room
                 : "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit: "
                   "semel.max-value-bytes allows " +
                       room);
  return false;
}

// BF.INSERT key [CAPACITY n] [ERROR e] [EXPANSION n] [NOCREATE] [NONSCALING] [VALIDATESCALETO n]
// [ITEMS item...]
void insert(Call& call) {
  constexpr const char* kOutOfRange = "Bad argument received";
  BloomValue::Goal goal = default_goal();
  bool create_missing = true, scaling = true;
  std::optional<std::uint64_t> scale_to;
  Options options(call, 2);
  std::size_t items = 0;
  while (options.more()) {
    if (options.rest("ITEMS", items)) continue;
    if (options.flag("NOCREATE")) {
      create_missing = false;
    } else if (options.flag("NONSCALING")) {
      scaling = false;
    } else if (const auto capacity_text = value_of(options, "CAPACITY")) {
      const std::optional<std::int64_t> capacity = parse_integer(*capacity_text);
      if (!capacity || *capacity <= 0) options.refuse(capacity ? kOutOfRange : "Bad capacity");
      goal.capacity = static_cast<std::uint64_t>(capacity.value_or(0));
    } else if (const auto error_text = value_of(options, "ERROR")) {
      const std::optional<double> error = parse_number(*error_text);
      if (!error || !is_error_rate(*error)) options.refuse(error ? kOutOfRange : "Bad error rate");
      goal.error = error.value_or(0);
    } else if (const auto expansion_text = value_of(options, "EXPANSION")) {
      const std::optional<std::int64_t> expansion = parse_integer(*expansion_text);
      if (!expansion || *expansion < 1 || *expansion > kMostExpansion) {
        options.refuse(expansion ? kOutOfRange : "Bad expansion");
      }
      goal.expansion = static_cast<std::uint32_t>(expansion.value_or(0));
    } else if (const auto reach_text = value_of(options, "VALIDATESCALETO")) {
      const std::optional<std::int64_t> reach = parse_integer(*reach_text);
      if (!reach || *reach <= 0) {
        options.refuse(reach == 0 ? "ERR (capacity should be larger than 0)" : "ERR bad capacity");
      }
      scale_to = static_cast<std::uint64_t>(reach.value_or(0));
    } else if (options.is("TIGHTENING")) {
      return call.foreign(
          "ERR TIGHTENING is for the files of valkey-bloom: a filter of this module divides its "
          "error between its parts in another way");
    } else if (options.is("SEED")) {
      return call.foreign(
          "ERR SEED is for the files of valkey-bloom: a filter of this module draws a secret");
    } else {
      options.refuse("Unknown argument received");
    }
  }
  if (options.refused()) return;
  if (items == call.size()) return call.wrong_arity();
  if (items == 0) items = call.size();
  if (!scaling) goal.expansion = 0;
  if (!scaling && scale_to) {
    return call.error("ERR cannot use NONSCALING and VALIDATESCALETO options together");
  }
  const OpenKey key = call.open(1, Access::write);
  if (!create_missing && key.empty()) return call.error(kNotFound);
  if (scale_to && !call.replayed() && !can_reach(call, key, goal, *scale_to)) return;
  BloomValue* const value = filter_to_write<BloomFamily>(call, key, goal);
  if (value != nullptr) add_items(call, *value, items);
}

// BF.CARD key
void cardinality(Call& call) {
  const ReadKey<BloomValue> filter(call);
  if (filter.answered) return;
  call.integer(filter.value == nullptr ? 0 : static_cast<std::int64_t>(filter.value->items()));
}

// BF.INFO key [ALL | CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION | ERROR | MAXSCALEDCAPACITY]
void info(Call& call) {
  if (call.size() > 3) return call.wrong_arity();
  const OpenKey key = call.open(1, Access::read);
  const auto* const value = existing<BloomValue>(call, key);
  if (value == nullptr) return;
  constexpr std::array kWords = {"CAPACITY", "SIZE", "FILTERS", "ITEMS", "EXPANSION", "ERROR"};
  std::vector<InfoField> fields = {{"Capacity", value->capacity()},
                                   {"Size", value->bytes()},
                                   {"Number of filters", value->filters()},
                                   {"Number of items inserted", value->items()},
                                   {"Expansion rate", value->goal().expansion, 0}};
  // Some clients fail on a field that RedisBloom does not have, so only ALL shows the others.
  if (call.size() == 2) return answer_info(call, fields);
  fields.push_back({"Error rate", value->goal().error});
  if (is_word(call[2], "ALL")) {
    fields.insert(fields.end(), {{"Error bound", value->error_bound()},
                                 {"Error rate now", value->error_now()},
                                 {"Chains", value->chains().size()}});
    return answer_info(call, fields);
  }
  const auto answer_one = [&](const InfoField& field) {
    if (Call::in_valkey()) return answer_value(call, field);  // as valkey-bloom does
    if (call.resp3()) return answer_info(call, {field});
    call.array(1);
    answer_value(call, field);
  };
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (is_word(call[2], kWords[i])) return answer_one(fields[i]);
  }
  if (is_word(call[2], "MAXSCALEDCAPACITY")) {  // takes milliseconds, so ALL leaves it out
    constexpr std::uint64_t kAny = std::numeric_limits<std::int64_t>::max();
    return answer_one({"Max scaled capacity", value->reach(kAny, max_value_bytes(call))});
  }
  call.error("Invalid information value");
}

// BF.DEBUG key
void debug(Call& call) {
  const OpenKey key = call.open(1, Access::read);
  const auto* const value = existing<BloomValue>(call, key);
  if (value == nullptr) return;
  const std::vector<std::string> links = value->describe_links();
  call.array(1 + links.size());
  call.text("size:" + std::to_string(value->items()));
  for (const std::string& link : links) call.text(link);
}

// BF.LOAD key bytes
void load_whole(Call& call) { call.foreign(std::string("ERR BF.LOAD is not possible") + kForeign); }

}  // namespace

std::span<const host::CommandRow> bloom_commands() {
  static const std::array kCommands = {
      command<reserve>({
          .name = "BF.RESERVE",
          .syntax = "key error capacity [EXPANSION n] [NONSCALING]",
          .kind = CommandKind::writes,
          .summary =
              "Makes a Bloom filter for this number of items at this error rate; if more items "
              "come, it grows by further parts and keeps the error. A new part is EXPANSION times "
              "as large as the last one, until all parts have room for 131,072 items. Then, and "
              "always with EXPANSION 1, it is half as large as all others together, and at least "
              "as large as the first",
          .reply = "OK",
      }),
      command<add>({
          .name = "BF.ADD",
          .syntax = "key item",
          .kind = CommandKind::writes,
          .summary = "Adds an item",
          .reply = "1 or true if it was certainly new; 0 or false if it was there, or is a false "
                   "positive",
      }),
      command<add_many>({
          .name = "BF.MADD",
          .syntax = "key item ...",
          .kind = CommandKind::writes,
          .summary = "Adds many items",
          .complexity = "O(N) with the number of items",
          .reply = "array with the reply of BF.ADD for each; it ends with the first error",
      }),
      command<insert>({
          .name = "BF.INSERT",
          .syntax = "key [CAPACITY n] [ERROR error] [EXPANSION n] [NOCREATE] [NONSCALING] "
                    "[VALIDATESCALETO n] [ITEMS item ...]",
          .kind = CommandKind::writes,
          .summary =
              "Adds many items to a filter, which is made with these options if it is missing. "
              "With VALIDATESCALETO, nothing is added and the answer is an error if the filter "
              "cannot grow to n items within `max-value-bytes`",
          .complexity = "O(N) with the number of items",
          .reply = "as BF.MADD",
      }),
      exists_row<BloomFamily>("BF.EXISTS"),
      exist_many_row<BloomFamily>("BF.MEXISTS"),
      command<cardinality>({
          .name = "BF.CARD",
          .syntax = "key",
          .kind = CommandKind::reads,
          .summary = "Returns how many items were added",
          .reply = "integer",
      }),
      command<info>({
          .name = "BF.INFO",
          .syntax = "key [ALL | CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION | ERROR | "
                    "MAXSCALEDCAPACITY]",
          .kind = CommandKind::reads,
          .summary =
              "Returns what a filter was made for, its size and its number of items; with ALL also "
              "its error rate, the bound of the error, and the error now; with MAXSCALEDCAPACITY "
              "the number of items to which it can grow within `max-value-bytes`",
          .reply = "map; for one field: in Valkey its value, in Redis an array of its value, or in "
                   "RESP3 a map of it",
      }),
      command<debug>({
          .name = "BF.DEBUG",
          .syntax = "key",
          .kind = CommandKind::reads,
          .summary = "Describes the parts of a filter, for people",
          .reply = "array of texts: the number of items, then the parts",
      }),
      command<load_whole>({
          .name = "BF.LOAD",
          .syntax = "key bytes",
          .kind = CommandKind::writes,
          .summary =
              "Refuses the filters that valkey-bloom writes into AOF files. A server that loads "
              "such a file ends, with the reason in its log",
          .reply = "an error",
      }),
      dump_row<BloomFamily>(
          "BF.SCANDUMP", "O(N) with the size of the chunk, a mebibyte at most",
          "array of the next iterator and the chunk; 0 and an empty one at the end"),
      load_row<BloomFamily>("BF.LOADCHUNK"),
      like_row<BloomFamily>("BF.LIKE"),
      merge_row<BloomFamily>(
          "BF.MERGE",
          "Adds the items of other filters to a filter, which is made if it is missing. All must "
          "share a secret: see BF.LIKE. Their errors add up, unless they are copies of one filter"),
  };
  return kCommands;
}

}  // namespace semel::module
