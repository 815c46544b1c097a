// CommandRow: one row of the table of commands. The server learns from it the arity, flags, keys,
// ACL categories and documentation of a command. docs/commands.md is written from it.
//
// A command is one row and one function:
//
//   command<get>({.name = "TALLY.GET", .syntax = "key counter", .kind = CommandKind::reads,
//                 .summary = "Returns the value of a counter", .reply = "integer, or null"})
//
// `syntax` is written as in Redis' documentation: words in capitals are literal, [ ] is optional,
// < > groups, | separates alternatives, ... repeats what is before it. Arity and COMMAND DOCS
// follow from it (module/host/syntax.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "module/host/call.h"
#include "module/host/handles.h"

namespace semel::host {

using Handler = void (*)(Call& call);

enum class CommandKind : std::uint8_t {
  reads,   // changes nothing
  writes,  // may take more memory: refused when the server is out of memory
  frees,   // writes, and never takes more memory
  server,  // for the server itself and its operators
};

enum class Pace : std::uint8_t { fast, slow };  // ACL category @fast or @slow

// The arguments that are keys, from first to last. A negative `last` counts from the end.
struct ArgumentRange {
  int first = 1;  // 0: there are none
  int last = 1;

  bool empty() const { return first == 0; }
};

// A command as the server knows it.
struct LoadedCommand;

struct CommandRow {
  const char* name;    // FAMILY.VERB; the server knows it in lower case, like its own names
  const char* syntax;  // of the arguments
  CommandKind kind;
  bool takes_memory = false;  // of kind `server`: refused when the server is out of memory
  Pace pace = Pace::fast;
  ArgumentRange keys = {};               // read or written, as `kind` says
  ArgumentRange sources = {.first = 0};  // only read, after the others; `source` in `syntax`
  bool secret = false;  // an argument may hold a secret: hide the call from MONITOR and SLOWLOG
  const char* summary;
  const char* complexity = "O(1)";
  const char* reply;  // for docs/commands.md
  // command<>() fills these in.
  Handler handler = nullptr;
  int (*entry)(api::Ctx* ctx, api::String** argv, int argc) = nullptr;
  const LoadedCommand** slot = nullptr;
};

// The commands whose names begin with one word.
struct Family {
  std::string_view name;      // "BF"
  std::string_view category;  // in ACL rules: "bloom"
  std::span<const CommandRow> commands;
  // The load argument that renames the family, "bf-prefix", and its value: another name; empty for
  // no commands; nullopt for the name of the family, or no commands where the server has some of
  // that name already. Effects run in any case.
  std::string_view setting = {};
  std::optional<std::string_view> as = name;
};

class CommandTable {
 public:
  // Registers all commands with the server. REQUIRES: the rows live as long as the process; called
  // once.
  static Result<void> load(api::Ctx* ctx, std::span<const Family> families);

  // Runs a command as the server calls it.
  static int run(const LoadedCommand& command, api::Ctx* ctx, std::span<api::String* const> args);
  // Returns true if an effect of this command can have that many arguments. The server does not
  // check that for commands in a damaged AOF file.
  static bool replays(const LoadedCommand& command, std::size_t args);
  // Runs the effect of a command at a primary. `args` are its name in the table and its arguments.
  // Returns what it changed, as a number (Call::changed), or nothing if it changed nothing.
  // REQUIRES: replays(command, args.size()).
  static std::optional<std::uint64_t> replay(const LoadedCommand& command, api::Ctx* ctx,
                                             std::span<api::String* const> args, TimeMs at_ms);
  // Returns the command of this name in the table, whether the server has it or not. Returns null
  // if the table has none.
  static const LoadedCommand* find(std::string_view name);

 private:
  enum class Ending : std::uint8_t { regular, no_memory };
  static Ending handle(const LoadedCommand& command, Call& call);
  static void let_time_pass(const LoadedCommand& command, Call& call);
};

// The server does not tell a command function which command it calls. So each handler has a
// function of its own, and a place for what is known of its command.
template <Handler kHandler>
inline const LoadedCommand* loaded_as = nullptr;

template <Handler kHandler>
int enter(api::Ctx* ctx, api::String** argv, int argc) {
  return CommandTable::run(*loaded_as<kHandler>, ctx, {argv, static_cast<std::size_t>(argc)});
}

template <Handler kHandler>
CommandRow command(CommandRow row) {
  row.handler = kHandler;
  row.entry = &enter<kHandler>;
  row.slot = &loaded_as<kHandler>;
  return row;
}

// Sets the most arguments that a call by a client may have, with the name of the command. 0: no
// limit. Effects have none.
void set_most_arguments(std::uint64_t most);

// The module calls this command to ask the server whether it would allow a write to a key.
inline constexpr const char* kWritable = "SEMEL.WRITABLE";
// An effect: time has passed for a key, and nothing else has happened.
inline constexpr const char* kTick = "SEMEL.TICK";

// Returns SEMEL.AT, which carries effects, SEMEL.LOAD, which carries values in an AOF file, and the
// two above.
std::span<const CommandRow> effect_commands();
// Ends the server, with a reason in its log, if the file that it has loaded lacks part of a value.
void loading_ended(api::Ctx* ctx);
// Ends the server. If it got an error instead, it would ignore that, start without the value, and
// write its next file without it.
[[noreturn]] void end_loading(api::Ctx* ctx, const std::string& why);

}  // namespace semel::host
