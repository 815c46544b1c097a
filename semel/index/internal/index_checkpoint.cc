#include "semel/index/internal/index_checkpoint.h"

#include <utility>

#include "semel/core/assert.h"
#include "semel/hash/internal/sealed.h"

namespace semel::index_internal {
namespace {

// docs/formats/index_checkpoint_v1.md.
constexpr Format kFormat{"SIC", 1, "index checkpoint"};
constexpr std::size_t kLeastSlab = 25 + Floret::kCounters;

Bytes read_bytes(Reader& r) {
  const std::string_view text = r.text();
  return {text.begin(), text.end()};
}

}  // namespace

void IndexCheckpoint::encode(Sink out) const {
  SEMEL_ASSERT(!range.empty());
  seal(out, kFormat, [&](Writer& w) {
    write(w, range);
    w.text(text_of(position));
    w.text(text_of(trie));
    w.u64(slabs.slab_bytes());
    w.u64(slabs.slabs().size());
    for (const FloretSlabs::Slab& slab : slabs.slabs()) {
      w.text(slab.first);
      w.u64(slab.count);
      w.u64(slab.volume);
      w.u64(slab.changes);
      w.bytes(slab.floret.bytes());
    }
  });
}

Result<IndexCheckpoint> IndexCheckpoint::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  KeyRange range = read_key_range(r);
  if (!r.ok() || range.empty()) return corrupt(kFormat, "range");
  Bytes position = read_bytes(r);
  Bytes trie = read_bytes(r);
  const std::uint64_t slab_bytes = r.u64();
  const std::uint64_t slab_count = r.u64();
  if (!r.ok() || slab_bytes == 0) return corrupt(kFormat, "header");
  if (slab_count == 0 || slab_count > r.rest() / kLeastSlab) {
    return corrupt(kFormat, "number of slabs");
  }
  std::vector<FloretSlabs::Slab> slabs(slab_count);
  for (std::size_t n = 0; n < slab_count; ++n) {
    FloretSlabs::Slab& slab = slabs[n];
    slab.first = std::string(r.text());
    slab.count = r.u64();
    slab.volume = r.u64();
    slab.changes = r.u64();
    const ByteView counters = r.view(Floret::kCounters);
    if (!r.ok()) return corrupt(kFormat, "slab");
    const bool in_order = n == 0 ? slab.first.empty() : slabs[n - 1].first < slab.first;
    if (!in_order) return corrupt(kFormat, "order of the slabs");
    slab.floret = SEMEL_TRY(Floret::of_bytes(counters));
  }
  if (!r.at_end()) return corrupt(kFormat, "size");
  return IndexCheckpoint{std::move(position), std::move(trie),
                         FloretSlabs(slab_bytes, std::move(slabs)), std::move(range)};
}

}  // namespace semel::index_internal
