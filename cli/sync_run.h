// One sync, diff or plan from its first frame to its end, with its progress on standard error.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "cli/differences.h"
#include "cli/stop_signal.h"
#include "cli/sync_peer.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/responder.h"
#include "semel/sync/sync.h"

namespace semel::cli {

// A responder in this process.
class LocalPeer final : public SyncPeer {
 public:
  // REQUIRES: both outlive this.
  LocalPeer(Responder& responder, const StopSignal& stop) : responder_(responder), stop_(stop) {}

  void send(ByteView frame) override { frames_.emplace_back(frame.begin(), frame.end()); }
  Event receive(Bytes& frame) override;
  const std::string& problem() const override { return problem_; }

 private:
  Responder& responder_;
  const StopSignal& stop_;
  std::deque<Bytes> frames_;  // without an answer
  std::string problem_;       // stays empty
};

enum class ProgressForm : std::uint8_t { none, terminal, lines };

struct SyncEnd {
  SyncReport report;
  double seconds = 0;
  bool stopped = false;     // by a signal
  std::string resume_from;  // the first key that is not done with
  std::string problem;      // why it failed; empty if it did not
};

// `differences`, unless null, gets all that are found, and writes what is settled.
SyncEnd run_sync(IndexedStore& index, SyncSettings settings, SyncPeer& peer, ProgressForm progress,
                 Differences* differences);

}  // namespace semel::cli
