// CF.*: cuckoo filters that scale and merge, as clients of RedisBloom know them.
#include <algorithm>
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
#include "module/types/cuckoo_value.h"
#include "semel/core/assert.h"

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
constexpr const char* kSmallCapacity = "Capacity must be at least (BucketSize * 2)";

// The capacity is one that CF.RESERVE takes, whatever the settings are: the key is made by it
// elsewhere.
CuckooValue::Goal default_goal() {
  return {.error = defaults.cf_error,
          .capacity = std::max(defaults.cf_initial_size, 2 * defaults.cf_bucket_size),
          .bucket_size = static_cast<std::uint32_t>(defaults.cf_bucket_size),
          .max_iterations = static_cast<std::uint32_t>(defaults.cf_max_iterations),
          .expansion = static_cast<std::uint32_t>(defaults.cf_expansion)};
}

// Tells the replicas all that the filter was made of, and its own chain and life.
void tell_chain(Call& call, const CuckooValue& value) {
  const CuckooValue::Goal& goal = value.goal();
  const std::string capacity = std::to_string(goal.capacity);
  const std::string bucket_size = std::to_string(goal.bucket_size);
  const std::string max_iterations = std::to_string(goal.max_iterations);
  const std::string expansion = std::to_string(goal.expansion);
  const std::string error = text_of(goal.error);
  const std::string tag_text = std::to_string(value.chains().tag(*value.chains().own()));
  const std::string life_text = std::to_string(value.lives().tag(*value.lives().own()));
  call.effect({"CF.RESERVE", call[1], capacity, "BUCKETSIZE", bucket_size, "MAXITERATIONS",
               max_iterations, "EXPANSION", expansion, "ERROR", error, "SECRET",
               text_of(value.secret()), "TAG", tag_text, "LIFE", life_text});
}

// Begins a life of the filter, and an own chain if it has none. False if that was answered with an
// error.
bool begin_life(Call& call, CuckooValue& value) {
  const ChainTags& chains = value.chains();
  const std::uint64_t tag = chains.own() ? chains.tag(*chains.own()) : fresh_tag(chains);
  if (!value.begin(tag, fresh_tag(value.lives()), CuckooValue::Begun::here)) {
    call.error(chains.size() == ChainTags::kMost ? kTooManyChains : kTooManyLives);
    return false;
  }
  tell_chain(call, value);
  return true;
}

// Null if that was answered with an error.
CuckooValue* create(Call& call, const OpenKey& key, const CuckooValue::Goal& goal,
                    const Secret& secret, std::optional<std::uint64_t> tag = std::nullopt,
                    std::optional<std::uint64_t> life = std::nullopt) {
  Result<std::unique_ptr<CuckooValue>> made = CuckooValue::make(secret, goal);
  if (!made) {
    call.error("ERR Insufficient memory to create filter");
    return nullptr;
  }
  if (const std::uint64_t most = max_value_bytes(call);
      most != 0 && (*made)->first_bytes() > most) {
    call.error(filter_too_large());
    return nullptr;
  }
  const auto where = call.replayed() ? CuckooValue::Begun::elsewhere : CuckooValue::Begun::here;
  const Result<void> begun = (*made)->begin(tag ? *tag : fresh_tag((*made)->chains()),
                                            life ? *life : fresh_tag((*made)->lives()), where);
  SEMEL_ASSERT(begun.has_value());  // it is the first
  (*made)->reserve();
  CuckooValue& value = key.set(std::move(*made));
  tell_chain(call, value);
  return &value;
}

// The filter of a key, made if it is missing. Null if that was answered with an error.
CuckooValue* filter_to_write(Call& call, const OpenKey& key, const CuckooValue::Goal& goal) {
  if (CuckooValue* const value = key.get<CuckooValue>()) return value;
  if (key.empty()) return create(call, key, goal, Secret::random());
  call.wrong_type();
  return nullptr;
}

// A number behind a word of CF.RESERVE. False if that was answered with an error.
struct Setting {
  const char* word;
  const char* unreadable;
  const char* out_of_range;
  std::int64_t least;
  std::int64_t most;
  std::uint32_t CuckooValue::Goal::*field;
};

