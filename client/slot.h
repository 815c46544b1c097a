// Slots: the 16384 parts of a Redis Cluster, and the one that a key belongs to.
//
// Contract  Follows the cluster specification: CRC16 (XMODEM) of the key, modulo 16384. If the
//           first { and the } that follows it have a tag between them, only the tag counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace semel::client {

inline constexpr std::uint32_t kSlots = 16384;

std::uint32_t slot_of(std::string_view key);

// Returns tags that spread `count` keys evenly. The slots are cut into `count` equal ranges; the
// i-th tag is the least number whose slot is the middle of the i-th range. If the primaries of a
// cluster have equal ranges of slots, each has as many of the keys as any other, or one more.
// REQUIRES: 0 < count <= 1024.
std::vector<std::string> spread_tags(std::size_t count);

// Returns "name:{tag}" for each of spread_tags(). REQUIRES: as there.
std::vector<std::string> spread_keys(std::string_view name, std::size_t count);

}  // namespace semel::client
