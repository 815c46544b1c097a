// RangeSet: a set of keys made of a few ranges.
//
// Contract  Equal sets are equal objects, whatever their history. ranges() are disjoint, ascending,
//           not empty, and do not touch.
// Cost      contains, covers, at_or_after: O(log ranges). add, remove: O(ranges).
#pragma once

#include <string_view>
#include <vector>

#include "semel/core/api.h"
#include "semel/store/key_range.h"

namespace semel {

class SEMEL_API RangeSet {
 public:
  RangeSet() = default;  // the empty set
  static RangeSet all() { return RangeSet(KeyRange::all()); }
  explicit RangeSet(const KeyRange& range) { add(range); }

  void add(const KeyRange& range);
  void remove(const KeyRange& range);
  void remove(const RangeSet& other);

  bool empty() const { return ranges_.empty(); }
  bool contains(std::string_view key) const;
  bool covers(const KeyRange& range) const;
  // Returns the range that holds the key, or the next one.
  const KeyRange* at_or_after(std::string_view key) const;
  const std::vector<KeyRange>& ranges() const { return ranges_; }

  bool operator==(const RangeSet&) const = default;

 private:
  std::vector<KeyRange> ranges_;
};

// Returns the keys that only one of the two has.
SEMEL_API RangeSet difference(const RangeSet& a, const RangeSet& b);

}  // namespace semel
