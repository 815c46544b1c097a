// IndexCheckpoint: an index in the form in which it is saved beside its store, and its position.
//
// Contract  The index is right if nothing but what is marked has changed in the store since the
//           position. decode() checks everything but the trie, which has its own format.
// Format    docs/formats/index_checkpoint_v1.md.
#pragma once

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/index/internal/floret_slabs.h"

namespace semel::index_internal {

struct IndexCheckpoint {
  Bytes position;  // from OrderedStore::position()
  Bytes trie;      // from NyeTrie::encode()
  FloretSlabs slabs;
  KeyRange range = {};  // the indexed keys. REQUIRES: not empty

  // Appends the encoding to `out`.
  void encode(Sink out) const;
  static Result<IndexCheckpoint> decode(ByteView in);
  bool operator==(const IndexCheckpoint&) const = default;
};

}  // namespace semel::index_internal
