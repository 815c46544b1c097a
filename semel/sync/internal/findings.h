// Findings: the records that one pass finds at only one end, and the proof that they are complete.
//
// Contract  explained() is true if the XOR of all findings equals the XOR of the two digests, and
//           the counts agree too. Then nothing is missing and nothing is extra, except with
//           probability 2^-128.
// Memory    The keys of this end's records. 64 bits for each record of the other end, or its key if
//           keys are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "semel/hash/digest.h"
#include "semel/index/aggregate.h"

namespace semel::sync_internal {

class Findings {
 public:
  // A record that the other end does not have.
  struct Ours {
    std::string key;
    Digest digest;
  };
  // A record that this end does not have.
  struct Theirs {
    std::optional<std::string> value;  // if it was kept
    Digest digest;
  };
  using TheirsByKey = std::map<std::string, Theirs, std::less<>>;

  // Says what is kept of the other end: nothing, keys, or keys and values.
  enum class Keep : std::uint8_t { nothing, keys, records };

  explicit Findings(Keep keep) : keep_(keep) {}

  // Starts over. The findings should explain the difference between `here` and `there`.
  void begin(const Aggregate& here, const Aggregate& there);

  void add_ours(std::string_view key, const Digest& digest);
  void add_theirs(std::string_view key, std::optional<std::string_view> value,
                  const Digest& digest);
  // Adds records that are known only by the XOR of their digests.
  void add_theirs(std::uint64_t count, const Digest& together);

  bool explained() const;
  const std::vector<Ours>& ours() const { return ours_; }
  const TheirsByKey& theirs() const { return theirs_; }  // if they are kept
  std::uint64_t theirs_count() const { return theirs_count_; }
  // Returns the hashes of the other end's keys that are known (KeyTally::hash).
  const std::vector<std::uint64_t>& their_keys() const { return their_keys_; }

 private:
  Keep keep_;
  Aggregate here_;
  Aggregate there_;
  Digest unexplained_ = {0, 0};
  std::vector<Ours> ours_;
  std::uint64_t theirs_count_ = 0;
  std::vector<std::uint64_t> their_keys_;  // hashes
  TheirsByKey theirs_;
};

}  // namespace semel::sync_internal
