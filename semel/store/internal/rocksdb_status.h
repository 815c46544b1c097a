// Turns the failures of RocksDB into our errors.
#pragma once

#include <rocksdb/status.h>

#include <string>
#include <string_view>

#include "semel/core/result.h"

namespace semel::store_internal {

// Returns an error with the message of RocksDB, which may name a file, and advice on what to do.
Error error_of(const rocksdb::Status& status);
// Does the same for a directory that could not be opened.
Error open_error(const rocksdb::Status& status);
// Returns the bytes in quotes, as text that is safe on a terminal. Long texts are cut.
std::string shown(std::string_view bytes);

}  // namespace semel::store_internal
