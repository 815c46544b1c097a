// The common part of states and deltas of a series: a map from links to parts, where a part is a
// filter or its delta.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>

#include "semel/core/result.h"
#include "semel/crdt/internal/series_codec.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series_goal.h"
#include "semel/crdt/version_vector.h"

namespace semel::series_links {

template <class Filter>
Result<typename Filter::Shape> shape_of(const SeriesGoal& goal, std::uint8_t link) {
  const Result<std::uint64_t> capacity = goal.capacity(link);
  if (!capacity) return capacity.error();
  return Filter::shape_for(*capacity, goal.share(link), goal.hash);
}

// Adds the sites whose dots are in a part. A part without dots has none.
template <class Part>
void insert_dot_sites(const Part& part, std::set<SiteId>& into) {
  if constexpr (requires { part.context(); }) {
    for (const VersionVector::Site& site : part.context().sites()) into.insert(site.site);
  } else if constexpr (std::is_same_v<Part, ObservedDelta>) {
    for (const SiteId site : part.sites()) into.insert(site);
  }
}

// Adds the sites that made these parts, as far as one can tell: the owners of the chains, or the
// sites of the dots if a chain is shared.
template <class Part>
void insert_sites(const SeriesGoal& goal, const std::map<LinkId, Part>& parts,
                  std::set<SiteId>& into) {
  for (const auto& [id, part] : parts) {
    if (!goal.shared()) {
      into.insert(id.chain);
    } else {
      insert_dot_sites(part, into);
    }
  }
}

template <class Part>
bool has_chain(const std::map<LinkId, Part>& parts, SiteId chain) {
  const auto first = parts.lower_bound({chain, 0});
  return first != parts.end() && first->first.chain == chain;
}

// Returns true if all these parts together come from no more sites than the goal allows.
template <class Mine, class Theirs>
bool within_sites(const SeriesGoal& goal, const std::map<LinkId, Mine>& mine,
                  const std::map<LinkId, Theirs>& theirs) {
  const bool known =
      !goal.shared() && std::all_of(theirs.begin(), theirs.end(), [&](const auto& part) {
        return has_chain(mine, part.first.chain);
      });
  if (known) return true;
  std::set<SiteId> sites;
  insert_sites(goal, mine, sites);
  insert_sites(goal, theirs, sites);
  return sites.size() <= goal.sites;
}

// Errc::forked if a site has reused its dots.
template <class Filter>
Result<void> one_history(const std::map<LinkId, Filter>& mine,
                         const std::map<LinkId, Filter>& theirs) {
  if constexpr (Filter::kRemoves) {
    for (const auto& [id, filter] : theirs) {
      const auto here = mine.find(id);
      if (here == mine.end()) continue;
      if (const auto site = here->second.lives().clash(filter.lives())) return forked(*site);
    }
  }
  return {};
}

// Reads the parts of a frame. `is_empty` recognises parts that a frame must not contain.
template <class Filter, class Part, class IsEmpty>
Result<std::map<LinkId, Part>> decode_parts(const series_codec::Frame& frame, IsEmpty is_empty) {
  std::map<LinkId, Part> parts;
  for (const auto& [id, content] : frame.links) {
    Result<Part> part = Part::decode(content);
    if (!part) {
      const bool limit = part.error().code == Errc::limit;
      return Error{limit ? Errc::limit : Errc::corrupt, part.error().what};
    }
    const Result<typename Filter::Shape> shape = shape_of<Filter>(frame.goal, id.link);
    if (!shape) return shape.error();
    if (part->shape() != *shape) return Error{Errc::mismatch, "series: shape of a link"};
    if (is_empty(*part)) return Error{Errc::corrupt, "series: an empty link"};
    std::set<SiteId> sites;
    insert_dot_sites(*part, sites);
    sites.erase(id.chain);
    if (frame.goal.chains == Chains::own && !sites.empty()) {
      return Error{Errc::corrupt, "series: a dot of another site"};
    }
    parts.emplace_hint(parts.end(), id, *std::move(part));
  }
  if (!within_sites(frame.goal, std::map<LinkId, Part>(), parts)) {
    return Error{Errc::limit, "series: more sites than its goal allows"};
  }
  return parts;
}

}  // namespace semel::series_links
