// Operation: one change to a counter as the log of a site has it.
//
// Format    docs/formats/tally_entries_v1.md, 'An operation'.
#pragma once

#include <cstdint>
#include <string>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/operation.h"

namespace semel::tally::internal {

struct Operation {
  enum class Kind : std::uint8_t {
    add = 0,
    reset = 1,   // sets the counter to zero: undoes everything that the site of the reset held
    remove = 2,  // does the same and removes the counter
  };

  Dot dot = {};  // the site that took it, and its number in the log of that site
  Kind kind = Kind::add;
  OperationId id = {};
  std::string counter = {};
  std::int64_t delta = 0;       // add
  VersionVector observed = {};  // reset and remove: what they undo
  TimeMs taken_ms = 0;          // by the clock of its site
  VersionVector known = {};     // which operations its site held of other logs at that time
  std::uint64_t previous = 0;   // the head of its log before it (log_heads.h)

  // Returns the head of its log after it; never 0.
  std::uint64_t head() const;

  bool operator==(const Operation&) const = default;

  // Encodes all but the dot, which is the key of the entry.
  void encode(Sink out) const;
  static Result<Operation> decode(Dot dot, ByteView in);
};

}  // namespace semel::tally::internal
