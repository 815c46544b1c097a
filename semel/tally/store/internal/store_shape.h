// StoreShape: the goal of a table in a store. A table that exists cannot be opened with another
// goal.
//
// Format    docs/formats/tally_entries_v1.md, 'The shape'.
#pragma once

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/internal/sealed.h"
#include "semel/tally/internal/recogniser.h"

namespace semel::tally::internal {

struct StoreShape {
  static constexpr Format kFormat{"TSH", 1, "shape of a table"};

  Recogniser::Goal recogniser = {};

  void encode(Sink out) const {
    seal(out, kFormat, [&](Writer& w) { write(w, recogniser); });
  }
  // Recogniser::make() checks whether such a recogniser can exist.
  static Result<StoreShape> decode(ByteView in) {
    Reader r = SEMEL_TRY(open_sealed(in, kFormat));
    const StoreShape shape{read_recogniser_goal(r)};
    if (!r.at_end()) return corrupt(kFormat, "goal");
    return shape;
  }
};

}  // namespace semel::tally::internal
