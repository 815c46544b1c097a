// RocksSeal: the state in which we left a RocksDB directory, in the file SEMEL-SEAL. The next
// opening uses it to find damage of files that RocksDB does not check.
//
// Contract  The OPTIONS file is sealed at opening. The MANIFEST grows, and is sealed at closing. If
//           another program opens the directory for writing, it makes new files with higher
//           numbers, and the seal no longer applies.
// Format    docs/formats/rocksdb_seal_v1.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel::store_internal {

struct SealedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t sum = 0;  // CRC-32C

  // Reads a file of the directory. Returns nullopt if it cannot be read.
  static std::optional<SealedFile> of(const std::string& directory, const std::string& name);
  bool operator==(const SealedFile&) const = default;
};

struct RocksSeal {
  static constexpr const char* kName = "SEMEL-SEAL";

  bool closed = false;
  std::uint64_t log = 0;  // the number of the newest write-ahead log; 0: there was none
  SealedFile manifest;    // only the name if it is not closed
  SealedFile options;     // without a name if there is none

  void encode(Sink out) const;
  static Result<RocksSeal> decode(ByteView in);
  bool operator==(const RocksSeal&) const = default;
};

}  // namespace semel::store_internal
