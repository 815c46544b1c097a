// CRC-32C of bytes that may come in pieces. RocksDB computes it, with the best instructions of the
// processor.
#pragma once

#include <cstdint>
#include <memory>

#include "semel/core/codec.h"

namespace rocksdb {
class FileChecksumGenerator;
}

namespace semel::store_internal {

class RunningCrc32c {
 public:
  RunningCrc32c();
  ~RunningCrc32c();
  void add(ByteView bytes);
  std::uint32_t value();  // REQUIRES: neither this nor add() is called after it

 private:
  std::unique_ptr<rocksdb::FileChecksumGenerator> generator_;
};

inline std::uint32_t crc32c(ByteView bytes) {
  RunningCrc32c sum;
  sum.add(bytes);
  return sum.value();
}

}  // namespace semel::store_internal
