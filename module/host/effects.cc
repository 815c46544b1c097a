// The commands that carry what happened at a primary or before a restart, and a command that asks
// whether a write is allowed now.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include "module/host/api.h"
#include "module/host/command.h"
#include "module/host/counters.h"
#include "module/host/staging.h"
#include "module/host/type.h"
#include "semel/core/internal/parse.h"

namespace semel::host {
// A friend of Call, whose parts it uses.
class EffectCommands {
 public:
  // SEMEL.AT ms witness command argument...
  static void at(Call& call) {
    const int flags = api::GetContextFlags(call.ctx_);
    if (!api::is_replicated(flags) && (flags & api::kFlagLoading) == 0) {
      call.error("ERR SEMEL.AT is for replication and AOF files");
      return;
    }
    // Not every server checks the arity of commands in an AOF file.
    if (call.size() < 4) {
      ++counters.effects_failed;
      api::Log(call.ctx_, "warning", "an effect has no command");
      call.wrong_arity();
      return;
    }
    const std::optional<std::int64_t> at_ms = parse_integer(call[1]);
    const std::optional<std::int64_t> witness = parse_integer(call[2]);
    const std::string_view name = call[3];
    const LoadedCommand* const command = CommandTable::find(name);
    const std::span<api::String* const> effect = call.args_.subspan(3);
    if (!at_ms || !witness || command == nullptr ||
        !CommandTable::replays(*command, effect.size())) {
      ++counters.effects_failed;
      api::Log(call.ctx_, "warning", "an effect of a command that this module does not have: %.*s",
               static_cast<int>(name.size()), name.data());
      call.error("ERR SEMEL.AT ms witness command [argument ...]");
      return;
    }
    const std::optional<std::uint64_t> changed =
        CommandTable::replay(*command, call.ctx_, effect, *at_ms);
    call.owes_nothing();  // the command has answered
    if (changed) {
      api::ReplicateVerbatim(call.ctx_);
      ++counters.effects_applied;
    }
    if (changed == static_cast<std::uint64_t>(*witness)) return;
    if (api::is_slot_import(flags)) {  // the server gives up the import
      api::ReplyWithError(call.ctx_, "ERR an effect did something else here than at its origin");
      return;
    }
    // Only commands that changed something are sent, with what they changed. So the states differ.
    if (counters.effects_failed++ == 0) {
      api::Log(call.ctx_, "warning",
               "an effect of %.*s did something else here: this copy of the data differs from its "
               "origin. Resynchronise this replica. Further cases are counted in INFO, "
               "semel_effects_failed",
               static_cast<int>(name.size()), name.data());
    }
  }

  // SEMEL.LOAD key type offset length bytes checksum [IMPORT]
  static void load(Call& call) {
    const int flags = api::GetContextFlags(call.ctx_);
    const bool from_file = (flags & api::kFlagLoading) != 0;
    if (!from_file && !api::is_replicated(flags)) {
      call.error("ERR SEMEL.LOAD is for replication and AOF files");
      return;
    }
    std::string why;
    try {
      const Result<void> taken = take_piece(call, from_file);
      if (taken) return call.ok();
      why = taken.error().message();
    } catch (const std::exception&) {  // bad_alloc or length_error
      why = "there is no memory for a value";
    }
    if (from_file) end_loading(call.ctx_, why);
    // The server gives up the import. At a replica the copies differ.
    if (!api::is_slot_import(flags)) ++counters.effects_failed;
    api::Log(call.ctx_, "warning", "a value that moves to this server: %s", why.c_str());
    call.error("ERR " + why);
  }

  // SEMEL.WRITABLE key. The server refuses it if a write is not allowed.
  static void writable(Call& call) { call.ok(); }

  // SEMEL.TICK key
  static void tick(Call& call) {
    if (!call.replayed()) return call.error("ERR SEMEL.TICK is for replication and AOF files");
    Value* const value = call.open(1, Access::write).any();
    // The primary may have been at that time already: then nothing changes.
    if (value != nullptr && value->advance(call.now_ms())) call.changed();
    call.ok();
  }

