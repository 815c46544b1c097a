#include "semel/sync/internal/partition_sketch.h"

#include <algorithm>

#include "semel/sync/internal/set_sketch.h"

namespace semel::sync_internal {

std::int64_t sketch_of(const frame::Scan& scan, std::uint32_t partition) {
  if (scan.only.empty()) return partition;
  const auto found = std::ranges::lower_bound(scan.only, partition);
  if (found == scan.only.end() || *found != partition) return -1;
  return found - scan.only.begin();
}

Result<std::vector<std::uint32_t>> sketch_partitions(const RangeView& view, const frame::Scan& scan,
                                                     const ShortDigest& shorten) {
  std::vector<std::uint32_t> syndromes(scan.sketches() * scan.capacity);
  // Processing many numbers at once takes a fraction of the time.
  constexpr std::size_t kTogether = 4096;
  std::vector<std::uint32_t> places;
  std::vector<std::uint32_t> numbers;
  const auto toggle = [&] {
    SetSketch::toggle_many(syndromes, scan.capacity, places, numbers);
    places.clear();
    numbers.clear();
  };
  EntryDigest digest = view.trie().entry_digest();
  for (const BitPath& top : scan.tops) {
    SEMEL_TRY(view.read({top, {}}, "", [&](std::string_view key, std::string_view value) {
      const RecordId id = RecordId::of(shorten, digest(key, value));
      const std::int64_t sketch = sketch_of(scan, id.partition(scan.partitions));
      if (sketch < 0) return true;
      places.push_back(static_cast<std::uint32_t>(sketch));
      numbers.push_back(id.number);
      if (numbers.size() == kTogether) toggle();
      return true;
    }));
  }
  toggle();
  return syndromes;
}

}  // namespace semel::sync_internal
