#include "semel/window/internal/endless_set.h"

#include "semel/core/assert.h"
#include "semel/hash/internal/sealed.h"
#include "semel/window/internal/batch.h"

namespace semel::window_internal {
namespace {

constexpr Format kFormat{"WES", 1, "endless set"};                // docs/formats/endless_set_v1.md
constexpr std::uint64_t kFirstRoom = 4 * DigestTable::kRoomStep;  // doubles each time

}  // namespace

EndlessSet::EndlessSet(HashId hash, TimeMs now_ms)
    : hash_(hash), time_(now_ms), table_(kFirstRoom) {
  SEMEL_ASSERT(hash.valid());
}

// Homes ascend with the digests, so the new table is written from its beginning to its end.
DigestTable EndlessSet::larger(const DigestTable& table, std::uint64_t room) {
  DigestTable made(room);
  if (table.holds_zero()) made.add({0, 0});
  table.for_each([&](Digest held) { made.insert(held); });
  return made;
}

Verdict EndlessSet::test_and_insert(Digest id) {
  if (table_.full()) {
    if (table_.contains(id)) return Verdict::duplicate;
    table_ = larger(table_, 2 * table_.room());
  }
  return table_.add(id) ? Verdict::fresh : Verdict::duplicate;
}

void EndlessSet::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return test(id); });
}

void EndlessSet::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { table_.touch_for_write(id); },
      [&](Digest id) { return test_and_insert(id); });
}

// The table gets its size before it is filled. Digests come in ascending order, and would crowd at
// the beginning of a table that is too small for them.
Result<void> EndlessSet::merge(const EndlessSet& other) {
  if (hash_ != other.hash_) return Error{Errc::mismatch, "endless sets of different hashes"};
  const bool zero = other.table_.holds_zero() && !table_.holds_zero();
  std::uint64_t size = table_.size() + (zero ? 1 : 0);
  other.table_.for_each([&](Digest id) { size += table_.contains(id) ? 0 : 1; });
  if (size != table_.size()) {
    std::uint64_t room = table_.room();
    while (room < size) room *= 2;
    if (room != table_.room()) table_ = larger(table_, room);
    if (zero) table_.add({0, 0});
    other.table_.for_each([&](Digest id) {
      if (!table_.contains(id)) table_.insert(id);
    });
  }
  if (other.now() > now()) advance(other.now());
  return {};
}

void EndlessSet::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    w.sink().reserve(table_.size() * sizeof(Digest));
    write(w, hash_);
    w.u64(table_.size());
    if (w.sink().only_measures(table_.size() * sizeof(Digest))) return;
    if (table_.holds_zero()) write(w, Digest{0, 0});
    for (auto ids = table_.ascending(); ids.valid(); ids.next()) write(w, *ids);
  });
}

Result<EndlessSet> EndlessSet::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const HashId hash = read_hash_id(r);
  const std::uint64_t size = r.u64();
  if (!r.ok()) return corrupt(kFormat, "hash");
  // Length before allocation: until here the size is only a claim.
  if (r.rest() % sizeof(Digest) != 0 || size != r.rest() / sizeof(Digest)) {
    return corrupt(kFormat, "size");
  }
  EndlessSet set(hash, kFirstTime);
  std::uint64_t room = kFirstRoom;
  while (room < size) room *= 2;
  set.table_ = DigestTable(room);
  DigestTable::End end;
  Digest last{};
  for (std::uint64_t i = 0; i < size; ++i) {
    const Digest id = read_digest(r);
    if (i > 0 && id <= last) return corrupt(kFormat, "order of ids");
    set.table_.append(end, id);
    last = id;
  }
  return set;
}

bool EndlessSet::operator==(const EndlessSet& other) const {
  if (hash_ != other.hash_ || ids() != other.ids()) return false;
  bool all = table_.holds_zero() == other.table_.holds_zero();
  table_.for_each([&](Digest id) { all = all && other.table_.contains(id); });
  return all;
}

}  // namespace semel::window_internal
