#include "semel/sift/claim_table.h"

#include <algorithm>
#include <new>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/hash/internal/digests_in_order.h"
#include "semel/hash/internal/sealed.h"

namespace semel {
namespace {

constexpr Format kFormat{"CLM", 1, "claims"};  // docs/formats/claims_v1.md
constexpr std::size_t kEntrySize = 33;

// While the heap has fewer places than this, it keeps the places of entries that are gone.
constexpr std::size_t kFewDue = 64;

// Returns the room above which memory is given back: twice what growing entries take.
constexpr std::size_t most_room(std::size_t entries) { return 4 * kFewDue + 8 * entries; }

}  // namespace

ClaimTable::ClaimTable(TimeMs keep_ms, TimeMs now_ms) : keep_ms_(keep_ms), time_(now_ms) {
  SEMEL_ASSERT(keep_ms >= 0);
}

ClaimTable::Entry* ClaimTable::claimed_by(Digest id, std::uint64_t owner) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return nullptr;
  Entry& entry = found->second;
  return entry.owner == owner && !entry.committed ? &entry : nullptr;
}

// Rebuilds the heap from the entries.
void ClaimTable::list_due() {
  std::vector<Due> due;
  due.reserve(entries_.size() + 1);
  for (const auto& [held, entry] : entries_) due.push_back({entry.time_ms, held});
  std::make_heap(due.begin(), due.end(), later);
  due_ = std::move(due);
}

// Notes a time before an entry gets it: if memory runs out, nothing has changed. The heap is
// rebuilt when most of its entries are gone, which costs O(1) a call on average.
void ClaimTable::look_again(Digest id, TimeMs time_ms) {
  if (due_.size() >= kFewDue + 2 * entries_.size()) list_due();
  due_.push_back({time_ms, id});
  std::push_heap(due_.begin(), due_.end(), later);
}

// Gives back the memory of a peak after entries are gone. That needs a little memory first; if
// there is none, nothing changes.
void ClaimTable::trim() {
  const std::size_t most = most_room(entries_.size());
  try {
    if (due_.capacity() > most) list_due();
    if (entries_.bucket_count() > most) entries_.rehash(0);
  } catch (const std::bad_alloc&) {
    return;
  }
}

void ClaimTable::extend(Digest id, Entry& entry, TimeMs until_ms) {
  until_ms = std::max(until_ms, now());
  if (until_ms <= entry.time_ms) return;
  look_again(id, until_ms);
  entry.time_ms = until_ms;
}

ClaimAnswer ClaimTable::claim(Digest id, std::uint64_t owner, TimeMs until_ms) {
  until_ms = std::max(until_ms, now());
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    look_again(id, until_ms);
    entries_.emplace(id, Entry{owner, until_ms, false});
    return ClaimAnswer::fresh;
  }
  Entry& entry = found->second;
  if (entry.committed) return ClaimAnswer::seen;
  if (entry.owner == owner) {
    extend(id, entry, until_ms);
    return ClaimAnswer::fresh;
  }
  if (now() < entry.time_ms) return ClaimAnswer::pending;
  look_again(id, until_ms);
  entry = {owner, until_ms, false};
  ++counts_.taken_over;
  return ClaimAnswer::fresh;
}

// Returns the entry of the id as after advance(now_ms); nullptr if there is none.
const ClaimTable::Entry* ClaimTable::find(Digest id, TimeMs now_ms) const {
  if (entries_.empty()) return nullptr;
  const auto found = entries_.find(id);
  if (found == entries_.end() || older_than(found->second.time_ms, keep_ms_, now_ms))
    return nullptr;
  return &found->second;
}

ClaimAnswer ClaimTable::look(Digest id, TimeMs now_ms) const {
  const Entry* const entry = find(id, now_ms);
  if (entry == nullptr) return ClaimAnswer::fresh;
  if (entry->committed) return ClaimAnswer::seen;
  return std::max(now_ms, now()) < entry->time_ms ? ClaimAnswer::pending : ClaimAnswer::fresh;
}

std::optional<std::uint64_t> ClaimTable::owner(Digest id, TimeMs now_ms) const {
  const Entry* const entry = find(id, now_ms);
  return entry == nullptr ? std::nullopt : std::optional(entry->owner);
}

ClaimAnswer ClaimTable::renew(Digest id, std::uint64_t owner, TimeMs until_ms) {
  Entry* const entry = claimed_by(id, owner);
  if (entry == nullptr) return ClaimAnswer::lost;
  extend(id, *entry, until_ms);
  return ClaimAnswer::done;
}

ClaimAnswer ClaimTable::commit(Digest id, std::uint64_t owner) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.owner != owner) return ClaimAnswer::lost;
  Entry& entry = found->second;
  if (entry.committed) return ClaimAnswer::done;
  look_again(id, now());
  entry.time_ms = now();
  entry.committed = true;
  ++commits_;
  return ClaimAnswer::done;
}

