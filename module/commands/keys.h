// Commands open the value of a key by these functions. Each function answers the call if it fails.
#pragma once

#include "module/host/call.h"

namespace semel::module {

inline constexpr const char* kNotFound = "ERR not found";

// The value of the first key, to be read. `value` is null if there is none. A key of another type
// has been answered with an error.
template <class V>
struct ReadKey {
  host::OpenKey key;
  const V* value;
  bool answered;

  explicit ReadKey(host::Call& call)
      : key(call.open(1, host::Access::read)),
        value(key.get<V>()),
        answered(value == nullptr && !key.empty()) {
    if (answered) call.wrong_type();
  }
};

// Returns the value of a key that must exist. Returns null after an error.
template <class V>
V* existing(host::Call& call, const host::OpenKey& key) {
  V* const value = key.get<V>();
  if (value == nullptr) key.empty() ? call.error(kNotFound) : call.wrong_type();
  return value;
}

// Returns the value of a key, which make() makes if the key is empty. Returns null after an error.
template <class V, class Make>
V* existing_or_made(host::Call& call, const host::OpenKey& key, Make make) {
  V* const value = key.get<V>();
  if (value != nullptr || key.empty()) return value != nullptr ? value : make();
  call.wrong_type();
  return nullptr;
}

// Returns true if a value can be made at this key. Answers with `taken` if it holds one of this
// type.
template <class V>
bool is_free(host::Call& call, const host::OpenKey& key, const char* taken) {
  if (!key.empty()) key.get<V>() != nullptr ? call.error(taken) : call.wrong_type();
  return key.empty();
}

// Ends a call that made or changed a key by effects alone.
inline void made(host::Call& call) {
  call.changed();
  call.only_effects();
  call.ok();
}

}  // namespace semel::module
