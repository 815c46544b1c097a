// What a process that gets killed and the one that looks at its store agree on.
#pragma once

#include <array>
#include <cstdint>

#include "semel/hash/keyed_digest.h"
#include "semel/index/indexed_store.h"
#include "semel/store/rocksdb_store.h"

namespace semel::crash {

// Small buffers: RocksDB flushes and compacts all the time.
inline const RocksStore::Settings kStore = {.create = true, .write_buffer_bytes = 256 << 10};
inline constexpr IndexedStore::Settings kIndex = {.burst_bytes = 512, .slab_bytes = 16 << 10};

inline Secret secret() {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  bytes.fill(7);
  return Secret(bytes);
}

}  // namespace semel::crash