ClaimAnswer ClaimTable::release(Digest id, std::uint64_t owner) {
  if (claimed_by(id, owner) == nullptr) return ClaimAnswer::lost;
  entries_.erase(id);
  trim();
  return ClaimAnswer::done;
}

ClaimAnswer ClaimTable::forget(Digest id, std::uint64_t owner) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return ClaimAnswer::lost;
  if (!found->second.committed || found->second.owner != owner) return ClaimAnswer::lost;
  entries_.erase(found);
  --commits_;
  trim();
  return ClaimAnswer::done;
}

bool ClaimTable::take_over(Digest id) {
  const Entry* const entry = find(id, now());
  if (entry == nullptr || entry->committed) return false;
  entries_.erase(id);
  trim();
  ++counts_.taken_over;
  return true;
}

void ClaimTable::advance(TimeMs now_ms) {
  if (!time_.advance(now_ms)) return;
  while (!due_.empty() && older_than(due_.front().time_ms, keep_ms_, now())) {
    const Due due = due_.front();
    std::pop_heap(due_.begin(), due_.end(), later);
    due_.pop_back();
    const auto found = entries_.find(due.id);
    if (found == entries_.end() || found->second.time_ms != due.time_ms) continue;
    commits_ -= found->second.committed;
    ++counts_.dropped;
    entries_.erase(found);
  }
  trim();
}

ClaimCounts ClaimTable::counts() const {
  ClaimCounts counts = counts_;
  counts.backward_steps = time_.backward_steps();
  return counts;
}

std::uint64_t ClaimTable::bytes() const {
  // A node holds the value, the link to the next node, and the overhead of malloc.
  constexpr std::uint64_t kNode = sizeof(Entries::value_type) + 2 * sizeof(void*);
  return sizeof(*this) + entries_.size() * kNode + entries_.bucket_count() * sizeof(void*) +
         due_.capacity() * sizeof(Due);
}

bool ClaimTable::renew(std::uint64_t section) {
  constexpr std::size_t kBuckets = 64;
  const std::size_t buckets = entries_.bucket_count();
  if (section >= divide_up(buckets, kBuckets)) return false;
  const std::size_t first = section * kBuckets;
  Entries fresh;
  for (std::size_t bucket = first; bucket < std::min(buckets, first + kBuckets); ++bucket) {
    fresh.insert(entries_.begin(bucket), entries_.end(bucket));
  }
  // As many entries come as went, so that the table keeps its buckets.
  while (!fresh.empty()) {
    entries_.erase(fresh.begin()->first);
    entries_.insert(fresh.extract(fresh.begin()));
  }
  return true;
}

void ClaimTable::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    w.i64(keep_ms_);
    w.i64(now());
    w.u64(entries_.size());
    if (w.sink().only_measures(entries_.size() * kEntrySize)) return;
    const auto all = [](const Entry&) { return true; };
    for_each_in_order(entries_, all, [&](Digest id, const Entry& entry) {
      write(w, id);
      w.u64(entry.owner);
      w.i64(entry.time_ms);
      w.boolean(entry.committed);
    });
  });
}

Result<ClaimTable> ClaimTable::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const TimeMs keep_ms = r.i64();
  const TimeMs now_ms = r.i64();
  const std::uint64_t size = r.u64();
  if (!r.ok() || keep_ms < 0) return corrupt(kFormat, "header");
  // Length before allocation: until here the size is only a claim.
  if (r.rest() % kEntrySize != 0 || r.rest() / kEntrySize != size) return corrupt(kFormat, "size");

  ClaimTable table(keep_ms, now_ms);
  table.entries_.reserve(size);
  table.due_.reserve(size);
  Digest last{};
  for (std::uint64_t n = 0; n < size; ++n) {
    const Digest id = read_digest(r);
    const Entry entry{r.u64(), r.i64(), r.boolean()};
    if (!r.ok()) return corrupt(kFormat, "state of an entry");
    if (n > 0 && id <= last) return corrupt(kFormat, "order of ids");
    if (older_than(entry.time_ms, keep_ms, now_ms) || (entry.committed && entry.time_ms > now_ms)) {
      return corrupt(kFormat, "time of an entry");
    }
    table.entries_.emplace(id, entry);
    table.due_.push_back({entry.time_ms, id});
    table.commits_ += entry.committed;
    last = id;
  }
  std::make_heap(table.due_.begin(), table.due_.end(), later);
  return table;
}

bool ClaimTable::operator==(const ClaimTable& other) const {
  return keep_ms_ == other.keep_ms_ && now() == other.now() && entries_ == other.entries_;
}

}  // namespace semel
