// The digests of a command's arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "module/host/call.h"
#include "semel/hash/digest.h"
#include "semel/hash/hasher.h"

namespace semel::module {

// Arguments are hashed in pieces, so that the views of one piece fit on the stack.
inline constexpr std::size_t kPiece = 64;

// Fills `out` with the digests of the arguments from `first` on. REQUIRES: out.size() <= kPiece.
inline void digests(const host::Call& call, const Hasher& hasher, std::size_t first,
                    std::span<Digest> out) {
  std::array<std::string_view, kPiece> texts;
  const auto keys = std::span(texts).first(out.size());
  call.arguments(first, keys);
  hasher(keys, out);
}

// Returns the digests of all arguments from `first` on.
inline std::vector<Digest> all_digests(const host::Call& call, const Hasher& hasher,
                                       std::size_t first) {
  std::vector<Digest> all(call.size() - first);
  for (std::size_t done = 0; done < all.size(); done += kPiece) {
    const std::size_t some = std::min(kPiece, all.size() - done);
    digests(call, hasher, first + done, std::span(all).subspan(done, some));
  }
  return all;
}

}  // namespace semel::module
