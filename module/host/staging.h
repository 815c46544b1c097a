// Staging: values that arrive in pieces, and are not complete yet.
//
// Contract  The bytes that have arrived wait at the key itself, as a value of a type of their own,
//           `SMLstaged`, which no command takes. So they share the fate of the key: they are in RDB
//           and AOF files and at replicas that synchronise meanwhile, FLUSHALL and DEL remove them,
//           and so does a server that gives up an import. Pieces of several keys may come mixed.
// Memory    What has arrived, and up to as much again while it grows.
// Format    docs/formats/module_values.md
// Threads   The thread that runs commands; values are saved and freed by any.
#pragma once

#include <cstdint>

#include "module/host/api.h"
#include "module/host/type.h"

namespace semel::host {

// The last word of a SEMEL.LOAD whose value need not become complete.
inline constexpr const char* kImport = "IMPORT";

// Adds a piece to what waits at its key. Returns all bytes if the piece was the last one, and null
// before. They stay where they are until the key gets another value. A value that must become
// complete counts for lacks_pieces() until then.
Result<const Bytes*> stage(api::Key* key, const Piece& piece, bool must_complete);

// Returns true if a value that must become complete is not.
bool lacks_pieces();

struct Staged {
  std::uint64_t keys = 0, bytes = 0;
};
// Returns what is staged in all datasets.
Staged staged();

Result<void> load_staging(api::Ctx* ctx);

}  // namespace semel::host
