// Native types: how values are saved, loaded, copied, compared and given back by the server.
//
// Saved     An RDB entry is the length of the encoding, then its bytes in strings of at most
//           kChunkBytes. DUMP, RESTORE and MIGRATE carry the same. docs/formats/module_values.md.
// Rewritten into an AOF file as SEMEL.LOAD key type offset length bytes, a chunk each.
// Damaged   bytes are refused, with the reason in the server's log; nothing is allocated on the word
//           of a length that has not come true yet.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "module/host/api.h"
#include "module/host/value.h"

namespace semel::host {

inline constexpr std::size_t kChunkBytes = std::size_t{16} << 20;

// Told of every value that comes from a file or a primary; not of what a client restores.
using LoadedFn = void (*)(const Value& value);

// What went wrong; empty if nothing. REQUIRES: the specs live as long as the process.
std::string load_types(api::Ctx* ctx, std::span<const TypeSpec* const> types, LoadedFn loaded);
void tell_loaded(const Value& value);

// Null if the type is not loaded.
inline api::Type* handle_of(const TypeSpec& type) { return static_cast<api::Type*>(type.handle); }

// By name; null if there is none.
const TypeSpec* type_named(std::string_view name);

}  // namespace semel::host
