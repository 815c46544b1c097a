// Judges whose memory is at a server: `semel sift --at`.
//
// Contract  As of Judge, and for several producers of one stream at once: of all records with one key,
//           in all of them, one is `first`.
// Once      at least once (the default): a key is claimed, its record is written, and then it is committed.
//           Claims and commits are repeated until they are answered, which is without harm. So nothing is
//           lost, whatever breaks; what was committed is never let through again; and a record is written
//           twice only if its producer ends between writing it and committing it, or stands still for
//           longer than its claim.
//           at most once: keys are added in one step before the record is written. Whoever ends, or loses
//           the answer of a server that goes away, in between, has let nothing through.
// Waiting   A key that another producer holds is waited for. Of two that wait for each other's keys, one
//           would wait for ever: so whoever waits for a key gives back what it holds of this chunk
//           with a higher digest, and only the keys in the order of their digests are held while waiting.
// Slices    are keys of the server, NAME:{tag}, spread over the slots (client/slot.h). Their number
//           is in the key NAME:slices, and producers with another number are refused.
// Giving up When servers do not answer, or answer nonsense: at the latest one claim's time after
//           the beginning, and after the last answer that was one. The claims that are left end
//           then too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/judge.h"
#include "client/cluster.h"
#include "client/sift_calls.h"
#include "client/url.h"

namespace semel::cli {

enum class Delivery : std::uint8_t { at_least_once, at_most_once };

inline constexpr TimeMs kDefaultClaimMs = 60'000;

// What all that is at a server has in common.
struct RemoteSettings {
  std::string stream;  // its name: keys begin with it
  client::SiftShape shape;
  std::optional<std::uint32_t>
      replicas;  // that have to have every answer; none: as the client says
  Delivery delivery = Delivery::at_least_once;
  TimeMs claim_ms = kDefaultClaimMs;
  std::string password = {};  // for URLs without one; empty: none
};

// A client with the patience that claims allow. Connected; on failure none, and `problem` says why.
// Errc::invalid for a user without a password. Nothing that it does lasts longer than the time of a
// claim, until the caller, who may have more to do at the beginning, takes that back: end_by().
Result<std::unique_ptr<client::Cluster>> connect(const client::Url& url,
                                                 const RemoteSettings& settings,
                                                 std::string& problem);
// Different for every run of every producer.
std::string make_owner();

// On failure `problem` says why. Errc::io, or else it is up to the user.
Result<std::unique_ptr<Judge>> make_remote_judge(const client::Url& url, std::uint32_t slices,
                                                 const RemoteSettings& settings,
                                                 std::string& problem);

}  // namespace semel::cli
