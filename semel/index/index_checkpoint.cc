#include "semel/index/index_checkpoint.h"

#include <utility>

namespace semel {
namespace {

// docs/formats/index_checkpoint_v1.md. All integers little-endian.
constexpr std::uint32_t kMagic = 0x31434953;  // "SIC1"
constexpr std::size_t kSlabSize = 32 + Floret::kCounters;
constexpr std::size_t kTrailerSize = 8;

std::span<std::uint8_t> room_of(std::string& key) {
  return {reinterpret_cast<std::uint8_t*>(key.data()), key.size()};
}

}  // namespace

void IndexCheckpoint::encode(Bytes& out) const {
  const std::size_t start = out.size();
  Writer w(out);
  w.u32(kMagic);
  w.u32(0);
  w.u64(slabs.slab_bytes());
  w.u64(slabs.slabs().size());
  w.u64(position.size());
  w.u64(trie.size());
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
  w.u64(checksum(ByteView(out).subspan(start)));
}

Result<IndexCheckpoint> IndexCheckpoint::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  const std::uint32_t reserved = r.u32();
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
  if (reserved != 0 || slab_bytes == 0) return Error{Errc::corrupt, "checkpoint: header"};
  // Lengths before allocation: until here they are only claims.
  std::size_t content = r.rest() - kTrailerSize;
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
                         FloretSlabs(slab_bytes, std::move(slabs))};
}

}  // namespace semel
