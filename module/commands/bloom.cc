// BF.*: Bloom filters that scale and merge, as clients of RedisBloom know them.
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "module/commands/arguments.h"
#include "module/commands/creation.h"
#include "module/commands/defaults.h"
#include "module/commands/families.h"
#include "module/commands/filters.h"
#include "module/host/statistics.h"
#include "module/types/bloom_value.h"
#include "semel/core/assert.h"
#include "semel/core/error_rate.h"

namespace semel::module {
namespace {

using host::Access;
using host::Call;
using host::command;
using host::Effect;
using host::OpenKey;
using host::Pace;
using host::statistics;

constexpr const char* kNotFound = "ERR not found";
constexpr std::int64_t kMostExpansion = std::numeric_limits<std::uint32_t>::max();

BloomValue::Goal default_goal() {
  return {.error = defaults.bf_error_rate,
          .capacity = defaults.bf_initial_size,
          .expansion = static_cast<std::uint32_t>(defaults.bf_expansion)};
}

// Tells the replicas all that the filter was made of, and its own chain.
void tell_chain(Call& call, const BloomValue& value) {
  const BloomValue::Goal goal = value.goal();
  const std::string error = text_of(goal.error);
  const std::string capacity = std::to_string(goal.capacity);
  const std::string expansion = std::to_string(goal.expansion);
  const std::string tag_text = std::to_string(value.chains().tag(*value.chains().own()));
  call.effect({"BF.RESERVE", call[1], error, capacity, "EXPANSION", expansion, "SECRET",
               text_of(value.secret()), "TAG", tag_text});
}

// Begins an own chain of the filter. False if that was answered with an error.
bool begin_chain(Call& call, BloomValue& value) {
  if (!value.begin_chain(fresh_tag(value.chains()))) {
    call.error(kTooManyChains);
    return false;
  }
  tell_chain(call, value);
  return true;
}

// Null if that was answered with an error.
BloomValue* create(Call& call, const OpenKey& key, const BloomValue::Goal& goal,
                   const Secret& secret, std::optional<std::uint64_t> tag = std::nullopt) {
  Result<std::unique_ptr<BloomValue>> made = BloomValue::make(secret, goal);
  if (!made) {
    call.error("ERR could not create filter");
    return nullptr;
  }
  if (const std::uint64_t most = max_value_bytes(call);
      most != 0 && (*made)->first_bytes() > most) {
    call.error(filter_too_large());
    return nullptr;
  }
  const Result<void> begun = (*made)->begin_chain(tag ? *tag : fresh_tag((*made)->chains()));
  SEMEL_ASSERT(begun.has_value());  // it is the first
  (*made)->reserve();
  BloomValue& value = key.set(std::move(*made));
  tell_chain(call, value);
  return &value;
}

// The filter of a key, made if it is missing. Null if that was answered with an error.
BloomValue* filter_to_write(Call& call, const OpenKey& key, const BloomValue::Goal& goal) {
  if (BloomValue* const value = key.get<BloomValue>()) return value;
  if (key.empty()) return create(call, key, goal, Secret::random());
  call.wrong_type();
  return nullptr;
}

// BF.RESERVE key error capacity [EXPANSION n] [NONSCALING]; in effects also EXPANSION 0 for the
// latter, and SECRET and TAG, by which a filter that is there begins a chain.
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
  std::optional<std::uint64_t> tag;
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
    } else if (!take_secret(options, call, secret) && !take_tag(options, call, tag)) {
      options.unknown();
    }
  }
  if (options.refused()) return;
  if (!scaling && expansion_given) return call.error("Nonscaling filters cannot expand");
  if (!scaling) goal.expansion = 0;

  const OpenKey key = call.open(1, Access::write);
  if (BloomValue* const value = key.get<BloomValue>()) {
    if (!tag || !value->begin_chain(*tag)) return call.error("ERR item exists");
  } else if (!key.empty()) {
    return call.wrong_type();
  } else if (create(call, key, goal, secret ? *secret : Secret::random(), tag) == nullptr) {
    return;
  }
  call.changed();
  call.only_effects();
  call.ok();
}

void answer_added(Call& call, bool added, std::uint64_t place = 0) {
  ++(added ? statistics.filter_added : statistics.filter_known);
  if (added) call.changed(1 + place);
  call.boolean(added);
}

std::string text_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::full:
      return "ERR non scaling filter is full";
    case Refusal::memory:
      return filter_too_large();
    case Refusal::machine:
      return host::kNoMemory;
    default:
      return "ERR problem inserting into filter";
  }
}

