#include "semel/window/digest_table.h"

#include <algorithm>

namespace semel {

DigestTable::DigestTable(std::uint64_t room, bool timed)
    : slots_((SEMEL_ASSERT(room > 0 && room % kRoomStep == 0), slots_for(room))) {
  if (timed) times_ms_ = LineArray<TimeMs>(slots_.size());
}

std::uint64_t DigestTable::slot_of(Digest digest) const {
  for (std::uint64_t slot = home(digest); !free(slot); slot = next(slot)) {
    if (slots_[slot] == digest) return slot;
  }
  return kNone;
}

bool DigestTable::contains(Digest digest) const {
  return digest == Digest{0, 0} ? holds_zero_ : slot_of(digest) != kNone;
}

const TimeMs* DigestTable::time_of(Digest digest) const {
  SEMEL_ASSERT(times_ms_.size() > 0);
  if (digest == Digest{0, 0}) return holds_zero_ ? &zero_ms_ : nullptr;
  const std::uint64_t slot = slot_of(digest);
  return slot == kNone ? nullptr : &times_ms_[slot];
}

void DigestTable::set(std::uint64_t slot, Digest digest, TimeMs at_ms) {
  slots_[slot] = digest;
  if (times_ms_.size() > 0) times_ms_[slot] = at_ms;
}

void DigestTable::insert(Digest digest, TimeMs at_ms) {
  SEMEL_ASSERT(!full());
  ++size_;
  if (digest == Digest{0, 0}) {
    holds_zero_ = true;
    zero_ms_ = at_ms;
    return;
  }
  std::uint64_t slot = home(digest);
  while (!free(slot)) slot = next(slot);
  set(slot, digest, at_ms);
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
void DigestTable::fill(const std::vector<Digest>& digests, std::span<const TimeMs> times_ms) {
  SEMEL_ASSERT(size_ == 0 && digests.size() <= room());
  SEMEL_ASSERT(times_ms.size() == (times_ms_.size() > 0 ? digests.size() : 0));
  std::uint64_t after = 0, after_wrap = 0;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const Digest digest = digests[i];
    const TimeMs at_ms = times_ms.empty() ? 0 : times_ms[i];
    if (digest == Digest{0, 0}) {
      holds_zero_ = true;
      zero_ms_ = at_ms;
      continue;
    }
    const std::uint64_t slot = std::max(home(digest), after);
    if (slot < slots_.size()) {
      set(slot, digest, at_ms);
      after = slot + 1;
    } else {
      while (!free(after_wrap)) ++after_wrap;
      set(after_wrap++, digest, at_ms);
    }
  }
  size_ = digests.size();
}

}  // namespace semel
