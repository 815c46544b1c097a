// Call: one call of one of our commands: its arguments, its time, its keys, and its answer.
//
// Contract  A handler reads the arguments, looks at the keys, changes values, and answers, in this
//           order: nothing is changed before all arguments are found good, and nothing can fail once
//           the answer has begun. It says changed() if it changed something: then, and only then, the
//           command goes to replicas and AOF, with its time, and watchers of the key are told. What
//           goes there is what happened: happened() leaves out what did not.
// Memory    A handler that throws std::bad_alloc has changed nothing but the time of the value
//           (module/host/reserve.h); replicas hear of that.
// Time      now_ms() is the time of the call: that of this machine, or of the primary when the call
//           is an effect that comes from a primary or an AOF file (replayed()). A replica therefore does
//           the same as its primary did. Limits of the configuration are not checked again then.
// Answers   One, of any shape; an array of n takes n further answers, a map of n takes 2n. In RESP2 a
//           map is an array, a boolean 0 or 1.
// Mistakes  A client gets one answer whatever a handler does. An argument that is not there and an
//           answer that is not owed throw std::logic_error, and reach the server in no build;
//           answers that are missing at the end are filled in with an error. A handler that errs
//           fails alone.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "module/host/api.h"
#include "module/host/value.h"
#include "semel/core/clock.h"

namespace semel::host {

class Job;

// The answer to a client where a handler errs.
inline constexpr const char* kInternal = "ERR internal error, see the log of the server";
// And where the server has no memory for it.
inline constexpr const char* kNoMemory = "OOM the server has no memory for this command";

enum class Access : std::uint8_t { read, write };

// A key that is open for the time of a call.
class OpenKey {
 public:
  OpenKey(api::Key* key) : key_(key) {}
  OpenKey(OpenKey&& other) noexcept : key_(std::exchange(other.key_, nullptr)) {}
  OpenKey& operator=(OpenKey&&) = delete;
  ~OpenKey() {
    if (key_ != nullptr) api::CloseKey(key_);
  }

  bool empty() const { return key_ == nullptr || api::KeyType(key_) == api::kKeyEmpty; }
  // Null if the key is empty or holds something else. V has static const TypeSpec kType.
  template <std::derived_from<Value> V>
  V* get() const {
    return static_cast<V*>(get(V::kType));
  }
  // Of whichever of our types; null if there is none.
  Value* any() const;
  // REQUIRES: opened to write.
  template <std::derived_from<Value> V>
  V& set(std::unique_ptr<V> value) const {
    V& placed = *value;
    set(V::kType, std::move(value));
    return placed;
  }
  void set(const TypeSpec& type, std::unique_ptr<Value> value) const;

 private:
  Value* get(const TypeSpec& type) const;

  api::Key* key_;
};

class Call {
 public:
  Call(api::Ctx* ctx, std::span<api::String* const> arguments) : ctx_(ctx), args_(arguments) {}

  // Arguments: 0 is the name of the command.
  std::size_t size() const { return args_.size(); }
  std::string_view operator[](std::size_t index) const {
    std::size_t length = 0;
    const char* const text = api::StringPtrLen(argument(index), &length);
    return {text, length};
  }

  TimeMs now_ms() const {
    if (!now_ms_) now_ms_ = clock_ms();
    return *now_ms_;
  }
  bool replayed() const { return replayed_; }
  bool resp3() const { return (api::GetContextFlags(ctx_) & api::kFlagResp3) != 0; }

  OpenKey open(std::size_t index, Access access) { return open(argument(index), access); }
  // By name, for a job, whose call has no arguments.
  OpenKey open(std::string_view key, Access access);

  // Something changed. The key is the first one of the command. `what` tells one change from another:
  // a replica to which something else happens is not like its primary (SEMEL.AT).
  void changed(std::uint64_t what = 1) {
    changed_ = true;
    witness_ = witness_ * kWitnessFactor + what;
  }
  bool has_changed() const { return changed_; }
  // An effect of its own, before that of the command: a command with its arguments, the key first.
  // Something changed, then.
  void effect(std::initializer_list<std::string_view> command) {
    effect(std::span<const std::string_view>(command.begin(), command.size()));
  }
  void effect(std::span<const std::string_view> command);
  // Only the first so many arguments, the name included, say what happened: the others were refused
  // for a reason that is not in the value, such as a limit or want of memory.
  void happened(std::size_t arguments) { happened_ = arguments; }
  // The command itself does not go to replicas and AOF: its effect() says it all.
  void only_effects() { only_effects_ = true; }
  // No keyspace event tells of this call: one of another tells of both.
  void silent() { silent_ = true; }
  // For a job, whose call has no arguments: tells those who watch or track a key that it has changed,
  // and those who listen to events.
  void signal(std::string_view key);
  void notify(std::string_view key, const char* event);

