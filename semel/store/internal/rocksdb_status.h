// What RocksDB says of a failure, as our errors and as words for people.
#pragma once

#include <rocksdb/status.h>

#include <string>
#include <string_view>

#include "semel/core/result.h"

namespace semel {

Error error_of(const rocksdb::Status& status);
// RocksDB's own words, which may name the file, and what to do.
std::string words_of(const rocksdb::Status& status);
// The same, of a directory that was not opened.
Error open_error(const rocksdb::Status& status, std::string& why);
// 'bytes' in quotes, safe on a terminal, and cut if they are many.
std::string shown(std::string_view bytes);

}  // namespace semel
