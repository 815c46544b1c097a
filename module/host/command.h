// Command: a row of the table of commands, from which the server learns all that it asks about one:
// arity, flags, keys, ACL categories, documentation. docs/commands.md is written from it.
//
// A command is one row and one function:
//
//   command<get>({.name = "TALLY.GET", .syntax = "key counter", .effect = Effect::reads,
//                 .summary = "The value of a counter", .reply = "integer, or null"})
//
// `syntax` is as in Redis' documentation: words in capitals are written as they are, [ ] may be left
// out, < > belongs together, | stands between alternatives, ... repeats what is before it. Arity and
// COMMAND DOCS follow from it (module/host/syntax.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "module/host/api.h"
#include "module/host/call.h"

namespace semel::host {

using Handler = void (*)(Call& call);

enum class Effect : std::uint8_t {
  reads,   // changes nothing
  writes,  // may take more memory: refused when the server is out of it
  frees,   // writes, and never takes more
  server,  // for the server itself and those who run it
};

enum class Pace : std::uint8_t { fast, slow };  // ACL category @fast or @slow

// Which arguments are keys: from first to last, which counts from the end if it is negative.
struct KeyRange {
  int first = 1;  // 0: there are none
  int last = 1;

  bool empty() const { return first == 0; }
};

// A command as the server knows it.
struct LoadedCommand;

struct Command {
  const char* name;    // FAMILY.VERB
  const char* syntax;  // of the arguments
  Effect effect;
  Pace pace = Pace::fast;
  KeyRange keys = {};               // read or written, as `effect` says
  KeyRange sources = {.first = 0};  // read alone, behind the others; in `syntax`: source
  bool secret = false;              // arguments may hold a secret: not for MONITOR, nor for SLOWLOG
  const char* summary;
  const char* complexity = "O(1)";
  const char* reply;  // for docs/commands.md: what it answers
  // These are filled in by command<>().
  Handler handler = nullptr;
  api::CommandFn entry = nullptr;
  const LoadedCommand** slot = nullptr;
};

class CommandTable {
 public:
  // A family is loaded under another name, or has no commands at all.
  struct Renaming {
    std::string_view family;  // as in the table: "BF"
    std::string_view as;      // empty: no commands; effects of them are still run
  };

  // REQUIRES: the rows live as long as the process; loaded once.
  explicit CommandTable(std::vector<std::span<const Command>> families);

  // What went wrong; empty if nothing.
  std::string load(api::Ctx* ctx, std::span<const Renaming> renamings);

  std::span<const std::span<const Command>> families() const { return families_; }

  // Runs a command the way that the server calls it.
  static int run(const LoadedCommand& command, api::Ctx* ctx, std::span<api::String* const> args);
  // Returns whether so many arguments can be the effect of this command. The server does not hold
  // an AOF file that was damaged to that.
  static bool replays(const LoadedCommand& command, std::size_t args);
  // Runs the effect of a command at a primary: `args` are its name in the table and its arguments.
  // Returns what it changed, as a number (Call::changed); nothing if it changed nothing.
  // REQUIRES: replays(command, args.size()).
  static std::optional<std::uint64_t> replay(const LoadedCommand& command, api::Ctx* ctx,
                                             std::span<api::String* const> args, TimeMs at_ms);
  // By its name in the table, whether the server has it or not; null if there is none.
  static const LoadedCommand* find(std::string_view name);

 private:
  enum class Ending : std::uint8_t { regular, no_memory };
  static Ending handle(const LoadedCommand& command, Call& call);
  static void let_time_pass(const LoadedCommand& command, Call& call);

  std::vector<std::span<const Command>> families_;
};

// The server hands a command nothing by which it could tell which one it is: so there is an entry,
// and a place for what is known of it, for each handler.
template <Handler kHandler>
inline const LoadedCommand* loaded_as = nullptr;

template <Handler kHandler>
int enter(api::Ctx* ctx, api::String** argv, int argc) {
  return CommandTable::run(*loaded_as<kHandler>, ctx, {argv, static_cast<std::size_t>(argc)});
}

template <Handler kHandler>
Command command(Command row) {
  row.handler = kHandler;
  row.entry = &enter<kHandler>;
  row.slot = &loaded_as<kHandler>;
  return row;
}

// By which the module asks the server whether a write to a key would be allowed.
inline constexpr const char* kWritable = "SEMEL.WRITABLE";
// An effect: time has passed for a key, and nothing else has happened.
inline constexpr const char* kTick = "SEMEL.TICK";

// SEMEL.AT, which carries effects; SEMEL.LOAD, which carries values in an AOF file; and these two.
std::span<const Command> effect_commands();
// Ends the server, with a reason in its log, if the file that it has loaded lacks part of a value.
void loading_ended(api::Ctx* ctx);

}  // namespace semel::host
