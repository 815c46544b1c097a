// Two sites collect what they have seen, each on its own, and merge.
#include <cstdio>

#include "semel/filter/bloom_filter.h"
#include "semel/hash/hasher.h"

int main() {
  const semel::Hasher hash = semel::Hasher::fast(42);
  // A Result: `*` takes the value, and ends the program if this goal made no sense.
  const semel::BloomShape shape =
      *semel::BloomShape::for_goal({.keys = 1'000'000, .fpr = 0.001, .hash = hash.id()});

  semel::BloomFilter here(shape), there(shape);
  here.add(hash("order-1001"));
  there.add(hash("order-1002"));
  if (!here.merge(there)) return 1;

  std::printf("1001: %d  1002: %d  1003: %d  error now: %.2g\n", here.contains(hash("order-1001")),
              here.contains(hash("order-1002")), here.contains(hash("order-1003")),
              here.live_fpr());
}
