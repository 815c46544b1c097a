#include "semel/window/digest_table.h"

#include <algorithm>
#include <utility>

namespace semel {

DigestTable::DigestTable(std::uint64_t room)
    : slots_((SEMEL_ASSERT(room > 0 && room % kRoomStep == 0), slots_for(room))),
      cleared_(divide_up(divide_up(slots_, kBlock), 64)),
      memory_(LineAllocator<Digest>().allocate(slots_), Free{slots_}) {}

DigestTable::DigestTable(const DigestTable& other) : DigestTable(other.room()) {
  size_ = other.size_;
  holds_zero_ = other.holds_zero_;
  cleared_ = other.cleared_;
  for (std::uint64_t slot = 0; slot < slots_; slot += kBlock) {
    if (!cleared(slot)) continue;
    std::copy_n(&other.memory_[slot], std::min(kBlock, slots_ - slot), &memory_[slot]);
  }
}

DigestTable& DigestTable::operator=(DigestTable other) noexcept {
  slots_ = other.slots_;
  size_ = other.size_;
  holds_zero_ = other.holds_zero_;
  cleared_ = std::move(other.cleared_);
  memory_ = std::move(other.memory_);
  return *this;
}

void DigestTable::clear_block_of(std::uint64_t slot) {
  const std::uint64_t block = slot / kBlock, first = block * kBlock;
  std::fill_n(&memory_[first], std::min(kBlock, slots_ - first), Digest{0, 0});
  cleared_[block / 64] |= std::uint64_t{1} << (block % 64);
}

void DigestTable::put(std::uint64_t slot, Digest digest) {
  if (!cleared(slot)) clear_block_of(slot);
  memory_[slot] = digest;
}

bool DigestTable::contains(Digest digest) const {
  if (digest == Digest{0, 0}) return holds_zero_;
  for (std::uint64_t slot = home(digest); !free(slot); slot = next(slot)) {
    if (memory_[slot] == digest) return true;
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
  put(slot, digest);
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
    if (slot < slots_) {
      put(slot, digest);
      after = slot + 1;
    } else {
      while (!free(after_wrap)) ++after_wrap;
      put(after_wrap++, digest);
    }
  }
  size_ = digests.size();
}

void DigestTable::append_to(std::vector<Digest>& out) const {
  if (holds_zero_) out.push_back({0, 0});
  for (std::uint64_t slot = 0; slot < slots_; ++slot) {
    if (!free(slot)) out.push_back(memory_[slot]);
  }
}

}  // namespace semel
