#include "semel/hash/internal/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace semel::inline hash_internal {

struct RunningChecksum::State {
  XXH3_state_t xxh3;
};

std::uint64_t checksum(ByteView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

RunningChecksum::RunningChecksum() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh3);
}

RunningChecksum::~RunningChecksum() = default;

void RunningChecksum::add(ByteView bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

std::uint64_t RunningChecksum::value() const { return XXH3_64bits_digest(&state_->xxh3); }

}  // namespace semel::inline hash_internal
