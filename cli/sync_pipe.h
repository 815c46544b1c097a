// SyncPipe: sync frames over a pair of file descriptors.
//
// Contract  Frames come out as they went in, whole and in order. Both ends say hello first, so that
//           whatever else is at the other end, such as a shell's greeting, is named and not obeyed.
//           Frames are sent while others are waited for: two ends that both have much to say do not
//           wait for each other.
// Memory    What is in line to be sent, and one frame of at most `most_bytes`, which is taken in as
//           it comes and not on the word of its length.
// Error     The first one stays.
// Format    docs/formats/sync_pipe_v1.md.
#pragma once

#include <cstdint>
#include <string>

#include "cli/stop_signal.h"
#include "cli/sync_peer.h"
#include "semel/core/codec.h"

namespace semel::cli {

class SyncPipe final : public SyncPeer {
 public:
  // REQUIRES: the descriptors and `stop` stay longer, and SIGPIPE is ignored.
  SyncPipe(int in, int out, std::uint32_t most_bytes, const StopSignal& stop);

  // Puts it in line.
  void send(ByteView frame) override;
  // Sends what is in line meanwhile.
  Event receive(Bytes& frame) override;
  // Waits until all is sent.
  Event flush();

  const std::string& problem() const override { return problem_; }

 private:
  // Waits until something can be moved, and moves some. done: look again.
  Event move(bool reading);
  Event take();
  Event give();
  // What the bytes at hand begin with. done: `greeted_`, or they are too few to tell.
  Event check_hello();
  void hear_out();
  Event fail(std::string problem);

  int in_;
  int out_;
  std::uint32_t most_bytes_;
  const StopSignal& stop_;
  std::string received_;  // and not yet handed on
  std::string unsent_;
  std::size_t sent_ = 0;  // of these
  bool greeted_ = false;
  bool deaf_ = false;  // the peer has closed its end of what we send
  std::string problem_;
};

}  // namespace semel::cli
