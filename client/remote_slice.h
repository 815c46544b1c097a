// RemoteSlice: a slice that is a key of a server, behind a client.
//
// Contract  As in slice.h. start() queues the call, and finish() sends all that is queued at this client and
//           waits: slices that are started one after another work side by side. Keys are sent as the 16
//           bytes of their digests, little-endian, low half first.
//           Time is that of the server: call.now_ms is not looked at, call.at_ms is sent along.
// Failures  A call that has no answer by the client's deadline, or is refused, has `failed`, and problem()
//           says why.
// Once      How test_and_set takes an id when the connection breaks before the answer:
//
//             Taking::claimed   claims it for this owner, then commits: both can be repeated, and the
//                               answer is right, whatever breaks in between. An id that another holds is
//                               waited for, up to the end of its claim.
//             Taking::added     adds it in one step, and repeats that: an id that the first call took is a
//                               duplicate for the second, so that nobody is told 'fresh'. Half the work.
//
//           Calls with times of their own are always added.
// Threads   As of its client: a call needs all slices of the client to itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/cluster.h"
#include "client/sift_calls.h"
#include "semel/slices/slice.h"

namespace semel::client {

enum class Taking : std::uint8_t { claimed, added };

class RemoteSlice final : public Slice {
 public:
  struct Options {
    Taking taking = Taking::claimed;
    std::string owner = {};    // of test_and_set: different for every run of every producer
    TimeMs claim_ms = 60'000;  // how long a claim of ours holds up the others if we stand still
    // Asked while a key is waited for that another one holds. True: the call fails.
    std::function<bool()> gives_up = {};
  };

  // REQUIRES: the client outlives it, and is connected.
  RemoteSlice(Cluster& cluster, SiftKey key, Options options);

  void start(SliceCall& call) override;
  void finish(SliceCall& call) override;

  // Asks the server; 0 if it does not answer.
  std::uint64_t bytes() const override;
  double false_positive_rate() const override;

  const SiftKey& key() const { return key_; }
  const std::string& problem() const { return problem_; }  // of the last call that failed

 private:
  // What a ticket answers: so many keys, from this one on.
  struct Part {
    Cluster::Ticket ticket;
    std::size_t first;
    std::size_t count;
  };
  struct Started {
    const SliceCall* call;
    std::vector<Part> parts;
  };

  void ask(SliceCall& call, std::span<const std::size_t> keys, std::vector<Part>& parts);
  void read(SliceCall& call, const Part& part);
  void take(SliceCall& call, std::vector<Part> claims);
  bool claims(const SliceCall& call) const;
  std::string owner_of(const SliceCall& call) const;
  void fail(SliceCall& call, std::string problem);

  Cluster& cluster_;
  SiftKey key_;
  Options options_;
  std::vector<Started> started_;
  std::string problem_;
};

}  // namespace semel::client
