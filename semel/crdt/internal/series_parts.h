// SeriesParts: changes a series link by link: by parts of links, for hosts that move a large state
// in pieces, and with a delta, for the series of each kind.
#pragma once

#include "semel/core/result.h"
#include "semel/crdt/series.h"

namespace semel::crdt_internal {

struct SeriesParts {
  // Merges a part of a link of another state. The arguments are those of GrowBloom::merge for a
  // part, or of ObservedParts::merge (observed_part.h). Returns true if anything changed. Fails
  // with Errc::limit like a merge of states, with the errors of these, and with Errc::limit or
  // Errc::full if such a link is impossible. Nothing changes then. REQUIRES: as for these, with the
  // shape that the goal gives to the link.
  template <class Filter, class... Part>
  static Result<bool> merge(SeriesBase<Filter>& series, LinkId id, const Part&... part);

  // Calls `update` with the part of `delta` for this link, or with nullptr if there is no delta. A
  // change that leaves the part of its link empty leaves no part.
  template <class Filter, class Update>
  static auto record(SeriesDelta<Filter>* delta, LinkId id, const Filter& filter, Update update) {
    if (delta == nullptr) return update(static_cast<typename Filter::Delta*>(nullptr));
    const auto part = delta->parts_.try_emplace(id, filter.shape()).first;
    auto result = update(&part->second);
    if (part->second.empty()) delta->parts_.erase(part);
    return result;
  }
};

}  // namespace semel::crdt_internal
