#include "semel/store/internal/rocksdb_seal.h"

#include <array>
#include <fstream>
#include <limits>

#include "semel/hash/internal/sealed.h"
#include "semel/store/internal/rocksdb_checksum.h"

namespace semel::store_internal {
namespace {

// docs/formats/rocksdb_seal_v1.md.
constexpr Format kFormat{"SRS", 1, "seal of a RocksDB directory"};

void put(Writer& w, const SealedFile& file) {
  w.text(file.name);
  w.varint(file.bytes);
  w.u32(file.sum);
}

SealedFile take_file(Reader& r) {
  SealedFile file;
  file.name = std::string(r.text());
  file.bytes = r.varint();
  file.sum = r.u32();
  return file;
}

}  // namespace

std::optional<SealedFile> SealedFile::of(const std::string& directory, const std::string& name) {
  std::ifstream in(directory + "/" + name, std::ios::binary);
  if (!in) return std::nullopt;
  SealedFile file{name, 0, 0};
  RunningCrc32c sum;
  std::array<char, 1 << 14> piece{};
  while (in) {
    in.read(piece.data(), piece.size());
    const auto got = static_cast<std::size_t>(in.gcount());
    sum.add(bytes_of({piece.data(), got}));
    file.bytes += got;
  }
  if (in.bad()) return std::nullopt;
  file.sum = sum.value();
  return file;
}

void RocksSeal::encode(Sink out) const {
  semel::seal(out, kFormat, [&](Writer& w) {
    w.boolean(closed);
    w.varint(log);
    put(w, manifest);
    put(w, options);
  });
}

Result<RocksSeal> RocksSeal::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  RocksSeal seal;
  seal.closed = r.boolean();
  seal.log = r.varint();
  seal.manifest = take_file(r);
  seal.options = take_file(r);
  if (!r.at_end()) return corrupt(kFormat, "files");
  return seal;
}

}  // namespace semel::store_internal
