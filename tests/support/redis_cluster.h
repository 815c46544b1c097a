// RedisCluster: a Redis Cluster of a test, of primaries that have the same share of the slots, each
// with its replicas.
//
// Contract  After the constructor every node says that the cluster is ok and every replica follows
//           its primary. Nodes are numbers: first the primaries, then the replicas of the first,
//           and so on; the numbers stay when roles change.
//           A primary that does not answer for kNodeTimeoutMs is replaced by one of its replicas.
// Threads   See RedisServer, for each node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/redis_server.h"

namespace semel {

class RedisCluster {
 public:
  static constexpr int kNodeTimeoutMs = 1000;
  static constexpr std::uint32_t kSlots = 16384;

  // `arguments` go to every node. REQUIRES: primaries > 0.
  explicit RedisCluster(std::size_t primaries, std::vector<std::string> arguments = {},
                        std::size_t replicas_each = 1);

  std::size_t size() const { return nodes_.size(); }
  RedisServer& node(std::size_t number) { return nodes_[number]; }
  const RedisServer& node(std::size_t number) const { return nodes_[number]; }
  // Returns one URL of the client for all nodes.
  std::string url() const;

  // Waits until every running node says that the cluster is ok, that all slots have a primary that
  // answers, and that every running replica follows its primary.
  void wait_until_ok() const;
  // Returns the running node that says it is the primary of the slot. Waits until there is one.
  std::size_t primary_of(std::uint32_t slot) const;
  // Returns all running nodes that say they are primaries and have slots.
  std::vector<std::size_t> primaries() const;
  // Makes a replica of this primary take its place, and waits until it has. REQUIRES: it has one.
  void fail_over(std::size_t primary);

  // These move a slot to another primary, key by key. For keys that have left, the old primary
  // answers ASK.
  void begin_move(std::uint32_t slot, std::size_t to);
  void move_key(std::string_view key, std::size_t to);
  // Moves what is left, and tells every primary.
  void end_move(std::uint32_t slot, std::size_t to);
  void move(std::uint32_t slot, std::size_t to) {
    begin_move(slot, to);
    end_move(slot, to);
  }

  std::string id(std::size_t number) const;  // as the nodes name each other

 private:
  bool ok() const;

  std::deque<RedisServer> nodes_;  // which do not move
};

}  // namespace semel
