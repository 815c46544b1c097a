// What this build accepts at most, where several parts share a bound. Those of one structure stand
// with it (kMost...); each one is also stated in the document of its format.
#pragma once

#include <cstdint>

namespace semel::limits {

inline constexpr std::uint64_t kFilterBits = std::uint64_t{1} << 46;  // 8 TiB of one structure
inline constexpr std::uint32_t kPlainProbes = 32;
inline constexpr std::uint32_t kBlockedLines = 4;
inline constexpr std::uint32_t kBlockedProbes = 24;  // in one cache line, where more never pay
inline constexpr std::uint32_t kLanes = 64;          // of one forgetful filter
inline constexpr std::uint32_t kLaneProbes = 8;      // in one cache line of lanes
inline constexpr std::uint32_t kPayloadBits = 64;    // beside a fingerprint
inline constexpr std::uint32_t kOperationIdBytes = 1024;
inline constexpr std::uint32_t kCounterNameBytes = 2048;

// Memory that runs out: a structure asks for larger blocks than this before it changes anything, so that
// whoever has so much in reserve never finds a change half done (module/host/reserve.h).
inline constexpr std::uint64_t kSmallBlock = std::uint64_t{128} << 10;

}  // namespace semel::limits
