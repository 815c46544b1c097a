// RemoteId: the form in which a key is sent to a server. A key of up to 64 bytes is sent unchanged,
// so that others can ask for it by name. A longer key is sent as its first 49 bytes and its digest.
// These are 65 bytes, so no other key is sent in the same form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "semel/core/codec.h"
#include "semel/hash/digest.h"

namespace semel::cli {

inline constexpr std::size_t kLongestId = 64;
inline constexpr std::size_t kIdPrefix = kLongestId + 1 - 2 * sizeof(std::uint64_t);

inline void append_remote_id(std::string_view key, Digest digest, std::string& to) {
  if (key.size() <= kLongestId) {
    to += key;
    return;
  }
  std::array<std::uint8_t, 16> bytes{};
  store_u64(bytes.data(), digest.lo);
  store_u64(bytes.data() + 8, digest.hi);
  to += key.substr(0, kIdPrefix);
  to.append(bytes.begin(), bytes.end());
}

}  // namespace semel::cli
