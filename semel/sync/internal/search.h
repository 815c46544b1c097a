// Search: finds which records differ, by the way that the plan or the user has chosen.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "semel/sync/internal/estimator.h"
#include "semel/sync/internal/region.h"
#include "semel/sync/internal/repair.h"
#include "semel/sync/internal/session.h"

namespace semel::sync_internal {

class Search {
 public:
  // REQUIRES: both outlive this.
  Search(Session& session, Repair& repair) : s_(session), repair_(repair) {}

  // Sets how many records to look for.
  void expect(double records) { looked_for_ = records; }
  // Makes the plan, and notes what it predicts.
  void predict(const Question& question);
  // Predicts, and begins to search unless only a plan is wanted. REQUIRES: the difference is
  // estimated.
  Result<void> find(Question question);

  Result<void> compare_answered(const CompareAsk& ask, Reader in);
  Result<void> scan_answered(const ScanAsk& ask, Reader in);

  double looked_for() const { return looked_for_; }
  const SyncPrediction& predicted() const { return predicted_; }  // of this pass

 private:
  // The limits for the slots of a walk.
  struct Walk {
    std::size_t slots;
    std::uint64_t detail;  // the most records of a slot that is read
    double expected;       // records that differ in all of them
    int repeats = 0;       // of the question, with more room each time
  };
  Result<void> find(const RangeView& view, std::span<const BitPath> tops);
  Result<void> ask_walk(const RangeView& view, std::span<const BitPath> tops, const Walk& walk) {
    return ask_compare(view, tops, false, walk);
  }
  Result<void> ask_lists(const RangeView& view, std::span<const BitPath> tops) {
    return ask_compare(view, tops, true, {SIZE_MAX, UINT64_MAX, looked_for_});
  }
  Result<void> ask_compare(const RangeView& view, std::span<const BitPath> tops, bool list,
                           const Walk& walk);
  Result<void> ask_again(const RangeView& view, std::span<const BitPath> halves,
                         std::span<const BitPath> whole, std::uint32_t capacity, int repeats);
  void ask_scan(frame::Scan scan, int attempt);
  void ask_placed(const frame::Scan& scan, std::unordered_set<std::uint64_t> wanted);
  void scan_again(const ScanAsk& ask, std::vector<std::uint32_t> failed);
  Result<void> take_region(const RangeView& view, const Region& region);
  Result<void> take_numbers(const RangeView& view, const Region& region,
                            std::span<const std::uint32_t> numbers);

  Session& s_;
  Repair& repair_;
  double looked_for_ = 0;
  SyncPrediction predicted_;
  bool escalate_ = false;  // sketches did not suffice: the next pass takes a list
};

}  // namespace semel::sync_internal
