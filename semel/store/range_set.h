// RangeSet: a set of keys that is made of few ranges.
//
// Contract  Equal sets are equal objects, whatever way led there: ranges() are disjoint, ascending,
//           not empty, and no two of them touch.
// Cost      contains, covers, at_or_after: O(log ranges). add, remove: O(ranges).
#pragma once

#include <string_view>
#include <vector>

#include "semel/store/key_range.h"

namespace semel {

class RangeSet {
 public:
  RangeSet() = default;  // no key
  static RangeSet all() { return RangeSet(KeyRange::all()); }
  explicit RangeSet(const KeyRange& range) { add(range); }

  void add(const KeyRange& range);
  void remove(const KeyRange& range);
  void remove(const RangeSet& other);

  bool empty() const { return ranges_.empty(); }
  bool contains(std::string_view key) const;
  bool covers(const KeyRange& range) const;
  // The range that the key is in, or the next one.
  const KeyRange* at_or_after(std::string_view key) const;
  const std::vector<KeyRange>& ranges() const { return ranges_; }

  bool operator==(const RangeSet&) const = default;

 private:
  std::vector<KeyRange> ranges_;
};

// The keys that are in one of the two alone.
RangeSet difference(const RangeSet& a, const RangeSet& b);

}  // namespace semel