// BF.ADD key item
void add(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  BloomValue* const value = filter_to_write(call, key, default_goal());
  if (value == nullptr) return;
  const Digest digest = value->hasher()(call[2]);
  if (!value->chains().own()) {
    if (value->contains(digest)) return answer_added(call, false);
    if (!begin_chain(call, *value)) return;
  }
  const BloomValue::Added added = value->add(digest, max_value_bytes(call));
  if (added.refusal != Refusal::none) return call.error(text_of(added.refusal));
  answer_added(call, added.added);
}

// Adds the arguments from `first` on, and answers. The array ends at the first refusal.
void add_items(Call& call, BloomValue& value, std::size_t first) {
  const std::vector<Digest> keys = all_digests(call, value.hasher(), first);
  const auto added = std::make_unique<bool[]>(keys.size());
  const std::span<bool> answers(added.get(), keys.size());
  std::pair<std::size_t, Refusal> done{keys.size(), Refusal::none};
  bool some_new = true;
  if (!value.chains().own()) {
    value.contains(keys, answers);
    some_new = std::find(answers.begin(), answers.end(), false) != answers.end();
    std::fill(answers.begin(), answers.end(), false);
    if (some_new && !begin_chain(call, value)) return;
  }
  if (some_new) done = value.add(keys, answers, max_value_bytes(call));
  const bool refused = done.second != Refusal::none;
  call.array(done.first + (refused ? 1 : 0));
  for (std::size_t i = 0; i < done.first; ++i) answer_added(call, answers[i], i);
  if (refused) call.happened(first + done.first);
  if (refused) call.refuse(text_of(done.second).c_str());
}

// BF.MADD key item...
void add_many(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  BloomValue* const value = filter_to_write(call, key, default_goal());
  if (value != nullptr) add_items(call, *value, 2);
}

// BF.INSERT key [CAPACITY n] [ERROR e] [EXPANSION n] [NOCREATE] [NONSCALING] ITEMS item...
void insert(Call& call) {
  constexpr const char* kOutOfRange = "Bad argument received";
  BloomValue::Goal goal = default_goal();
  bool create_missing = true, scaling = true;
  Options options(call, 2);
  std::size_t items = 0;
  while (options.more()) {
    if (options.rest("ITEMS", items)) continue;
    if (options.flag("NOCREATE")) {
      create_missing = false;
    } else if (options.flag("NONSCALING")) {
      scaling = false;
    } else if (options.last()) {
      options.wrong_arity();
    } else if (const auto capacity_text = options.value("CAPACITY")) {
      const std::optional<std::int64_t> capacity = parse_integer(*capacity_text);
      if (!capacity || *capacity <= 0) options.refuse(capacity ? kOutOfRange : "Bad capacity");
      goal.capacity = static_cast<std::uint64_t>(capacity.value_or(0));
    } else if (const auto error_text = options.value("ERROR")) {
      const std::optional<double> error = parse_number(*error_text);
      if (!error || !is_error_rate(*error)) options.refuse(error ? kOutOfRange : "Bad error rate");
      goal.error = error.value_or(0);
    } else if (const auto expansion_text = options.value("EXPANSION")) {
      const std::optional<std::int64_t> expansion = parse_integer(*expansion_text);
      if (!expansion || *expansion < 1 || *expansion > kMostExpansion) {
        options.refuse(expansion ? kOutOfRange : "Bad expansion");
      }
      goal.expansion = static_cast<std::uint32_t>(expansion.value_or(0));
    } else {
      options.refuse("Unknown argument received");
    }
  }
  if (options.refused()) return;
  if (items == 0 || items == call.size()) return call.wrong_arity();
  if (!scaling) goal.expansion = 0;
  const OpenKey key = call.open(1, Access::write);
  if (!create_missing && key.empty()) return call.error(kNotFound);
  BloomValue* const value = filter_to_write(call, key, goal);
  if (value != nullptr) add_items(call, *value, items);
}

// BF.EXISTS key item
void exists(Call& call) {
  const OpenKey key = call.open(1, Access::read);
  const BloomValue* const value = key.get<BloomValue>();
  call.boolean(value != nullptr && value->contains(value->hasher()(call[2])));
}

// The filter of a key to be read; null if that was answered with an error.
const BloomValue* filter_to_read(Call& call, const OpenKey& key) {
  const BloomValue* const value = key.get<BloomValue>();
  if (value == nullptr) key.empty() ? call.error(kNotFound) : call.wrong_type();
  return value;
}

