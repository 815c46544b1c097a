// Native types: how values are saved, loaded, copied, compared and given back by the server.
//
// Saved     An RDB entry is the encoding in strings of kPieceBytes, each behind its length, and a
//           length of 0. DUMP, RESTORE and MIGRATE carry the same. docs/formats/module_values.md.
// Rewritten into an AOF file as SEMEL.LOAD key type offset length bytes checksum, a piece each.
// Memory    Whatever the size of a value: that of a piece, which is there from the beginning, and
//           what its encoder needs to bring parts into order (core/ascending.h). Loading takes the
//           whole encoding beside the value.
// Damaged   bytes are refused, with the reason in the server's log; nothing is allocated on the word
//           of a length that has not come true yet.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "module/host/api.h"
#include "module/host/value.h"

namespace semel::host {

inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// What went wrong; empty if nothing. REQUIRES: the specs live as long as the process.
std::string load_types(api::Ctx* ctx, std::span<const TypeSpec* const> types);

// A part of an encoding on its way through an AOF file, and all that says where it belongs.
struct Piece {
  int database;
  std::string_view key;
  std::string_view type;
  std::uint64_t offset;  // of the first byte in the encoding
  std::uint64_t length;  // of the whole encoding
  ByteView bytes;

  // Of all fields: a value must not come back under another name either.
  std::uint64_t checksum() const;
};

// Null if the type is not loaded.
inline api::Type* handle_of(const TypeSpec& type) { return static_cast<api::Type*>(type.handle); }

// Reads one value that fills `in` exactly, and gives it the memory that it was made with, as far as
// there is some. Errc::limit if that would be more than `limit` bytes; 0: none. `in` may come from an
// enemy.
Result<std::unique_ptr<Value>> decode(const TypeSpec& spec, ByteView in, std::uint64_t limit);

// By name; null if there is none.
const TypeSpec* type_named(std::string_view name);

// Whether a type of the server's is one of ours.
bool is_ours(const api::Type* type);

}  // namespace semel::host
