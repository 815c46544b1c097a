// The bytes of 'Nye's Trie and Floret Estimators' as printed there: a walk down tries that branch
// on bytes, by its figures 6 to 8.
//
// For a node that differs the source sends a number, a byte and a digest for each of its children.
// The destination sends back the numbers of those that differ. A container is burst when it is met,
// so that the burst size does not matter to the bytes, and single records are told from each other
// as nodes are. Records are not counted. A record that one end lacks counts as one that differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace semel::bench {

class PaperTrie {
 public:
  // `keys` of both ends together, in order; `differing`: the places of those that differ, in order.
  static std::uint64_t bytes(const std::vector<std::string>& keys,
                             const std::vector<std::uint64_t>& differing) {
    if (differing.empty()) return kDigest;
    return kDigest + PaperTrie(keys, differing).below({0, keys.size(), 0, differing.size()}, 0);
  }

 private:
  static constexpr std::uint64_t kDigest = 16, kNumber = 4, kByte = 1;

  // The keys [first, end), of which differing_[differing_first, differing_end) differ.
  struct Node {
    std::size_t first, end, differing_first, differing_end;
  };

  PaperTrie(const std::vector<std::string>& keys, const std::vector<std::uint64_t>& differing)
      : keys_(keys), differing_(differing) {}

  // The byte that leads from a node to the child with this key; -1 if the key ends there.
  int edge(std::size_t place, std::size_t depth) const {
    return depth < keys_[place].size() ? static_cast<unsigned char>(keys_[place][depth]) : -1;
  }

  std::uint64_t below(const Node& node, std::size_t depth) const {
    std::uint64_t bytes = kNumber + kByte;  // of the node, and how many children it has
    Node child{node.first, node.first, node.differing_first, node.differing_first};
    while (child.end < node.end) {
      child = {child.end, child.end, child.differing_end, child.differing_end};
      while (child.end < node.end && edge(child.end, depth) == edge(child.first, depth)) {
        ++child.end;
      }
      while (child.differing_end < node.differing_end &&
             differing_[child.differing_end] < child.end) {
        ++child.differing_end;
      }
      bytes += kNumber + kByte + kDigest;
      if (child.differing_first == child.differing_end) continue;
      bytes += kNumber;
      if (child.end - child.first > 1) bytes += below(child, depth + 1);
    }
    return bytes;
  }

  const std::vector<std::string>& keys_;
  const std::vector<std::uint64_t>& differing_;
};

}  // namespace semel::bench
