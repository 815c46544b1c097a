#include "semel/sync/sync.h"

#include <vector>

#include "semel/core/assert.h"
#include "semel/sync/internal/initiator.h"

namespace semel {

using namespace sync_internal;

Result<SyncReport> sync(IndexedStore& store, SyncPeer& peer, const SyncSettings& settings) {
  Initiator initiator(store, settings);
  bool stopped = false;
  while (!initiator.done() && !initiator.failed() && !stopped) {
    const std::vector<ByteView> frames = initiator.outstanding();
    SEMEL_ASSERT(!frames.empty());
    for (const ByteView frame : frames) SEMEL_TRY(peer.send(frame));
    for (std::size_t left = frames.size(); left > 0 && !stopped; --left) {
      const std::optional<Bytes> answer = SEMEL_TRY(peer.receive());
      if (answer) SEMEL_TRY(initiator.receive(*answer));
      const bool goes_on =
          answer && (!settings.on_progress || settings.on_progress(initiator.progress()));
      stopped = !goes_on && !initiator.done();
    }
  }
  if (initiator.failed()) return initiator.error();
  initiator.cancel();
  SyncReport report = initiator.report();
  report.stopped = stopped;
  return report;
}

}  // namespace semel
