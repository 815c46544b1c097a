// The common part of states and deltas of a series: a map from links to parts, where a part is a
// filter or its delta.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "semel/core/result.h"
#include "semel/crdt/internal/lives.h"
#include "semel/crdt/internal/observed_part.h"
#include "semel/crdt/internal/series_codec.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series_goal.h"

namespace semel::crdt_internal {

template <class Filter>
Result<typename Filter::Shape> shape_of(const SeriesGoal& goal, std::uint8_t link) {
  const std::uint64_t capacity = SEMEL_TRY(goal.capacity(link));
  return Filter::shape_for(capacity, goal.share(link), goal.hash);
}

template <class Part>
bool has_chain(const std::map<LinkId, Part>& parts, SiteId chain) {
  const auto first = parts.lower_bound({chain, 0});
  return first != parts.end() && first->first.chain == chain;
}

template <class Part>
void insert_chains(const std::map<LinkId, Part>& parts, std::set<SiteId>& into) {
  for (const auto& [id, part] : parts) into.insert(id.chain);
}

// Errc::limit if all these parts together have more chains than the goal allows.
template <class Mine, class Theirs>
Result<void> within_sites(const SeriesGoal& goal, const std::map<LinkId, Mine>& mine,
                          const std::map<LinkId, Theirs>& theirs) {
  const bool known = std::all_of(theirs.begin(), theirs.end(), [&](const auto& part) {
    return has_chain(mine, part.first.chain);
  });
  if (known) return {};
  std::set<SiteId> chains;
  insert_chains(mine, chains);
  insert_chains(theirs, chains);
  if (chains.size() <= goal.sites) return {};
  return Error{Errc::limit, "more sites than the goal of the series allows"};
}

// Errc::forked if a site has reused its dots.
template <class Filter>
Result<void> one_history(const std::map<LinkId, Filter>& mine,
                         const std::map<LinkId, Filter>& theirs) {
  if constexpr (Filter::kRemoves) {
    for (const auto& [id, filter] : theirs) {
      const auto here = mine.find(id);
      if (here == mine.end()) continue;
      if (const auto site = ObservedParts::clash(here->second, filter)) return forked(*site);
    }
  }
  return {};
}

// Returns true if all dots of a part belong to this site. A part without dots has none.
template <class Part>
bool belongs_to(SiteId site, const Part& part) {
  if constexpr (requires { part.context(); }) {
    return std::ranges::all_of(part.context().sites(),
                               [&](const VersionVector::Site& s) { return s.site == site; });
  } else if constexpr (std::is_same_v<Part, ObservedDelta>) {
    return std::ranges::all_of(part.sites(), [&](SiteId s) { return s == site; });
  } else {
    return true;
  }
}

// Reads the parts of a series. `is_empty` recognises empty parts, which a series never contains.
template <class Filter, class Part, class IsEmpty>
Result<std::map<LinkId, Part>> decode_parts(const EncodedSeries& series, const Format& format,
                                            IsEmpty is_empty) {
  std::map<LinkId, Part> parts;
  for (const EncodedLink& link : series.links) {
    Result<Part> part = Part::decode(link.content);
    if (!part) {
      const bool limit = part.error().code == Errc::limit;
      Error error = part.error().about(format.what);
      error.code = limit ? Errc::limit : Errc::corrupt;
      return error;
    }
    const auto shape = SEMEL_TRY(shape_of<Filter>(series.goal, link.id.link));
    if (part->shape() != shape) return Error{Errc::mismatch, format.what, "shape of a link"};
    if (is_empty(*part)) return corrupt(format, "an empty link");
    if (series.goal.chains == SeriesChains::own && !belongs_to(link.id.chain, *part)) {
      return corrupt(format, "a dot of another site");
    }
    parts.emplace_hint(parts.end(), link.id, *std::move(part));
  }
  SEMEL_TRY(within_sites(series.goal, std::map<LinkId, Part>(), parts));
  return parts;
}

}  // namespace semel::crdt_internal
