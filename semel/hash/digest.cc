#include "semel/hash/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace semel {
namespace {

constexpr std::size_t kShort = 16;  // XXH3 has a path of its own up to here

inline Digest in_line(std::string_view key, std::uint64_t seed) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(key.data(), key.size(), seed);
  return {h.low64, h.high64};
}

[[gnu::noinline]] Digest of_long(std::string_view key, std::uint64_t seed) {
  return in_line(key, seed);
}

}  // namespace

// Long keys have a function of their own: its loops need registers that must be saved first. A
// short key would pay a tenth of its time for that.
Digest digest(std::string_view key, std::uint64_t seed) {
  if (key.size() > kShort) return of_long(key, seed);
  return in_line(key, seed);
}

}  // namespace semel
