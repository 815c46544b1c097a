// The encoding of a container.
#pragma once

#include "semel/core/codec.h"
#include "semel/index/nye_trie.h"

namespace semel::index_internal {

using Container = NyeTrie::Container;

enum class Measured : bool { no, yes };  // whether measures are written

// Writes a container: docs/formats/nye_trie_v1.md, 'A container'. `before` is the previous
// container, or nullptr for the first.
void write_container(Writer& out, const Container& container, const BitPath* before,
                     Measured measured);
// Replaces `container`, the previous one, by the next, and removes its bytes from `in`. Returns
// false for bytes that write_container() does not write; both arguments are then meaningless. This
// is no decode() that returns a container: a walk reads little else, and the next path is the
// previous one with other bits at its end, in the memory that is there already.
bool read_container(ByteView& in, bool first, Container& container, Measured measured);

}  // namespace semel::index_internal
