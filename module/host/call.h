// Call: one call of one of our commands, with its arguments, its time, its keys and its answer.
//
// Contract  A handler reads the arguments, looks at the keys, changes values, and answers, in this
//           order. It changes nothing before all arguments are checked, and nothing can fail after
//           the answer has begun. It calls changed() if it changed something. Then, and only then,
//           the command goes to replicas and to the AOF, with its time, and clients that watch the
//           key are told. happened() leaves out the arguments that changed nothing.
// Memory    A handler that throws std::bad_alloc has changed nothing but the time of the value
//           (module/host/reserve.h). Replicas hear of that time.
// Time      now_ms() is the time of the call. If the call is an effect that comes from a primary or
//           from an AOF file (replayed()), it is the time of the primary. So a replica does the
//           same as its primary did. Limits of the configuration are not checked again for effects.
// Answers   A handler gives one answer, of any shape. An array of n takes n further answers, a map
//           of n takes 2n. In RESP2 a map is an array, and a boolean is 0 or 1.
//           A client gets one answer whatever a handler does. A handler that reads an argument that
//           is not there, or gives an answer that is not owed, gets a std::logic_error. The server
//           never sees either. Answers that are missing at the end are filled in with an error.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "module/host/handles.h"
#include "module/host/value.h"
#include "semel/core/clock.h"

namespace semel::host {

class Job;

// The answer if a handler makes a mistake.
inline constexpr const char* kInternal = "ERR internal error, see the log of the server";
// The answer if the server has no memory for a command.
inline constexpr const char* kNoMemory = "OOM the server has no memory for this command";

enum class Access : std::uint8_t { read, write };

// The server keeps a key from being written while a thread of its own saves it. It lets no command
// begin whose keys it saves. So only a job meets such a key, and a script that does not name its
// keys.
class KeyInUse : public std::exception {
 public:
  const char* what() const noexcept override { return "the server is saving the key"; }
};
// The answer then. Nothing was done.
inline constexpr const char* kKeyInUse = "TRYAGAIN the server is saving this key";

// A key that is open during a call. A value that was opened to write counts as written when the key
// is closed (module/host/census.h).
class OpenKey {
 public:
  OpenKey(api::Key* key, Access access) : key_(key), access_(access) {}
  OpenKey(OpenKey&& other) noexcept
      : key_(std::exchange(other.key_, nullptr)),
        access_(other.access_),
        written_(std::exchange(other.written_, nullptr)) {}
  OpenKey& operator=(OpenKey&&) = delete;
  ~OpenKey();

  bool empty() const;
  // Returns null if the key is empty or holds something else. V has `static const TypeSpec kType`.
  template <std::derived_from<Value> V>
  V* get() const {
    return static_cast<V*>(get(V::kType));
  }
  // Returns the value, whichever of our types it has, or null if there is none.
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
  friend class EffectCommands;

  Value* get(const TypeSpec& type) const;
  Value* given(void* value) const;

  api::Key* key_;
  Access access_;
  mutable Value* written_ = nullptr;
};

class Call {
 public:
  Call(api::Ctx* ctx, std::span<api::String* const> arguments) : ctx_(ctx), args_(arguments) {}

  // Arguments. Argument 0 is the name of the command.
  std::size_t size() const { return args_.size(); }
  std::string_view operator[](std::size_t index) const;
  // Fills `out` with the arguments from `first` on.
  void arguments(std::size_t first, std::span<std::string_view> out) const;

  TimeMs now_ms() const {
    if (!now_ms_) now_ms_ = clock_ms();
    return *now_ms_;
  }
  bool replayed() const { return replayed_; }
  bool resp3() const;
  // Returns true if the server is Valkey, whose users know other replies to some commands.
  static bool in_valkey();

  // Throws KeyInUse if the key cannot be written now.
  OpenKey open(std::size_t index, Access access) { return open(argument(index), access); }
  // Opens a key by its name. For a job, whose call has no arguments.
  OpenKey open(std::string_view key, Access access);