constexpr std::array kSettings = {
    Setting{"BUCKETSIZE", "Couldn't parse BUCKETSIZE",
            "BUCKETSIZE: value must be an integer between 1 and 255, inclusive.", 1, 255,
            &CuckooValue::Goal::bucket_size},
    Setting{"MAXITERATIONS", "Couldn't parse MAXITERATIONS",
            "MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.", 1, 65'535,
            &CuckooValue::Goal::max_iterations},
    Setting{"EXPANSION", "Couldn't parse EXPANSION",
            "EXPANSION: value must be an integer between 0 and 32768, inclusive.", 0, 32'768,
            &CuckooValue::Goal::expansion},
};

// Takes one of them, and refuses what is wrong with it. Returns false if the next argument is none.
bool take_setting(Options& options, CuckooValue::Goal& goal) {
  for (const Setting& setting : kSettings) {
    const std::optional<std::string_view> text = options.value(setting.word);
    if (!text) continue;
    const std::optional<std::int64_t> value = parse_integer(*text);
    if (!value || *value < setting.least || *value > setting.most) {
      options.refuse(value ? setting.out_of_range : setting.unreadable);
      return false;
    }
    goal.*setting.field = static_cast<std::uint32_t>(*value);
    return true;
  }
  return false;
}

// CF.RESERVE key capacity [BUCKETSIZE b] [MAXITERATIONS i] [EXPANSION e]; in effects also ERROR,
// SECRET, TAG and LIFE, by which a filter that is there begins a chain or a life.
void reserve(Call& call) {
  CuckooValue::Goal goal = default_goal();
  const std::optional<std::int64_t> capacity = parse_integer(call[2]);
  if (!capacity || *capacity <= 0) return call.error("Bad capacity");
  goal.capacity = static_cast<std::uint64_t>(*capacity);
  std::optional<Secret> secret;
  std::optional<std::uint64_t> tag, life;
  Options options(call, 3);
  while (options.more()) {
    if (take_setting(options, goal) || take_secret(options, call, secret) ||
        take_tag(options, call, tag) || take_tag(options, call, life, "LIFE") ||
        (call.replayed() && options.error_rate("ERROR", goal.error))) {
      continue;
    }
    options.unknown();
  }
  if (options.refused()) return;
  if (goal.capacity < std::uint64_t{2} * goal.bucket_size) return call.error(kSmallCapacity);

  const OpenKey key = call.open(1, Access::write);
  if (CuckooValue* const value = key.get<CuckooValue>()) {
    if (!tag || !life || !value->begin(*tag, *life, CuckooValue::Begun::elsewhere)) {
      return call.error("ERR item exists");
    }
  } else if (!key.empty()) {
    return call.wrong_type();
  } else if (create(call, key, goal, secret ? *secret : Secret::random(), tag, life) == nullptr) {
    return;
  }
  call.changed();
  call.only_effects();
  call.ok();
}

std::string text_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::full:
      return "Filter is full";
    case Refusal::memory:
      return filter_too_large();
    case Refusal::machine:
      return host::kNoMemory;
    default:
      return "Maximum expansions reached";
  }
}

// Opens the filter, so that a client may add to it. False if that was answered with an error. Effects
// come with the life in which they happened.
bool ensure_open(Call& call, CuckooValue& value) {
  if (call.replayed() && value.chains().own() && value.lives().own()) return true;
  return value.open() || begin_life(call, value);
}

void add_one(Call& call, bool unless_there) {
  const OpenKey key = call.open(1, Access::write);
  CuckooValue* const value = filter_to_write(call, key, default_goal());
  if (value == nullptr) return;
  const Digest digest = value->hasher()(call[2]);
  if (unless_there && value->contains(digest)) {
    ++statistics.filter_known;
    return call.boolean(false);
  }
  if (!ensure_open(call, *value)) return;
  const Refusal refusal = value->add(digest, max_value_bytes(call));
  if (refusal != Refusal::none) return call.error(text_of(refusal));
  ++statistics.filter_added;
  call.changed();
  call.boolean(true);
}

