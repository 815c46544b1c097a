// Initiator: the end of a sync that asks, and decides when all is done.
//
// Use       while (!sync.done()) { send each of sync.outstanding(); sync.receive(what comes back) }
//           A frame whose answer does not come is sent again: outstanding() gives it until it is
//           answered. Answers that come twice, late or out of order are known by their number.
// Contract  When done() without an error, and `proved` in the report, both ends agreed on the range
//           at the instant of their first exchange. Under join or newest they hold the same records
//           afterwards, but for what was written meanwhile, which the next sync finds.
//           Nothing outside the range is read or written. cancel() at any time leaves both ends
//           sound, with a part of the repairs done.
// Memory    Grows with the difference of one stretch, not with the store.
// Error     receive() fails for good if the peer refuses or lies; error() says why. Frames that are
//           no frames at all are refused without harm to the sync.
// Threads   Every call needs the object to itself.
#pragma once

#include <memory>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/sync.h"

namespace semel::sync_internal {

class Initiator {
 public:
  // REQUIRES: the index outlives the sync.
  Initiator(IndexedStore& index, SyncSettings settings);
  ~Initiator();
  Initiator(Initiator&&) noexcept;

  // The frames of this round trip that are not answered. Empty when done() or failed().
  std::vector<ByteView> outstanding() const;
  // An error if the frame is refused; the sync goes on unless failed().
  Result<void> receive(ByteView frame);

  bool done() const;
  bool failed() const;
  // If the peer refused, the detail of the error is what it said: untrusted words.
  // REQUIRES: failed().
  const Error& error() const;
  void cancel();  // done() from now on

  SyncReport report() const;
  SyncProgress progress() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace semel::sync_internal
