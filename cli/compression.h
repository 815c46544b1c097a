// Compression: recognises compressed inputs by their first bytes. The newlines in them mean
// nothing, so they hold no records.
//
// Contract  Recognises gzip, compress, bzip2, xz, lzip, zstd, lz4, snappy, zip and 7z. Bytes that
//           begin like such a file are taken for one: text does not begin like that by chance.
#pragma once

#include <string>
#include <string_view>

namespace semel::cli {

struct Compression {
  std::string_view name;      // empty: not compressed
  std::string_view unpacker;  // a command that takes a file and writes what is in it

  explicit operator bool() const { return !name.empty(); }
};

// Recognises the compression by the first bytes of an input.
Compression compression_of(std::string_view bytes);
// Returns true if more bytes may turn these into the beginning of a compressed file.
bool may_become_compressed(std::string_view bytes);

// Returns a refusal that says what to do instead. `path` is a file, or "-" for standard input.
// `command` is the reader, for example "semel sift".
std::string refused_compression(const Compression& compression, const std::string& path,
                                std::string_view command);

}  // namespace semel::cli
