#include "semel/window/digest_table.h"

#include <algorithm>

namespace semel {

DigestTable::DigestTable(std::uint64_t room)
    : slots_((SEMEL_ASSERT(room > 0 && room % kRoomStep == 0), slots_for(room))) {}

bool DigestTable::contains(Digest digest) const {
  if (digest == Digest{0, 0}) return holds_zero_;
  for (std::uint64_t slot = home(digest); !free(slot); slot = next(slot)) {
    if (slots_[slot] == digest) return true;
  }
  return false;
}

void DigestTable::insert(Digest digest) {
  SEMEL_ASSERT(!full());
  ++size_;
  if (digest == Digest{0, 0}) {
    holds_zero_ = true;
    return;
  }
  std::uint64_t slot = home(digest);
  while (!free(slot)) slot = next(slot);
  slots_[slot] = digest;
}

// No other went past its slot.
void DigestTable::take_back(Digest digest) {
  SEMEL_ASSERT(size_ > 0);
  --size_;
  if (digest == Digest{0, 0}) {
    holds_zero_ = false;
    return;
  }
  std::uint64_t slot = home(digest);
  while (slots_[slot] != digest) slot = next(slot);
  slots_[slot] = {0, 0};
}

// Homes ascend with the digests, so that the next free slot is never before the last one taken; past
// the end of the array it is the first one free, and the same holds again.
void DigestTable::fill(const std::vector<Digest>& digests) {
  SEMEL_ASSERT(size_ == 0 && digests.size() <= room());
  std::uint64_t after = 0, after_wrap = 0;
  for (const Digest& digest : digests) {
    if (digest == Digest{0, 0}) {
      holds_zero_ = true;
      continue;
    }
    const std::uint64_t slot = std::max(home(digest), after);
    if (slot < slots_.size()) {
      slots_[slot] = digest;
      after = slot + 1;
    } else {
      while (!free(after_wrap)) ++after_wrap;
      slots_[after_wrap++] = digest;
    }
  }
  size_ = digests.size();
}

void DigestTable::append_to(std::vector<Digest>& out) const {
  if (holds_zero_) out.push_back({0, 0});
  for (std::uint64_t slot = 0; slot < slots_.size(); ++slot) {
    if (!free(slot)) out.push_back(slots_[slot]);
  }
}

}  // namespace semel
