// TreeShape: the parent of each node. Nodes are numbers from 0 on; the root is on level 0.
//
// Contract  One root, from which every node is reached. Nodes are added, never removed or moved.
//           Producers attach to leaves, which are the nodes without children. A leaf that later
//           gets a child is a leaf no longer, but keeps its ids: it `has_own`, as leaves do.
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/assert.h"
#include "semel/core/result.h"

namespace semel {

class SEMEL_API TreeShape {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr std::size_t kMostNodes = std::size_t{1} << 20;

  // Takes the parent of each node, kNone for the root. Errors: Errc::invalid unless there is one
  // root, parents are nodes, and no node is its own ancestor; Errc::limit for more than kMostNodes.
  static Result<TreeShape> make(std::span<const std::size_t> parents);

  // Returns the number of the new node. Errors: Errc::invalid if there is no such parent;
  // Errc::limit for more than kMostNodes.
  Result<std::size_t> add_leaf(std::size_t parent);

  std::size_t nodes() const { return nodes_.size(); }
  std::size_t levels() const { return levels_; }  // of the longest path; 1 for a root alone
  std::size_t root() const { return root_; }

  // REQUIRES for all: node < nodes().
  std::size_t parent(std::size_t node) const { return at(node).parent; }  // kNone for the root
  std::size_t level(std::size_t node) const { return at(node).level; }
  std::span<const std::size_t> children(std::size_t node) const { return at(node).children; }
  bool leaf(std::size_t node) const { return at(node).children.empty(); }
  bool has_own(std::size_t node) const { return at(node).has_own; }

 private:
  struct Node {
    std::size_t parent;
    std::size_t level = 0;
    bool has_own = false;  // knows ids that none of its children knows
    std::vector<std::size_t> children = {};
  };

  TreeShape() = default;
  const Node& at(std::size_t node) const {
    SEMEL_ASSERT(node < nodes_.size());
    return nodes_[node];
  }

  std::vector<Node> nodes_;
  std::size_t root_ = kNone;
  std::size_t levels_ = 0;
};

}  // namespace semel