 private:
  // The server does not check the number of arguments in an AOF file.
  static Result<void> take_piece(Call& call, bool from_file) {
    const auto damaged = [](const char* why) { return Error{Errc::corrupt, why}; };
    const bool of_import = call.size() == 8 && call[7] == kImport;
    if (call.size() != 7 && !of_import) return damaged("a part of a value has 6 arguments");
    const TypeSpec* const type = type_named(call[2]);
    const std::optional<std::int64_t> offset = parse_integer(call[3]);
    const std::optional<std::int64_t> length = parse_integer(call[4]);
    const std::optional<std::int64_t> checksum = parse_integer(call[6]);
    if (!offset || !length || !checksum) return damaged("a part of a value has a malformed number");
    const Piece piece{api::GetSelectedDb(call.ctx_),
                      call[1],
                      call[2],
                      static_cast<std::uint64_t>(*offset),
                      static_cast<std::uint64_t>(*length),
                      bytes_of(call[5])};
    if (static_cast<std::uint64_t>(*checksum) != piece.checksum()) {
      return damaged("a part of a value has a wrong checksum");
    }
    if (type == nullptr) return damaged("a value has a type that this module does not know");
    if (piece.bytes.size() > piece.length - std::min(piece.length, piece.offset)) {
      return damaged("a part of a value is longer than the value");
    }
    const OpenKey key = call.open(1, Access::write);
    if (piece.bytes.size() < piece.length) {
      const Bytes* const all = SEMEL_TRY(stage(key.key_, piece, from_file && !of_import));
      if (all != nullptr) key.set(*type, SEMEL_TRY(decode(*type, *all, 0)));
    } else {
      key.set(*type, SEMEL_TRY(decode(*type, piece.bytes, 0)));
    }
    if (from_file) return {};
    // The server sends its replicas what it gets. Only its own AOF file needs the command. If the
    // file ends here, the import has ended too, and the server removes the key.
    api::Replicate(call.ctx_, "SEMEL.LOAD", "vc", call.args_.data() + 1, std::size_t{6}, kImport);
    return {};
  }
};

void loading_ended(api::Ctx* ctx) {
  if (lacks_pieces()) end_loading(ctx, "its last value is not complete");
}

void end_loading(api::Ctx* ctx, const std::string& why) {
  api::Log(ctx, "warning",
           "the AOF file cannot be loaded: %s. The server ends, so that no data are lost. Start it "
           "with a copy of the file from a backup, or as a replica of a server that has the data",
           why.c_str());
  std::_Exit(1);
}

std::span<const CommandRow> effect_commands() {
  static const std::array kCommands = {
      command<EffectCommands::at>({
          .name = "SEMEL.AT",
          .syntax = "ms witness command key [argument ...]",
          .kind = CommandKind::server,
          .keys = {4, 4},
          .secret = true,
          .summary =
              "Repeats what a command did at a primary, at its time; for replication and AOF files",
          .reply = "the reply of the command",
      }),
      command<EffectCommands::load>({
          .name = "SEMEL.LOAD",
          .syntax = "key type offset length bytes checksum [IMPORT]",
          .kind = CommandKind::server,
          .takes_memory = true,
          .pace = Pace::slow,
          .secret = true,
          .summary = "Loads a part of a value; for replication and AOF files",
          .complexity = "O(N) with the length of the value, for its last part",
          .reply = "OK",
      }),
      command<EffectCommands::tick>({
          .name = kTick,
          .syntax = "key",
          .kind = CommandKind::frees,
          .summary = "Lets time pass for a key; for replication and AOF files",
          .reply = "OK",
      }),
      command<EffectCommands::writable>({
          .name = kWritable,
          .syntax = "key",
          .kind = CommandKind::writes,
          .summary =
              "Tells whether a write would be allowed now; long commands call it before each step",
          .reply = "OK, or the error that a write would get",
      }),
  };
  return kCommands;
}

}  // namespace semel::host
