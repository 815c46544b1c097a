// A sync of two indexes in one process.
#pragma once

#include <cstdint>

#include "semel/core/result.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/responder.h"

namespace semel::crash {

// The operations of a child in mode `sync` that are syncs.
inline bool is_sync(std::uint64_t number) { return number % 12 == 11; }

inline Result<void> synced(IndexedStore& here, IndexedStore& there, std::uint64_t seed) {
  SyncSettings settings;
  settings.seed = seed;
  Responder responder(there, {});
  LocalPeer peer(responder);
  SEMEL_TRY(sync(here, peer, settings));
  return {};
}

}  // namespace semel::crash