// CF.ADD key item
void add(Call& call) { add_one(call, false); }
// CF.ADDNX key item
void add_new(Call& call) { add_one(call, true); }

void insert_items(Call& call, bool unless_there) {
  CuckooValue::Goal goal = default_goal();
  bool create_missing = true;
  std::size_t items = 0;
  Options options(call, 2);
  while (options.more()) {
    if (options.rest("ITEMS", items)) continue;
    if (options.flag("NOCREATE")) {
      create_missing = false;
    } else if (options.last()) {
      options.wrong_arity();
    } else if (const auto text = options.value("CAPACITY")) {
      const std::optional<std::int64_t> capacity = parse_integer(*text);
      if (!capacity || *capacity <= 0) options.refuse("Bad capacity");
      goal.capacity = static_cast<std::uint64_t>(capacity.value_or(0));
    } else {
      options.refuse("Unknown argument received");
    }
  }
  if (options.refused()) return;
  if (items == 0 || items == call.size()) return call.wrong_arity();
  if (goal.capacity < std::uint64_t{2} * goal.bucket_size) return call.error(kSmallCapacity);
  const OpenKey key = call.open(1, Access::write);
  if (!create_missing && key.empty()) return call.error(kNotFound);
  CuckooValue* const value = filter_to_write(call, key, goal);
  if (value == nullptr) return;

  enum class Inserted : std::uint8_t { refused, known, added };
  std::vector<Inserted> answers(call.size() - items, Inserted::refused);
  for (Inserted& answer : answers) {
    const auto place = static_cast<std::size_t>(&answer - answers.data());
    const Digest digest = value->hasher()(call[items + place]);
    if (unless_there && value->contains(digest)) {
      ++statistics.filter_known;
      answer = Inserted::known;
    } else if (!ensure_open(call, *value)) {
      return;
    } else if (value->add(digest, max_value_bytes(call)) == Refusal::none) {
      ++statistics.filter_added;
      call.changed(1 + place);
      call.happened(items + place + 1);
      answer = Inserted::added;
    }
  }
  const bool booleans = !unless_there && call.resp3();
  call.array(answers.size());
  for (const Inserted answer : answers) {
    if (booleans) {
      call.boolean(answer == Inserted::added);
    } else {
      call.integer(static_cast<std::int64_t>(answer) - 1);  // -1 refused, 0 known, 1 added
    }
  }
}

// CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item...
void insert(Call& call) { insert_items(call, false); }
// CF.INSERTNX key [CAPACITY n] [NOCREATE] ITEMS item...
void insert_new(Call& call) { insert_items(call, true); }

// CF.EXISTS key item
void exists(Call& call) {
  const OpenKey key = call.open(1, Access::read);
  const CuckooValue* const value = key.get<CuckooValue>();
  call.boolean(value != nullptr && value->contains(value->hasher()(call[2])));
}

// CF.COUNT key item
void count(Call& call) {
  const OpenKey key = call.open(1, Access::read);
  const CuckooValue* const value = key.get<CuckooValue>();
  if (value == nullptr) return call.integer(0);
  call.integer(static_cast<std::int64_t>(value->count(value->hasher()(call[2]))));
}

// CF.DEL key item
void remove(Call& call) {
  const OpenKey key = call.open(1, Access::write);
  CuckooValue* const value = key.get<CuckooValue>();
  if (value == nullptr) return call.error("Not found");
  const bool removed = value->remove(value->hasher()(call[2]));
  if (removed) {
    ++statistics.filter_removed;
    call.changed();
  }
  call.boolean(removed);
}

// The filter of a key to be read; null if that was answered with an error.
const CuckooValue* filter_to_read(Call& call, const OpenKey& key) {
  const CuckooValue* const value = key.get<CuckooValue>();
  if (value == nullptr) key.empty() ? call.error(kNotFound) : call.wrong_type();
  return value;
}

