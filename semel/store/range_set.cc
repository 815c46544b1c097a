#include "semel/store/range_set.h"

#include <algorithm>

namespace semel {
namespace {

// Returns true if the range ends before the key and does not touch a range that begins there.
bool ends_before(const KeyRange& range, std::string_view key) {
  return range.end && *range.end < key;
}

}  // namespace

void RangeSet::add(const KeyRange& range) {
  if (range.empty()) return;
  KeyRange whole = range;
  const auto first = std::partition_point(ranges_.begin(), ranges_.end(), [&](const KeyRange& one) {
    return ends_before(one, range.first);
  });
  auto last = first;
  for (; last != ranges_.end() && !ends_before(range, last->first); ++last) {
    whole.first = std::min(whole.first, last->first);
    if (!last->end || (whole.end && *whole.end < *last->end)) whole.end = last->end;
  }
  ranges_.insert(ranges_.erase(first, last), std::move(whole));
}

void RangeSet::remove(const KeyRange& range) {
  if (range.empty()) return;
  std::vector<KeyRange> left;
  left.reserve(ranges_.size() + 1);
  for (const KeyRange& one : ranges_) {
    if (intersection(one, range).empty()) {
      left.push_back(one);
      continue;
    }
    if (one.first < range.first) left.push_back({one.first, range.first});
    if (range.end && (!one.end || *range.end < *one.end)) left.push_back({*range.end, one.end});
  }
  ranges_ = std::move(left);
}

void RangeSet::remove(const RangeSet& other) {
  for (const KeyRange& range : other.ranges_) remove(range);
}

bool RangeSet::contains(std::string_view key) const {
  const KeyRange* const range = at_or_after(key);
  return range != nullptr && range->contains(key);
}

bool RangeSet::covers(const KeyRange& range) const {
  if (range.empty()) return true;
  const KeyRange* const one = at_or_after(range.first);
  return one != nullptr && one->covers(range);
}

const KeyRange* RangeSet::at_or_after(std::string_view key) const {
  const auto found = std::partition_point(ranges_.begin(), ranges_.end(), [&](const KeyRange& one) {
    return one.end && *one.end <= key;
  });
  return found == ranges_.end() ? nullptr : &*found;
}

RangeSet difference(const RangeSet& a, const RangeSet& b) {
  RangeSet only_a = a;
  only_a.remove(b);
  RangeSet only_b = b;
  only_b.remove(a);
  for (const KeyRange& range : only_b.ranges()) only_a.add(range);
  return only_a;
}

}  // namespace semel
