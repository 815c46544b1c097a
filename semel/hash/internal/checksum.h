// Checksums of bytes: XXH3-64 with seed 0. FROZEN: every format ends with one.
//
// They guard against damage, not against attackers.
#pragma once

#include <cstdint>
#include <memory>

#include "semel/core/sink.h"

namespace semel::inline hash_internal {

std::uint64_t checksum(ByteView bytes);

// The checksum of bytes that come in pieces.
class RunningChecksum {
 public:
  RunningChecksum();
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;
  ~RunningChecksum();

  void add(ByteView bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace semel::inline hash_internal
