#include "semel/sift/claim_table.h"

#include <algorithm>
#include <new>

#include "semel/core/assert.h"
#include "semel/hash/seal.h"
#include "semel/window/digest_order.h"

namespace semel {
namespace {

// docs/formats/claims_v1.md. All integers little-endian.
constexpr std::uint32_t kMagic = 0x314c4353;  // "SCL1"
constexpr std::size_t kEntrySize = 33;
constexpr std::size_t kTrailerSize = 8;

// Below this many, it does not pay to rid the heap of entries that have gone.
constexpr std::size_t kFewDue = 64;

// Room for more than this is given back: twice what entries take while they grow.
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

// Makes the heap anew, of the entries that there are.
void ClaimTable::list_due() {
  std::vector<Due> due;
  due.reserve(entries_.size() + 1);
  for (const auto& [held, entry] : entries_) due.push_back({entry.time_ms, held});
  std::make_heap(due.begin(), due.end(), later);
  due_ = std::move(due);
}

// Called before an entry gets this time: if memory runs out, nothing has changed. The heap is made
// anew when most of it is of entries that have gone, which costs O(1) a call on average.
void ClaimTable::look_again(Digest id, TimeMs time_ms) {
  if (due_.size() >= kFewDue + 2 * entries_.size()) list_due();
  due_.push_back({time_ms, id});
  std::push_heap(due_.begin(), due_.end(), later);
}

// Called after entries have gone: gives back the room that a peak of claims has left. That takes a
// little memory first; without it everything stays as it is.
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

Claim ClaimTable::claim(Digest id, std::uint64_t owner, TimeMs until_ms) {
  until_ms = std::max(until_ms, now());
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    look_again(id, until_ms);
    entries_.emplace(id, Entry{owner, until_ms, false});
    return Claim::granted;
  }
  Entry& entry = found->second;
  if (entry.committed) return Claim::committed;
  if (entry.owner == owner) {
    extend(id, entry, until_ms);
    return Claim::granted;
  }
  if (now() < entry.time_ms) return Claim::pending;
  look_again(id, until_ms);
  entry = {owner, until_ms, false};
  ++counts_.taken_over;
  return Claim::granted;
}

// What is held on the id after advance(now_ms), if anything.
const ClaimTable::Entry* ClaimTable::find(Digest id, TimeMs now_ms) const {
  if (entries_.empty()) return nullptr;
  const auto found = entries_.find(id);
  if (found == entries_.end() || older_than(found->second.time_ms, keep_ms_, now_ms))
    return nullptr;
  return &found->second;
}

Claim ClaimTable::look(Digest id, TimeMs now_ms) const {
  const Entry* const entry = find(id, now_ms);
  if (entry == nullptr) return Claim::granted;
  if (entry->committed) return Claim::committed;
  return std::max(now_ms, now()) < entry->time_ms ? Claim::pending : Claim::granted;
}

std::optional<std::uint64_t> ClaimTable::owner(Digest id, TimeMs now_ms) const {
  const Entry* const entry = find(id, now_ms);
  return entry == nullptr ? std::nullopt : std::optional(entry->owner);
}

bool ClaimTable::renew(Digest id, std::uint64_t owner, TimeMs until_ms) {
  Entry* const entry = claimed_by(id, owner);
  if (entry != nullptr) extend(id, *entry, until_ms);
  return entry != nullptr;
}

bool ClaimTable::commit(Digest id, std::uint64_t owner) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.owner != owner) return false;
  Entry& entry = found->second;
  if (entry.committed) return true;
  look_again(id, now());
  entry.time_ms = now();
  entry.committed = true;
  ++commits_;
  return true;
}

bool ClaimTable::release(Digest id, std::uint64_t owner) {
  if (claimed_by(id, owner) == nullptr) return false;
  entries_.erase(id);
  trim();
  return true;
}

bool ClaimTable::forget(Digest id, std::uint64_t owner) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return false;
  if (!found->second.committed || found->second.owner != owner) return false;
  entries_.erase(found);
  --commits_;
  trim();
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
  // Of a node: the value, the link to the next, and what malloc adds.
  constexpr std::uint64_t kNode = sizeof(Entries::value_type) + 2 * sizeof(void*);
  return sizeof(*this) + entries_.size() * kNode + entries_.bucket_count() * sizeof(void*) +
         due_.capacity() * sizeof(Due);
}

void ClaimTable::encode(Sink out) const {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u32(0);
  w.u64(static_cast<std::uint64_t>(keep_ms_));
  w.u64(static_cast<std::uint64_t>(now()));
  w.u64(entries_.size());
  const auto all = [](const Entry&) { return true; };
  const auto put = [&](Digest id, const Entry& entry) {
    w.u64(id.lo);
    w.u64(id.hi);
    w.u64(entry.owner);
    w.u64(static_cast<std::uint64_t>(entry.time_ms));
    w.u8(entry.committed ? 1 : 0);
  };
  if (!out.only_measures(entries_.size() * kEntrySize)) for_each_in_order(entries_, all, put);
  seal.close();
}

Result<ClaimTable> ClaimTable::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  const std::uint32_t reserved = r.u32();
  const auto keep_ms = static_cast<TimeMs>(r.u64());
  const auto now_ms = static_cast<TimeMs>(r.u64());
  const std::uint64_t size = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "claims: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "claims: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "claims: checksum"};
  }
  if (reserved != 0 || keep_ms < 0) return Error{Errc::corrupt, "claims: header"};
  // Length before allocation: until here the size is only a claim.
  const std::size_t content = r.rest() - kTrailerSize;
  if (content % kEntrySize != 0 || content / kEntrySize != size) {
    return Error{Errc::corrupt, "claims: size"};
  }

  ClaimTable table(keep_ms, now_ms);
  table.entries_.reserve(size);
  table.due_.reserve(size);
  Digest last{};
  for (std::uint64_t n = 0; n < size; ++n) {
    const std::uint64_t lo = r.u64();
    const Digest id{lo, r.u64()};
    Entry entry{r.u64(), static_cast<TimeMs>(r.u64()), false};
    const std::uint8_t state = r.u8();
    if (n > 0 && !comes_before(last, id)) return Error{Errc::corrupt, "claims: order of ids"};
    if (state > 1) return Error{Errc::corrupt, "claims: state of an entry"};
    entry.committed = state == 1;
    if (older_than(entry.time_ms, keep_ms, now_ms) || (entry.committed && entry.time_ms > now_ms)) {
      return Error{Errc::corrupt, "claims: time of an entry"};
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
