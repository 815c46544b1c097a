// Limits, options of effects and texts that all families need to create keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "module/commands/arguments.h"
#include "module/host/call.h"
#include "module/types/secret.h"

namespace semel::module {

// Returns the shortest text that reads as the same number.
std::string text_of(double value);

inline std::string_view text_of(const Secret& secret) {
  return semel::text_of(ByteView(secret.bytes()));
}

// These take an option that only effects have. They return true if it was the next argument.
bool take_secret(Options& options, const host::Call& call, std::optional<Secret>& out);
// TAG is the tag of a chain, LIFE that of a life.
bool take_tag(Options& options, const host::Call& call, const char* word,
              std::optional<std::uint64_t>& out);

// Returns the limit of the configuration, or 0 if there is none. Effects have none.
std::uint64_t max_value_bytes(const host::Call& call);

// Counts a refusal, and returns the error for a value that would be larger than the limit.
std::string too_large(const char* what);

}  // namespace semel::module
