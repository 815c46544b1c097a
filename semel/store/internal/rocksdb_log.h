// A log of RocksDB, which is a write-ahead log or a MANIFEST, and what it says of its own damage.
//
// Why       RocksDB takes much damage for the end of a log: a length that points beyond the file, a
//           page of zeros, in one of its modes any record that is not sound. What comes later is
//           gone, without an error.
// Contract  A process that is killed leaves a log that ends within a record. Everything else is
//           damage: a record that is not sound but complete, or is followed by a sound one, or is
//           not what RocksDB would have begun to write there.
// Limit     A log that was cut at the end of a record, or within one, looks as after a kill.
// Cost      The log is read once. Memory: two blocks of 32 KiB.
// Format    of RocksDB: blocks of 32 KiB, in them records of CRC-32C (4 bytes, masked), length (2),
//           type (1) and payload. A record that does not fit into its block goes on in the next
//           one: types first, middle, last in place of full.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "semel/core/codec.h"

namespace semel {

struct LogCheck {
  enum class State : std::uint8_t { whole, torn, damaged, unreadable };
  State state = State::whole;
  std::uint64_t sound_bytes = 0;  // all records that begin before it are sound
  bool told = true;  // false: there are records that were not told, compressed or in a recycled log
};

enum class LogKind : std::uint8_t { writes, manifest };

// The part of a record that stands in one block.
struct LogPiece {
  ByteView bytes;
  bool begins = false;
  bool ends = false;
};

// `take` is called with each sound piece, in order.
LogCheck check_log(const std::string& path, LogKind kind,
                   const std::function<void(const LogPiece&)>& take = nullptr);

}  // namespace semel
