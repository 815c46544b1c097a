// Cuckoo filters of 16-bit fingerprints at 95 % of load, beside the reference blocked filter, which
// cannot remove keys and has 10 bits for each, and RocksDB's filter of as many bits as ours.
#include <memory>
#include <vector>

#include "bench/harness.h"
#include "bench/peers/hash_sets.h"
#include "bench/peers/line_probe.h"
#include "bench/peers/rocksdb_filter.h"
#include "bench/peers/simple_blocked.h"
#include "bench/sets.h"
#include "semel/filter/cuckoo_filter.h"

namespace semel::bench {
namespace {

using OurCuckoo = Hashed<CuckooFilter>;

CuckooShape shape_for(std::uint64_t keys, std::uint32_t bucket_size) {
  const auto buckets = static_cast<std::uint64_t>(static_cast<double>(keys) / 0.95 / bucket_size);
  return {.bucket_size = bucket_size,
          .fingerprint_bits = 16,
          .payload_bits = 0,
          .buckets = buckets + 1,
          .hash = {}};
}

void compare_lookups(Session& session) {
  RocksDbFilter::check();
  const std::uint64_t keys = session.large();
  OurCuckoo ours(shape_for(keys, 4));
  SimpleBlocked<> simple(keys * 10);
  RocksDbFilter rocksdb(bits_per_key(ours, keys));
  const LineProbe<2> lines(ours.bits());
  fill(keys, ours, simple, rocksdb);

  session.compare(lookups("cuckoo-lookup/" + in_short(keys), keys, [&](auto compare) {
    compare("one-by-one", one_by_one("semel-cuckoo", ours, keys),
            {one_by_one("simple", simple, keys), one_by_one("rocksdb", rocksdb, keys)});
    compare("batched", batched("semel-cuckoo", ours, keys),
            {batched("simple", simple, keys), batched("rocksdb", rocksdb, keys)});
    compare("digests-one-by-one", digests_one_by_one("semel-cuckoo", ours, keys),
            {digests_one_by_one("simple", simple, keys)});
    compare("digests-batched", digests_batched("semel-cuckoo", ours, keys),
            {limit_of_memory(lines)});
  }));
}

const Registration kLookup("cuckoo-lookup-large",
                           "lookups in cuckoo filters of 16 bits, far larger than the cache",
                           compare_lookups);

// Inserts that end at the full number of keys: a slice goes in, timed, and comes out again, not
// timed.
template <class Set>
Contender inserting_at_the_top(std::string name, Set& set, std::uint64_t keys) {
  const auto inside = std::make_shared<std::vector<Key>>();
  return {std::move(name),
          [&set, inside](const Slice& slice) {
            inside->assign(slice.keys.begin(), slice.keys.end());
            std::uint64_t added = 0;
            for (const Key& key : slice.keys) added += set.add(key);
            return added;
          },
          bits_per_key(set, keys),
          [&set, inside](std::size_t) {
            for (const Key& key : *inside) SEMEL_ASSERT(set.remove(key));
          }};
}

void compare_inserts(Session& session) {
  const std::uint64_t keys = session.large() / 10;
  Workload workload = absent_keys(keys);
  workload.answers = Workload::Answers::yes;  // there is room for every key
  workload.slice = keys / 1000;

  OurCuckoo four(shape_for(keys, 4));
  OurCuckoo eight(shape_for(keys, 8));
  FlatHashSet flat(keys);
  fill(keys - workload.slice, four, eight, flat);
  session.compare({{.id = "cuckoo-insert/" + in_short(keys) + "/at-95-percent",
                    .workload = workload,
                    .ours = inserting_at_the_top("semel-cuckoo-4", four, keys),
                    .peers = {inserting_at_the_top("semel-cuckoo-8", eight, keys),
                              inserting_at_the_top("flat-hash-set", flat, keys)}}});
}

const Registration kInsert("cuckoo-insert", "inserts into cuckoo filters that end at 95 % of load",
                           compare_inserts);

}  // namespace
}  // namespace semel::bench
