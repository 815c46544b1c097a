// What creation of keys has in common: the options that only effects carry, and their texts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "module/commands/arguments.h"
#include "module/commands/defaults.h"
#include "module/host/value_limit.h"
#include "module/types/secret_frame.h"
#include "semel/core/result.h"
#include "semel/hash/hasher.h"
#include "semel/hash/keyed_digest.h"
#include "semel/window/window.h"

namespace semel::module {

// The shortest text that reads as the same number.
std::string text_of(double value);

inline std::string_view text_of(const Secret& secret) {
  return {reinterpret_cast<const char*>(secret.bytes().data()), secret.bytes().size()};
}

inline const char* text_of(WhenFull when_full) {
  return when_full == WhenFull::refuse ? "refuse" : "forget";
}

// The secret of a key that is about to be made, and its hash. Every key draws its own: whoever may
// read one key must not learn how to forge ids in another.
struct DrawnSecret {
  Secret secret = Secret::random();
  Hasher hasher = hasher_of(secret);
};

// Options that several families take. Each returns whether the next argument was its own, and good.
bool take_when_full(Options& options, WhenFull& out);                            // ONFULL
bool take_max_bytes(Options& options, std::uint64_t least, std::uint64_t& out);  // MAXBYTES
// SECRET, in effects alone.
bool take_secret(Options& options, const host::Call& call, std::optional<Secret>& out);
// TAG of a chain, in effects alone.
bool take_tag(Options& options, const host::Call& call, std::optional<std::uint64_t>& out,
              const char* word = "TAG");

// The limit of the configuration, which effects are not held to; 0: none.
inline std::uint64_t max_value_bytes(const host::Call& call) {
  return call.replayed() ? 0 : host::value_limit();
}

// Makes the limit the MAXBYTES of a key that has none: effects carry it, so that all copies of the key
// are bounded alike. False if MAXBYTES is beyond the limit, which was answered with an error.
bool take_limit(host::Call& call, std::uint64_t& max_bytes);

// "ERR could not create ...: the reason (the limit)."
std::string refusal(const host::Call& call, const char* what, const Error& error);
// Where a value would be larger than the limit.
std::string too_large(const char* what);

}  // namespace semel::module
