// PathWriter and PathReader: nodes of a trie, each written as its difference from the previous one.
//
// Cost      About 14 bits for each node, in a list of several thousand in order.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/internal/bit_codec.h"
#include "semel/core/result.h"
#include "semel/index/bit_path.h"

namespace semel::sync_internal {

// The most bits of a path: those of a key of 64 KiB.
inline constexpr std::size_t kMostPathBits = std::size_t{9} * 65536;
// A few bytes can name long paths. This bounds the bytes of the paths that a reader builds.
inline constexpr std::size_t kMostPathBytes = std::size_t{64} << 20;

class PathWriter {
 public:
  explicit PathWriter(Bytes& out) : bits_(out) {}

  void add(const BitPath& path);
  // Adds a node below the last one. The next node is still written as its difference from the last
  // one.
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

  // Returns nullopt if the bits are not a node, or the node is too long.
  std::optional<BitPath> take();
  std::optional<BitPath> take_below();
  BitReader& bits() { return bits_; }

 private:
  std::optional<BitPath> take_rest(BitPath path);

  BitReader bits_;
  BitPath last_;
  std::size_t bytes_ = 0;
};

// These encode and decode nodes in order, none of which is below another.
void encode_paths(std::span<const BitPath> paths, Writer& out);
Result<std::vector<BitPath>> decode_paths(Reader& in);

}  // namespace semel::sync_internal
