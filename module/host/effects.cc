// The commands that carry what happened at a primary or before a restart, and one that asks whether
// a write is allowed now.
#include <array>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include "module/host/api.h"
#include "module/host/command.h"
#include "module/host/counters.h"
#include "module/host/type.h"
#include "semel/core/internal/parse.h"

namespace semel::host {
// A friend of Call, whose parts it uses.
class EffectCommands {
 public:
  // SEMEL.AT ms witness command argument...
  static void at(Call& call) {
    const int flags = api::GetContextFlags(call.ctx_);
    if ((flags & (api::kFlagReplicated | api::kFlagLoading)) == 0) {
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
    // Only commands that changed something are sent, with what they changed. So the states differ.
    if (counters.effects_failed++ == 0) {
      api::Log(call.ctx_, "warning",
               "an effect of %.*s did something else here: this copy of the data differs from its "
               "origin. Resynchronise this replica. Further cases are counted in INFO, "
               "semel_effects_failed",
               static_cast<int>(name.size()), name.data());
    }
  }

  // SEMEL.LOAD key type offset length bytes checksum
  static void load(Call& call) {
    if ((api::GetContextFlags(call.ctx_) & api::kFlagLoading) == 0) {
      call.error("ERR SEMEL.LOAD is for AOF files");
      return;
    }
    try {
      if (const Result<void> taken = take_piece(call); !taken) {
        end_loading(call.ctx_, taken.error().message());
      }
    } catch (const std::exception&) {  // bad_alloc or length_error
      end_loading(call.ctx_, "there is no memory for a value");
    }
    call.ok();
  }

  // SEMEL.WRITABLE key. The server refuses it if a write is not allowed.
  static void writable(Call& call) { call.ok(); }

  // SEMEL.TICK key
  static void tick(Call& call) {
    if (!call.replayed()) return call.error("ERR SEMEL.TICK is for replication and AOF files");
    Value* const value = call.open(1, Access::write).any();
    // The primary may have been at that time before, so it may be that nothing changes.
    if (value != nullptr && value->advance(call.now_ms())) call.changed();
    call.ok();
  }

  static void loading_ended(api::Ctx* ctx) {
    if (staged()) end_loading(ctx, "its last value is not complete");
  }

 private:
  // The value that is being put together, with its place.
  struct Staged {
    int database;
    std::string key;
    std::string type;
    std::uint64_t length;
    Bytes bytes;

    bool continues_with(const Piece& piece) const {
      return piece.database == database && piece.key == key && piece.type == type &&
             piece.length == length && piece.offset == bytes.size();
    }
  };
  static std::optional<Staged>& staged() {
    static std::optional<Staged> value;
    return value;
  }

  // The server does not check the number of arguments in an AOF file.
  static Result<void> take_piece(Call& call) {
    const auto damaged = [](const char* why) { return Error{Errc::corrupt, why}; };
    if (call.size() != 7) return damaged("a part of a value has 6 arguments");
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
    if (!staged() && piece.offset == 0) {
      staged() = {
          piece.database, std::string(piece.key), std::string(piece.type), piece.length, {}};
    }
    if (!staged() || !staged()->continues_with(piece) ||
        piece.bytes.size() > piece.length - piece.offset) {
      return damaged("a part of a value does not follow the one before");
    }
    Bytes& all = staged()->bytes;
    all.insert(all.end(), piece.bytes.begin(), piece.bytes.end());
    if (all.size() < piece.length) return {};
    std::unique_ptr<Value> value = SEMEL_TRY(decode(*type, all, 0));
    staged().reset();
    call.open(1, Access::write).set(*type, std::move(value));
    return {};
  }
};

void loading_ended(api::Ctx* ctx) { EffectCommands::loading_ended(ctx); }

void end_loading(api::Ctx* ctx, const std::string& why) {
  api::Log(ctx, "warning",
           "the AOF file cannot be loaded: %s. The server ends, so that no data are lost. Start it "
           "with a copy of the file from a backup, or as a replica of a server that has the data",
           why.c_str());
  std::_Exit(1);
}

std::span<const Command> effect_commands() {
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
          .syntax = "key type offset length bytes checksum",
          .kind = CommandKind::server,
          .pace = Pace::slow,
          .secret = true,
          .summary = "Loads a part of a value; for AOF files",
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
