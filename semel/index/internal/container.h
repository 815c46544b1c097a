// Container: a node of the trie whose records are not told apart, and how it is written.
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

enum class Measured : bool { no, yes };  // are measures written

// docs/formats/nye_trie_v1.md, 'A container'. `before` is the one before it, nullptr for the first.
void write_container(Writer& out, const Container& container, const BitPath* before,
                     Measured measured);
// Turns the container before into the next, and drops its bytes from `in`. False for bytes that
// write_container does not write; what is left of both then means nothing.
bool read_container(ByteView& in, bool first, Container& container, Measured measured);

}  // namespace semel
