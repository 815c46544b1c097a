// One sync, diff or plan from its first frame to its end, with its progress on standard error.
#pragma once

#include <cstdint>
#include <string>

#include "cli/console.h"
#include "cli/differences.h"
#include "cli/stop_signal.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/sync.h"

namespace semel::cli {

struct SyncEnd {
  Result<SyncReport> report;
  double seconds = 0;
  std::string resume_from;  // the first key that is not done

  bool stopped() const { return report && report->stopped; }
  bool complete() const { return report && !report->stopped; }
};

// Runs the sync until it ends, fails or `stop` has a signal. If `differences` is not null, it gets
// all keys that differ and writes them as soon as they are settled. An error of its output stops
// the sync and is an error of this call.
SyncEnd run_sync(IndexedStore& index, SyncSettings settings, SyncPeer& peer, const StopSignal& stop,
                 ProgressForm progress, Differences* differences);

}  // namespace semel::cli
