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

// Arguments are taken in pieces: what is needed for one lies on the stack.
inline constexpr std::size_t kPiece = 64;

// The digests of the arguments from `first` on. REQUIRES: no more than kPiece.
inline void digests(const host::Call& call, const Hasher& hasher, std::size_t first,
                    std::span<Digest> out) {
  std::array<std::string_view, kPiece> keys;
  for (std::size_t i = 0; i < out.size(); ++i) keys[i] = call[first + i];
  hasher(std::span(keys).first(out.size()), out);
}

// Those of all arguments from `first` on.
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
