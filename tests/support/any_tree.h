// Random trees of nodes, for RapidCheck.
#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <vector>

#include "semel/slices/tree_shape.h"

namespace semel {

// Draws the parents of up to 20 nodes. The root is the first of them.
inline rc::Gen<std::vector<std::size_t>> any_tree() {
  return rc::gen::map(rc::gen::container<std::vector<unsigned>>(rc::gen::inRange(0u, 1000u)),
                      [](const std::vector<unsigned>& numbers) {
                        std::vector<std::size_t> parents = {TreeShape::kNone};
                        for (const unsigned n : numbers) {
                          if (parents.size() < 20) parents.push_back(n % parents.size());
                        }
                        return parents;
                      });
}

inline std::vector<std::size_t> leaves_of(const TreeShape& shape) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < shape.nodes(); ++i) {
    if (shape.leaf(i)) all.push_back(i);
  }
  return all;
}

}  // namespace semel
