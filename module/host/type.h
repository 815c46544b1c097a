// Native types: how the server saves, loads, copies, compares and frees values.
//
// Contract  Damaged bytes are refused, with the reason in the server's log. Nothing is allocated
//           for a length that the bytes at hand do not confirm.
// Memory    Saving takes one piece, which is allocated when the module is loaded, and what the
//           encoder needs to sort parts (core/internal/ascending.h). Loading takes the whole
//           encoding beside the value.
// Format    docs/formats/module_values.md. An RDB entry is the encoding in strings of kPieceBytes,
//           each after its length, and a length of 0 at the end. DUMP, RESTORE and MIGRATE carry
//           the same. An AOF rewrite writes a SEMEL.LOAD for each piece.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "module/host/api.h"
#include "module/host/value.h"

namespace semel::host {

inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// REQUIRES: the specs live as long as the process.
Result<void> load_types(api::Ctx* ctx, std::span<const TypeSpec* const> types);

// A part of an encoding on its way through an AOF file, with all that says where it belongs.
struct Piece {
  int database;
  std::string_view key;
  std::string_view type;
  std::uint64_t offset;  // of the first byte in the encoding
  std::uint64_t length;  // of the whole encoding
  ByteView bytes;

  // Returns a checksum of all fields: a value must not come back under another name either.
  std::uint64_t checksum() const;
};

// Returns null if the type is not loaded.
inline api::Type* handle_of(const TypeSpec& type) { return static_cast<api::Type*>(type.handle); }

// Reads one value that fills `in` exactly. Reserves the memory that the value was made with, as far
// as memory is available. Returns Errc::limit if that would take more than `limit` bytes (0: no
// limit).
Result<std::unique_ptr<Value>> decode(const TypeSpec& spec, ByteView in, std::uint64_t limit);

// Returns the loaded types, in the order of their TypeSpec::index.
std::span<const TypeSpec* const> types();

// Counts the keys of these types that the server evicts, or that expire. Called when the module is
// loaded. Returns false if the server does not report its events.
bool watch_removals(api::Ctx* ctx);
// Forgets the key that was unlinked last. Called between commands, now and then: a reason that
// comes later does not belong to that key.
void forget_unlinked();

// Returns the type of this name, or null.
const TypeSpec* type_named(std::string_view name);

// Returns true if a type of the server is one of ours.
bool is_ours(const api::Type* type);

}  // namespace semel::host
