// SyncPeer: the way to the other end of a sync, in this process, over a pipe or over a network.
//
// Contract  Frames arrive whole and at most once. An implementation sends lost frames again, and
//           gives up with an error.
#pragma once

#include <optional>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel {

class SEMEL_API SyncPeer {
 public:
  virtual ~SyncPeer() = default;
  // Sends a frame. Several frames may be sent before the answer to the first is received.
  virtual Result<void> send(ByteView frame) = 0;
  // Waits for the answer to any frame that was sent and is not yet answered. Returns nullopt if the
  // sync is to stop, for example because of a signal.
  virtual Result<std::optional<Bytes>> receive() = 0;
};

}  // namespace semel
