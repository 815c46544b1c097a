#include "module/host/call.h"

#include <array>
#include <charconv>
#include <ctime>
#include <stdexcept>
#include <vector>

#include "module/host/api.h"
#include "module/host/census.h"
#include "module/host/command.h"
#include "module/host/counters.h"
#include "module/host/listeners.h"
#include "module/host/string.h"
#include "module/host/type.h"

namespace semel::host {
namespace {

std::string_view view(const api::String* string) {
  std::size_t length = 0;
  const char* const text = api::StringPtrLen(string, &length);
  return {text, length};
}

}  // namespace

OpenKey::~OpenKey() {
  if (written_ != nullptr) census.written(*written_);
  if (key_ != nullptr) api::CloseKey(key_);
}

Value* OpenKey::given(void* value) const {
  auto* const ours = static_cast<Value*>(value);
  if (access_ == Access::write) written_ = ours;
  return ours;
}

bool OpenKey::empty() const { return key_ == nullptr || api::KeyType(key_) == api::kKeyEmpty; }

Value* OpenKey::any() const {
  return key_ != nullptr && is_ours(api::ModuleTypeGetType(key_))
             ? given(api::ModuleTypeGetValue(key_))
             : nullptr;
}

Value* OpenKey::get(const TypeSpec& type) const {
  if (key_ == nullptr || api::ModuleTypeGetType(key_) != handle_of(type)) return nullptr;
  return given(api::ModuleTypeGetValue(key_));
}

void OpenKey::set(const TypeSpec& type, std::unique_ptr<Value> value) const {
  census.admit(*value, type.index);
  written_ = value.get();
  api::ModuleTypeSetValue(key_, handle_of(type), value.release());
}

std::string_view Call::operator[](std::size_t index) const { return view(argument(index)); }

void Call::arguments(std::size_t first, std::span<std::string_view> out) const {
  for (std::string_view& text : out) text = view(argument(first++));
}

bool Call::resp3() const { return (api::GetContextFlags(ctx_) & api::kFlagResp3) != 0; }

// The coarse clock is a few milliseconds late at most, and saves a twentieth of a command.
TimeMs Call::clock_ms() {
  timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return TimeMs{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void Call::random(std::span<std::uint8_t> bytes) {
  api::GetRandomBytes(bytes.data(), bytes.size());
}

bool Call::in_valkey() { return api::is_valkey(); }

OpenKey Call::open(api::String* key, Access access) {
  const int mode = access == Access::write ? api::kRead | api::kWrite : api::kRead;
  api::Key* const opened = api::OpenKey(ctx_, key, mode);
  if (opened == nullptr && access == Access::write) throw KeyInUse();
  return {opened, access};
}

OpenKey Call::open(std::string_view key, Access access) {
  const HeldString name(ctx_, key);
  return open(name.get(), access);
}

bool Call::heard() const { return !replayed_ && someone_listens(); }

void Call::effect(std::span<const std::string_view> command) {
  if (replayed_) return;  // the primary sent this effect too
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
  constexpr long long kOneChange = 1;  // the witness of a command that calls changed() once
  api::Replicate(ctx_, "SEMEL.AT", "llv", static_cast<long long>(now_ms()), kOneChange,
                 words.data(), words.size());
}

void Excerpt::keep(std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) words_.push_back(call_.argument(i));
}

void Excerpt::number(std::uint64_t value) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  number_ = HeldString(call_.ctx_, {digits.data(), end}).release();
  words_.push_back(number_);
}

void Excerpt::send() {
  if (changed_ && call_.heard()) {
    call_.sent_effects_ = true;
    api::Replicate(call_.ctx_, "SEMEL.AT", "llcv", static_cast<long long>(call_.now_ms()),
                   static_cast<long long>(witness_), command_, words_.data(), words_.size());
  }
  clear();
}

void Excerpt::clear() {
  words_.clear();
  changed_ = false;
  witness_ = 0;
  if (number_ != nullptr) api::FreeString(call_.ctx_, std::exchange(number_, nullptr));
}

void Call::signal(std::string_view key) {
  const HeldString name(ctx_, key);
  api::SignalModifiedKey(ctx_, name.get());
}

void Call::notify(std::string_view key, const char* event) {
  const HeldString name(ctx_, key);
  api::NotifyKeyspaceEvent(ctx_, api::kNotifyModule, event, name.get());
}

void Call::simple(const char* word) {
  owe(0);
  api::ReplyWithSimpleString(ctx_, word);
}

void Call::integer(std::int64_t value) {
  owe(0);
  api::ReplyWithLongLong(ctx_, value);
}

void Call::boolean(bool value) {
  owe(0);
  api::ReplyWithBool(ctx_, value ? 1 : 0);
}

void Call::booleans(std::span<const bool> values) {
  for (const bool value : values) boolean(value);
}

void Call::text(std::string_view value) {
  owe(0);
  api::ReplyWithStringBuffer(ctx_, value.data(), value.size());
}

void Call::null() {
  owe(0);
  api::ReplyWithNull(ctx_);
}

void Call::array(std::size_t size) {
  owe(size);
  api::ReplyWithArray(ctx_, static_cast<long>(size));
}

void Call::map(std::size_t size) {
  owe(2 * size);
  api::ReplyWithMap(ctx_, static_cast<long>(size));
}

void Call::error(const char* text) {
  owe(0);
  api::ReplyWithError(ctx_, text);
}

void Call::error(const Error& error) { this->error("ERR " + error.message()); }

void Call::number(double value) {
  value += 0.0;  // makes -0 a plain 0
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

void Call::foreign(const std::string& text) {
  const bool from_file = (api::GetContextFlags(ctx_) & api::kFlagLoading) != 0;
  if (from_file && !replayed_) end_loading(ctx_, text);
  error(text);
}

void Call::wrong_arity() {
  owe(0);
  api::WrongArity(ctx_);
}

void Call::begin_map() {
  if (owed_ != 1 || map_parts_)
    throw std::logic_error("a handler began a map in the middle of an answer");
  owed_ = 0;
  map_parts_ = 0;
  api::ReplyWithMap(ctx_, api::kPostponed);
}

void Call::end_map() {
  if (!map_parts_ || owed_ != 0 || *map_parts_ % 2 != 0) {
    throw std::logic_error("a handler ended a map that is not open, or that lacks a value");
  }
  api::ReplySetMapLength(ctx_, static_cast<long>(*map_parts_ / 2));
  map_parts_.reset();
}

void Call::begin_part() {
  if (!map_parts_) throw std::logic_error("a handler gave a second answer");
  ++*map_parts_;
  owed_ = 1;
}

void Call::refuse_without_memory() {
  ++counters.refused_oom;
  refuse(kNoMemory);
}

void Call::warn(const std::string& text) const { api::Log(ctx_, "warning", "%s", text.c_str()); }

void Call::no_such_argument() {
  throw std::logic_error("a handler read an argument that is not there");
}

void Call::settle(const char* text) {
  while (owed_ > 0) error(text);
  if (!map_parts_) return;
  if (*map_parts_ % 2 != 0) error(text);
  end_map();
}

}  // namespace semel::host
