// Shared by a process that gets killed and the process that looks at its store afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "semel/hash/keyed_digest.h"
#include "semel/index/indexed_store.h"
#include "semel/store/rocksdb_store.h"

namespace semel::crash {

// Small buffers: RocksDB flushes and compacts all the time.
inline const RocksStore::Settings kStore = {.create = true, .write_buffer_bytes = 256 << 10};
// Returns numbers of both signs.
inline int128 measure_of(std::string_view key, std::string_view value) {
  return static_cast<int128>(value.size()) - static_cast<int128>(key.size());
}
inline const IndexedStore::Settings kIndex = {
    .burst_bytes = 512, .slab_bytes = 16 << 10, .range = {}, .measure = &measure_of};

inline Secret secret() {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  bytes.fill(7);
  return Secret(bytes);
}

}  // namespace semel::crash
