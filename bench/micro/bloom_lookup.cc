// Lookups in Bloom filters, beside libbloom, RocksDB's filter, the reference and the memory itself.
//
// Ours is made for an error of 1 %, like libbloom; RocksDB's filter and the reference get as many
// bits as ours.
#include "bench/harness.h"
#include "bench/peers/libbloom.h"
#include "bench/peers/line_probe.h"
#include "bench/peers/rocksdb_filter.h"
#include "bench/peers/simple_blocked.h"
#include "bench/sets.h"
#include "semel/filter/bloom_filter.h"

namespace semel::bench {
namespace {

using OurBloom = Hashed<BloomFilter>;

BloomShape shape_for(std::uint64_t keys, BloomLayout layout, double error) {
  return *BloomShape::for_goal({.keys = keys, .fpr = error, .layout = layout});
}

void compare_at_one_percent(Session& session, std::uint64_t keys) {
  RocksDbFilter::check();
  OurBloom ours(shape_for(keys, BloomLayout::blocked, 0.01));
  OurBloom plain(shape_for(keys, BloomLayout::plain, 0.01));
  Libbloom libbloom(keys, 0.01);
  RocksDbFilter rocksdb(bits_per_key(ours, keys));
  RocksDbFilter rocksdb_2m(bits_per_key(ours, keys));
  SimpleBlocked<> simple(ours.bits());
  const LineProbe<1> lines(ours.bits());
  fill(keys, ours, plain, libbloom, rocksdb, rocksdb_2m, simple);
  rocksdb_2m.pages_of_2_mib();

  session.compare(lookups("bloom-lookup/" + in_short(keys), keys, [&](auto compare) {
    compare("one-by-one", one_by_one("semel-blocked", ours, keys),
            {one_by_one("rocksdb", rocksdb, keys), one_by_one("rocksdb-2M-pages", rocksdb_2m, keys),
             one_by_one("libbloom", libbloom, keys), one_by_one("simple", simple, keys)});
    compare("batched", batched("semel-blocked", ours, keys),
            {batched("rocksdb", rocksdb, keys), batched("rocksdb-2M-pages", rocksdb_2m, keys),
             one_by_one("libbloom", libbloom, keys), batched("simple", simple, keys)});

    // Without hashing: the filter against the memory.
    compare("digests-one-by-one", digests_one_by_one("semel-blocked", ours, keys),
            {digests_one_by_one("simple", simple, keys)});
    compare("digests-batched", digests_batched("semel-blocked", ours, keys),
            {limit_of_memory(lines)});

    // Less memory, more misses.
    compare("plain-one-by-one", one_by_one("semel-plain", plain, keys),
            {one_by_one("libbloom", libbloom, keys)});
    compare("plain-batched", batched("semel-plain", plain, keys),
            {one_by_one("libbloom", libbloom, keys)});
  }));
}

const Registration kLarge("bloom-lookup-large",
                          "lookups in Bloom filters of 1 %, far larger than the cache",
                          [](Session& s) { compare_at_one_percent(s, s.large()); });
const Registration kSmall("bloom-lookup-small", "lookups in Bloom filters of 1 %, within the cache",
                          [](Session& s) { compare_at_one_percent(s, s.small()); });

// Compares the number of lines, where one line is not enough.
void compare_lines(Session& session) {
  const std::uint64_t keys = session.large() / 10;
  constexpr double kError = 1e-5;
  OurBloom one(shape_for(keys, BloomLayout::blocked, kError));
  OurBloom two(shape_for(keys, BloomLayout::blocked2, kError));
  OurBloom three(shape_for(keys, BloomLayout::blocked3, kError));
  OurBloom plain(shape_for(keys, BloomLayout::plain, kError));
  RocksDbFilter rocksdb(bits_per_key(two, keys));
  Libbloom libbloom(keys, kError);
  fill(keys, one, two, three, plain, rocksdb, libbloom);

  session.compare(lookups("bloom-lines/" + in_short(keys), keys, [&](auto compare) {
    compare("batched", batched("semel-blocked2", two, keys),
            {batched("semel-blocked", one, keys), batched("semel-blocked3", three, keys),
             batched("semel-plain", plain, keys), batched("rocksdb", rocksdb, keys),
             one_by_one("libbloom", libbloom, keys)});
  }));
}

const Registration kLines("bloom-lines", "lookups in Bloom filters of 1e-5, by number of lines",
                          compare_lines);

}  // namespace
}  // namespace semel::bench