// BF.CARD key
void cardinality(Call& call) {
  const OpenKey key = call.open(1, Access::read);
  if (key.empty()) return call.integer(0);
  const BloomValue* const value = filter_to_read(call, key);
  if (value != nullptr) call.integer(static_cast<std::int64_t>(value->items()));
}

struct Field {
  const char* word;  // by which it is asked for
  const char* name;
  void (*answer)(Call& call, const BloomValue& value);
};

constexpr std::array kFields = {
    Field{"CAPACITY", "Capacity",
          [](Call& call, const BloomValue& value) {
            call.integer(static_cast<std::int64_t>(value.capacity()));
          }},
    Field{"SIZE", "Size",
          [](Call& call, const BloomValue& value) {
            call.integer(static_cast<std::int64_t>(value.bytes()));
          }},
    Field{"FILTERS", "Number of filters",
          [](Call& call, const BloomValue& value) {
            call.integer(static_cast<std::int64_t>(value.filters()));
          }},
    Field{"ITEMS", "Number of items inserted",
          [](Call& call, const BloomValue& value) {
            call.integer(static_cast<std::int64_t>(value.items()));
          }},
    Field{"EXPANSION", "Expansion rate",
          [](Call& call, const BloomValue& value) {
            const std::uint32_t expansion = value.goal().expansion;
            expansion == 0 ? call.null() : call.integer(expansion);
          }},
};

// BF.INFO key [ALL | CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]
void info(Call& call) {
  if (call.size() > 3) return call.wrong_arity();
  const OpenKey key = call.open(1, Access::read);
  const BloomValue* const value = filter_to_read(call, key);
  if (value == nullptr) return;
  const bool all = call.size() == 3 && is_word(call[2], "ALL");
  if (call.size() == 3 && !all) {
    for (const Field& field : kFields) {
      if (!is_word(call[2], field.word)) continue;
      if (call.resp3()) {
        call.map(1);
        call.text(field.name);
      } else {
        call.array(1);
      }
      return field.answer(call, *value);
    }
    return call.error("Invalid information value");
  }
  call.map(kFields.size() + (all ? 4 : 0));
  for (const Field& field : kFields) {
    call.text(field.name);
    field.answer(call, *value);
  }
  if (!all) return;  // there are clients that fail on a field which RedisBloom does not have
  call.text("Error rate");
  call.number(value->goal().error);
  call.text("Error bound");
  call.number(value->error_bound());
  call.text("Error rate now");
  call.number(value->error_now());
  call.text("Chains");
  call.integer(static_cast<std::int64_t>(value->chains().size()));
}

// BF.SCANDUMP key iterator
void dump(Call& call) {
  const std::optional<std::int64_t> position = parse_integer(call[2]);
  if (!position) return call.error("Second argument must be numeric");
  const OpenKey key = call.open(1, Access::read);
  const BloomValue* const value = filter_to_read(call, key);
  if (value == nullptr) return;
  BloomValue::Chunk chunk{0, {}};
  if (*position >= 0) chunk = value->dump(static_cast<std::uint64_t>(*position));
  call.array(2);
  call.integer(static_cast<std::int64_t>(chunk.next));
  call.bytes(chunk.bytes);
}

// BF.LOADCHUNK key iterator bytes
void load(Call& call) {
  constexpr const char* kBad = "ERR received bad data";
  const std::optional<std::int64_t> position = parse_integer(call[2]);
  if (!position) return call.error("ERR Second argument must be numeric");
  const OpenKey key = call.open(1, Access::write);
  BloomValue* const value = key.get<BloomValue>();
  if (value == nullptr && !key.empty()) return call.wrong_type();
  const ByteView bytes = bytes_of(call[3]);
  if (*position == 1) {
    if (value != nullptr) return call.error(kBad);
    Result<std::unique_ptr<BloomValue>> made = BloomValue::load_header(bytes);
    if (!made) return call.error(kBad);
    key.set(std::move(*made));
    call.changed();
    return call.ok();
  }
  if (value == nullptr) return call.error(kNotFound);
  const Result<bool> changed = value->load(bytes, max_value_bytes(call));
  if (!changed) {
    switch (changed.error().code) {
      case Errc::invalid:
        return call.error("ERR invalid offset - no link found");
      case Errc::limit:
        return call.error("ERR invalid chunk - Too big for current filter");
      case Errc::full:
        return call.error(filter_too_large());
      default:
        return call.error(kBad);
    }
  }
  if (*changed) call.changed();
  if (is_further_piece(call)) call.silent();
  call.ok();
}

