// Faults: crashes and failures of the primaries of a cluster, and how they come back.
//
// Contract  strike() hits the primary of a random slot, and returns when the cluster is ok again
//           and every primary has a replica that follows it. Meanwhile primaries by turns accept
//           writes without a replica (min-replicas-to-write 0) and refuse them (1).
// Threads   A call needs the object and its cluster to itself.
#pragma once

#include <cstdint>
#include <string>

#include "semel/core/internal/random.h"
#include "tests/support/redis_cluster.h"

namespace semel {

enum class Fault : std::uint8_t {
  kill,         // kill -9, and back as a replica of the node that took its place
  cut_off,      // the same, after its replica was cut off: later changes are lost with it
  stand_still,  // SIGSTOP until its replica takes over; then it goes on, and believes it is primary
  restart,      // kill -9, and back before anybody takes its place: REQUIRES appendfsync always
};

class Faults {
 public:
  // REQUIRES: every primary has one replica.
  Faults(RedisCluster& servers, std::uint64_t seed);

  void strike(Fault fault);

 private:
  void configure();
  void configure(std::size_t node);
  void sleep_up_to(std::uint64_t ms);
  // REQUIRES: it answers.
  std::size_t replica_of(std::size_t primary) const;
  void wait_until_well() const;

  RedisCluster& servers_;
  Random random_;
  const std::size_t primaries_;
};

// Returns a field of INFO, empty if there is none.
std::string info_of(const RedisServer& server, std::string_view section, std::string_view field);

}  // namespace semel
