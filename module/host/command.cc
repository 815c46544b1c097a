#include "module/host/command.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <list>
#include <new>
#include <optional>

#include "module/host/listeners.h"
#include "module/host/reserve.h"
#include "module/host/string.h"
#include "module/host/syntax.h"
#include "semel/core/assert.h"

namespace semel::host {

struct LoadedCommand {
  const Command* row;
  std::string name;   // under which the server knows it, unless its family is off
  std::string event;  // of keyspace notifications
  std::size_t least;  // arguments, its name included
};

namespace {

// By name in the table. Entries of a map do not move.
std::map<std::string_view, LoadedCommand>& loaded_commands() {
  static std::map<std::string_view, LoadedCommand> commands;
  return commands;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string_view family_of(const Command& row) {
  const std::string_view name = row.name;
  return name.substr(0, name.find('.'));
}

std::string flags_of(const Command& row) {
  std::string flags;
  switch (row.effect) {
    case Effect::reads:
      flags = "readonly";
      break;
    case Effect::writes:
      flags = "write deny-oom";
      break;
    case Effect::frees:
      flags = "write";
      break;
    case Effect::server:
      flags = "write admin";
      break;
  }
  if (row.secret) flags += " no-monitor no-slowlog";
  return row.pace == Pace::fast ? flags + " fast" : flags;
}

// Arguments for COMMAND DOCS. Strings and lists live as long as this does; the server copies them.
class Documentation {
 public:
  explicit Documentation(const Command& row) : row_(row), syntax_(Syntax::parse(row.syntax)) {
    if (!row.keys.empty()) keys_[0] = key_spec(row.keys, row.effect != Effect::reads);
    if (!row.sources.empty()) keys_[1] = key_spec(row.sources, false);
    info_.version = &version_;
    info_.summary = row.summary;
    info_.complexity = row.complexity;
    info_.since = SEMEL_VERSION;
    info_.arity = arity();
    info_.key_specs = keys_.data();
    info_.args = arguments(syntax_.parts);
  }

  const api::CommandInfo* info() const { return &info_; }

 private:
  static api::CommandKeySpec key_spec(const KeyRange& keys, bool writes) {
    api::CommandKeySpec out;
    out.flags =
        writes ? api::kKeyRw | api::kKeyAccess | api::kKeyUpdate : api::kKeyRo | api::kKeyAccess;
    out.begin_search_type = api::kSearchIndex;
    out.bs.index.pos = keys.first;
    out.find_keys_type = api::kFindRange;
    out.fk.range = {keys.last < 0 ? keys.last : keys.last - keys.first, 1, 0};
    return out;
  }

  int arity() const {
    const int least = syntax_.least() + 1;  // the name of the command
    return syntax_.varies() ? -least : least;
  }

  // An argument with a token in front is one argument: WINDOW duration.
  api::CommandArgument* arguments(const std::vector<Syntax>& parts) {
    std::vector<api::CommandArgument>& out = lists_.emplace_back();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool named = parts[i].kind == Syntax::Kind::token && i + 1 < parts.size() &&
                         parts[i + 1].kind == Syntax::Kind::word && !parts[i].optional;
      if (named) {
        out.push_back(argument(parts[i + 1]));
        out.back().token = text(parts[i].text);
        ++i;
      } else {
        out.push_back(argument(parts[i]));
      }
    }
    out.emplace_back();
    return out.data();
  }

  api::CommandArgument argument(const Syntax& part) {
    api::CommandArgument out;
    if (part.optional) out.flags |= api::kArgumentOptional;
    if (part.multiple) out.flags |= api::kArgumentMultiple;
    switch (part.kind) {
      case Syntax::Kind::token:
        out.name = text(lower(part.text));
        out.type = api::ArgumentType::token;
        out.token = text(part.text);
        break;
      case Syntax::Kind::word:
        out.name = text(part.text);
        out.type = type_of(part.text);
        if (out.type == api::ArgumentType::key) out.key_spec_index = part.text == "source" ? 1 : 0;
        break;
      case Syntax::Kind::sequence:
        if (part.parts.size() == 2 && part.parts[0].kind == Syntax::Kind::token &&
            part.parts[1].kind == Syntax::Kind::word) {
          api::CommandArgument named = argument(part.parts[1]);
          named.token = text(part.parts[0].text);
          named.flags |= out.flags;
          return named;
        }
        out.name = "block";
        out.type = api::ArgumentType::block;
        out.subargs = arguments(part.parts);
        break;
      case Syntax::Kind::choice:
        out.name = "choice";
        out.type = api::ArgumentType::one_of;
        out.subargs = arguments(part.parts);
        break;
    }
    return out;
  }

  static api::ArgumentType type_of(const std::string& word) {
    static const std::vector<std::string_view> integers = {
        "delta", "seq", "n", "ms", "bytes", "capacity", "expansion", "iterator", "iterations"};
    if (word == "key" || word == "destination" || word == "source") {
      return api::ArgumentType::key;
    }
    if (word == "error") return api::ArgumentType::number;
    const bool integer = std::find(integers.begin(), integers.end(), word) != integers.end();
    return integer ? api::ArgumentType::integer : api::ArgumentType::string;
  }

  const char* text(std::string value) { return texts_.emplace_back(std::move(value)).c_str(); }

  const Command& row_;
  Syntax syntax_;
  api::CommandInfoVersion version_;
  std::array<api::CommandKeySpec, 3> keys_ = {};  // the last one of zeros
  std::list<std::string> texts_;
  std::list<std::vector<api::CommandArgument>> lists_;
  api::CommandInfo info_;
};

// In Redis 7.0 commands of modules are in no category but @all. Redis 7.2 takes the server's own
// categories for them, later servers also one for each family.
std::string categories_of(const Command& row) {
  std::string out = row.effect == Effect::reads ? "read" : "write";
  if (row.effect == Effect::server) out += " admin dangerous";
  out += row.pace == Pace::fast ? " fast" : " slow";
  return api::AddACLCategory == nullptr ? out : out + ' ' + lower(family_of(row));
}

std::string load_one(api::Ctx* ctx, const LoadedCommand& loaded) {
  const Command& row = *loaded.row;
  // For servers and clients that know no key specs: one range for all.
  const int first = row.keys.first;
  const int last = row.sources.empty() ? row.keys.last : row.sources.last;
  if (api::CreateCommand(ctx, loaded.name.c_str(), row.entry, flags_of(row).c_str(), first,
                         first == 0 ? 0 : last, first == 0 ? 0 : 1) != api::kOk) {
    return "the command " + loaded.name +
           " exists already; load this module with another prefix for it, such as "
           "`bf-prefix MYBF`, or without it: `bf-prefix off`";
  }
  api::Command* const command = api::GetCommand(ctx, loaded.name.c_str());
  if (command == nullptr || api::SetCommandInfo(command, Documentation(row).info()) != api::kOk) {
    return "the server does not take the description of " + loaded.name;
  }
  if (api::SetCommandACLCategories != nullptr &&
      api::SetCommandACLCategories(command, categories_of(row).c_str()) != api::kOk) {
    return "the server does not take the ACL categories of " + loaded.name;
  }
  return "";
}

// What a call that changed something leaves to be done.
void tell(const LoadedCommand& command, api::Ctx* ctx, std::span<api::String* const> args,
          bool notifies) {
  const int first = command.row->keys.first;
  if (first == 0) return;
  api::String* const key = args[static_cast<std::size_t>(first)];
  api::SignalModifiedKey(ctx, key);
  if (!notifies) return;
  api::NotifyKeyspaceEvent(ctx, api::kNotifyModule, command.event.c_str(), key);
}

}  // namespace

CommandTable::CommandTable(std::vector<std::span<const Command>> families)
    : families_(std::move(families)) {}

std::string CommandTable::load(api::Ctx* ctx, std::span<const Renaming> renamings) {
  for (const std::span<const Command> family : families_) {
    for (const Command& row : family) {
      std::string_view as = family_of(row);
      for (const Renaming& renaming : renamings) {
        if (renaming.family == as) as = renaming.as;
      }
      // A family that is off has no commands, but effects of it may come all the same: from a
      // primary that has it, or from an AOF file of the time when it was on.
      const bool off = as.empty();
      if (off) as = family_of(row);
      const std::string_view verb = std::string_view(row.name).substr(family_of(row).size());
      LoadedCommand loaded{&row, std::string(as).append(verb), "",
                           static_cast<std::size_t>(Syntax::parse(row.syntax).least()) + 1};
      loaded.event = lower(loaded.name);
      const auto [entry, added] = loaded_commands().emplace(row.name, std::move(loaded));
      SEMEL_ASSERT(added);
      *row.slot = &entry->second;
      if (off) continue;
      if (api::AddACLCategory != nullptr) {
        api::AddACLCategory(ctx, lower(family_of(row)).c_str());  // fails if it is there
      }
      if (std::string wrong = load_one(ctx, entry->second); !wrong.empty()) return wrong;
    }
  }
  return "";
}

const LoadedCommand* CommandTable::find(std::string_view name) {
  const auto found = loaded_commands().find(name);
  return found == loaded_commands().end() ? nullptr : &found->second;
}

// Nothing that a handler throws gets past here. What was answered before stands.
CommandTable::Ending CommandTable::handle(const LoadedCommand& command, Call& call) {
  const auto fail = [&](const char* why, const char* error) {
    api::Log(call.ctx_, "warning", "%s: %s", command.name.c_str(), why);
    call.settle(error);
  };
  try {
    command.row->handler(call);
    if (!call.complete()) fail("a handler that did not answer", kInternal);
  } catch (const std::bad_alloc&) {
    fail("no memory", kNoMemory);
    return Ending::no_memory;
  } catch (const std::exception& error) {
    fail(error.what(), kInternal);
  }
  return Ending::regular;
}

// A command without memory may have let time pass before it failed: so it has, here and at replicas.
void CommandTable::let_time_pass(const LoadedCommand& command, Call& call) {
  if (command.row->effect == Effect::reads || command.row->keys.first == 0) return;
  const auto index = static_cast<std::size_t>(command.row->keys.first);
  Value* const value = call.open(index, Access::write).any();
  if (value == nullptr || !value->advance(call.now_ms())) return;
  call.effect({kTick, call[index]});
}

int CommandTable::run(const LoadedCommand& command, api::Ctx* ctx,
                      std::span<api::String* const> args) {
  if (command.row->effect == Effect::writes && !keep_reserve()) {
    return api::ReplyWithError(ctx, kNoMemory);
  }
  Call call(ctx, args);
  const Ending ending = handle(command, call);
  if (ending == Ending::no_memory && !call.changed_) let_time_pass(command, call);
  if (call.changed_ || call.sent_effects_) tell(command, ctx, args, !call.silent_);
  if (!call.changed_) return api::kOk;
  if (!someone_listens()) {
    api::ReplicateVerbatim(ctx);  // counts as a change, for `save`
  } else if (!call.only_effects_) {
    api::Replicate(ctx, "SEMEL.AT", "llcv", static_cast<long long>(call.now_ms()),
                   static_cast<long long>(call.witness_), command.row->name, args.data() + 1,
                   std::min(call.happened_, args.size()) - 1);
  }
  return api::kOk;
}

bool CommandTable::replays(const LoadedCommand& command, std::size_t args) {
  return args >= command.least && command.row->effect != Effect::server;
}

std::optional<std::uint64_t> CommandTable::replay(const LoadedCommand& command, api::Ctx* ctx,
                                                  std::span<api::String* const> args,
                                                  TimeMs at_ms) {
  SEMEL_ASSERT(replays(command, args.size()));
  (void)keep_reserve();  // without it an effect may fail, and is counted
  Call call(ctx, args, at_ms);
  handle(command, call);
  if (!call.changed_) return std::nullopt;
  tell(command, ctx, args, !call.silent_);
  return call.witness_;
}

}  // namespace semel::host
