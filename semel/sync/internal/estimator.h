// Estimator: asks how much differs, and where.
//
// Contract  begin() asks the other end for its sum and its first frontier. The answers lead to an
//           estimate, at once or after some probes (probe.h). take_question() then says where to
//           search.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "semel/sync/internal/region.h"
#include "semel/sync/internal/session.h"

namespace semel::sync_internal {

// The difference of the two ends, as far as the first exchange shows it.
struct Question {
  PlanInputs known;
  std::vector<BitPath> tops;              // both ends have records there
  std::vector<frame::Fetch::Item> items;  // this end has none there
  std::vector<Region> ours;               // the other end has none there
  std::uint64_t records = 0;              // of this end, below the tops
  std::uint64_t our_records = 0;          // in the regions that are only ours
  std::uint32_t probes = 0;
  std::uint64_t probe_bytes = 0;
};

class Estimator {
 public:
  // REQUIRES: the session outlives this.
  explicit Estimator(Session& session) : s_(session) {}

  using Answer = std::optional<Estimated>;  // nullopt: a probe was asked for
  Result<void> begin();
  Result<Answer> hello_answered(Reader in);
  Result<Answer> probe_answered(const ProbeAsk& ask, Reader in);

  // Returns the question, and leaves an empty one. REQUIRES: the difference is estimated.
  Question take_question() { return std::exchange(question_, {}); }

 private:
  Result<void> compare_first(Reader in);
  Result<Answer> estimate_difference(const frame::HelloReply& reply);
  Result<Answer> probe();
  Result<std::vector<BitPath>> sample(const RangeView& view, std::size_t nodes,
                                      std::uint64_t records);
  Result<void> ask_probe(std::uint64_t width);
  Result<Answer> lists_answered(const ProbeAsk& ask, std::span<const frame::SlotAnswer> answers);

  Session& s_;
  Question question_;
  std::uint64_t unknown_ = 0;  // changes that this end's floret misses
};

}  // namespace semel::sync_internal
