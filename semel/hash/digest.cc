#include "semel/hash/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace semel {

Digest digest(std::string_view key, std::uint64_t seed) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(key.data(), key.size(), seed);
  return {h.low64, h.high64};
}

}  // namespace semel
