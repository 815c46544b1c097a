// SyncPeer: the other end of a sync, as the end that asks sees it.
#pragma once

#include <cstdint>
#include <string>

#include "semel/core/codec.h"

namespace semel::cli {

class SyncPeer {
 public:
  enum class Event : std::uint8_t {
    done,     // what was waited for is there
    ended,    // the peer has closed its end, after a whole frame
    stopped,  // by a signal
    failed,   // problem() says why
  };

  virtual ~SyncPeer() = default;
  virtual void send(ByteView frame) = 0;
  // Waits for the answer to a frame that has none.
  virtual Event receive(Bytes& frame) = 0;
  virtual const std::string& problem() const = 0;
};

}  // namespace semel::cli
