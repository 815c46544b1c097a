// The two commands that carry what happened at a primary, or before a restart; and one that asks
// whether anything may happen now.
#include <array>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include "module/host/command.h"
#include "module/host/statistics.h"
#include "module/host/type.h"

namespace semel::host {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

// A friend of Call, to take it apart.
class EffectCommands {
 public:
  // SEMEL.AT ms witness command argument...
  static void at(Call& call) {
    const int flags = api::GetContextFlags(call.ctx_);
    if ((flags & (api::kFlagReplicated | api::kFlagLoading)) == 0) {
      call.error("ERR SEMEL.AT is for replication and AOF files");
      return;
    }
    const std::optional<std::int64_t> at_ms = number_of(call[1]);
    const std::optional<std::int64_t> witness = number_of(call[2]);
    const std::string_view name = call[3];
    const LoadedCommand* const command = CommandTable::find(name);
    const std::span<api::String* const> effect = call.args_.subspan(3);
    if (!at_ms || !witness || command == nullptr ||
        !CommandTable::replays(*command, effect.size())) {
      ++statistics.effects_failed;
      api::Log(call.ctx_, "warning", "an effect that no command of this module has: %.*s",
               static_cast<int>(name.size()), name.data());
      call.error("ERR SEMEL.AT ms witness command [argument ...]");
      return;
    }
    const std::optional<std::uint64_t> changed =
        CommandTable::replay(*command, call.ctx_, effect, *at_ms);
    call.owes_nothing();  // the command has answered
    if (changed) {
      api::ReplicateVerbatim(call.ctx_);
      ++statistics.effects_applied;
    }
    if (changed == static_cast<std::uint64_t>(*witness)) return;
    // Only what changed something is sent, with what it changed. So here is another state than there.
    if (statistics.effects_failed++ == 0) {
      api::Log(
          call.ctx_, "warning",
          "an effect of %.*s did something else here: this copy of the data is not the same as "
          "that of its origin. Resynchronise this replica. Further ones are counted in INFO, "
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
    const char* wrong = nullptr;
    try {
      wrong = take_piece(call);
    } catch (const std::exception&) {  // bad_alloc or length_error
      wrong = "there is no memory for a value";
    }
    if (wrong != nullptr) end_server(call.ctx_, wrong);
    call.ok();
  }

  // SEMEL.WRITABLE key: the server has let it through.
  static void writable(Call& call) { call.ok(); }

  // SEMEL.TICK key, as an effect.
  static void tick(Call& call) {
    if (!call.replayed()) return call.error("ERR SEMEL.TICK is for replication and AOF files");
    Value* const value = call.open(1, Access::write).any();
    // The primary may have been at that time before: so no change is none either.
    if (value != nullptr && value->advance(call.now_ms())) call.changed();
    call.ok();
  }

  static void loading_ended(api::Ctx* ctx) {
    if (staged()) end_server(ctx, "its last value is not complete");
  }

 private:
  // The value that is being put together, and where it belongs.
  struct Staged {
    int database;
    std::string key;
    std::string type;
    std::uint64_t length;
    Bytes bytes;

    bool goes_on_with(const Piece& piece) const {
      return piece.database == database && piece.key == key && piece.type == type &&
             piece.length == length && piece.offset == bytes.size();
    }
  };
  static std::optional<Staged>& staged() {
    static std::optional<Staged> value;
    return value;
  }

  // Returns what is wrong with a piece; null if nothing. The server does not count the arguments of
  // what it finds in an AOF file.
  static const char* take_piece(Call& call) {
    if (call.size() != 7) return "a part of a value has 6 arguments";
    const TypeSpec* const type = type_named(call[2]);
    const std::optional<std::int64_t> offset = number_of(call[3]);
    const std::optional<std::int64_t> length = number_of(call[4]);
    const std::optional<std::int64_t> checksum = number_of(call[6]);
    if (!offset || !length || !checksum) return "a number of a part of a value is none";
    const Piece piece{api::GetSelectedDb(call.ctx_),
                      call[1],
                      call[2],
                      static_cast<std::uint64_t>(*offset),
                      static_cast<std::uint64_t>(*length),
                      bytes_of(call[5])};
    if (static_cast<std::uint64_t>(*checksum) != piece.checksum()) {
      return "a part of a value has another checksum than it should";
    }
    if (type == nullptr) return "a value is of a type that this module does not have";
    if (!staged() && piece.offset == 0) {
      staged() = {
          piece.database, std::string(piece.key), std::string(piece.type), piece.length, {}};
    }
    if (!staged() || !staged()->goes_on_with(piece) ||
        piece.bytes.size() > piece.length - piece.offset) {
      return "a part of a value does not follow the one before";
    }
    Bytes& all = staged()->bytes;
    all.insert(all.end(), piece.bytes.begin(), piece.bytes.end());
    if (all.size() < piece.length) return nullptr;
    Result<std::unique_ptr<Value>> value = decode(*type, all, 0);
    if (!value) return value.error().what;
    staged().reset();
    call.open(1, Access::write).set(*type, std::move(*value));
    return nullptr;
  }

  // An error would be ignored by the server, which would start without the value, and write the
  // loss into its next file.
  [[noreturn]] static void end_server(api::Ctx* ctx, const char* why) {
    api::Log(ctx, "warning",
             "the AOF file cannot be loaded: %s. The server ends, so that no data are lost. Start "
             "it with "
             "a copy of the file from a backup, or as a replica of a server that has the data",
             why);
    std::_Exit(1);
  }
};

void loading_ended(api::Ctx* ctx) { EffectCommands::loading_ended(ctx); }

std::span<const Command> effect_commands() {
  static const std::array kCommands = {
      command<EffectCommands::at>({
          .name = "SEMEL.AT",
          .syntax = "ms witness command key [argument ...]",
          .effect = Effect::server,
          .keys = {4, 4},
          .secret = true,
          .summary = "What a command did at a primary, at its time; for replication and AOF files",
          .reply = "that of the command",
      }),
      command<EffectCommands::load>({
          .name = "SEMEL.LOAD",
          .syntax = "key type offset length bytes checksum",
          .effect = Effect::server,
          .pace = Pace::slow,
          .secret = true,
          .summary = "A part of a value; for AOF files",
          .complexity = "O(N) with the length of the value, for its last part",
          .reply = "OK",
      }),
      command<EffectCommands::tick>({
          .name = kTick,
          .syntax = "key",
          .effect = Effect::frees,
          .summary = "Time has passed for a key; for replication and AOF files",
          .reply = "OK",
      }),
      command<EffectCommands::writable>({
          .name = kWritable,
          .syntax = "key",
          .effect = Effect::writes,
          .summary = "Whether a write would be allowed now; long commands ask it before each step",
          .reply = "OK, or the error that a write would get",
      }),
  };
  return kCommands;
}

}  // namespace semel::host
