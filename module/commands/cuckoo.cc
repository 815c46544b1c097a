// CF.*: cuckoo filters that scale and merge, as clients of RedisBloom know them.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "module/commands/arguments.h"
#include "module/commands/filters.h"
#include "module/commands/info.h"
#include "module/types/cuckoo_value.h"
#include "semel/core/assert.h"

namespace semel::module {
namespace {

using host::Access;
using host::Call;
using host::command;
using host::CommandKind;
using host::OpenKey;

constexpr const char* kSmallCapacity = "Capacity must be at least (BucketSize * 2)";

// Returns a goal that CF.RESERVE accepts, whatever the settings are: replicas make the key by it.
CuckooValue::Goal default_goal() {
  return {.error = defaults.cf_error,
          .capacity = std::max(defaults.cf_initial_size, 2 * defaults.cf_bucket_size),
          .bucket_size = static_cast<std::uint32_t>(defaults.cf_bucket_size),
          .max_iterations = static_cast<std::uint32_t>(defaults.cf_max_iterations),
          .expansion = static_cast<std::uint32_t>(defaults.cf_expansion)};
}

struct CuckooFamily {
  using Value = CuckooValue;
  static constexpr const char* kLoad = "CF.LOADCHUNK";
  static constexpr const char* kMergeEvent = "cf.merge";
  static constexpr const char* kNotMade = "ERR Insufficient memory to create filter";
  static constexpr const char* kFull = "Filter is full";
  static constexpr const char* kNoMore = "Maximum expansions reached";
  static constexpr std::int64_t kFirstDump = 0;
  static constexpr const char* kBadDump = "Invalid position";
  static constexpr bool kEndsInNull = true;
  static constexpr std::int64_t kFirstLoad = 1;
  static constexpr const char* kBadLoad = "Invalid position";
  static constexpr const char* kTakenLoad = kItemExists;

  static const char* bad_header(Errc why) {
    const bool impossible = why == Errc::limit || why == Errc::invalid;
    return impossible ? "Couldn't create filter!" : "Invalid header";
  }

  static const char* bad_chunk(Errc /*why*/) { return "Couldn't load chunk!"; }

  // REQUIRES: a new filter.
  static void begin(const Call& call, CuckooValue& value, const Tags& tags) {
    const auto where = call.replayed() ? CuckooValue::Begun::elsewhere : CuckooValue::Begun::here;
    const Result<void> begun =
        value.begin(tags.chain ? *tags.chain : fresh_tag(value.chains()),
                    tags.life ? *tags.life : fresh_tag(value.lives()), where);
    SEMEL_ASSERT(begun.has_value());
  }

  static void tell(Call& call, const CuckooValue& value) {
    const CuckooValue::Goal& goal = value.goal();
    const std::string capacity = std::to_string(goal.capacity);
    const std::string bucket_size = std::to_string(goal.bucket_size);
    const std::string max_iterations = std::to_string(goal.max_iterations);
    const std::string expansion = std::to_string(goal.expansion);
    const std::string error = text_of(goal.error);
    const std::string tag = std::to_string(value.chains().tag(*value.chains().own()));
    const std::string life = std::to_string(value.lives().tag(*value.lives().own()));
    call.effect({"CF.RESERVE", call[1], capacity, "BUCKETSIZE", bucket_size, "MAXITERATIONS",
                 max_iterations, "EXPANSION", expansion, "ERROR", error, "SECRET",
                 text_of(value.secret()), "TAG", tag, "LIFE", life});
  }
};

// Begins a life of the filter, and a chain of its own if it has none. Returns false after an error.
bool begin_life(Call& call, CuckooValue& value) {
  const ChainTags& chains = value.chains();
  const std::uint64_t tag = chains.own() ? chains.tag(*chains.own()) : fresh_tag(chains);
  if (!value.begin(tag, fresh_tag(value.lives()), CuckooValue::Begun::here)) {
    call.error(chains.size() == ChainTags::kMost
                   ? "ERR the filter has 4096 chains, and cannot begin another"
                   : "ERR the filter was loaded and added to 65535 times, and cannot begin another "
                     "life: merge it into a filter made by CF.LIKE");
    return false;
  }
  CuckooFamily::tell(call, value);
  return true;
}

// An option of CF.RESERVE with a number.
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

// Takes such an option. Returns true if the next argument was one, and valid.
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

// CF.RESERVE key capacity [BUCKETSIZE b] [MAXITERATIONS i] [EXPANSION e]. Effects also have ERROR,
// SECRET, TAG and LIFE, which give an existing filter a new own chain or life.
void reserve(Call& call) {
  CuckooValue::Goal goal = default_goal();
  const std::optional<std::int64_t> capacity = parse_integer(call[2]);
  if (!capacity || *capacity <= 0) return call.error("Bad capacity");
  goal.capacity = static_cast<std::uint64_t>(*capacity);
  std::optional<Secret> secret;
  Tags tags;
  Options options(call, 3);
  while (options.more()) {
    if (take_setting(options, goal) || take_secret(options, call, secret) ||
        take_tag(options, call, "TAG", tags.chain) || take_tag(options, call, "LIFE", tags.life) ||
        (call.replayed() && options.error_rate("ERROR", goal.error))) {
      continue;
    }
    options.unknown();
  }
  if (options.refused()) return;
  if (goal.capacity < std::uint64_t{2} * goal.bucket_size) return call.error(kSmallCapacity);

  const OpenKey key = call.open(1, Access::write);
  CuckooValue* const value = key.get<CuckooValue>();
  if (value != nullptr && tags.chain && tags.life) {
    if (!value->begin(*tags.chain, *tags.life, CuckooValue::Begun::elsewhere)) {
      return call.error(kItemExists);
    }
    return made(call);
  }
  if (!is_free<CuckooValue>(call, key, kItemExists)) return;
  const Secret own = secret ? *secret : Secret::random();
  if (create<CuckooFamily>(call, key, goal, own, tags) != nullptr) made(call);
}

// Opens the filter, so that a client may add to it. Returns false after an error. Effects come with
// the life in which they happened.
bool ensure_open(Call& call, CuckooValue& value) {
  if (call.replayed() && value.chains().own() && value.lives().own()) return true;
  return value.open() || begin_life(call, value);
}

void add_one(Call& call, bool unless_there) {
  const OpenKey key = call.open(1, Access::write);
  CuckooValue* const value = filter_to_write<CuckooFamily>(call, key, default_goal());
  if (value == nullptr) return;
  const Digest digest = value->hasher()(call[2]);
  if (unless_there && value->contains(digest)) {
    ++counts.filter_known;
    return call.boolean(false);
  }
  if (!ensure_open(call, *value)) return;
  const Result<void> added = value->add(digest, max_value_bytes(call));
  if (!added) return call.error(refusal_of<CuckooFamily>(*value, added.error()));
  ++counts.filter_added;
  call.changed();
  call.boolean(true);
}

// CF.ADD key item
void add(Call& call) { add_one(call, false); }
// CF.ADDNX key item
void add_new(Call& call) { add_one(call, true); }

// Adds the items of one call. A replica gets the items up to the last one that was added, and must
// add the same ones. So nothing is added after a refusal that the replica could not repeat, because
// its reason is not in the value.
class ItemAdder {
 public:
  ItemAdder(const Call& call, CuckooValue& value)
      : value_(value), max_bytes_(max_value_bytes(call)) {}

