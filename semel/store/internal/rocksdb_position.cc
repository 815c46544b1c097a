#include "semel/store/internal/rocksdb_position.h"

#include <limits>
#include <string_view>

#include "semel/hash/internal/sealed.h"

namespace semel::store_internal {
namespace {

// docs/formats/rocksdb_position_v1.md.
constexpr Format kFormat{"SRP", 1, "position of a RocksDB store"};

RocksFile take_file(Reader& r) {
  RocksFile file;
  file.number = r.varint();
  file.session = std::string(r.text());
  file.size = r.varint();
  file.created_s = r.varint();
  file.least_sequence = r.varint();
  file.last_sequence = r.varint();
  file.first_key = std::string(r.text());
  file.last_key = std::string(r.text());
  return file;
}

}  // namespace

void RocksPosition::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    w.text(identity);
    w.varint(column_family);
    w.varint(sequence);
    w.varint(files.size());
    for (const RocksFile& file : files) {
      w.varint(file.number);
      w.text(file.session);
      w.varint(file.size);
      w.varint(file.created_s);
      w.varint(file.least_sequence);
      w.varint(file.last_sequence);
      w.text(file.first_key);
      w.text(file.last_key);
    }
    w.varint(doubtful.size());
    for (const KeyRange& range : doubtful) write(w, range);
  });
}

Result<RocksPosition> RocksPosition::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  RocksPosition position;
  position.identity = std::string(r.text());
  const std::uint64_t column_family = r.varint();
  if (column_family > std::numeric_limits<std::uint32_t>::max()) {
    return corrupt(kFormat, "column family");
  }
  position.column_family = static_cast<std::uint32_t>(column_family);
  position.sequence = r.varint();
  // The counts are untrusted. Each turn of the loops takes at least one byte, or fails.
  for (std::uint64_t left = r.varint(); left > 0; --left) {
    RocksFile file = take_file(r);
    const bool in_order = position.files.empty() || file.number > position.files.back().number;
    if (!r.ok() || !in_order) return corrupt(kFormat, "files");
    position.files.push_back(std::move(file));
  }
  for (std::uint64_t left = r.varint(); left > 0; --left) {
    position.doubtful.push_back(read_key_range(r));
    if (!r.ok()) return corrupt(kFormat, "ranges");
  }
  if (!r.at_end()) return corrupt(kFormat, "size");
  return position;
}

}  // namespace semel::store_internal