// CF.INFO key [ALL]
void info(Call& call) {
  const bool all = call.size() == 3 && is_word(call[2], "ALL");
  if (call.size() > 2 && !all) return call.wrong_arity();
  const OpenKey key = call.open(1, Access::read);
  const CuckooValue* const value = filter_to_read(call, key);
  if (value == nullptr) return;
  const auto number = [&](const char* name, std::uint64_t count) {
    call.text(name);
    call.integer(static_cast<std::int64_t>(count));
  };
  const auto real = [&](const char* name, double rate) {
    call.text(name);
    call.number(rate);
  };
  call.map(all ? 12 : 8);
  number("Size", value->bytes());
  number("Number of buckets", value->buckets());
  number("Number of filters", value->filters());
  number("Number of items inserted", value->items());
  number("Number of items deleted", value->removed());
  number("Bucket size", value->goal().bucket_size);
  number("Expansion rate", value->goal().expansion);
  number("Max iterations", value->goal().max_iterations);
  if (!all) return;  // as in BF.INFO
  real("Error rate", value->goal().error);
  real("Error bound", value->error_bound());
  real("Error rate now", value->error_now());
  number("Chains", value->chains().size());
}

// CF.SCANDUMP key iterator
void dump(Call& call) {
  const std::optional<std::int64_t> position = parse_integer(call[2]);
  if (!position || *position < 0) return call.error("Invalid position");
  const OpenKey key = call.open(1, Access::read);
  const CuckooValue* const value = filter_to_read(call, key);
  if (value == nullptr) return;
  const CuckooValue::Chunk chunk = value->dump(static_cast<std::uint64_t>(*position));
  call.array(2);
  call.integer(static_cast<std::int64_t>(chunk.next));
  chunk.next == 0 ? call.null() : call.bytes(chunk.bytes);
}

// CF.LOADCHUNK key iterator bytes
void load(Call& call) {
  const std::optional<std::int64_t> position = parse_integer(call[2]);
  if (!position || *position <= 0) return call.error("Invalid position");
  const OpenKey key = call.open(1, Access::write);
  CuckooValue* const value = key.get<CuckooValue>();
  if (value == nullptr && !key.empty()) return call.wrong_type();
  const ByteView bytes = bytes_of(call[3]);
  if (*position == 1) {
    if (value != nullptr) return call.error("ERR item exists");
    Result<std::unique_ptr<CuckooValue>> made = CuckooValue::load_header(bytes);
    if (!made) {
      const bool impossible =
          made.error().code == Errc::limit || made.error().code == Errc::invalid;
      return call.error(impossible ? "Couldn't create filter!" : "Invalid header");
    }
    key.set(std::move(*made));
    call.changed();
    return call.ok();
  }
  if (value == nullptr) return call.error(kNotFound);
  const Result<bool> changed = value->load(bytes, max_value_bytes(call));
  if (!changed) {
    return changed.error().code == Errc::full ? call.error(filter_too_large())
                                              : call.error("Couldn't load chunk!");
  }
  if (*changed) call.changed();
  if (is_further_piece(call)) call.silent();
  call.ok();
}

// Makes a filter that merges with another: of its shape, and with its secret. Null if that was
// answered with an error.
CuckooValue* create_like(Call& call, const OpenKey& key, const CuckooValue& source) {
  return create(call, key, source.goal(), source.secret());
}

// CF.LIKE key source
void like(Call& call) { make_like<CuckooValue>(call, create_like); }

// CF.MERGE destination source...
void merge(Call& call) {
  merge_filters<CuckooValue>(call, "CF.LOADCHUNK", "cf.merge", create_like);
}

}  // namespace

