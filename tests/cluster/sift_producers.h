// SiftProducers: producers of one stream that is sifted at a cluster while servers crash.
//
// Contract  Each thread has a horizontal filter of its own over slices at the cluster, which all
//           share. It asks for ids that the others ask for too, at about the same time and later,
//           and notes the answers. An answer counts when a replica knows it. finish() ends the
//           threads, and asks once more for every id, as a late producer.
// Threads   A call needs the object to itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "client/remote_slice.h"
#include "client/url.h"

namespace semel {

class SiftProducers {
 public:
  struct Report {
    std::uint64_t ids = 0;
    std::uint64_t duplicates = 0;  // answers
    std::uint64_t in_doubt = 0;    // answers that were lost, or not known to a replica
    std::uint64_t lost = 0;        // ids that were fresh for no producer
    std::uint64_t twice = 0;       // ids that were fresh for more than one
    std::uint64_t fresh_late = 0;  // ids that were fresh for the late producer
    std::vector<std::string> problems;
  };

  // This number of `replicas` must know an answer. 0 is a fault that a test must find.
  SiftProducers(const client::Url& url, client::Taking taking, std::uint64_t seed,
                std::uint32_t replicas = 1);
  Report finish();

 private:
  class Producer;
  // The number of times that producers got each answer for an id.
  struct Told {
    std::uint64_t fresh = 0;
    std::uint64_t duplicate = 0;
  };
  struct Log {
    std::map<std::uint64_t, Told> told;
    std::uint64_t in_doubt = 0;
    std::vector<std::string> problems;
  };

  const client::Url url_;
  const client::Taking taking_;
  const std::uint64_t seed_;
  const std::uint32_t replicas_;
  std::atomic<bool> enough_ = false;
  std::atomic<std::uint64_t> next_id_ = 0;
  std::vector<Log> logs_;
  std::vector<std::jthread> threads_;
};

}  // namespace semel
