// GrowCuckoo and ObservedCuckoo: the cost of a lookup beside CuckooFilter, of merging states of
// millions of entries, and of receiving a delta.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness.h"
#include "bench/sets.h"
#include "semel/crdt/grow_cuckoo.h"
#include "semel/crdt/observed_cuckoo.h"
#include "semel/crdt/series.h"
#include "semel/filter/cuckoo_filter.h"

namespace semel::bench {
namespace {

CuckooShape shape_for(std::uint64_t keys, std::uint32_t payload_bits) {
  const auto buckets = static_cast<std::uint64_t>(static_cast<double>(keys) / 0.95 / 4);
  return {.bucket_size = 4,
          .fingerprint_bits = 16,
          .payload_bits = payload_bits,
          .buckets = buckets + 1,
          .hash = {}};
}

constexpr SiteLife kSite = {0, 1};

// ObservedCuckoo as a set for the benchmarks: one site adds.
class OneSite {
 public:
  explicit OneSite(const CuckooShape& shape) : filter_(shape) {}
  const CuckooShape& shape() const { return filter_.shape(); }
  Result<Dot> add(Digest key) { return filter_.add(key, kSite); }
  bool contains(Digest key) const { return filter_.contains(key); }
  void contains(std::span<const Digest> keys, std::span<bool> found) const {
    filter_.contains(keys, found);
  }
  std::size_t insert(std::span<const Digest> keys) { return filter_.add(keys, kSite); }
  std::uint64_t bytes() const { return filter_.bytes(); }

 private:
  ObservedCuckoo filter_;
};

void compare_lookups(Session& session, std::uint64_t keys) {
  Hashed<GrowCuckoo> grow(shape_for(keys, 0));
  Hashed<OneSite> observed(shape_for(keys, Dot::kBits));
  Hashed<CuckooFilter> plain(shape_for(keys, 0)), with_payloads(shape_for(keys, Dot::kBits));
  fill(keys, grow, observed, plain, with_payloads);
  session.compare(lookups("crdt-cuckoo-lookup/" + in_short(keys), keys, [&](auto compare) {
    compare("grow-one-by-one", digests_one_by_one("semel-grow", grow, keys),
            {digests_one_by_one("semel-cuckoo", plain, keys)});
    compare("grow-batched", digests_batched("semel-grow", grow, keys),
            {digests_batched("semel-cuckoo", plain, keys)});
    compare("observed-one-by-one", digests_one_by_one("semel-observed", observed, keys),
            {digests_one_by_one("semel-cuckoo-dots", with_payloads, keys)});
    compare("observed-batched", digests_batched("semel-observed", observed, keys),
            {digests_batched("semel-cuckoo-dots", with_payloads, keys)});
  }));
}

std::vector<Digest> digests(std::uint64_t first, std::uint64_t last) {
  std::vector<Digest> all;
  for (std::uint64_t n = first; n < last; ++n) all.push_back(digest_of(key_of(n)));
  return all;
}

ObservedCuckoo with_more(ObservedCuckoo filter, std::uint64_t first, std::uint64_t count,
                         SiteId site) {
  SEMEL_ASSERT(filter.add(digests(first, first + count), {site, 1}) == count);
  return filter;
}

// Returns the least CPU time of several merges, each into a fresh copy. A merge of millions of
// entries is too long for the rounds of a Session.
double merge_seconds(const ObservedCuckoo& here, const ObservedCuckoo& there) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 5; ++round) {
    ObservedCuckoo copy = here;
    const std::clock_t start = std::clock();
    SEMEL_ASSERT(copy.merge(there));
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

// Two sites share all but one in a hundred entries, half of them, or none. The merge fills the
// table to the given percentage.
void measure_merges(Session& session) {
  const std::uint64_t entries = session.large() / 10;
  for (const std::uint64_t percent : {95, 85}) {
    for (const auto& [what, own] : {std::pair{"one-percent-apart", entries / 100},
                                    {"half-apart", entries / 2},
                                    {"all-apart", entries}}) {
      const ObservedCuckoo common = with_more(
          ObservedCuckoo(*ObservedCuckoo::shape_for((entries + own) * 95 / percent, 1e-3, {})), 0,
          entries - own, 0);
      const double seconds =
          merge_seconds(with_more(common, entries, own, 0), with_more(common, 2 * entries, own, 1));
      std::printf("observed-merge/%s/%s-%llu  %.3f s\n", in_short(entries).c_str(), what,
                  static_cast<unsigned long long>(percent), seconds);
      std::fflush(stdout);
    }
  }
}

// The last thousand adds arrive at another site, as bytes. `bits/key` is the size of the message.
template <class Type, class Add>
void compare_delta(Session& session, const std::string& name, Type sender,
                   typename Type::Delta delta, Add add) {
  constexpr std::uint64_t kAdds = 1000;
  const std::uint64_t keys = session.large() / 10;
  add(sender, digests(0, keys - kAdds), nullptr);
  const Type before = sender;
  Type receiver = before;
  add(sender, digests(keys - kAdds, keys), &delta);
  Bytes bytes;
  delta.encode(bytes);
  session.compare({{.id = name + "-delta/" + in_short(keys),
                    .workload = {.answers = Workload::Answers::any,
                                 .draw = [](std::span<Key>) {},
                                 .slice = kAdds},
                    .ours = {"semel-delta",
                             [&](const Slice&) {
                               return std::uint64_t{*receiver.merge(*Type::Delta::decode(bytes))};
                             },
                             static_cast<double>(8 * bytes.size()) / static_cast<double>(kAdds),
                             [&](std::size_t) { receiver = before; }},
                    .peers = {}}});
  SEMEL_ASSERT(receiver == sender);
}

void compare_deltas(Session& session) {
  const std::uint64_t keys = session.large() / 10;
  const CuckooShape grow = shape_for(keys, 0), observed = shape_for(keys, Dot::kBits);
  compare_delta(session, "grow-cuckoo", GrowCuckoo(grow), CuckooDelta(grow),
                [](GrowCuckoo& filter, const std::vector<Digest>& added, CuckooDelta* delta) {
                  for (const Digest key : added) {
                    SEMEL_ASSERT(filter.add(key, delta));
                  }
                });
  compare_delta(session, "observed-cuckoo", ObservedCuckoo(observed), ObservedDelta(observed),
                [](ObservedCuckoo& filter, const std::vector<Digest>& added, ObservedDelta* delta) {
                  SEMEL_ASSERT(filter.add(added, kSite, delta) == added.size());
                });
  const SeriesGoal goal{.fpr = 0.01, .sites = 2, .hash = {}};
  compare_delta(session, "observed-series", *ObservedCuckooSeries::make(goal),
                ObservedCuckooSeries::Delta(goal),
                [](ObservedCuckooSeries& series, const std::vector<Digest>& added,
                   ObservedCuckooSeries::Delta* delta) {
                  std::vector<LinkDot> dots(added.size());
                  SEMEL_ASSERT(series.add(added, kSite, dots, delta) == added.size());
                });
}

const Registration kLookup("crdt-cuckoo-lookup",
                           "lookups in GrowCuckoo and ObservedCuckoo, beside CuckooFilter",
                           [](Session& s) {
                             compare_lookups(s, s.small());
                             compare_lookups(s, s.large() / 10);
                           });
const Registration kMerge("observed-merge", "merging two ObservedCuckoo of millions of entries",
                          measure_merges);
const Registration kDelta("crdt-cuckoo-delta", "receiving 1000 adds by a delta", compare_deltas);

}  // namespace
}  // namespace semel::bench
