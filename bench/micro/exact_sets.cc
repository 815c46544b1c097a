// Filters beside exact sets: the error buys time and memory.
#include "bench/harness.h"
#include "bench/peers/hash_sets.h"
#include "bench/sets.h"
#include "semel/filter/bloom_filter.h"
#include "semel/filter/cuckoo_filter.h"

namespace semel::bench {
namespace {

void compare(Session& session, std::uint64_t keys) {
  Hashed<BloomFilter> bloom(*BloomShape::for_goal({.keys = keys, .fpr = 0.001}));
  Hashed<CuckooFilter> cuckoo(*CuckooShape::for_goal({.keys = keys, .fpr = 0.001}));
  UnorderedSet standard(keys);
  FlatHashSet flat(keys);
  fill(keys, bloom, cuckoo, standard, flat);

  const std::string id = "exact-sets/" + in_short(keys) + '/';
  std::vector<Comparison> lookups;
  for (const bool there : {false, true}) {
    lookups.push_back({.id = id + (there ? "present-one-by-one" : "absent-one-by-one"),
                       .workload = there ? present_keys(keys) : absent_keys(keys),
                       .ours = one_by_one("semel-blocked", bloom, keys),
                       .peers = {one_by_one("semel-cuckoo", cuckoo, keys),
                                 one_by_one("unordered-set", standard, keys),
                                 one_by_one("flat-hash-set", flat, keys)}});
  }
  session.compare(lookups);
  session.compare({{.id = id + "insert-one-by-one",
                    .workload = new_keys(keys),
                    .ours = adding_one_by_one("semel-blocked", bloom, keys),
                    .peers = {adding_one_by_one("semel-cuckoo", cuckoo, keys),
                              adding_one_by_one("unordered-set", standard, keys),
                              adding_one_by_one("flat-hash-set", flat, keys)}}});
}

const Registration kSmall("exact-sets-small", "filters of 1e-3 beside exact sets, within the cache",
                          [](Session& s) { compare(s, s.small()); });
const Registration kMedium("exact-sets-medium",
                           "filters of 1e-3 beside exact sets, ten times as large",
                           [](Session& s) { compare(s, s.small() * 10); });

}  // namespace
}  // namespace semel::bench
