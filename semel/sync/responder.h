// Responder: the end of a sync that answers.
//
// Contract  Keeps nothing between frames: each carries what its answer needs. A frame that comes
//           twice is answered twice; what it writes, it writes once or to no effect.
//           Every frame gets an answer: what asks for another key, version or range than this end
//           has, or makes no sense, gets one that says so (Errc and words), and changes nothing.
//           Answers are no larger than the frame says, nor than `limits` allow.
// Memory    That of one request and its answer, whatever the frame claims.
// Threads   Any number of threads may call at once.
// Format    docs/formats/sync_frames_v1.md.
#pragma once

#include "semel/core/codec.h"
#include "semel/index/indexed_store.h"
#include "semel/sync/sync.h"

namespace semel {

class Responder {
 public:
  struct Terms {
    KeyRange range;          // that this end answers for
    bool read_only = false;  // refuse what would write
    Resolver resolver;       // its functions for join and newest; rule and role come in the frames
    SyncLimits limits;
  };

  // REQUIRES: the index outlives the responder.
  Responder(IndexedStore& index, Terms terms);

  // The answer to one frame, a frame itself. `bytes` may come from an enemy.
  Bytes respond(ByteView bytes);

 private:
  IndexedStore& index_;
  Terms terms_;
};

}  // namespace semel