// Makes a filter that merges with another: of its shape, and with its secret. Null if that was
// answered with an error.
BloomValue* create_like(Call& call, const OpenKey& key, const BloomValue& source) {
  return create(call, key, source.goal(), source.secret());
}

// BF.LIKE key source
void like(Call& call) { make_like<BloomValue>(call, create_like); }

// BF.MERGE destination source...
void merge(Call& call) { merge_filters<BloomValue>(call, "BF.LOADCHUNK", "bf.merge", create_like); }

}  // namespace

std::span<const host::Command> bloom_commands() {
  static const std::array kCommands = {
      command<reserve>({
          .name = "BF.RESERVE",
          .syntax = "key error capacity [EXPANSION n] [NONSCALING]",
          .effect = Effect::writes,
          .summary = "Makes a Bloom filter for so many items at this error rate; it grows if more "
                     "come, and keeps the error",
          .reply = "OK",
      }),
      command<add>({
          .name = "BF.ADD",
          .syntax = "key item",
          .effect = Effect::writes,
          .summary = "Adds an item",
          .reply = "1 or true if it was certainly not there, 0 or false if it was or seemed to be",
      }),
      command<add_many>({
          .name = "BF.MADD",
          .syntax = "key item ...",
          .effect = Effect::writes,
          .summary = "Adds many items",
          .complexity = "O(N) with the number of items",
          .reply = "array with an answer of BF.ADD for each; it ends with the first error",
      }),
      command<insert>({
          .name = "BF.INSERT",
          .syntax = "key [CAPACITY n] [ERROR error] [EXPANSION n] [NOCREATE] [NONSCALING] "
                    "ITEMS item ...",
          .effect = Effect::writes,
          .summary =
              "Adds many items to a filter, which is made with these options if it is missing",
          .complexity = "O(N) with the number of items",
          .reply = "as BF.MADD",
      }),
      command<exists>({
          .name = "BF.EXISTS",
          .syntax = "key item",
          .effect = Effect::reads,
          .summary = "Whether an item was added, or seems to have been",
          .reply = "1 or true, 0 or false",
      }),
      command<exist_many<BloomValue>>({
          .name = "BF.MEXISTS",
          .syntax = "key item ...",
          .effect = Effect::reads,
          .summary = "Whether each of many items was added, or seems to have been",
          .complexity = "O(N) with the number of items",
          .reply = "array with an answer of BF.EXISTS for each",
      }),
      command<cardinality>({
          .name = "BF.CARD",
          .syntax = "key",
          .effect = Effect::reads,
          .summary = "How many items were added",
          .reply = "integer",
      }),
      command<info>({
          .name = "BF.INFO",
          .syntax = "key [ALL | CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]",
          .effect = Effect::reads,
          .summary = "What a filter was made for, and how it stands: size and items; with ALL also "
                     "its error, the bound of that, and the error now",
          .reply = "map; with one field an array of its value, in RESP3 a map of one",
      }),
      command<dump>({
          .name = "BF.SCANDUMP",
          .syntax = "key iterator",
          .effect = Effect::reads,
          .pace = Pace::slow,
          .summary = "A chunk of the filter, to be loaded elsewhere; the iterator begins with 0",
          .complexity = "O(N) with the size of the chunk, a mebibyte at most",
          .reply = "array of the next iterator and the chunk; 0 and an empty one at the end",
      }),
      command<load>({
          .name = "BF.LOADCHUNK",
          .syntax = "key iterator chunk",
          .effect = Effect::writes,
          .pace = Pace::slow,
          .secret = true,
          .summary = "Loads a chunk of a dump, with the iterator that came with it",
          .complexity = "O(N) with the size of the chunk",
          .reply = "OK",
      }),
      command<like>({
          .name = "BF.LIKE",
          .syntax = "key source",
          .effect = Effect::writes,
          .sources = {2, 2},
          .summary = "Makes an empty filter that can be merged with another: it shares its error "
                     "rate, capacity, expansion and secret",
          .reply = "OK",
      }),
      command<merge>({
          .name = "BF.MERGE",
          .syntax = "destination source ...",
          .effect = Effect::writes,
          .pace = Pace::slow,
          .sources = {2, -1},
          .summary =
              "Adds to a filter all that is in others; it is made if it is missing. All must "
              "share a secret: see BF.LIKE. Their errors add up, unless they are copies of "
              "one",
          .complexity =
              "O(N) with the size of the sources, in steps between which others are served",
          .reply = "OK",
      }),
  };
  return kCommands;
}

}  // namespace semel::module
