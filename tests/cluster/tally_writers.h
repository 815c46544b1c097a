// TallyWriters: clients that count at a cluster, whatever befalls it, and know what has to come out.
//
// Contract  Each thread makes operations of its own, with opaque ids and numbered, on tables in all parts
//           of the cluster, several on their way at once. An operation is repeated with the same id until
//           it is acknowledged: answered, and known to a replica. Some are repeated once more long after.
//           When finish() returns all are acknowledged, and each has to count once: `expected` says what
//           that makes.
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
#include "semel/core/random.h"

namespace semel {

// A fault of the writers, which a test has to find.
enum class Planted : std::uint8_t {
  none,
  no_wait,  // an answer is enough, whether a replica knows it or not
  new_ids,  // who has no answer asks again under a new id
};

class TallyWriters {
 public:
  using Sums = std::map<std::string, std::map<std::string, std::int64_t>>;  // by table and counter

  struct Report {
    Sums expected;
    std::uint64_t acknowledged = 0;
    std::uint64_t in_doubt = 0;       // answers that were lost, or not known to a replica
    std::uint64_t recognised = 0;     // acknowledged, repeated later, and duplicates then
    std::uint64_t counted_again = 0;  // the same, and applied
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

// What the tables hold.
TallyWriters::Sums sums_of(const client::Url& url);

}  // namespace semel
