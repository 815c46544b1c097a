// ContainerBuilder: turns records, in the order of their keys, into containers.
//
// Contract  Emits, in order, the highest nodes of the trie with at most `burst_bytes` or with one
//           record. Each has the shortest path that tells it from its neighbours.
//           Known containers may stand for their records. The result is the same if each of them is
//           at or below one of those nodes.
// Memory    No more nodes than a key has bits, and no more than make up one container.
//
// Only the nodes along the last key can still grow. They form a stack, and each branches off from
// the one below it at a deeper bit. A key that differs from the last key at bit b completes all
// nodes deeper than b, and these become one node. When the whole stack exceeds one container, its
// lowest node is final, because its parent holds all the rest.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "semel/index/internal/container.h"

namespace semel::index_internal {

class ContainerBuilder {
 public:
  using Emit = std::function<void(Container&&)>;

  ContainerBuilder(std::uint32_t burst_bytes, Emit emit);

  // Sets the key of the unchanged container to the left. REQUIRES: called before add().
  void begin_after(std::string_view key);
  // Adds a record, or a known container by any key that belongs to it. REQUIRES: `key` is greater
  // than the key before.
  void add(std::string_view key, const Aggregate& sum);
  // Ends the sequence. `key` is the first key of the unchanged container to the right; finish() is
  // for the end, where there is none.
  void finish_before(std::string_view key);
  void finish();

 private:
  static constexpr std::int64_t kNone = -1;  // in place of a number of bits: no neighbour

  struct Node {
    std::string key;      // of its first record
    std::int64_t parted;  // bits in common with the record before
    Aggregate sum;
  };

  void complete(std::int64_t common);
  void emit_lowest(std::int64_t parted_after);
  void finish(std::int64_t common);

  std::uint32_t burst_bytes_;
  Emit emit_;
  std::deque<Node> open_;
  std::uint64_t volume_ = 0;  // of all open nodes
  bool any_ = false;          // there is a neighbour to the left
  std::string last_;
};

}  // namespace semel::index_internal
