#include "semel/store/rocksdb_position.h"

#include <limits>
#include <string_view>

namespace semel {
namespace {

// docs/formats/rocksdb_position_v1.md.
constexpr std::uint32_t kMagic = 0x31505253;  // "SRP1"

constexpr Error kCorrupt = {Errc::corrupt, "position of a RocksDB store"};

void put(Writer& w, std::string_view text) {
  w.varint(text.size());
  w.bytes({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::string take(Reader& r) {
  const ByteView bytes = r.view(r.varint());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

RocksFile take_file(Reader& r) {
  RocksFile file;
  file.number = r.varint();
  file.session = take(r);
  file.size = r.varint();
  file.created_s = r.varint();
  file.least_sequence = r.varint();
  file.last_sequence = r.varint();
  file.first_key = take(r);
  file.last_key = take(r);
  return file;
}

}  // namespace

void RocksPosition::encode(Bytes& out) const {
  Writer w(out);
  w.u32(kMagic);
  put(w, identity);
  w.varint(column_family);
  w.varint(sequence);
  w.varint(files.size());
  for (const RocksFile& file : files) {
    w.varint(file.number);
    put(w, file.session);
    w.varint(file.size);
    w.varint(file.created_s);
    w.varint(file.least_sequence);
    w.varint(file.last_sequence);
    put(w, file.first_key);
    put(w, file.last_key);
  }
  w.varint(doubtful.size());
  for (const KeyRange& range : doubtful) {
    put(w, range.first);
    w.u8(range.end ? 1 : 0);
    if (range.end) put(w, *range.end);
  }
}

Result<RocksPosition> RocksPosition::decode(ByteView in) {
  Reader r(in);
  if (r.u32() != kMagic) return kCorrupt;
  RocksPosition position;
  position.identity = take(r);
  const std::uint64_t column_family = r.varint();
  if (column_family > std::numeric_limits<std::uint32_t>::max()) return kCorrupt;
  position.column_family = static_cast<std::uint32_t>(column_family);
  position.sequence = r.varint();
  // The counts are claims: each turn of the loops takes a byte at least, or fails.
  for (std::uint64_t left = r.varint(); left > 0; --left) {
    RocksFile file = take_file(r);
    if (!r.ok()) return kCorrupt;
    if (!position.files.empty() && file.number <= position.files.back().number) return kCorrupt;
    position.files.push_back(std::move(file));
  }
  for (std::uint64_t left = r.varint(); left > 0; --left) {
    KeyRange range{take(r), std::nullopt};
    const std::uint8_t ends = r.u8();
    if (ends == 1) range.end = take(r);
    if (!r.ok() || ends > 1) return kCorrupt;
    position.doubtful.push_back(std::move(range));
  }
  if (!r.ok() || r.rest() != 0) return kCorrupt;
  return position;
}

}  // namespace semel
