#include "cli/compression.h"

#include <algorithm>
#include <array>

#include "cli/options.h"

namespace semel::cli {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  Compression compression;
};

constexpr Compression kGzip{"gzip", "zcat"};
constexpr Compression kCompress{"compress", "zcat"};
constexpr Compression kBzip2{"bzip2", "bzcat"};
constexpr Compression kXz{"xz", "xzcat"};
constexpr Compression kLzip{"lzip", "lzip -dc"};
constexpr Compression kZstd{"zstd", "zstdcat"};
constexpr Compression kLz4{"lz4", "lz4cat"};
constexpr Compression kSnappy{"snappy", "snzip -dc"};
constexpr Compression kZip{"zip", "unzip -p"};
constexpr Compression k7z{"7z", "7z x -so"};

// Source: RFC 1952, RFC 8878, and the documents of the programs. The '?' of bzip2 is a digit from 1
// to 9. The digits of pi follow it, or those of the root of pi in an empty file.
constexpr std::array kMagics = {
    Magic{"\x1f\x8b"sv, kGzip},
    Magic{"\x1f\x9d"sv, kCompress},
    Magic{"BZh?\x31\x41\x59\x26\x53\x59"sv, kBzip2},
    Magic{"BZh?\x17\x72\x45\x38\x50\x90"sv, kBzip2},
    Magic{"\xfd"
          "7zXZ\0"sv,
          kXz},
    Magic{"LZIP\x01"sv, kLzip},
    Magic{"\x28\xb5\x2f\xfd"sv, kZstd},
    Magic{"\x04\x22\x4d\x18"sv, kLz4},
    Magic{"\xff\x06\x00\x00sNaPpY"sv, kSnappy},
    Magic{"PK\x03\x04"sv, kZip},
    Magic{"PK\x05\x06"sv, kZip},
    Magic{"PK\x07\x08"sv, kZip},
    Magic{"7z\xbc\xaf\x27\x1c"sv, k7z},
};

// Returns true if the bytes agree with the magic as far as both go.
bool agree(std::string_view bytes, std::string_view magic) {
  return std::equal(
      bytes.begin(), bytes.begin() + std::min(bytes.size(), magic.size()), magic.begin(),
      [](char c, char wanted) { return wanted == '?' ? c >= '1' && c <= '9' : c == wanted; });
}

}  // namespace

Compression compression_of(std::string_view bytes) {
  for (const Magic& magic : kMagics) {
    if (bytes.size() >= magic.bytes.size() && agree(bytes, magic.bytes)) return magic.compression;
  }
  return {};
}

bool may_become_compressed(std::string_view bytes) {
  return std::any_of(kMagics.begin(), kMagics.end(), [&](const Magic& magic) {
    return bytes.size() < magic.bytes.size() && agree(bytes, magic.bytes);
  });
}

std::string refused_compression(const Compression& compression, const std::string& path,
                                std::string_view command) {
  const bool standard = path == "-";
  std::string text = "cannot read " + input_name(path);
  text.append(": it is compressed by ").append(compression.name).append("; allowed: ");
  text.append(compression.unpacker).append(standard ? " FILE" : ' ' + quoted(path));
  return text.append(" | ").append(command);
}

}  // namespace semel::cli
