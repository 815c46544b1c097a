// Which removals are safe: the precondition under which an observed-remove filter has no false
// negative.
//
// A filter cannot tell keys with equal fingerprints and buckets apart. A removal that takes one
// entry more than there are of its key takes another key's. Within a site that is easy to avoid;
// across sites two removals at once may both count on the same add. So a removal is causally safe
// if, of the adds of its key that it has seen, one is left when every other removal of the key that
// it precedes not has taken one. If all removals of a history are safe, no key is lost
// (crdt/observed_cuckoo.h).
//
// Source    Definition 3.1 of the thesis (docs/papers.md).
#pragma once

#include <cstddef>
#include <span>

#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/hash/digest.h"

namespace semel {

// One event of a history. The events of a site are numbered in the order in which they happened
// there, adds and removals alike.
struct Operation {
  Digest key;
  bool removal;        // or an add
  Dot at;              // its own name
  VersionVector seen;  // what its site had seen before it: events of all sites
};

inline bool happened_before(const Operation& a, const Operation& b) {
  return b.seen.contains(a.at);
}

// Whether the removal history[which] is causally safe. O(history).
// REQUIRES: which < history.size(), and that is a removal.
bool causally_safe(std::span<const Operation> history, std::size_t which);

}  // namespace semel
