// PathWriter and PathReader: nodes of a trie, each by what differs from the one before.
//
// Size      About 14 bits for a node among some thousand that are in order.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/bit_codec.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/index/bit_path.h"

namespace semel {

// Bits of a path at most: those of a key of 64 KiB.
inline constexpr std::size_t kMostPathBits = std::size_t{9} * 65536;
// Few bytes can name paths of many: this bounds what a reader makes of them, in bytes.
inline constexpr std::size_t kMostPathBytes = std::size_t{64} << 20;

class PathWriter {
 public:
  explicit PathWriter(Bytes& out) : bits_(out) {}

  void add(const BitPath& path);
  // A node below the one that was added last; the next one is told from that, not from this.
  void add_below(const BitPath& path);
  BitWriter& bits() { return bits_; }

 private:
  void put_rest(const BitPath& path, std::size_t from);

  BitWriter bits_;
  BitPath last_;
};

class PathReader {
 public:
  explicit PathReader(ByteView in) : bits_(in) {}

  // nullopt for what is no node, or one too long.
  std::optional<BitPath> take();
  std::optional<BitPath> take_below();
  BitReader& bits() { return bits_; }

 private:
  std::optional<BitPath> take_rest(BitPath path);

  BitReader bits_;
  BitPath last_;
  std::size_t bytes_ = 0;
};

// Nodes in order, none below another.
void encode_paths(std::span<const BitPath> paths, Writer& out);
Result<std::vector<BitPath>> decode_paths(Reader& in);

}  // namespace semel
