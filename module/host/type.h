// Native types: how the server saves, loads, copies, compares and frees values.
//
// Contract  Damaged bytes are refused, with the reason in the server's log. Nothing is allocated
//           for a length that the bytes at hand do not confirm.
// Memory    Saving takes one piece, which is allocated when the module is loaded, and what the
//           encoder needs to sort parts (core/internal/ascending.h). Loading takes the whole
//           encoding beside the value.
// Threads   Any thread may save, rewrite and digest values while nobody changes them. The second of
//           two threads allocates a piece of its own. Any thread may free values. The rest is for
//           the thread that runs commands.
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

// Follows a server that loads a dataset beside the one that it serves (repl-diskless-load swapdb).
// Called when the module is loaded. Returns false if the server does not report its events.
bool watch_datasets(api::Ctx* ctx);

// Returns the type of this name, or null.
const TypeSpec* type_named(std::string_view name);

// Returns true if a type of the server is one of ours.
bool is_ours(const api::Type* type);

// Returns true if a value is made on behalf of a client, so that the limit of the configuration
// holds for it: not for one from a file or another server. `ctx` may be null.
bool is_for_a_client(api::Ctx* ctx);

// Writes a piece to an RDB file, after its length. A length of 0 comes after the last one.
void save_piece(api::Io* io, ByteView piece);
// Puts such pieces together again. Returns Errc::limit if they have more than `limit` bytes (0: no
// limit).
Result<Bytes> read_pieces(api::Io* io, std::uint64_t limit);

}  // namespace semel::host
