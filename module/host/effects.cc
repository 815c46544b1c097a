// The two commands that carry what happened at a primary, or before a restart; and one that asks
// whether anything may happen now.
#include <array>
#include <charconv>
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
  // SEMEL.AT ms command argument...
  static void at(Call& call) {
    const int flags = api::GetContextFlags(call.ctx_);
    if ((flags & (api::kFlagReplicated | api::kFlagLoading)) == 0) {
      call.error("ERR SEMEL.AT is for replication and AOF files");
      return;
    }
    const std::optional<std::int64_t> at_ms = number_of(call[1]);
    const LoadedCommand* const command = CommandTable::find(call[2]);
    const std::span<api::String* const> effect = call.args_.subspan(2);
    if (!at_ms || command == nullptr || !CommandTable::replays(*command, effect.size())) {
      ++statistics.effects_failed;
      api::Log(call.ctx_, "warning", "an effect that no command of this module has: %.*s",
               static_cast<int>(call[2].size()), call[2].data());
      call.error("ERR SEMEL.AT ms command [argument ...]");
      return;
    }
    const bool changed = CommandTable::replay(*command, call.ctx_, effect, *at_ms);
    call.owes_nothing();  // the command has answered
    if (changed) {
      api::ReplicateVerbatim(call.ctx_);
      ++statistics.effects_applied;
      return;
    }
    // Only what changed something is sent. So here is another state than there.
    if (statistics.effects_failed++ == 0) {
      api::Log(call.ctx_, "warning",
               "an effect of %.*s changed nothing here: this copy of the data is not the same as "
               "that of its origin. Resynchronise this replica. Further ones are counted in INFO, "
               "semel_effects_failed",
               static_cast<int>(call[2].size()), call[2].data());
    }
  }

  // SEMEL.LOAD key type offset length bytes
  static void load(Call& call) {
    if ((api::GetContextFlags(call.ctx_) & api::kFlagLoading) == 0) {
      call.error("ERR SEMEL.LOAD is for AOF files");
      return;
    }
    static Staged staged;
    const TypeSpec* const type = type_named(call[2]);
    const std::optional<std::int64_t> offset = number_of(call[3]);
    const std::optional<std::int64_t> length = number_of(call[4]);
    const std::string_view chunk = call[5];
    if (type == nullptr || !offset || !length || *offset < 0 || *length < 0) {
      call.error("ERR SEMEL.LOAD key type offset length bytes");
      return;
    }
    if (*offset == 0) staged = {.key = std::string(call[1]), .bytes = {}};
    if (staged.key != call[1] || staged.bytes.size() != static_cast<std::uint64_t>(*offset) ||
        chunk.size() > static_cast<std::uint64_t>(*length - *offset)) {
      fail(call, "a chunk that does not follow the one before");
      return;
    }
    staged.bytes.insert(staged.bytes.end(), chunk.begin(), chunk.end());
    if (staged.bytes.size() == static_cast<std::uint64_t>(*length)) {
      const Bytes all = std::exchange(staged.bytes, {});
      Result<std::unique_ptr<Value>> value = type->decode(all);
      if (!value) {
        fail(call, value.error().what);
        return;
      }
      tell_loaded(**value);
      call.open(1, Access::write).set(*type, std::move(*value));
    }
    call.ok();
  }

  // SEMEL.WRITABLE key: the server has let it through.
  static void writable(Call& call) { call.ok(); }

 private:
  struct Staged {
    std::string key;
    Bytes bytes;
  };

  static void fail(Call& call, const char* why) {
    ++statistics.effects_failed;
    api::Log(call.ctx_, "warning", "SEMEL.LOAD: %s", why);
    call.error(std::string("ERR SEMEL.LOAD: ").append(why));
  }
};

std::span<const Command> effect_commands() {
  static const std::array kCommands = {
      command<EffectCommands::at>({
          .name = "SEMEL.AT",
          .syntax = "ms command key [argument ...]",
          .effect = Effect::server,
          .keys = {3, 3},
          .summary = "What a command did at a primary, at its time; for replication and AOF files",
          .reply = "that of the command",
      }),
      command<EffectCommands::load>({
          .name = "SEMEL.LOAD",
          .syntax = "key type offset length bytes",
          .effect = Effect::server,
          .pace = Pace::slow,
          .summary = "A part of a value; for AOF files",
          .complexity = "O(N) with the length of the value, for its last part",
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
