// Finds damage of a log of RocksDB: a write-ahead log or a MANIFEST.
//
// Contract  RocksDB takes many kinds of damage for the end of a log: a length that points beyond
//           the file, a page of zeros, and in one of its modes any damaged record. Later records
//           are lost without an error. A process that is killed leaves a log that ends within a
//           record. Everything else is damage: a damaged record that is complete, or is followed by
//           a sound one, or is not what RocksDB would have begun to write there. A log that was cut
//           at the end of a record, or within one, looks as after a kill.
// Cost      The log is read once.
// Memory    Two blocks of 32 KiB.
// Format    That of RocksDB: blocks of 32 KiB with records of CRC-32C (4 bytes, masked), length
//           (2), type (1) and payload. A record that does not fit into its block goes on in the
//           next one, with types first, middle and last in place of full.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "semel/core/codec.h"

namespace semel::store_internal {

struct LogCheck {
  enum class State : std::uint8_t { whole, torn, damaged, unreadable };
  State state = State::whole;
  std::uint64_t sound_bytes = 0;  // all records that begin before this offset are sound
  bool told = true;  // false: some records were not reported (compressed, or in a recycled log)
};

enum class LogKind : std::uint8_t { writes, manifest };

// The part of a record in one block.
struct LogPiece {
  ByteView bytes;
  bool begins = false;
  bool ends = false;
};

// Checks a log. Calls `take` with each sound piece, in order.
LogCheck check_log(const std::string& path, LogKind kind,
                   const std::function<void(const LogPiece&)>& take = nullptr);

}  // namespace semel::store_internal
