// IndexCheckpoint: an index as it lies beside its store, and the position that it belongs to.
//
// Contract  The index is right for a store in which nothing has changed since the position but what
//           is marked. decode() checks all but the trie, which is a format of its own.
// Format    docs/formats/index_checkpoint_v1.md.
#pragma once

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/index/internal/floret_slabs.h"

namespace semel {

struct IndexCheckpoint {
  Bytes position;  // of OrderedStore::position()
  Bytes trie;      // of NyeTrie::encode()
  FloretSlabs slabs;
  KeyRange range = {};  // of the index. REQUIRES: not empty

  // Appends to `out`.
  void encode(Sink out) const;
  static Result<IndexCheckpoint> decode(ByteView in);
  bool operator==(const IndexCheckpoint&) const = default;
};

}  // namespace semel
