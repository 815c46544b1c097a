// RemoteSlice: a slice that is a key of a server.
//
// Contract  As in slice.h. start() queues the call. finish() sends all that is queued at this
//           client and waits: slices that are started one after another work side by side. Keys are
//           sent as the 16 bytes of their digests, little-endian, low half first.
//           Time is that of the server: call.now_ms is ignored, call.at_ms is sent along.
// Failures  A call that is refused, or has no answer by the client's deadline, has `failed`, and
//           error() says why.
// Once      `Taking` decides how test_and_set takes an id if the connection breaks before the
//           answer:
//
//             claimed   claims it for this owner, then commits. Both can be repeated, so the answer
//                       is right wherever the connection breaks. An id that another owner holds is
//                       waited for, up to the end of its claim.
//             added     adds it in one step, and repeats that. An id that the first try took is a
//                       duplicate for the second, so nobody is told 'fresh'. Half the work.
//
//           Calls with times of their own are always added.
// Threads   As for its client: a call needs all slices of the client to itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
    // Called while another owner holds an id. If it returns true, the call fails.
    std::function<bool()> gives_up = {};
  };

  // REQUIRES: the client outlives it, and is connected.
  RemoteSlice(Cluster& cluster, SiftKey key, Options options);

  void start(SliceCall& call) override;
  void finish(SliceCall& call) override;

  // Asks the server. Returns 0 if it does not answer.
  std::uint64_t bytes() const override;
  double false_positive_rate() const override;

  const SiftKey& key() const { return key_; }
  // Returns the error of the last call that failed; none if no call did.
  const std::optional<Error>& error() const { return error_; }

 private:
  struct Started {
    const SliceCall* call;
    Calls<ClaimAnswer> claims;  // one of the two
    Calls<Verdict> lists;
  };

  // Claims some ids of the call for our own owner.
  void claim(const SliceCall& call, const std::vector<std::size_t>& which,
             Calls<ClaimAnswer>& claims) const;
  void ask_claims(const SliceCall& call, Calls<ClaimAnswer>& claims) const;
  void ask_lists(const SliceCall& call, Calls<Verdict>& lists) const;
  // Takes the ids of the call. Repeats claims until they are granted, and commits each id as soon
  // as it is granted, so that other owners need not wait for it.
  Result<void> take(SliceCall& call, Calls<ClaimAnswer> claims);
  // Commits the granted ones; a claim that was lost meanwhile goes to `again`.
  Result<void> commit(SliceCall& call, const std::vector<std::size_t>& granted,
                      std::vector<std::size_t>& again);
  Result<void> answer(SliceCall& call, Started started);
  bool takes_by_claims(const SliceCall& call) const;

  Cluster& cluster_;
  SiftKey key_;
  Options options_;
  std::vector<Started> started_;
  std::optional<Error> error_;
};

}  // namespace semel::client
