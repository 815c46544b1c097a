// The limits of this build that several parts share. The limits of a single structure stand with
// that structure (kMost...). The document of each format states its limits too.
#pragma once

#include <cstdint>

namespace semel::limits {

inline constexpr std::uint64_t kFilterBits = std::uint64_t{1} << 46;  // 8 TiB in one structure
inline constexpr std::uint32_t kPlainProbes = 32;
inline constexpr std::uint32_t kBlockedLines = 4;
inline constexpr std::uint32_t kBlockedProbes = 24;  // in one cache line; more never pay
inline constexpr std::uint32_t kLanes = 64;          // in one forgetful filter
inline constexpr std::uint32_t kLaneProbes = 8;      // in one cache line of lanes
inline constexpr std::uint32_t kPayloadBits = 64;    // beside a fingerprint
inline constexpr std::uint32_t kOperationIdBytes = 1024;
inline constexpr std::uint32_t kCounterNameBytes = 2048;

// Before it changes anything, a structure allocates every block that it needs and that is larger
// than this. A host that keeps this much memory in reserve therefore never sees a change half done
// when memory runs out.
inline constexpr std::uint64_t kSmallBlock = std::uint64_t{128} << 10;

}  // namespace semel::limits
