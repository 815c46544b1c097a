// Responder: the end of a sync that answers.
//
//   Responder responder(*index, {});
//   Bytes answer = responder.respond(question);
//
// Contract  A responder keeps nothing between frames: a frame carries everything that its answer
//           needs. A frame that comes twice is answered twice; its second write has no effect.
//           Every frame gets an answer. A frame that makes no sense, or whose key, version or range
//           differs from this end's, gets a refusal with words, and changes nothing. Answers are no
//           larger than the frame says and `limits` allow.
// Memory    The memory of one request and its answer, whatever the frame claims.
// Threads   Any number of threads may call at once.
// Format    docs/formats/sync_frames_v1.md.
#pragma once

#include <deque>
#include <optional>

#include "semel/core/api.h"
#include "semel/core/codec.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/sync.h"

namespace semel {

class SEMEL_API Responder {
 public:
  struct Terms {
    KeyRange range;          // this end answers for it
    bool read_only = false;  // refuses frames that would write
    Resolver resolver;       // only its functions for join and newest count
    SyncLimits limits;
  };

  // REQUIRES: the index outlives the responder.
  Responder(IndexedStore& index, Terms terms);

  // Returns the answer to one frame, which is a frame too. `bytes` are untrusted.
  Bytes respond(ByteView bytes);

 private:
  IndexedStore& index_;
  Terms terms_;
};

// Leads to a responder in this process.
class SEMEL_API LocalPeer final : public SyncPeer {
 public:
  // REQUIRES: the responder outlives the peer.
  explicit LocalPeer(Responder& responder) : responder_(responder) {}
  Result<void> send(ByteView frame) override;
  Result<std::optional<Bytes>> receive() override;

 private:
  Responder& responder_;
  std::deque<Bytes> frames_;  // not yet answered
};

}  // namespace semel
