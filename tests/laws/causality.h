// Safe removals: the condition under which an observed-remove filter has no false negatives.
//
// A filter cannot distinguish keys with equal fingerprints and buckets. If removals of a key
// outnumber its entries, one of them removes another key's entry. Within a site that is easy to
// avoid. Across sites, two concurrent removals may both rely on the same add.
//
// So a removal is causally safe if it has seen enough adds of its key: one must remain for it after
// every other removal of the key that does not follow it has taken one. If all removals of a
// history are safe, no key is lost (crdt/observed_cuckoo.h).
//
// Source    Definition 3.1 of the thesis (docs/papers.md).
#pragma once

#include <cstddef>
#include <span>

#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/hash/digest.h"

namespace semel::laws {

// One event of a history. The events of a site, adds and removals alike, are numbered in the order
// in which they happened there.
struct Operation {
  Digest key;
  bool removal;        // false: an add
  Dot at;              // its own dot
  VersionVector seen;  // the events of all sites that its site had seen before it
};

inline bool happened_before(const Operation& a, const Operation& b) {
  return b.seen.contains(a.at);
}

// Returns true if the removal history[which] is causally safe. O(history).
// REQUIRES: which < history.size(), and history[which] is a removal.
bool causally_safe(std::span<const Operation> history, std::size_t which);

}  // namespace semel::laws
