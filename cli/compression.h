// Compression: tells compressed bytes by the first of them. Their newlines mean nothing, so that
// they are no records.
//
// Contract  Knows the files of gzip, compress, bzip2, xz, lzip, zstd, lz4, snappy, zip and 7z.
//           Bytes that begin like one of them are taken for it: text does not begin so by chance.
#pragma once

#include <string>
#include <string_view>

namespace semel::cli {

struct Compression {
  std::string_view name;      // none: empty
  std::string_view unpacker;  // a command that takes a file and writes what is in it

  explicit operator bool() const { return !name.empty(); }
};

// By the first bytes of an input.
Compression compression_of(std::string_view bytes);
// Whether more bytes may make a compressed input of these.
bool may_become_compressed(std::string_view bytes);

// A refusal that says what to do instead. `path` is a file, or "-" for standard input; `command` is
// what was to read it, such as "semel sift".
std::string refused_compression(const Compression& compression, const std::string& path,
                                std::string_view command);

}  // namespace semel::cli
