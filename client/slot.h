// Slots: which of the 16384 parts of a Redis Cluster a key belongs to.
//
// Contract  As the cluster specification has it: CRC16 (XMODEM) of the key modulo 16384; of a key that
//           holds {tag} with something between the first { and the } that follows it, only the tag counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace semel::client {

inline constexpr std::uint32_t kSlots = 16384;

std::uint32_t slot_of(std::string_view key);

// Tags that spread `count` keys evenly: the i-th is the least number whose slot is the middle one of the
// i-th of so many equal ranges. Of a cluster whose primaries have equal ranges of slots each has as many
// of the keys as any other, or one more. REQUIRES: 0 < count <= 1024.
std::vector<std::string> spread_tags(std::size_t count);

// "name:{tag}" for each of spread_tags(). REQUIRES: as there.
std::vector<std::string> spread_keys(std::string_view name, std::size_t count);

}  // namespace semel::client
