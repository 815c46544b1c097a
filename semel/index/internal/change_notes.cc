#include "semel/index/internal/change_notes.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace semel::index_internal {
namespace {

// Returns the key at `at` and moves `at` past it.
std::string_view next_key(std::string_view keys, std::size_t& at) {
  std::size_t size = 0;
  std::memcpy(&size, keys.data() + at, sizeof size);
  const std::string_view key = keys.substr(at + sizeof size, size);
  at += sizeof size + size;
  return key;
}

}  // namespace

void ChangeNotes::note(std::string_view key) noexcept {
  if (everything_) return;
  const std::size_t size = key.size();
  const std::size_t before = keys_.size();
  try {
    keys_.append(reinterpret_cast<const char*>(&size), sizeof size).append(key);
  } catch (const std::bad_alloc&) {
    keys_.resize(before);
    note_everything();
  }
}

void ChangeNotes::note(const KeyRange& range) noexcept {
  if (everything_ || range.empty()) return;
  try {
    ranges_.push_back(range);
    range_bytes_ += sizeof range + range.first.size() + (range.end ? range.end->size() : 0);
  } catch (const std::bad_alloc&) {
    note_everything();
  }
}

// Frees the memory, which an assignment might keep.
void ChangeNotes::clear() noexcept {
  std::string().swap(keys_);
  std::vector<KeyRange>().swap(ranges_);
  range_bytes_ = 0;
}

void ChangeNotes::note_everything() noexcept {
  clear();
  everything_ = true;
}

KeyRange ChangeNotes::hull() const {
  std::string_view least;
  std::string_view greatest;
  for (std::size_t at = 0; at < keys_.size();) {
    const bool none = at == 0;
    const std::string_view key = next_key(keys_, at);
    least = none ? key : std::min(least, key);
    greatest = std::max(greatest, key);
  }
  KeyRange hull{std::string(least), successor(greatest)};
  if (keys_.empty()) hull = ranges_.front();
  for (const KeyRange& range : ranges_) {
    hull.first = std::min(hull.first, range.first);
    if (!range.end) hull.end.reset();
    if (hull.end && *range.end > *hull.end) hull.end = range.end;
  }
  return hull;
}

void ChangeNotes::collapse() noexcept {
  if (keys_.empty() && ranges_.empty()) return;
  try {
    const KeyRange range = hull();
    clear();
    note(range);
  } catch (const std::bad_alloc&) {
    note_everything();
  }
}

void ChangeNotes::tell(ChangeObserver& told) const {
  if (everything_) told.changed(KeyRange::all());
  for (std::size_t at = 0; at < keys_.size();) told.changed(next_key(keys_, at));
  for (const KeyRange& range : ranges_) told.changed(range);
}

std::size_t ChangeNotes::bytes() const { return keys_.capacity() + range_bytes_; }

}  // namespace semel::index_internal
