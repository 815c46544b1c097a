// Container: a node of the trie whose records are not told apart, and its encoding.
#pragma once

#include "semel/core/codec.h"
#include "semel/index/aggregate.h"
#include "semel/index/bit_path.h"

namespace semel {

struct Container {
  BitPath path;
  Aggregate sum;
  bool operator==(const Container&) const = default;
};

enum class Measured : bool { no, yes };  // whether measures are written

// Writes a container: docs/formats/nye_trie_v1.md, 'A container'. `before` is the previous
// container, or nullptr for the first.
void write_container(Writer& out, const Container& container, const BitPath* before,
                     Measured measured);
// Replaces `container`, the previous one, by the next, and removes its bytes from `in`. Returns
// false for bytes that write_container() does not write; both arguments are then meaningless.
bool read_container(ByteView& in, bool first, Container& container, Measured measured);

}  // namespace semel