  // Random bytes, for what must differ between keys and servers: secrets and tags.
  static void random(std::span<std::uint8_t> bytes) {
    api::GetRandomBytes(bytes.data(), bytes.size());
  }

  // Answers.
  void ok() { simple("OK"); }
  void simple(const char* word) {
    owe(0);
    api::ReplyWithSimpleString(ctx_, word);
  }
  void integer(std::int64_t value) {
    owe(0);
    api::ReplyWithLongLong(ctx_, value);
  }
  void boolean(bool value) {
    owe(0);
    api::ReplyWithBool(ctx_, value ? 1 : 0);
  }
  void number(double value);  // in RESP2 the shortest text that reads as the same number
  void text(std::string_view value) {
    owe(0);
    api::ReplyWithStringBuffer(ctx_, value.data(), value.size());
  }
  void bytes(ByteView value) { text({reinterpret_cast<const char*>(value.data()), value.size()}); }
  void null() {
    owe(0);
    api::ReplyWithNull(ctx_);
  }
  void array(std::size_t size) {
    owe(size);
    api::ReplyWithArray(ctx_, static_cast<long>(size));
  }
  void map(std::size_t size) {
    owe(2 * size);
    api::ReplyWithMap(ctx_, static_cast<long>(size));
  }
  // With its code in front: "ERR ...", "WRONGTYPE ...".
  void error(const char* text) {
    owe(0);
    api::ReplyWithError(ctx_, text);
  }
  void error(const std::string& text) { error(text.c_str()); }
  // An error that belongs to what happened: an effect meets it again, and a replica that answered
  // its primary with an error would log that, or end itself (propagation-error-behavior). It gives
  // null.
  void refuse(const char* text) { replayed_ ? null() : error(text); }
  void wrong_type();
  void wrong_arity() {
    owe(0);
    api::WrongArity(ctx_);
  }
  // A map whose size is not known before: all answers until end_map() belong to it. It is the whole
  // answer, or the last part of it.
  void begin_map();
  void end_map();

  // Work that may take long: in steps, between which the server serves others, while the client
  // waits; at once where a client cannot wait (MULTI, scripts, effects). The job answers.
  void start(std::unique_ptr<Job> job);

 private:
  friend class CommandTable;
  friend class EffectCommands;
  friend class JobRunner;

  static constexpr std::uint64_t kWitnessFactor = 0x9e37'79b9'7f4a'7c15;

  // The same, at a time that was handed in.
  Call(api::Ctx* ctx, std::span<api::String* const> arguments, TimeMs now_ms)
      : ctx_(ctx), args_(arguments), now_ms_(now_ms), replayed_(true) {}

  OpenKey open(api::String* key, Access access) {
    return {
        api::OpenKey(ctx_, key, access == Access::write ? api::kRead | api::kWrite : api::kRead)};
  }
  static TimeMs clock_ms();

  api::String* argument(std::size_t index) const {
    if (index >= args_.size()) no_such_argument();
    return args_[index];
  }
  // Counts an answer that takes `parts` further ones. Throws if none is owed.
  void owe(std::size_t parts) {
    if (owed_ == 0) begin_part();
    owed_ += parts - 1;
  }
  void begin_part();
  [[noreturn]] static void no_such_argument();
  bool complete() const { return owed_ == 0 && !map_parts_; }
  // Gives `error` for every answer that is still owed.
  void settle(const char* error);
  // Another call answers this client, or there is none.
  void owes_nothing() { owed_ = 0; }

  api::Ctx* ctx_;
  std::span<api::String* const> args_;
  mutable std::optional<TimeMs> now_ms_;
  bool replayed_ = false;
  bool changed_ = false;
  bool only_effects_ = false;
  bool sent_effects_ = false;
  bool silent_ = false;
  std::uint64_t witness_ = 0;
  std::size_t happened_ = SIZE_MAX;
  std::size_t owed_ = 1;  // answers, or within an open map those of its current part
  std::optional<std::size_t> map_parts_;  // of a map that is open: keys and values so far
};

}  // namespace semel::host
