// A program that knows only an installed Semel. It needs everything that an installation must
// bring: the headers, the library, and libsodium behind it.
#include <cstdio>

#include "semel/filter/bloom_filter.h"
#include "semel/hash/hasher.h"

int main() {
  const semel::DigestKey key(semel::Secret::random(), semel::KeyPurpose::key);
  for (const semel::Hasher& hash : {semel::Hasher::fast(7), semel::Hasher::keyed(key)}) {
    const auto shape = semel::BloomShape::for_goal({.keys = 1000, .fpr = 0.01, .hash = hash.id()});
    semel::BloomFilter filter(*shape);
    filter.add(hash("first"));
    if (!filter.contains(hash("first")) || filter.contains(hash("never"))) return 1;
  }
  std::puts("semel works outside");
}
