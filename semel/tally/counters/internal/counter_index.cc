#include "semel/tally/counters/internal/counter_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "semel/core/assert.h"

namespace semel::tally::internal {

const std::size_t CounterIndex::kSegmentBytes = sizeof(Segment);

CounterIndex::CounterIndex(Arena& arena) : arena_(&arena), directory_(1, arena.make<Segment>()) {}

// Returns the first slot with the tag of the hash for which found(counter) holds, or nullptr. It
// compares all slots of a line before it chooses one, because the processor cannot predict the
// slot.
template <class Found>
CounterIndex::Slot* CounterIndex::search(Segment& segment, Hash hash, Found found) {
  std::size_t at = home(hash);
  for (std::size_t probe = 0; probe < kProbes; ++probe, at = (at + kLine) % kSlots) {
    Slot* const line = &segment.slots[at];
    std::uint32_t alike = 0;
    for (std::size_t i = 0; i < kLine; ++i) {
      alike |= static_cast<std::uint32_t>((line[i] ^ tag(hash)) >> 48 == 0) << i;
    }
    for (; alike != 0; alike &= alike - 1) {
      Slot* const slot = line + std::countr_zero(alike);
      if (found(counter_in(*slot))) return slot;
    }
    if (line[kLine - 1] == kFree) return nullptr;
  }
  return nullptr;
}

Counter* CounterIndex::candidate(Hash hash) const {
  const Slot* const slot = search(segment(hash), hash, [](const Counter*) { return true; });
  return slot == nullptr ? nullptr : counter_in(*slot);
}

Counter* CounterIndex::find(Hash hash, std::string_view name) const {
  const Slot* const slot =
      search(segment(hash), hash, [&](const Counter* counter) { return counter->name() == name; });
  return slot == nullptr ? nullptr : counter_in(*slot);
}

// Returns the first slot that a counter with this hash may take, or nullptr.
CounterIndex::Slot* CounterIndex::open_slot(Segment& segment, Hash hash) {
  std::size_t at = home(hash);
  for (std::size_t probe = 0; probe < kProbes; ++probe, at = (at + kLine) % kSlots) {
    for (Slot* slot = &segment.slots[at]; slot != &segment.slots[at] + kLine; ++slot) {
      if (*slot == kFree || *slot == kGone) return slot;
    }
  }
  return nullptr;
}

void CounterIndex::make_room(Hash hash) {
  while (is_full(segment(hash), hash)) {
    if (!split(hash)) return;
  }
}

bool CounterIndex::put_into(Segment& segment, Hash hash, Counter* counter) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(counter);
  SEMEL_ASSERT(address >> 48 == 0);
  Slot* const slot = open_slot(segment, hash);
  if (slot == nullptr) return false;
  if (*slot == kFree) ++segment.taken;
  *slot = tag(hash) | address;
  return true;
}

void CounterIndex::put(Hash hash, Counter* counter) noexcept {
  ++size_;
  if (!put_into(segment(hash), hash, counter)) ++declined_;
}

void CounterIndex::erase(Hash hash, const Counter* counter) noexcept {
  --size_;
  Segment& from = segment(hash);
  Slot* const slot =
      search(from, hash, [&](const Counter* candidate) { return candidate == counter; });
  if (slot == nullptr) {
    --declined_;
    return;
  }
  Slot* const line =
      &from.slots[static_cast<std::size_t>(slot - from.slots.data()) / kLine * kLine];
  if (line[kLine - 1] != kFree) {
    *slot = kGone;
    return;
  }
  Slot* const end = std::find(line, line + kLine, kFree);
  *slot = end[-1];
  end[-1] = kFree;
  --from.taken;
}

bool CounterIndex::may_double() const {
  return 2 * directory_.size() * kSlots <= kMostSpread * (size_ + kSlots);
}

// Returns false and changes nothing if the directory would become too large.
bool CounterIndex::split(Hash hash) {
  Segment& full = segment(hash);
  if (full.depth == depth_ && !may_double()) return false;
  std::vector<Segment*> doubled;
  if (full.depth == depth_) {
    doubled.swap(spare_);
    doubled.resize(2 * directory_.size());
    for (std::size_t i = 0; i < doubled.size(); ++i) doubled[i] = directory_[i / 2];
  }
  auto* const sibling = arena_->make<Segment>();
  if (!doubled.empty()) {  // nothing can fail from here on
    directory_ = std::move(doubled);
    ++depth_;
  }
  // The sibling gets the upper half of the segment's places in the directory.
  const std::size_t places = std::size_t{1} << (depth_ - full.depth);
  const std::size_t first = place(hash) / places * places;
  std::fill_n(&directory_[first + places / 2], places / 2, sibling);
  sibling->depth = ++full.depth;
  share_out(full, *sibling);
  return true;
}

// Puts all counters of a segment in again, without the marks. Counters whose hash has a one in the
// last bit of the depth go to the sibling.
void CounterIndex::share_out(Segment& segment, Segment& sibling) noexcept {
  std::array<Counter*, kSlots> counters;
  std::size_t count = 0;
  for (const Slot slot : segment.slots) {
    if (slot == kFree || slot == kGone) continue;
    counters[count++] = counter_in(slot);
    __builtin_prefetch(counters[count - 1]);
  }
  segment.slots.fill(kFree);
  segment.taken = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Hash hash = hash_of(counters[i]->name());
    const bool upper = (hash >> (64 - segment.depth) & 1) != 0;
    if (!put_into(upper ? sibling : segment, hash, counters[i])) ++declined_;
  }
}

}  // namespace semel::tally::internal
