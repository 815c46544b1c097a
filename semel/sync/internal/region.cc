#include "semel/sync/internal/region.h"

namespace semel::sync_internal {

Result<Aggregate> RangeView::sum(const BitPath& node) const {
  const KeyRange keys = node.range();
  Result<Aggregate> sum = range_.covers(keys) ? trie_.sum(node, cursor_)
                                              : trie_.sum(intersection(keys, range_), cursor_);
  if (sum) sum->measure = 0;
  return sum;
}

Result<Aggregate> RangeView::sum(const Region& region) const {
  Result<Aggregate> all = sum(region.top);
  if (!all || !region.without) return all;
  const Result<Aggregate> hole = sum(*region.without);
  if (!hole) return hole;
  *all -= *hole;
  return all;
}

std::optional<BitPath> RangeView::branch(BitPath node) const {
  for (;;) {
    std::optional<BitPath> at = trie_.branch(node);
    if (!at) return at;
    BitPath left = *at;
    left.push(false);
    BitPath right = *at;
    right.push(true);
    if (intersection(left.range(), range_).empty()) {
      node = std::move(right);
    } else if (intersection(right.range(), range_).empty()) {
      node = std::move(left);
    } else {
      return at;
    }
  }
}

}  // namespace semel::sync_internal
