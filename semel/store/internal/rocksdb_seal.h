// RocksSeal: how we left a RocksDB directory, so that damage of the files that RocksDB does not
// check is told at the next opening. It is the file SEMEL-SEAL.
//
// Contract  The OPTIONS file is sealed at opening, and the MANIFEST at closing: it grows meanwhile.
//           Whoever else opens the directory for writing makes new ones, with higher numbers. Then
//           a seal says nothing.
// Format    docs/formats/rocksdb_seal_v1.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel {

struct SealedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t sum = 0;  // CRC-32C

  // As a file in the directory is; nullopt if it cannot be read.
  static std::optional<SealedFile> of(const std::string& directory, const std::string& name);
  bool operator==(const SealedFile&) const = default;
};

struct RocksSeal {
  static constexpr const char* kName = "SEMEL-SEAL";

  bool closed = false;
  std::uint64_t log = 0;  // the number of the newest write-ahead log; 0: there was none
  SealedFile manifest;    // the name alone if it is not closed
  SealedFile options;     // without a name if there is none

  void encode(Bytes& out) const;
  static Result<RocksSeal> decode(ByteView in);
  bool operator==(const RocksSeal&) const = default;
};

}  // namespace semel
