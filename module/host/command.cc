#include "module/host/command.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <new>
#include <optional>

#include "module/host/api.h"
#include "module/host/counters.h"
#include "module/host/listeners.h"
#include "module/host/reply.h"
#include "module/host/reserve.h"
#include "module/host/string.h"
#include "module/host/syntax.h"
#include "semel/core/assert.h"

namespace semel::host {

struct LoadedCommand {
  const CommandRow* row;
  std::string name;   // as the server knows it, unless its family is off; also the keyspace event
  std::size_t least;  // arguments, its name included
};

namespace {

constinit std::uint64_t most_arguments = 0;

// Returns the commands by their names in the table. Entries do not move.
std::map<std::string_view, LoadedCommand>& loaded_commands() {
  static std::map<std::string_view, LoadedCommand> commands;
  return commands;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string flags_of(const CommandRow& row) {
  std::string flags;
  switch (row.kind) {
    case CommandKind::reads:
      flags = "readonly";
      break;
    case CommandKind::writes:
      flags = "write deny-oom";
      break;
    case CommandKind::frees:
      flags = "write";
      break;
    case CommandKind::server:
      flags = row.takes_memory ? "write admin deny-oom" : "write admin";
      break;
  }
  if (row.secret) flags += " no-monitor no-slowlog";
  return row.pace == Pace::fast ? flags + " fast" : flags;
}

// The arguments for COMMAND DOCS. The server copies the strings and lists, which this object owns.
class Documentation {
 public:
  explicit Documentation(const CommandRow& row) : syntax_(CommandSyntax::parse(row.syntax)) {
    if (!row.keys.empty()) keys_[0] = key_spec(row.keys, row.kind != CommandKind::reads);
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
  static api::CommandKeySpec key_spec(const ArgumentRange& keys, bool writes) {
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

  // A token and the word after it are one argument: WINDOW duration.
  api::CommandArgument* arguments(const std::vector<CommandSyntax>& parts) {
    std::vector<api::CommandArgument>& out = lists_.emplace_back();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool named = parts[i].kind == CommandSyntax::Kind::token && i + 1 < parts.size() &&
                         parts[i + 1].kind == CommandSyntax::Kind::word && !parts[i].optional;
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

  api::CommandArgument argument(const CommandSyntax& part) {
    api::CommandArgument out;
    if (part.optional) out.flags |= api::kArgumentOptional;
    if (part.multiple) out.flags |= api::kArgumentMultiple;
    switch (part.kind) {
      case CommandSyntax::Kind::token:
        out.name = text(lower(part.text));
        out.type = api::ArgumentType::token;
        out.token = text(part.text);
        break;
      case CommandSyntax::Kind::word:
        out.name = text(part.text);
        out.type = type_of(part.text);
        if (out.type == api::ArgumentType::key) out.key_spec_index = part.text == "source" ? 1 : 0;
        break;
      case CommandSyntax::Kind::sequence:
        if (part.parts.size() == 2 && part.parts[0].kind == CommandSyntax::Kind::token &&
            part.parts[1].kind == CommandSyntax::Kind::word) {
          api::CommandArgument named = argument(part.parts[1]);
          named.token = text(part.parts[0].text);
          named.flags |= out.flags;
          return named;
        }
        out.name = "block";
        out.type = api::ArgumentType::block;
        out.subargs = arguments(part.parts);
        break;
      case CommandSyntax::Kind::choice:
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

  CommandSyntax syntax_;
  api::CommandInfoVersion version_;
  std::array<api::CommandKeySpec, 3> keys_ = {};  // ends with one of zeros
  std::list<std::string> texts_;
  std::list<std::vector<api::CommandArgument>> lists_;
  api::CommandInfo info_;
};

// In Redis 7.0 the commands of modules are in no category but @all. Redis 7.2 accepts the server's
// own categories for them. Later servers also accept a new category for each family.
std::string categories_of(const CommandRow& row, std::string_view category) {
  std::string out = row.kind == CommandKind::reads ? "read" : "write";
  if (row.kind == CommandKind::server) out += " admin dangerous";
  out += row.pace == Pace::fast ? " fast" : " slow";
  return api::AddACLCategory == nullptr ? out : out.append(" ").append(category);
}

// Returns true if the server has commands whose names begin with this word and a dot.
bool server_has(api::Ctx* ctx, std::string_view word) {
  const std::string pattern = lower(word) + ".*";
  return lists_some(
      api::Call(ctx, "COMMAND", "cccc", "LIST", "FILTERBY", "PATTERN", pattern.c_str()));
}

Error refused(const char* what, const LoadedCommand& loaded) {
  return {Errc::unsupported, what, std::string(loaded.name)};
}

Result<void> load_one(api::Ctx* ctx, const LoadedCommand& loaded, const Family& family) {
  const CommandRow& row = *loaded.row;
  // One range for all keys, for servers and clients that know no key specs.
  const int first = row.keys.first;
  const int last = row.sources.empty() ? row.keys.last : row.sources.last;
  if (api::CreateCommand(ctx, loaded.name.c_str(), row.entry, flags_of(row).c_str(), first,
                         first == 0 ? 0 : last, first == 0 ? 0 : 1) != api::kOk) {
    std::string why = "the command " + loaded.name + " exists already";
    if (!family.setting.empty()) {
      const std::string load_with = std::string(family.setting) + ' ';
      why += "; load this module with another prefix for it, such as `" + load_with + "MY" +
             std::string(family.name) + "`, or without it: `" + load_with + "off`";
    }
    return Error{Errc::busy, std::move(why)};
  }
  api::Command* const command = api::GetCommand(ctx, loaded.name.c_str());
  if (command == nullptr || api::SetCommandInfo(command, Documentation(row).info()) != api::kOk) {
    return refused("the server rejects the description of a command", loaded);
  }
  if (api::SetCommandACLCategories != nullptr &&
      api::SetCommandACLCategories(command, categories_of(row, family.category).c_str()) !=
          api::kOk) {
    return refused("the server rejects the ACL categories of a command", loaded);
  }
  return {};
}

// Finishes a call that changed something: tells clients that watch the key, and publishes an event.
void tell(const LoadedCommand& command, api::Ctx* ctx, std::span<api::String* const> args,
          bool notifies) {
  const int first = command.row->keys.first;
  if (first == 0) return;
  api::String* const key = args[static_cast<std::size_t>(first)];
  api::SignalModifiedKey(ctx, key);
  if (!notifies) return;
  api::NotifyKeyspaceEvent(ctx, api::kNotifyModule, command.name.c_str(), key);
}

}  // namespace

Result<void> CommandTable::load(api::Ctx* ctx, std::span<const Family> families) {
  for (const Family& family : families) {
    bool off = family.as && family.as->empty();
    if (!family.as && server_has(ctx, family.name)) {
      off = true;
      const std::string name(family.name), setting(family.setting);
      api::Log(ctx, "notice",
               "the server has commands %s.* already: this module is loaded without its own. `%s "
               "MY%s` loads them under another name",
               name.c_str(), setting.c_str(), name.c_str());
    }
    // A family that is off has no commands. Its effects may still come: from a primary that has
    // them, or from an AOF file of a time when the family was on.
    const std::string_view as = off ? family.name : family.as.value_or(family.name);
    if (!off && api::AddACLCategory != nullptr) {
      api::AddACLCategory(ctx, std::string(family.category).c_str());  // fails if it is there
    }
    for (const CommandRow& row : family.commands) {
      const std::string_view verb = std::string_view(row.name).substr(family.name.size());
      LoadedCommand loaded{&row, lower(as).append(lower(verb)),
                           static_cast<std::size_t>(CommandSyntax::parse(row.syntax).least()) + 1};
      const auto [entry, added] = loaded_commands().emplace(row.name, std::move(loaded));
      SEMEL_ASSERT(added);
      *row.slot = &entry->second;
      if (!off) SEMEL_TRY(load_one(ctx, entry->second, family));
    }
  }
  return {};
}

const LoadedCommand* CommandTable::find(std::string_view name) {
  const auto found = loaded_commands().find(name);
  return found == loaded_commands().end() ? nullptr : &found->second;
}

// Runs the handler. No exception gets past here. Answers given before an exception stand.
CommandTable::Ending CommandTable::handle(const LoadedCommand& command, Call& call) {
  const auto fail = [&](const char* why, const char* error) {
    api::Log(call.ctx_, "warning", "%s: %s", command.name.c_str(), why);
    call.settle(error);
  };
  try {
    command.row->handler(call);
    if (!call.complete()) fail("the handler did not answer", kInternal);
  } catch (const std::bad_alloc&) {
    ++counters.refused_oom;
    fail("no memory", kNoMemory);
    return Ending::no_memory;
  } catch (const KeyInUse& error) {
    fail(error.what(), kKeyInUse);
  } catch (const std::exception& error) {
    fail(error.what(), kInternal);
  }
  return Ending::regular;
}

// Lets time pass, here and at replicas, after a command ran out of memory. The command may have let
// time pass already.
void CommandTable::let_time_pass(const LoadedCommand& command, Call& call) {
  if (command.row->kind == CommandKind::reads || command.row->keys.first == 0) return;
  const auto index = static_cast<std::size_t>(command.row->keys.first);
  try {
    Value* const value = call.open(index, Access::write).any();
    if (value == nullptr || !value->advance(call.now_ms())) return;
  } catch (const KeyInUse&) {
    return;
  }
  call.effect({kTick, call[index]});
}

void set_most_arguments(std::uint64_t most) { most_arguments = most; }

int CommandTable::run(const LoadedCommand& command, api::Ctx* ctx,
                      std::span<api::String* const> args) {
  const bool limited = most_arguments != 0 && command.row->kind != CommandKind::server;
  if (limited && args.size() > most_arguments) {
    return api::ReplyWithError(ctx, ("ERR more arguments than semel.max-arguments allows, " +
                                     std::to_string(most_arguments))
                                        .c_str());
  }
  if (command.row->kind == CommandKind::writes && !keep_reserve()) {
    ++counters.refused_oom;
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
  return args >= command.least && command.row->kind != CommandKind::server;
}

std::optional<std::uint64_t> CommandTable::replay(const LoadedCommand& command, api::Ctx* ctx,
                                                  std::span<api::String* const> args,
                                                  TimeMs at_ms) {
  SEMEL_ASSERT(replays(command, args.size()));
  (void)keep_reserve();  // without the reserve an effect may fail, which is counted
  Call call(ctx, args, at_ms);
  handle(command, call);
  if (!call.changed_) return std::nullopt;
  tell(command, ctx, args, !call.silent_);
  return call.witness_;
}

}  // namespace semel::host
