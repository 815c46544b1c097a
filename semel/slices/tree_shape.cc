#include "semel/slices/tree_shape.h"

#include <algorithm>

namespace semel {

Result<TreeShape> TreeShape::make(std::span<const std::size_t> parents) {
  if (parents.size() > kMostNodes) return Error{Errc::limit, "a tree of more than 2^20 nodes"};
  TreeShape shape;
  for (const std::size_t parent : parents) {
    if (parent == kNone && shape.root_ != kNone) return Error{Errc::invalid, "a tree of two roots"};
    if (parent == kNone) shape.root_ = shape.nodes_.size();
    if (parent != kNone && parent >= parents.size()) {
      return Error{Errc::invalid, "a tree with a parent that is not in it"};
    }
    shape.nodes_.push_back({parent});
  }
  if (shape.root_ == kNone) return Error{Errc::invalid, "a tree without a root"};
  for (std::size_t node = 0; node < parents.size(); ++node) {
    if (node != shape.root_) shape.nodes_[parents[node]].children.push_back(node);
  }

  // Walks from the root down. Nodes that are not reached form a cycle.
  std::vector<std::size_t> reached = {shape.root_};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    Node& node = shape.nodes_[reached[i]];
    node.has_own = node.children.empty();
    shape.levels_ = node.level + 1;  // they come by level
    for (const std::size_t child : node.children) {
      shape.nodes_[child].level = node.level + 1;
      reached.push_back(child);
    }
  }
  if (reached.size() != parents.size()) return Error{Errc::invalid, "a tree with a cycle"};
  return shape;
}

Result<std::size_t> TreeShape::add_leaf(std::size_t parent) {
  if (parent >= nodes_.size()) return Error{Errc::invalid, "a leaf under no node of the tree"};
  if (nodes_.size() == kMostNodes) return Error{Errc::limit, "a tree of more than 2^20 nodes"};
  const std::size_t leaf = nodes_.size();
  const std::size_t level = nodes_[parent].level + 1;
  nodes_.push_back({parent, level, true});
  nodes_[parent].children.push_back(leaf);
  levels_ = std::max(levels_, level + 1);
  return leaf;
}

}  // namespace semel
