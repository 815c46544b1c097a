#include "semel/window/endless_set.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "semel/core/assert.h"
#include "semel/hash/seal.h"
#include "semel/window/internal/batch.h"
#include "semel/window/internal/slot_cursor.h"

namespace semel {
namespace {

// docs/formats/endless_set_v1.md. All integers little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "SES1"; a new layout takes a new magic
//         4        1  kind of hash: 0 fast, 1 keyed
//         5        3  zero
//         8        8  seed of the hash, or name of its key
//        16        8  ids
//        24  16 * ids  ids, ascending
//   end - 8        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31534553;
constexpr std::size_t kHeaderSize = 24;
constexpr std::size_t kTrailerSize = 8;

constexpr Digest kFree = {0, 0};
constexpr std::uint64_t kFirstSlots = 16;  // and twice as many each time

}  // namespace

EndlessSet::EndlessSet(HashId hash, TimeMs now_ms) : hash_(hash), time_(now_ms) {
  SEMEL_ASSERT(hash.valid());
  make_slots(kFirstSlots);
}

void EndlessSet::make_slots(std::uint64_t count) {
  SEMEL_ASSERT(count > 1 && std::has_single_bit(count));
  slots_ = LineArray<Digest>(count);
  shift_ = static_cast<unsigned>(64 - std::countr_zero(count));
}

std::uint64_t EndlessSet::find(Digest id) const {
  std::uint64_t slot = home(id);
  while (slots_[slot] != kFree && slots_[slot] != id) slot = next(slot);
  return slot;
}

Verdict EndlessSet::test(Digest id) const {
  const bool known = id == kFree ? has_zero_ : slots_[find(id)] == id;
  return known ? Verdict::duplicate : Verdict::fresh;
}

Verdict EndlessSet::test_and_insert(Digest id) {
  if (id == kFree) {
    if (has_zero_) return Verdict::duplicate;
    if (size_ == room_of(slots_.size())) grow();
    has_zero_ = true;
  } else {
    std::uint64_t slot = find(id);
    if (slots_[slot] == id) return Verdict::duplicate;
    if (size_ == room_of(slots_.size())) {
      grow();
      slot = find(id);
    }
    slots_[slot] = id;
  }
  ++size_;
  return Verdict::fresh;
}

// Homes ascend with the digests, so that the new table is written from its beginning to its end.
void EndlessSet::grow() {
  LineArray<Digest> old(2 * slots_.size());
  std::swap(slots_, old);
  --shift_;
  for (const Digest id : old) {
    if (id != kFree) slots_[find(id)] = id;
  }
}

void EndlessSet::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  judge_ahead(
      ids, verdicts, [&](Digest id) { prefetch(&slots_[home(id)]); },
      [&](Digest id) { return test(id); });
}

void EndlessSet::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { prefetch_for_write(&slots_[home(id)]); },
      [&](Digest id) { return test_and_insert(id); });
}

void EndlessSet::encode(Sink out) const {
  Seal seal(out);
  out.reserve(kHeaderSize + size_ * sizeof(Digest) + kTrailerSize);
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(hash_.kind));
  w.u8(0);
  w.u16(0);
  w.u64(hash_.seed);
  w.u64(size_);
  if (!out.only_measures(size_ * sizeof(Digest))) {
    const auto put = [&](Digest id) {
      w.u64(id.lo);
      w.u64(id.hi);
    };
    if (has_zero_) put(kFree);
    const auto home_of = [this](Digest id) { return home(id); };
    for (SlotCursor ids(std::span(slots_.data(), slots_.size()), home_of); ids.valid();
         ids.next()) {
      put(*ids);
    }
  }
  seal.close();
}

Result<EndlessSet> EndlessSet::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  HashId hash{};
  hash.kind = static_cast<HashKind>(r.u8());
  const bool reserved = (r.u8() | r.u16()) != 0;
  hash.seed = r.u64();
  const std::uint64_t size = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "endless set: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "endless set: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "endless set: checksum"};
  }
  if (reserved || !hash.valid()) return Error{Errc::corrupt, "endless set: hash"};
  // Length before allocation: until here the size is only a claim.
  const std::size_t content = body.size() - kHeaderSize;
  if (content % sizeof(Digest) != 0 || size != content / sizeof(Digest)) {
    return Error{Errc::corrupt, "endless set: size"};
  }

  EndlessSet set(hash, kFirstTime);
  std::uint64_t slots = kFirstSlots;
  while (room_of(slots) < size) slots *= 2;
  set.make_slots(slots);
  set.size_ = size;
  // The next free slot is never before the last one taken; past the end of the table it is the first
  // one free, and the same holds again. So this is one pass, whatever the ids are.
  Digest last = kFree;
  std::uint64_t after = 0, after_around = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint8_t* const from = in.data() + kHeaderSize + i * sizeof(Digest);
    const Digest id = {load_u64(from), load_u64(from + 8)};
    if (i > 0 && !comes_before(last, id)) return Error{Errc::corrupt, "endless set: order of ids"};
    last = id;
    if (id == kFree) {
      set.has_zero_ = true;
      continue;
    }
    std::uint64_t slot = std::max(set.home(id), after);
    if (slot == slots) {
      while (set.slots_[after_around] != kFree) ++after_around;
      slot = after_around;
    } else {
      after = slot + 1;
    }
    set.slots_[slot] = id;
  }
  return set;
}

bool EndlessSet::operator==(const EndlessSet& other) const {
  if (hash_ != other.hash_ || size_ != other.size_ || has_zero_ != other.has_zero_) return false;
  return std::all_of(slots_.begin(), slots_.end(), [&](const Digest& id) {
    return id == kFree || other.test(id) == Verdict::duplicate;
  });
}

}  // namespace semel