  // Records that the first key of the command changed. `what` identifies the change: a replica that
  // computes a different `what` has diverged from its primary (SEMEL.AT).
  void changed(std::uint64_t what = 1) {
    changed_ = true;
    witness_ = witness_ * kWitnessFactor + what;
  }
  bool has_changed() const { return changed_; }
  // Sends another command to replicas and the AOF, before this one: its name and arguments, the key
  // first. The call then counts as changed.
  void effect(std::initializer_list<std::string_view> command) {
    effect(std::span<const std::string_view>(command.begin(), command.size()));
  }
  void effect(std::span<const std::string_view> command);
  // Returns false if nobody reads the words of an effect: there is no replica and no AOF file.
  bool heard() const;
  // Sends only the first `arguments` arguments, the name included. The others were refused for a
  // reason that is not in the value, such as a limit of the configuration or lack of memory.
  void happened(std::size_t arguments) { happened_ = arguments; }
  // Does not send the command itself: its effect() says it all.
  void only_effects() { only_effects_ = true; }
  // Publishes no keyspace event for this call: the event of another call covers both.
  void silent() { silent_ = true; }
  // For a job, whose call has no arguments. signal() tells clients that watch or track a key that
  // it has changed. notify() publishes a keyspace event.
  void signal(std::string_view key);
  void notify(std::string_view key, const char* event);

  // Fills `bytes` for something that must differ between keys and servers: secrets and tags.
  static void random(std::span<std::uint8_t> bytes);

  // Answers.
  void ok() { simple("OK"); }
  void simple(const char* word);
  void integer(std::int64_t value);
  void boolean(bool value);
  void booleans(std::span<const bool> values);
  void number(double value);  // in RESP2 the shortest text that reads as the same number
  void text(std::string_view value);
  void bytes(ByteView value) { text(text_of(value)); }
  void null();
  void array(std::size_t size);
  void map(std::size_t size);
  // `text` begins with its code: "ERR ...", "WRONGTYPE ...".
  void error(const char* text);
  void error(const std::string& text) { error(text.c_str()); }
  // Answers with the words of an error, after "ERR ".
  void error(const Error& error);
  // Answers with an error that is a part of what happened. An effect meets the same error again and
  // answers null: a replica that answered its primary with an error would log that, or end itself
  // (propagation-error-behavior).
  void refuse(const char* text) { replayed_ ? null() : error(text); }
  // Refuses because memory ran out. A handler that has changed nothing throws std::bad_alloc.
  void refuse_without_memory();
  void wrong_type();
  void wrong_arity();
  // Answers with the error for data that another module has made. If the data come from an AOF
  // file, this ends the server: it would ignore the error, and lose the data.
  void foreign(const std::string& text);
  // Begins a map whose size is not known in advance. All answers until end_map() belong to it. The
  // map is the whole answer, or the last part of it.
  void begin_map();
  void end_map();

  // Writes a warning to the log of the server.
  void warn(const std::string& text) const;

  // Starts work that may take long. It runs in steps, between which the server serves other clients
  // while this one waits. It runs at once where a client cannot wait: in MULTI, scripts and
  // effects. The job answers.
  void start(std::unique_ptr<Job> job);

 private:
  friend class CommandTable;
  friend class EffectCommands;
  friend class Excerpt;
  friend class JobRunner;

  static constexpr std::uint64_t kWitnessFactor = 0x9e37'79b9'7f4a'7c15;

  // Makes the call of an effect, at the time that came with it.
  Call(api::Ctx* ctx, std::span<api::String* const> arguments, TimeMs now_ms)
      : ctx_(ctx), args_(arguments), now_ms_(now_ms), replayed_(true) {}

  OpenKey open(api::String* key, Access access);
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
  // Drops the answer: another call answers this client, or there is no client.
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
  std::size_t owed_ = 1;                  // answers; within an open map those of its current part
  std::optional<std::size_t> map_parts_;  // keys and values so far of the map that is open
};

// Effects that have some of the arguments of a command, to be sent in its place. A handler makes
// this object before it changes anything. Nothing can fail from then on.
class Excerpt {
 public:
  // `command` is the name of the command in the documentation.
  Excerpt(Call& call, const char* command) : call_(call), command_(command) {
    words_.reserve(call.size());
  }
  Excerpt(const Excerpt&) = delete;
  Excerpt& operator=(const Excerpt&) = delete;
  ~Excerpt() { clear(); }

  // These append to the effect. REQUIRES: it has fewer words than the command.
  void keep(std::size_t first, std::size_t count);  // arguments of the command
  void number(std::uint64_t value);                 // one for each effect
  bool empty() const { return words_.empty(); }
  // Records a change that this effect makes, as Call::changed() does. `what` must be the same at a
  // replica, to which the effect is a whole command.
  void changed(std::uint64_t what) {
    changed_ = true;
    witness_ = Call::kWitnessFactor * witness_ + what;
  }
  // Sends the effect, unless it changes nothing, and begins another one.
  void send();

 private:
  void clear();

  Call& call_;
  const char* command_;
  std::vector<api::String*> words_;
  api::String* number_ = nullptr;  // owned
  bool changed_ = false;
  std::uint64_t witness_ = 0;
};

}  // namespace semel::host
