#include "module/host/call.h"

#include <array>
#include <charconv>
#include <ctime>
#include <stdexcept>

#include "module/host/listeners.h"
#include "module/host/string.h"
#include "module/host/type.h"

namespace semel::host {

Value* OpenKey::any() const {
  return key_ != nullptr && is_ours(api::ModuleTypeGetType(key_))
             ? static_cast<Value*>(api::ModuleTypeGetValue(key_))
             : nullptr;
}

Value* OpenKey::get(const TypeSpec& type) const {
  if (key_ == nullptr || api::ModuleTypeGetType(key_) != handle_of(type)) return nullptr;
  return static_cast<Value*>(api::ModuleTypeGetValue(key_));
}

void OpenKey::set(const TypeSpec& type, std::unique_ptr<Value> value) const {
  api::ModuleTypeSetValue(key_, handle_of(type), value.release());
}

// As of the last tick of the kernel, a few milliseconds ago at most: a twentieth of a command is saved.
TimeMs Call::clock_ms() {
  timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return TimeMs{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

OpenKey Call::open(std::string_view key, Access access) {
  const HeldString name(ctx_, key);
  return open(name.get(), access);
}

void Call::effect(std::span<const std::string_view> command) {
  if (replayed_) return;  // its own effect is on its way
  sent_effects_ = true;
  if (!someone_listens()) {
    api::ReplicateVerbatim(ctx_);
    return;
  }
  std::vector<HeldString> held;
  std::vector<api::String*> words;
  for (const std::string_view word : command) {
    held.emplace_back(ctx_, word);
    words.push_back(held.back().get());
  }
  constexpr long long kOneChange = 1;  // the witness of whoever says changed() once
  api::Replicate(ctx_, "SEMEL.AT", "llv", static_cast<long long>(now_ms()), kOneChange,
                 words.data(), words.size());
}

void Call::signal(std::string_view key) {
  const HeldString name(ctx_, key);
  api::SignalModifiedKey(ctx_, name.get());
}

void Call::notify(std::string_view key, const char* event) {
  const HeldString name(ctx_, key);
  api::NotifyKeyspaceEvent(ctx_, api::kNotifyModule, event, name.get());
}

void Call::number(double value) {
  value += 0.0;  // which makes -0 a plain 0
  if (resp3()) {
    owe(0);
    api::ReplyWithDouble(ctx_, value);
    return;
  }
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  text({buffer.data(), end});
}

void Call::wrong_type() {
  error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

void Call::begin_map() {
  if (owed_ != 1 || map_parts_) throw std::logic_error("a map in the middle of an answer");
  owed_ = 0;
  map_parts_ = 0;
  api::ReplyWithMap(ctx_, api::kPostponed);
}

void Call::end_map() {
  if (!map_parts_ || owed_ != 0 || *map_parts_ % 2 != 0) {
    throw std::logic_error("the end of a map that is not open, or of half a pair");
  }
  api::ReplySetMapLength(ctx_, static_cast<long>(*map_parts_ / 2));
  map_parts_.reset();
}

void Call::begin_part() {
  if (!map_parts_) throw std::logic_error("a second answer to one command");
  ++*map_parts_;
  owed_ = 1;
}

void Call::no_such_argument() { throw std::logic_error("an argument that is not there"); }

void Call::settle(const char* text) {
  while (owed_ > 0) error(text);
  if (!map_parts_) return;
  if (*map_parts_ % 2 != 0) error(text);
  end_map();
}

}  // namespace semel::host
