#include "cli/digest_set.h"

#include <utility>

#include "semel/core/assert.h"

namespace semel::cli {
namespace {

constexpr Digest kFree = {0, 0};

}  // namespace

void DigestSet::add(std::span<const Digest> keys, std::span<bool> added) {
  SEMEL_ASSERT(keys.size() == added.size());
  while (keys_ + keys.size() > slots_.size() / 4 * 3) grow();
  for_each_ahead(
      keys.size(), [&](std::size_t i) { prefetch_for_write(&slots_[home(keys[i])]); },
      [&](std::size_t i) { added[i] = add(keys[i]); });
}

bool DigestSet::add(Digest key) {
  if (key == kFree) {
    keys_ += !has_zero_;
    return !std::exchange(has_zero_, true);
  }
  std::size_t slot = home(key);
  while (slots_[slot] != kFree) {
    if (slots_[slot] == key) return false;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  slots_[slot] = key;
  ++keys_;
  return true;
}

void DigestSet::grow() {
  LineVector<Digest> old(2 * slots_.size());
  std::swap(slots_, old);
  keys_ = has_zero_;
  for (const Digest key : old) {
    if (key != kFree) add(key);
  }
}

}  // namespace semel::cli
