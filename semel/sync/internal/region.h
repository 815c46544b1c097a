// Region: the records of one comparison.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "semel/core/result.h"
#include "semel/index/bit_path.h"
#include "semel/index/nye_trie.h"
#include "semel/store/key_range.h"
#include "semel/store/ordered_store.h"

namespace semel::sync_internal {

// The keys below `top`, except those below `without`.
struct Region {
  BitPath top;
  std::optional<BitPath> without;  // below `top`

  bool contains(std::string_view key) const {
    return top.is_prefix_of_key(key) && !(without && without->is_prefix_of_key(key));
  }
  bool operator==(const Region&) const = default;
};

// A trie and its records, limited to a range.
class RangeView {
 public:
  RangeView(const NyeTrie& trie, Cursor& cursor, const KeyRange& range)
      : trie_(trie), cursor_(cursor), range_(range) {}

  const KeyRange& range() const { return range_; }
  const NyeTrie& trie() const { return trie_; }

  // Returns a sum without its measure. Measures do not travel, so equal records give equal sums.
  Result<Aggregate> sum(const BitPath& node) const;
  Result<Aggregate> sum(const Region& region) const;
  // Does what NyeTrie::branch() does, within the range only.
  std::optional<BitPath> branch(BitPath node) const;

  // Calls visit(key, value) for each record of the region whose key is not less than `from`, in
  // order, until visit returns false.
  template <class Visit>
  Result<void> read(const Region& region, std::string_view from, Visit&& visit) const {
    const KeyRange keys = intersection(region.top.range(), range_);
    if (keys.empty()) return {};
    const std::string_view first = from > keys.first ? from : std::string_view(keys.first);
    std::optional<KeyRange> hole;
    if (region.without) hole = region.without->range();
    for (cursor_.seek(first); cursor_.valid(); cursor_.next()) {
      if (keys.end && cursor_.key() >= *keys.end) return {};
      if (hole && hole->contains(cursor_.key())) {
        if (!hole->end) return {};
        cursor_.seek(*hole->end);
        if (!cursor_.valid() || (keys.end && cursor_.key() >= *keys.end)) break;
      }
      if (!visit(cursor_.key(), cursor_.value())) return {};
    }
    return cursor_.status();
  }

 private:
  const NyeTrie& trie_;
  Cursor& cursor_;
  KeyRange range_;
};

}  // namespace semel::sync_internal
