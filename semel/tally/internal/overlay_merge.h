// OverlayMerge: visits counters in order, with their sums of folded and unfolded operations.
//
// It copies the unfolded sums when it is made; the log may change afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/tally/counters/internal/counters.h"
#include "semel/tally/internal/operation_log.h"

namespace semel::tally::internal {

class OverlayMerge {
 public:
  OverlayMerge(const OperationLog& log, const NameRange& range) {
    log.overlays(range.first, range.end,
                 [this](std::string_view counter, const OperationLog::Overlay& overlay) {
                   overlays_.emplace_back(counter, overlay);
                   return true;
                 });
  }

  // Takes the folded counters of the range in order. Returns false once `visit` does.
  bool folded(std::string_view counter, int128 sum, const VisitCounter& visit) {
    if (!before(counter, visit)) return false;
    if (next_ < overlays_.size() && overlays_[next_].first == counter) {
      sum += overlays_[next_++].second.sum;
    }
    return visit(counter, sum);
  }
  // Visits the remaining counters. Call it after the last folded one.
  bool rest(const VisitCounter& visit) { return before(std::nullopt, visit); }

 private:
  bool before(std::optional<std::string_view> counter, const VisitCounter& visit) {
    while (next_ < overlays_.size() && (!counter || overlays_[next_].first < *counter)) {
      const auto& [name, overlay] = overlays_[next_++];
      if (overlay.live > 0 && !visit(name, overlay.sum)) return false;
    }
    return true;
  }

  std::vector<std::pair<std::string, OperationLog::Overlay>> overlays_;
  std::size_t next_ = 0;
};

}  // namespace semel::tally::internal
