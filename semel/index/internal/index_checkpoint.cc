#include "semel/index/internal/index_checkpoint.h"

#include <utility>

#include "semel/core/assert.h"
#include "semel/hash/seal.h"

namespace semel {
namespace {

// docs/formats/index_checkpoint_v1.md. All integers are little-endian.
constexpr std::uint32_t kMagic = 0x31434953;  // "SIC1"
constexpr std::uint32_t kHasFirst = 1;
constexpr std::uint32_t kHasEnd = 2;
constexpr std::size_t kSlabSize = 32 + Floret::kCounters;
constexpr std::size_t kTrailerSize = 8;

std::span<std::uint8_t> room_of(std::string& key) {
  return {reinterpret_cast<std::uint8_t*>(key.data()), key.size()};
}

void write_key(Writer& w, std::string_view key) {
  w.u64(key.size());
  w.bytes(bytes_of(key));
}

// Takes a key from the `content` bytes that are left. REQUIRES: `r` has so many bytes.
bool read_key(Reader& r, std::size_t& content, std::string& key) {
  if (content < sizeof(std::uint64_t)) return false;
  content -= sizeof(std::uint64_t);
  const std::uint64_t size = r.u64();
  if (size > content) return false;
  content -= size;
  key.resize(size);
  r.bytes(room_of(key));
  return true;
}

// Returns false for a range that the flags cannot describe, or describe needlessly.
bool read_range(Reader& r, std::uint32_t flags, std::size_t& content, KeyRange& range) {
  if ((flags & kHasFirst) != 0) {
    if (!read_key(r, content, range.first) || range.first.empty()) return false;
  }
  if ((flags & kHasEnd) != 0) {
    if (!read_key(r, content, range.end.emplace())) return false;
  }
  return !range.empty();
}

}  // namespace

void IndexCheckpoint::encode(Sink out) const {
  SEMEL_ASSERT(!range.empty());
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u32((range.first.empty() ? 0 : kHasFirst) | (range.end ? kHasEnd : 0));
  w.u64(slabs.slab_bytes());
  w.u64(slabs.slabs().size());
  w.u64(position.size());
  w.u64(trie.size());
  if (!range.first.empty()) write_key(w, range.first);
  if (range.end) write_key(w, *range.end);
  w.bytes(position);
  w.bytes(trie);
  for (const FloretSlabs::Slab& slab : slabs.slabs()) {
    w.u64(slab.first.size());
    w.u64(slab.count);
    w.u64(slab.volume);
    w.u64(slab.changes);
    w.bytes(bytes_of(slab.first));
    w.bytes(slab.floret.bytes());
  }
  seal.close();
}

Result<IndexCheckpoint> IndexCheckpoint::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  const std::uint32_t flags = r.u32();
  const std::uint64_t slab_bytes = r.u64();
  const std::uint64_t slab_count = r.u64();
  const std::uint64_t position_size = r.u64();
  const std::uint64_t trie_size = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "checkpoint: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "checkpoint: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "checkpoint: checksum"};
  }
  if (flags > (kHasFirst | kHasEnd) || slab_bytes == 0) {
    return Error{Errc::corrupt, "checkpoint: header"};
  }
  // Check the lengths before allocating: they are only claims until then.
  std::size_t content = r.rest() - kTrailerSize;
  KeyRange range;
  if (!read_range(r, flags, content, range)) return Error{Errc::corrupt, "checkpoint: range"};
  if (position_size > content) return Error{Errc::corrupt, "checkpoint: size of the position"};
  content -= position_size;
  if (trie_size > content) return Error{Errc::corrupt, "checkpoint: size of the trie"};
  content -= trie_size;
  if (slab_count == 0 || slab_count > content / kSlabSize) {
    return Error{Errc::corrupt, "checkpoint: number of slabs"};
  }

  const ByteView position = r.view(position_size);
  const ByteView trie = r.view(trie_size);
  std::vector<FloretSlabs::Slab> slabs;
  slabs.reserve(slab_count);
  for (std::uint64_t n = 0; n < slab_count; ++n) {
    if (content < kSlabSize) return Error{Errc::corrupt, "checkpoint: size of the slabs"};
    content -= kSlabSize;
    const std::uint64_t key_size = r.u64();
    FloretSlabs::Slab slab;
    slab.count = r.u64();
    slab.volume = r.u64();
    slab.changes = r.u64();
    if (key_size > content) return Error{Errc::corrupt, "checkpoint: key of a slab"};
    content -= key_size;
    slab.first.resize(key_size);
    r.bytes(room_of(slab.first));
    const bool in_order = n == 0 ? slab.first.empty() : slabs.back().first < slab.first;
    if (!in_order) return Error{Errc::corrupt, "checkpoint: order of the slabs"};
    Result<Floret> floret = Floret::of_bytes(r.view(Floret::kCounters));
    if (!floret) return floret.error();
    slab.floret = *std::move(floret);
    slabs.push_back(std::move(slab));
  }
  if (content != 0) return Error{Errc::corrupt, "checkpoint: size"};
  return IndexCheckpoint{Bytes(position.begin(), position.end()), Bytes(trie.begin(), trie.end()),
                         FloretSlabs(slab_bytes, std::move(slabs)), std::move(range)};
}

}  // namespace semel
