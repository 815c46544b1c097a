// Adding to Bloom filters of 1 %, from empty to full (small), or the first keys of many (large).
//
// Ours returns for every key whether it was new, like `simple-answering` and unlike `simple`.
// RocksDB's filter is left out, because its builder keeps hashes and makes the filter from all of
// them at the end.
#include "bench/harness.h"
#include "bench/peers/libbloom.h"
#include "bench/peers/simple_blocked.h"
#include "bench/sets.h"
#include "semel/filter/bloom_filter.h"

namespace semel::bench {
namespace {

void compare(Session& session, std::uint64_t keys) {
  Hashed<BloomFilter> ours(*BloomShape::for_goal({.keys = keys, .fpr = 0.01}));
  Libbloom libbloom(keys, 0.01);
  SimpleBlocked<> simple(ours.bits());
  SimpleBlocked<true> answering(ours.bits());

  const std::string id = "bloom-insert/" + in_short(keys) + '/';
  session.compare({{.id = id + "one-by-one",
                    .workload = new_keys(keys),
                    .ours = adding_one_by_one("semel-blocked", ours, keys),
                    .peers = {adding_one_by_one("simple", simple, keys),
                              adding_one_by_one("simple-answering", answering, keys),
                              adding_one_by_one("libbloom", libbloom, keys)}}});
  session.compare({{.id = id + "batched",
                    .workload = new_keys(keys),
                    .ours = adding_batched("semel-blocked", ours, keys),
                    .peers = {adding_batched("simple", simple, keys),
                              adding_batched("simple-answering", answering, keys),
                              adding_one_by_one("libbloom", libbloom, keys)}}});
}

const Registration kLarge("bloom-insert-large",
                          "adding to Bloom filters of 1 %, far larger than the cache",
                          [](Session& s) { compare(s, s.large()); });
const Registration kSmall("bloom-insert-small", "adding to Bloom filters of 1 %, within the cache",
                          [](Session& s) { compare(s, s.small()); });

}  // namespace
}  // namespace semel::bench
