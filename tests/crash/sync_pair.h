// A sync of two indexes in one process.
#pragma once

#include <cstdint>

#include "semel/core/result.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/initiator.h"
#include "semel/sync/responder.h"

namespace semel::crash {

// Which operations of a child in mode `sync` are syncs.
inline bool is_sync(std::uint64_t number) { return number % 12 == 11; }

inline Result<void> synced(IndexedStore& here, IndexedStore& there, std::uint64_t seed) {
  SyncSettings settings;
  settings.seed = seed;
  Initiator initiator(here, settings);
  Responder responder(there, {});
  while (!initiator.done() && !initiator.failed()) {
    std::vector<Bytes> answers;
    for (const ByteView frame : initiator.outstanding())
      answers.push_back(responder.respond(frame));
    for (const Bytes& answer : answers) {
      const Result<void> received = initiator.receive(answer);
      if (!received) return received.error();
    }
  }
  if (initiator.failed()) return initiator.error();
  return {};
}

}  // namespace semel::crash
