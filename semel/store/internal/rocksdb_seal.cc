#include "semel/store/internal/rocksdb_seal.h"

#include <array>
#include <fstream>
#include <limits>

#include "semel/store/internal/rocksdb_checksum.h"

namespace semel {
namespace {

// docs/formats/rocksdb_seal_v1.md.
constexpr std::uint32_t kMagic = 0x31535253;  // "SRS1"
constexpr std::size_t kSumBytes = 4;

constexpr Error kCorrupt = {Errc::corrupt, "seal of a RocksDB directory"};

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

void RocksSeal::encode(Bytes& out) const {
  const std::size_t start = out.size();
  Writer w(out);
  w.u32(kMagic);
  w.u8(closed ? 1 : 0);
  w.varint(log);
  put(w, manifest);
  put(w, options);
  w.u32(crc32c(ByteView(out).subspan(start)));
}

Result<RocksSeal> RocksSeal::decode(ByteView in) {
  if (in.size() < kSumBytes) return kCorrupt;
  const ByteView body = in.first(in.size() - kSumBytes);
  Reader r(body);
  if (r.u32() != kMagic || Reader(in.last(kSumBytes)).u32() != crc32c(body)) return kCorrupt;
  RocksSeal seal;
  const std::uint8_t closed = r.u8();
  seal.closed = closed == 1;
  seal.log = r.varint();
  seal.manifest = take_file(r);
  seal.options = take_file(r);
  if (!r.ok() || r.rest() != 0 || closed > 1) return kCorrupt;
  return seal;
}

}  // namespace semel
