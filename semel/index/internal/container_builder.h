// ContainerBuilder: from records in the order of their keys to the containers that they make.
//
// Contract  Gives the highest nodes of the trie with no more than `burst_bytes`, or with one record,
//           in order, each with the shortest path that tells it from its neighbours.
//           Containers that are known already may stand for their records. Then what comes out is
//           the same if each is at or below one of those nodes.
// How       Of what has come, only the nodes along the last key can still grow. They are a stack;
//           each parts from the one below it at a deeper bit. A key that parts from the last one at
//           bit b completes all nodes deeper than b, which become one. When all of the stack is more
//           than one container can hold, the lowest on it, whose parent has the rest, is final.
// Memory    No more nodes than a key has bits, and no more than make up one container.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "semel/index/internal/container.h"

namespace semel {

class ContainerBuilder {
 public:
  using Emit = std::function<void(Container&&)>;

  ContainerBuilder(std::uint32_t burst_bytes, Emit emit);

  // The last key of a container that comes before all and stays what it is. REQUIRES: first of all.
  void begin_after(std::string_view key);
  // REQUIRES: beyond the key before. `key` is of a record, or any that belongs to the container.
  void add(std::string_view key, const Aggregate& sum);
  // The first key of a container that comes after all and stays what it is; or there is none.
  void finish_before(std::string_view key);
  void finish();

 private:
  static constexpr std::int64_t kNone = -1;  // of bits: no neighbour to part from

  struct Node {
    std::string key;      // of its first record
    std::int64_t parted;  // common bits with the record before
    Aggregate sum;
  };

  void complete(std::int64_t common);
  void emit_lowest(std::int64_t parted_after);
  void finish(std::int64_t common);

  std::uint32_t burst_bytes_;
  Emit emit_;
  std::deque<Node> open_;
  std::uint64_t volume_ = 0;  // of all that are open
  bool any_ = false;          // something has come, or was there before
  std::string last_;
};

}  // namespace semel
