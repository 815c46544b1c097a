// TallyWriters: clients that count at a cluster while servers crash, and know the right sums.
//
// Contract  Each thread makes operations of its own, with opaque and with numbered ids, on tables
//           in all parts of the cluster, several at once. It repeats an operation with the same id
//           until the operation is acknowledged: answered, and known to a replica. It repeats some
//           once more long after. When finish() returns, all are acknowledged, and each must count
//           once: `expected` holds these sums.
// Threads   A call needs the object to itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "client/cluster.h"
#include "semel/core/internal/random.h"

namespace semel {

// A fault of the writers, which a test must find.
enum class Planted : std::uint8_t {
  none,
  no_wait,  // an answer is enough, even if no replica knows it
  new_ids,  // a writer without an answer asks again under a new id
};

class TallyWriters {
 public:
  using Sums = std::map<std::string, std::map<std::string, std::int64_t>>;  // by table and counter

  struct Report {
    Sums expected;
    std::uint64_t acknowledged = 0;
    std::uint64_t in_doubt = 0;       // answers that were lost, or not known to a replica
    std::uint64_t recognised = 0;     // repeated after they were acknowledged: a duplicate
    std::uint64_t counted_again = 0;  // repeated after they were acknowledged: applied again
    std::vector<std::string> problems;
  };

  // Makes the tables, and begins.
  TallyWriters(const client::Url& url, std::uint64_t seed, Planted planted = Planted::none);
  // Waits until all operations are acknowledged.
  Report finish();

 private:
  class Writer;

  std::atomic<bool> enough_ = false;
  std::vector<Report> reports_;
  std::vector<std::jthread> threads_;
};

// Returns the sums of the tables.
TallyWriters::Sums sums_of(const client::Url& url);

}  // namespace semel
