#include "semel/index/internal/container.h"

namespace semel::index_internal {
namespace {

void write_bits(Writer& out, const BitPath& path, std::size_t from) {
  const std::size_t size = path.size() - from;
  out.varint(size);
  const std::string_view bytes = path.bytes();
  const std::size_t shift = from % 8;
  for (std::size_t i = from / 8, left = (size + 7) / 8; left > 0; ++i, --left) {
    unsigned pair = static_cast<std::uint8_t>(bytes[i]) << 8;
    if (i + 1 < bytes.size()) pair |= static_cast<std::uint8_t>(bytes[i + 1]);
    out.u8(static_cast<std::uint8_t>(pair << shift >> 8));
  }
}

// Like Reader::varint, but one comparison is enough for most numbers. A walk reads little else.
[[gnu::always_inline]] inline bool take_varint(ByteView& in, std::uint64_t& value) {
  if (!in.empty() && in[0] < 0x80) {
    value = in[0];
    in = in.subspan(1);
    return true;
  }
  Reader reader(in);
  value = reader.varint();
  in = in.last(reader.rest());
  return reader.ok();
}

bool take_measure(ByteView& in, int128& measure) {
  Reader reader(in);
  measure = reader.signed_varint();
  in = in.last(reader.rest());
  return reader.ok();
}

}  // namespace

void write_container(Writer& out, const Container& container, const BitPath* before,
                     Measured measured) {
  std::size_t from = 0;
  if (before != nullptr) {
    const std::size_t common = common_bits(*before, container.path);
    out.varint(common);
    from = common + 1;  // at the bit where they differ, the later has a 1
  }
  write_bits(out, container.path, from);
  out.varint(container.sum.count);
  out.varint(container.sum.volume);
  out.u64(container.sum.digest.lo);
  out.u64(container.sum.digest.hi);
  if (measured == Measured::yes) out.signed_varint(container.sum.measure);
}

bool read_container(ByteView& in, bool first, Container& container, Measured measured) {
  BitPath& path = container.path;
  if (first) {
    path.truncate(0);
  } else {
    std::uint64_t common = 0;
    if (!take_varint(in, common) || common >= path.size() || path.bit(common)) return false;
    path.truncate(common);
    path.push(true);
  }
  std::uint64_t size = 0;
  if (!take_varint(in, size) || size > 8 * in.size()) return false;
  if (size > 0) {
    const ByteView bits = in.first((size + 7) / 8);
    if (size % 8 != 0 && (bits.back() & 0xff >> size % 8) != 0) return false;
    path.append(text_of(bits), size);
    in = in.subspan(bits.size());
  }
  Aggregate& sum = container.sum;
  if (!take_varint(in, sum.count) || !take_varint(in, sum.volume)) return false;
  if (in.size() < sizeof(Digest)) return false;
  sum.digest = {load_u64(in.data()), load_u64(in.data() + 8)};
  in = in.subspan(sizeof(Digest));
  return measured == Measured::no || take_measure(in, sum.measure);
}

}  // namespace semel::index_internal
