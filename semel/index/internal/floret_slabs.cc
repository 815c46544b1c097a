#include "semel/index/internal/floret_slabs.h"

#include <algorithm>
#include <utility>

#include "semel/core/assert.h"
#include "semel/index/internal/container.h"

namespace semel::index_internal {
namespace {

using Slab = FloretSlabs::Slab;

// REQUIRES: `next` follows `slab`, and both were read.
void join(Slab& slab, const Slab& next) {
  slab.floret += next.floret;
  slab.count += next.count;
  slab.volume += next.volume;
  slab.changes += next.changes;
}

bool may_join(const Slab& slab, const Slab& next, std::uint64_t slab_bytes) {
  if (slab.changes == FloretSlabs::kUncounted || next.changes == FloretSlabs::kUncounted) {
    return false;
  }
  return std::min(slab.volume, next.volume) < slab_bytes / 2 &&
         slab.volume + next.volume <= slab_bytes + slab_bytes / 2;
}

template <class Take>
Result<void> read(const KeyRange& range, const FloretSlabs::Source& source, const Take& take) {
  EntryDigest digest = source.trie.entry_digest();
  Cursor& cursor = source.cursor;
  for (cursor.seek(range.first); cursor.valid(); cursor.next()) {
    const std::string_view key = cursor.key();
    if (!range.contains(key)) return {};
    take(key, cursor.value(), digest(key, cursor.value()));
  }
  return cursor.status();
}

// Returns the number of records in containers that lie wholly in the range.
std::uint64_t least_count(const NyeTrie& trie, const KeyRange& range) {
  std::uint64_t count = 0;
  for (const Container& one : trie.containers(range)) {
    if (range.covers(one.path.range())) count += one.sum.count;
  }
  return count;
}

}  // namespace

FloretSlabs::Reading::Reading(std::uint64_t slab_bytes, std::string_view first,
                              const DigestKey& key)
    : slab_bytes_(slab_bytes), key_(key) {
  slabs_.emplace_back().first = first;
}

void FloretSlabs::Reading::add(std::string_view key, std::string_view value, const Digest& entry) {
  if (slabs_.back().volume >= slab_bytes_) slabs_.emplace_back().first = key;
  Slab& slab = slabs_.back();
  slab.floret.add(entry, key_);
  slab.count += 1;
  slab.volume += key.size() + value.size();
}

std::vector<Slab> FloretSlabs::Reading::finish() {
  if (slabs_.size() > 1 && slabs_.back().volume < slab_bytes_ / 2) {
    join(slabs_[slabs_.size() - 2], slabs_.back());
    slabs_.pop_back();
  }
  return std::move(slabs_);
}

FloretSlabs::FloretSlabs(std::uint64_t slab_bytes) : slab_bytes_(slab_bytes), slabs_(1) {
  SEMEL_ASSERT(slab_bytes > 0);
  slabs_.front().changes = kUncounted;
}

FloretSlabs::FloretSlabs(std::uint64_t slab_bytes, std::vector<Slab> slabs)
    : slab_bytes_(slab_bytes), slabs_(std::move(slabs)) {
  SEMEL_ASSERT(slab_bytes > 0 && !slabs_.empty() && slabs_.front().first.empty());
}

std::size_t FloretSlabs::index_of(std::string_view key) const {
  const auto beyond = std::upper_bound(
      slabs_.begin(), slabs_.end(), key,
      [](std::string_view sought, const Slab& slab) { return sought < slab.first; });
  return static_cast<std::size_t>(beyond - slabs_.begin()) - 1;  // no key is below the first slab
}

KeyRange FloretSlabs::range_of(std::size_t index) const {
  KeyRange range{slabs_[index].first, std::nullopt};
  if (index + 1 < slabs_.size()) range.end = slabs_[index + 1].first;
  return range;
}

void FloretSlabs::note(std::string_view key) {
  const bool same = slabs_[last_noted_].first <= key &&
                    (last_noted_ + 1 == slabs_.size() || key < slabs_[last_noted_ + 1].first);
  if (!same) last_noted_ = index_of(key);
  std::uint64_t& changes = slabs_[last_noted_].changes;
  if (changes != kUncounted) ++changes;
}

void FloretSlabs::note(const KeyRange& range) {
  if (range.empty()) return;
  for (std::size_t i = index_of(range.first); i < slabs_.size(); ++i) {
    if (range.end && slabs_[i].first >= *range.end) break;
    slabs_[i].changes = kUncounted;
  }
}

template <class Wanted>
Result<void> FloretSlabs::read_again(const KeyRange& range, const Source& source,
                                     const Wanted& wanted) {
  if (range.empty()) return {};
  Result<void> outcome;
  Replacements fresh;
  for (std::size_t i = index_of(range.first); i < slabs_.size() && outcome; ++i) {
    if (range.end && slabs_[i].first >= *range.end) break;
    const KeyRange whole = range_of(i);
    if (!wanted(slabs_[i]) || !range.covers(whole)) continue;
    Reading reading(slab_bytes_, whole.first, source.key);
    outcome =
        read(whole, source, [&](std::string_view key, std::string_view value, const Digest& entry) {
          reading.add(key, value, entry);
        });
    if (outcome) fresh.emplace_back(i, reading.finish());
  }
  replace(std::move(fresh));
  return outcome;
}

Result<void> FloretSlabs::read_stale(const KeyRange& range, const Source& source) {
  return read_again(range, source, [](const Slab& slab) { return slab.changes != 0; });
}

// Each change has made the trie read a container. So reading a slab with as many changes as
// containers costs no more than those readings did.
Result<void> FloretSlabs::read_worn(const KeyRange& range, const Source& source) {
  const std::uint64_t burst = source.trie.burst_bytes();
  return read_again(range, source, [&](const Slab& slab) {
    return slab.changes != 0 && slab.changes >= slab.volume / burst;
  });
}

void FloretSlabs::replace(Replacements fresh) {
  if (fresh.empty()) return;
  std::size_t size = slabs_.size();
  for (const auto& [index, parts] : fresh) size += parts.size() - 1;
  std::vector<Slab> all;
  // Nothing is allocated from here on. So running out of memory changes nothing.
  all.reserve(size);
  const auto append = [&](Slab& slab) {
    if (!all.empty() && may_join(all.back(), slab, slab_bytes_)) {
      join(all.back(), slab);
    } else {
      all.push_back(std::move(slab));
    }
  };
  auto next = fresh.begin();
  for (std::size_t i = 0; i < slabs_.size(); ++i) {
    if (next != fresh.end() && next->first == i) {
      for (Slab& part : next->second) append(part);
      ++next;
    } else {
      append(slabs_[i]);
    }
  }
  slabs_ = std::move(all);
  last_noted_ = 0;
}

void FloretSlabs::Gathering::add(std::string_view key, std::string_view value,
                                 const Digest& entry) {
  if (!any_ || (!last_ && key >= end_)) {
    index_ = slabs_.index_of(key);
    any_ = true;
    last_ = index_ + 1 == slabs_.slabs_.size();
    if (!last_) end_ = slabs_.slabs_[index_ + 1].first;
    const Slab& slab = slabs_.slabs_[index_];
    stale_ = slab.changes != 0;
    if (stale_) seen_.push_back({index_, 0, Reading(slabs_.slab_bytes_, slab.first, key_)});
  }
  if (!stale_) return;
  seen_.back().reading.add(key, value, entry);
  ++seen_.back().count;
}

Result<void> FloretSlabs::Gathering::finish(const Source& source) {
  Replacements fresh;
  for (Seen& seen : seen_) {
    const KeyRange range = slabs_.range_of(seen.index);
    // Calls sum(), which reads, only for the few slabs that pass these checks.
    if (seen.count < slabs_.slabs_[seen.index].count / 2) continue;
    if (seen.count < least_count(source.trie, range)) continue;
    const Aggregate now = SEMEL_TRY(source.trie.sum(range, source.cursor));
    if (now.count == seen.count) fresh.emplace_back(seen.index, seen.reading.finish());
  }
  slabs_.replace(std::move(fresh));
  return {};
}

Result<std::uint64_t> FloretSlabs::unknown(std::size_t index, const Source& source) const {
  const Slab& slab = slabs_[index];
  if (slab.changes != kUncounted) return slab.changes;
  // At worst all its old records are gone, and all its present records are new.
  const Aggregate now = SEMEL_TRY(source.trie.sum(range_of(index), source.cursor));
  return slab.count + now.count;
}

Result<RangeFloret> FloretSlabs::sum(const KeyRange& range, const Source& source) const {
  RangeFloret sum;
  if (range.empty()) return sum;
  for (std::size_t i = index_of(range.first); i < slabs_.size(); ++i) {
    const KeyRange whole = range_of(i);
    if (range.end && whole.first >= *range.end) break;
    if (range.covers(whole)) {
      sum.unknown += SEMEL_TRY(unknown(i, source));
      sum.floret += slabs_[i].floret;
      continue;
    }
    SEMEL_TRY(read(intersection(range, whole), source,
                   [&](std::string_view, std::string_view, const Digest& entry) {
                     sum.floret.add(entry, source.key);
                   }));
  }
  return sum;
}

std::size_t FloretSlabs::bytes() const {
  std::size_t bytes = slabs_.capacity() * sizeof(Slab);
  for (const Slab& slab : slabs_) bytes += slab.floret.bytes().size() + slab.first.capacity();
  return bytes;
}

}  // namespace semel::index_internal