std::span<const host::Command> cuckoo_commands() {
  static const std::array kCommands = {
      command<reserve>({
          .name = "CF.RESERVE",
          .syntax = "key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]",
          .effect = Effect::writes,
          .summary = "Makes a cuckoo filter for so many items; it grows if more come, unless its "
                     "expansion is 0, and keeps its error",
          .reply = "OK",
      }),
      command<add>({
          .name = "CF.ADD",
          .syntax = "key item",
          .effect = Effect::writes,
          .summary = "Adds an item, once more if it is there",
          .reply = "1 or true",
      }),
      command<add_new>({
          .name = "CF.ADDNX",
          .syntax = "key item",
          .effect = Effect::writes,
          .summary = "Adds an item unless it is there, or seems to be",
          .reply = "1 or true if it was added, 0 or false if not",
      }),
      command<insert>({
          .name = "CF.INSERT",
          .syntax = "key [CAPACITY n] [NOCREATE] ITEMS item ...",
          .effect = Effect::writes,
          .summary = "Adds many items to a filter, which is made if it is missing",
          .complexity = "O(N) with the number of items",
          .reply = "array of 1, or -1 where there is no room; true and false in RESP3",
      }),
      command<insert_new>({
          .name = "CF.INSERTNX",
          .syntax = "key [CAPACITY n] [NOCREATE] ITEMS item ...",
          .effect = Effect::writes,
          .summary = "Adds many items to a filter, each unless it is there",
          .complexity = "O(N) with the number of items",
          .reply = "array of 1, of 0 where it was there, or of -1 where there is no room",
      }),
      command<exists>({
          .name = "CF.EXISTS",
          .syntax = "key item",
          .effect = Effect::reads,
          .summary = "Whether an item is there, or seems to be",
          .reply = "1 or true, 0 or false",
      }),
      command<exist_many<CuckooValue>>({
          .name = "CF.MEXISTS",
          .syntax = "key item ...",
          .effect = Effect::reads,
          .summary = "Whether each of many items is there, or seems to be",
          .complexity = "O(N) with the number of items",
          .reply = "array with an answer of CF.EXISTS for each",
      }),
      command<count>({
          .name = "CF.COUNT",
          .syntax = "key item",
          .effect = Effect::reads,
          .summary = "How many times an item is there, or seems to be",
          .reply = "integer",
      }),
      command<remove>({
          .name = "CF.DEL",
          .syntax = "key item",
          .effect = Effect::frees,
          .summary = "Removes an item that was added, once",
          .reply = "1 or true if it was there, 0 or false if not",
      }),
      command<info>({
          .name = "CF.INFO",
          .syntax = "key [ALL]",
          .effect = Effect::reads,
          .summary = "What a filter was made for, and how it stands: size and items; with ALL also "
                     "its error, the bound of that, and the error now",
          .reply = "map",
      }),
      command<dump>({
          .name = "CF.SCANDUMP",
          .syntax = "key iterator",
          .effect = Effect::reads,
          .pace = Pace::slow,
          .summary = "A chunk of the filter, to be loaded elsewhere; the iterator begins with 0",
          .complexity = "O(N) with the items of a link of the filter",
          .reply = "array of the next iterator and the chunk; 0 and null at the end",
      }),
      command<load>({
          .name = "CF.LOADCHUNK",
          .syntax = "key iterator chunk",
          .effect = Effect::writes,
          .pace = Pace::slow,
          .secret = true,
          .summary = "Loads a chunk of a dump, with the iterator that came with it, in order",
          .complexity = "O(N) with the size of the chunk",
          .reply = "OK",
      }),
      command<like>({
          .name = "CF.LIKE",
          .syntax = "key source",
          .effect = Effect::writes,
          .sources = {2, 2},
          .summary = "Makes an empty filter that can be merged with another: it shares its error "
                     "rate, capacity, expansion and secret",
          .reply = "OK",
      }),
      command<merge>({
          .name = "CF.MERGE",
          .syntax = "destination source ...",
          .effect = Effect::writes,
          .pace = Pace::slow,
          .sources = {2, -1},
          .summary =
              "Adds to a filter all that is in others; it is made if it is missing. All must share "
              "a secret: see CF.LIKE. What was removed from a copy of one chain is removed",
          .complexity =
              "O(N) with the size of the sources, in steps between which others are served",
          .reply = "OK",
      }),
  };
  return kCommands;
}

}  // namespace semel::module
