#include "semel/window/internal/digest_table.h"

#include <algorithm>

namespace semel::window_internal {

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

bool DigestTable::add(Digest digest) {
  SEMEL_ASSERT(!full());
  if (digest == Digest{0, 0}) {
    if (holds_zero_) return false;
    holds_zero_ = true;
  } else {
    std::uint64_t slot = home(digest);
    for (; !free(slot); slot = next(slot)) {
      if (slots_[slot] == digest) return false;
    }
    set(slot, digest, 0);
  }
  ++size_;
  return true;
}

// No other digest was pushed past its slot.
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

// Homes ascend with the digests, so the next free slot is never before the last one taken. After
// the end of the array the search continues at its first slot, where the same holds.
void DigestTable::append(End& end, Digest digest, TimeMs at_ms) {
  SEMEL_ASSERT(!full());
  ++size_;
  if (digest == Digest{0, 0}) {
    holds_zero_ = true;
    zero_ms_ = at_ms;
    return;
  }
  std::uint64_t slot = std::max(home(digest), end.after);
  if (slot < slots_.size()) {
    end.after = slot + 1;
  } else {
    while (!free(end.after_wrap)) ++end.after_wrap;
    slot = end.after_wrap;
  }
  set(slot, digest, at_ms);
}

}  // namespace semel::window_internal
