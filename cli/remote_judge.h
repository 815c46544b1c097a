// Judges whose memory is at a server: `semel sift --at`.
//
// Contract  As for Judge, and for several producers of one stream at once: among all records with
//           one key, in all producers, one is `first`.
// Once      At least once, the default: a key is claimed, its record is written, and then the key
//           is committed. Claims and commits are repeated until they are answered, which does no
//           harm. So nothing is lost, whatever breaks. What was committed is never let through
//           again. A record is written twice only if its producer ends between writing and
//           committing it, or stands still for longer than its claim.
//           At most once: keys are added in one step before the record is written. A producer that
//           ends in between, or loses the answer of a server that goes away, has let nothing
//           through.
// Waits     A key that another producer holds is waited for. Two producers that waited for each
//           other's keys would wait for ever. So a producer that waits for a key first gives back
//           what it holds of this chunk with a higher digest: while waiting, keys are held only in
//           the order of their digests.
// Slices    Keys of the server, NAME:{tag}, spread over the slots (client/slot.h). The key
//           NAME:slices has their number, and producers with another number are refused.
// Giving up If servers do not answer, or answer nonsense, the judge gives up at the latest one
//           claim's time after the beginning or after the last good answer. The claims that are
//           left end then too.
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

// Settings that all judges at servers share.
struct RemoteSettings {
  std::string stream;  // its name: keys begin with it
  client::SiftShape shape;
  // The number of replicas that must have every answer; none: the client decides.
  std::optional<std::uint32_t> replicas;
  Delivery delivery = Delivery::at_least_once;
  TimeMs claim_ms = kDefaultClaimMs;
  std::string password = {};  // for URLs without one; empty: none
};

// Returns a connected client that is as patient as claims allow. Errc::invalid for a user without a
// password. Together its calls last no longer than a claim, until the caller takes that limit back
// by end_by(): there may be more to do at the beginning.
Result<std::unique_ptr<client::Cluster>> connect(const client::Url& url,
                                                 const RemoteSettings& settings);
// Returns a name that is different for every run of every producer.
std::string make_owner();

// Makes the judge. Errc::io if a server fails; the user can mend all other errors.
Result<std::unique_ptr<Judge>> make_remote_judge(const client::Url& url, std::uint32_t slices,
                                                 const RemoteSettings& settings);

}  // namespace semel::cli
