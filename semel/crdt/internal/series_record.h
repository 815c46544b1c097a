// record(): a change of a link of a series, and of the delta that notes it.
#pragma once

#include <map>

#include "semel/crdt/series_goal.h"

namespace semel::crdt_internal {

// Calls `update` with the part for this link, or with nullptr if there are no parts. A change that
// leaves the part of its link empty leaves no part.
template <class Part, class Filter, class Update>
auto record(std::map<LinkId, Part>* parts, LinkId id, const Filter& filter, Update update) {
  if (parts == nullptr) return update(static_cast<Part*>(nullptr));
  const auto part = parts->try_emplace(id, filter.shape()).first;
  auto result = update(&part->second);
  if (part->second.empty()) parts->erase(part);
  return result;
}

}  // namespace semel::crdt_internal