  bool add(Digest digest) {
    // No link has room for the item that was refused last, and further copies find none.
    if (!closed_ && (cause_ == nullptr || refused_ != digest)) {
      refused_ = digest;
      if (try_to_add(digest)) return true;
    }
    ++*cause_;
    return false;
  }

 private:
  // If memory runs out, the items that the call added before stay.
  bool try_to_add(Digest digest) {
    try {
      const Result<void> added = value_.add(digest, max_bytes_);
      if (added) {
        cause_ = nullptr;
        return true;
      }
      closed_ = added.error().code == Errc::full;
      cause_ = closed_ ? &host::counters.refused_limit : &counts.refused_full;
    } catch (const std::bad_alloc&) {
      closed_ = true;
      cause_ = &host::counters.refused_oom;
    }
    return false;
  }

  CuckooValue& value_;
  std::uint64_t max_bytes_;
  bool closed_ = false;
  std::uint64_t* cause_ = nullptr;  // counts refusals like the last one; null after an addition
  Digest refused_{};
};

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
  CuckooValue* const value = filter_to_write<CuckooFamily>(call, key, goal);
  if (value == nullptr) return;

  ItemAdder adder(call, *value);
  enum class Inserted : std::uint8_t { refused, known, added };
  std::vector<Inserted> answers(call.size() - items, Inserted::refused);
  for (Inserted& answer : answers) {
    const auto place = static_cast<std::size_t>(&answer - answers.data());
    const Digest digest = value->hasher()(call[items + place]);
    if (unless_there && value->contains(digest)) {
      ++counts.filter_known;
      answer = Inserted::known;
    } else if (!ensure_open(call, *value)) {
      return;
    } else if (adder.add(digest)) {
      ++counts.filter_added;
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
    ++counts.filter_removed;
    call.changed();
  }
  call.boolean(removed);
}

// CF.INFO key [ALL]
void info(Call& call) {
  const bool all = call.size() == 3 && is_word(call[2], "ALL");
  if (call.size() > 2 && !all) return call.wrong_arity();
  const OpenKey key = call.open(1, Access::read);
  const auto* const value = existing<CuckooValue>(call, key);
  if (value == nullptr) return;
  const CuckooValue::Goal& goal = value->goal();
  std::vector<InfoField> fields = {{"Size", value->bytes()},
                                   {"Number of buckets", value->buckets()},
                                   {"Number of filters", value->filters()},
                                   {"Number of items inserted", value->items()},
                                   {"Number of items deleted", value->removed()},
                                   {"Bucket size", std::uint64_t{goal.bucket_size}},
                                   {"Expansion rate", std::uint64_t{goal.expansion}},
                                   {"Max iterations", std::uint64_t{goal.max_iterations}}};
  if (all) {
    fields.insert(fields.end(), {{"Capacity", value->figures().capacity},
                                 {"Error rate", goal.error},
                                 {"Error bound", value->error_bound()},
                                 {"Error rate now", value->error_now()},
                                 {"Chains", value->chains().size()}});
  }
  answer_info(call, fields);
}

// CF.DEBUG key
void debug(Call& call) {
  const OpenKey key = call.open(1, Access::read);
  const auto* const value = existing<CuckooValue>(call, key);
  if (value == nullptr) return;
  const CuckooValue::Goal& goal = value->goal();
  call.text("bktsize:" + std::to_string(goal.bucket_size) + " buckets:" +
            std::to_string(value->buckets()) + " items:" + std::to_string(value->items()) +
            " deletes:" + std::to_string(value->removed()) +
            " filters:" + std::to_string(value->filters()) + " max_iterations:" +
            std::to_string(goal.max_iterations) + " expansion:" + std::to_string(goal.expansion));
}

// CF.COMPACT key. There is nothing to do: items are removed from the last link first, and a link
// without items has no memory.
void compact(Call& call) {
  const OpenKey key = call.open(1, Access::read);
  if (key.get<CuckooValue>() == nullptr) return call.error("Cuckoo filter was not found");
  call.ok();
}

}  // namespace

std::span<const host::CommandRow> cuckoo_commands() {
  static const std::array kCommands = {
      command<reserve>({
          .name = "CF.RESERVE",
          .syntax = "key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]",
          .kind = CommandKind::writes,
          .summary =
              "Makes a cuckoo filter for this number of items; if more items come, it grows and "
              "keeps its error, unless its expansion is 0. New parts are as large as those of "
              "BF.RESERVE; EXPANSION 1 counts as 2",
          .reply = "OK",
      }),
      command<add>({
          .name = "CF.ADD",
          .syntax = "key item",
          .kind = CommandKind::writes,
          .summary = "Adds an item; if it is there already, it is there once more",
          .reply = "1 or true",
      }),
      command<add_new>({
          .name = "CF.ADDNX",
          .syntax = "key item",
          .kind = CommandKind::writes,
          .summary = "Adds an item unless it is there; a false positive is possible",
          .reply = "1 or true if it was added, 0 or false if not",
      }),
      command<insert>({
          .name = "CF.INSERT",
          .syntax = "key [CAPACITY n] [NOCREATE] ITEMS item ...",
          .kind = CommandKind::writes,
          .summary = "Adds many items to a filter, which is made if it is missing",
          .complexity = "O(N) with the number of items",
          .reply = "array: 1 for an item that was added, -1 where there is no room; in RESP3 true, "
                   "false",
      }),
      command<insert_new>({
          .name = "CF.INSERTNX",
          .syntax = "key [CAPACITY n] [NOCREATE] ITEMS item ...",
          .kind = CommandKind::writes,
          .summary = "Adds many items to a filter, each unless it is there",
          .complexity = "O(N) with the number of items",
          .reply = "array: 1 for an item that was added, 0 where it was there, -1 where there is "
                   "no room",
      }),
      exists_row<CuckooFamily>("CF.EXISTS"),
      exist_many_row<CuckooFamily>("CF.MEXISTS"),
      command<count>({
          .name = "CF.COUNT",
          .syntax = "key item",
          .kind = CommandKind::reads,
          .summary = "Returns how many times an item is there; false positives are possible",
          .reply = "integer",
      }),
      command<remove>({
          .name = "CF.DEL",
          .syntax = "key item",
          .kind = CommandKind::frees,
          .summary = "Removes an item that was added, once",
          .reply = "1 or true if it was there, 0 or false if not",
      }),
      command<info>({
          .name = "CF.INFO",
          .syntax = "key [ALL]",
          .kind = CommandKind::reads,
          .summary =
              "Returns what a filter was made for, its size and its number of items; with ALL also "
              "its capacity, its error rate, the bound of the error, and the error now",
          .reply = "map",
      }),
      command<debug>({
          .name = "CF.DEBUG",
          .syntax = "key",
          .kind = CommandKind::reads,
          .summary = "Describes a filter in one line, for people",
          .reply = "text",
      }),
      command<compact>({
          .name = "CF.COMPACT",
          .syntax = "key",
          .kind = CommandKind::reads,
          .summary = "Does nothing: a part of a filter frees its memory when its last item is "
                     "removed",
          .reply = "OK",
      }),
      dump_row<CuckooFamily>("CF.SCANDUMP", "O(N) with the items of a link of the filter",
                             "array of the next iterator and the chunk; 0 and null at the end"),
      load_row<CuckooFamily>("CF.LOADCHUNK"),
      like_row<CuckooFamily>("CF.LIKE"),
      merge_row<CuckooFamily>(
          "CF.MERGE",
          "Adds the items of other filters to a filter, which is made if it is missing. All must "
          "share a secret: see CF.LIKE. An item that was removed from one copy of a chain is "
          "removed from the result"),
  };
  return kCommands;
}

}  // namespace semel::module
