// Counters, beside maps from names to numbers that keep no shards, no order or no sums.
#include "semel/tally/counters/internal/counters.h"

#include <absl/container/btree_map.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bench/harness.h"
#include "bench/peers/hash_sets.h"
#include "semel/core/assert.h"

namespace semel::bench {
namespace {

using tally::internal::Counters;
using tally::internal::NamedShard;

using Name = std::basic_string<char, std::char_traits<char>, CountingAllocator<char>>;
using Entry = std::pair<const Name, std::int64_t>;

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const {
    return std::hash<std::string_view>()(name);
  }
};
struct SameName {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
};
struct LessName {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a < b; }
};

using HashMap =
    std::unordered_map<Name, std::int64_t, NameHash, SameName, CountingAllocator<Entry>>;
using TreeMap = absl::btree_map<Name, std::int64_t, LessName, CountingAllocator<Entry>>;

template <class Map>
class MapPeer {
 public:
  explicit MapPeer(std::uint64_t count) : map_(CountingAllocator<Entry>(bytes_.get())) {
    for (std::uint64_t n = 0; n < count; ++n) {
      map_.emplace(Name(key_of(n).view(), CountingAllocator<char>(bytes_.get())), 1);
    }
  }
  bool add(const Key& key) {
    const auto found = map_.find(key.view());
    if (found == map_.end()) return false;
    ++found->second;
    return true;
  }
  // Sums the counters in between, one after the other.
  std::int64_t sum(std::string_view first, std::string_view end) const {
    std::int64_t sum = 0;
    for (auto at = map_.lower_bound(first); at != map_.end() && at->first < end; ++at) {
      sum += at->second;
    }
    return sum;
  }
  double bits_per_key() const {
    return static_cast<double>(*bytes_) * 8 / static_cast<double>(map_.size());
  }

 private:
  std::unique_ptr<std::uint64_t> bytes_ = std::make_unique<std::uint64_t>(0);
  Map map_;
};

constexpr std::size_t kLargestBatch = 1000;

// Returns how many of the keys already had a counter.
std::uint64_t add_all(Counters& counters, std::span<const Key> keys, std::size_t batch) {
  std::array<NamedShard, kLargestBatch> additions;
  std::array<int128, kLargestBatch> sums;
  std::uint64_t known = 0;
  for (; !keys.empty(); keys = keys.subspan(std::min(batch, keys.size()))) {
    const std::size_t size = std::min(batch, keys.size());
    for (std::size_t i = 0; i < size; ++i) additions[i] = {keys[i].view(), {1, 1, 1, 1}};
    counters.add({additions.data(), size}, {sums.data(), size});
    for (std::size_t i = 0; i < size; ++i) known += sums[i] > 1;
  }
  return known;
}

Counters filled(std::uint64_t count) {
  Counters counters;
  for (std::uint64_t n = 0; n < count; ++n) counters.add({key_of(n).view(), {1, 1, 1, 1}});
  return counters;
}

// Ranges from each key to the end of those that begin with the same byte: 2000 of a million on
// average.
std::uint64_t sum_ranges(const Slice& slice, const auto& sum) {
  std::uint64_t summed = 0;
  for (const Key& key : slice.keys) {
    std::string end(key.view().substr(0, 1));
    end += std::string(sizeof(Key), '\xff');
    summed += sum(key.view(), std::string_view(end)) != 0;
  }
  return summed;
}

void measure(Session& session, std::uint64_t count) {
  Counters counters = filled(count);
  MapPeer<HashMap> hash_map(count);
  MapPeer<TreeMap> tree_map(count);
  const std::string id = "counters/" + in_short(count) + '/';
  const auto peer = [](const char* name, auto& map) {
    return Contender{name,
                     [&map](const Slice& slice) {
                       std::uint64_t known = 0;
                       for (const Key& key : slice.keys) known += map.add(key);
                       return known;
                     },
                     map.bits_per_key()};
  };
  std::vector<Comparison> comparisons;
  for (const std::size_t batch : {1, 50, 1000}) {
    comparisons.push_back(
        {.id = id + "add-" + std::to_string(batch),
         .workload = present_keys(count),
         .ours = {"semel-counters",
                  [&counters, batch](const Slice& slice) {
                    return add_all(counters, slice.keys, batch);
                  },
                  static_cast<double>(counters.bytes()) * 8 / static_cast<double>(count)},
         .peers = {peer("unordered-map", hash_map), peer("btree-map", tree_map)}});
  }
  session.compare(comparisons);

  Workload ranges = present_keys(count);
  ranges.slice = 256;
  session.compare({{.id = id + "sum-of-a-range",
                    .workload = ranges,
                    .ours = {"semel-counters",
                             [&](const Slice& slice) {
                               return sum_ranges(slice, [&](auto first, auto end) {
                                 return counters.sum({first, end}).sum;
                               });
                             }},
                    .peers = {{"btree-map", [&](const Slice& slice) {
                                 return sum_ranges(slice, [&](auto first, auto end) {
                                   return tree_map.sum(first, end);
                                 });
                               }}}}});
}

const Registration kFew("counters-few", "additions to a thousand counters, and sums of ranges",
                        [](Session& session) { measure(session, 1000); });
const Registration kMany("counters-many", "additions to a million counters, and sums of ranges",
                         [](Session& session) { measure(session, session.small()); });

}  // namespace
}  // namespace semel::bench
