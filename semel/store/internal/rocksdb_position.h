// RocksPosition: the files of a RocksDB directory at one instant, from which one can later tell
// what may have changed.
//
// Contract  Equal positions give equal bytes.
// Format    docs/formats/rocksdb_position_v1.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/store/key_range.h"

namespace semel::store_internal {

// A table file. RocksDB never changes a file, and never gives two files the same number and
// session. The other fields distinguish files from before RocksDB had sessions.
struct RocksFile {
  std::uint64_t number = 0;
  std::string session;  // of the process that wrote it
  std::uint64_t size = 0;
  std::uint64_t created_s = 0;
  std::uint64_t least_sequence = 0;
  std::uint64_t last_sequence = 0;
  std::string first_key;
  std::string last_key;

  KeyRange range() const { return {first_key, successor(last_key)}; }
  bool operator==(const RocksFile&) const = default;
};

struct RocksPosition {
  std::string identity;  // of the database
  std::uint32_t column_family = 0;
  std::uint64_t sequence = 0;      // of the last write
  std::vector<RocksFile> files;    // ascending numbers
  std::vector<KeyRange> doubtful;  // may have lost records and left no trace in the files

  void encode(Sink out) const;
  static Result<RocksPosition> decode(ByteView in);
  bool operator==(const RocksPosition&) const = default;
};

}  // namespace semel::store_internal
