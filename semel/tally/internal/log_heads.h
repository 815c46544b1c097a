// LogHeads: for the log of each site, a digest of all its operations up to the last one held.
//
// Operation::previous is the head of the log before an operation, and Operation::head() the head
// after it. So two sites that hold the same number of operations of a log hold the same operations
// if and only if the heads are equal, except with probability 2^-64. That reveals a site that was
// restored from an old backup, and two sites with one id.
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
  // Returns 0 if the log is empty, or its head unknown: operations that a site counted alone are in
  // no log.
  std::uint64_t at(SiteId site) const {
    const auto head = heads_.find(site);
    return head == heads_.end() ? 0 : head->second;
  }
  // A head of 0 means unknown.
  void set(SiteId site, std::uint64_t head) {
    if (head == 0) {
      heads_.erase(site);
    } else {
      heads_[site] = head;
    }
  }
  bool empty() const { return heads_.empty(); }
  // Returns true if something is held of every log that has a head.
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
