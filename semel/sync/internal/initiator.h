// Initiator: the end of a sync that asks, and decides when the sync is done.
//
// Use       while (!sync.done() && !sync.failed()) {
//             send each of sync.outstanding();
//             sync.receive(what comes back);
//           }
//           A frame without an answer is sent again: outstanding() returns it until it is answered.
//           Answers that come twice, late or out of order are known by their number.
// Contract  If the sync is done() without an error, and the report says `proved`, both ends agreed
//           on the range at the instant of their first exchange. Under join or newest they hold the
//           same records afterwards, except for records written meanwhile, which the next sync
//           finds. Nothing outside the range is read or written. cancel() at any time leaves both
//           ends sound, with a part of the repairs done.
// Memory    Grows with the difference of one stretch, not with the store.
// Error     receive() fails for good if the peer refuses or lies; error() says why. Bytes that are
//           not a frame are refused without harm to the sync.
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

  // Returns the frames of this round trip that are not answered. Empty when done() or failed().
  std::vector<ByteView> outstanding() const;
  // Returns an error if the frame is refused; the sync continues unless failed().
  Result<void> receive(ByteView frame);

  bool done() const;
  bool failed() const;
  // If the peer refused, the detail of the error is its message: untrusted words. REQUIRES:
  // failed().
  const Error& error() const;
  void cancel();  // makes done() true from now on

  SyncReport report() const;
  SyncProgress progress() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace semel::sync_internal
