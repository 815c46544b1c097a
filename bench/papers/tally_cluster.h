// Sites that hold replicated counters, and clients that retry: the experiment of 'Idempotent
// distributed counters', figure 14.
//
// Ten partitions of counters, each a table at three of ten sites. Every millisecond of virtual time
// a client adds 1 to a counter, at one of its three replicas. Some answers are lost, and the client
// repeats those operations at the same or another replica. Every 100 ms one replica of each
// partition, another each time, sends its entries to another one. So many retries come to a replica
// that has not heard of the first attempt.
//
// A client takes an operation for done once two replicas hold it. If a site dies, clients repeat
// their unfinished operations elsewhere. The two replicas that are left retire the site, and a new
// one starts from a copy of theirs.
//
// Three kinds of plain shards get the same attempts. Each site has a sum of the operations it took,
// and a copy of the sums of others. The kinds are: without recognition; with recognition of the
// operations that the site took itself; with recognition of all operations that it has heard of.
#pragma once

#include <cstdint>
#include <functional>

#include "semel/core/clock.h"

namespace semel::bench {

struct ClusterRun {
  std::uint64_t operations = 200'000;
  std::uint64_t counters = 1000;
  double retried = 0.06;  // of the operations
  bool kill = false;      // a site, in the middle
  std::uint64_t seed = 1;
};

// The sums of one replica of each partition, added up.
struct ClusterSums {
  std::uint64_t expected = 0;  // operations, each once
  std::int64_t table = 0;
  std::int64_t shards = 0;            // without recognition
  std::int64_t shards_own = 0;        // of what the site took itself
  std::int64_t shards_exchanged = 0;  // of what it took or heard of
};

struct ClusterOutcome {
  ClusterSums sums;                // at the end
  std::uint64_t wrong_values = 0;  // of counters, at all replicas of all partitions
  std::uint64_t retries = 0;       // of operations that were taken, and their answer lost
  std::uint64_t elsewhere = 0;     // of these, at another replica
  std::uint64_t before_heard = 0;  // of these, taken by it too: it had not heard of the first
  std::uint64_t repeated = 0;      // after the death of the site that had taken them
  std::uint64_t taken_again = 0;   // of these, by a replica that had not heard of them
  double expected_undercount = 0;  // of new ids taken for retries, by the filters' own account
};

// `look` is told the sums fifty times on the way. Aborts if the replicas do not settle.
using LookAtCluster = std::function<void(TimeMs now_ms, const ClusterSums& sums)>;
ClusterOutcome run_cluster(const ClusterRun& run, const LookAtCluster& look);

}  // namespace semel::bench
