// The life of a site in tests that restore nothing: each site has one.
#pragma once

#include "semel/crdt/dot.h"

namespace semel {

inline SiteLife at(SiteId site) { return {site, 1}; }

// Returns what the add() of this type takes: types without dots have no lives.
template <class Type>
auto by(SiteId site) {
  if constexpr (Type::kRemoves) {
    return at(site);
  } else {
    return site;
  }
}

}  // namespace semel
