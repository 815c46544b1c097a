// LogHeads: for the log of each site, a digest of all its operations up to the last one held.
//
// An operation has the head of its log before it (Operation::previous), and Operation::head() is
// that after it. So two sites that hold equally many operations of a log hold the same ones if and
// only if the heads are equal, but for one in 2^64. That reveals a site that was restored from an
// old backup, and two sites with one id.
// Format    docs/formats/tally_entries_v1.md: heads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/crdt/dot.h"
#include "semel/crdt/version_vector.h"

namespace semel::tally::internal {

class LogHeads {
 public:
  // Returns 0 if the log is empty, and where its head is unknown: what a site counts alone is in no
  // log.
  std::uint64_t at(SiteId site) const {
    const auto head = heads_.find(site);
    return head == heads_.end() ? 0 : head->second;
  }
  // A head of 0 makes it unknown.
  void set(SiteId site, std::uint64_t head) {
    if (head == 0) {
      heads_.erase(site);
    } else {
      heads_[site] = head;
    }
  }
  bool empty() const { return heads_.empty(); }
  // Returns whether all heads are of logs of which something is held.
  bool within(const VersionVector& held) const {
    return std::all_of(heads_.begin(), heads_.end(),
                       [&](const auto& head) { return held.at(head.first) > 0; });
  }

  void encode(Sink out) const;
  static Result<LogHeads> decode(Reader& in);
  bool operator==(const LogHeads&) const = default;

 private:
  std::map<SiteId, std::uint64_t> heads_;  // none is 0
};

}  // namespace semel::tally::internal
