// Texts to numbers, as users of the command and the module write them.
//
// Each function returns nullopt unless the whole text is such a number and is in range.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "semel/core/clock.h"

namespace semel::inline core_internal {

std::optional<std::int64_t> parse_integer(std::string_view text);    // 5, -5
std::optional<std::uint64_t> parse_unsigned(std::string_view text);  // 0, 5
std::optional<double> parse_number(std::string_view text);           // finite: 0.01, 1e-6, -3
std::optional<std::uint64_t> parse_count(std::string_view text);  // 20, 5k, 20M, 1G, 1T (of 1000)
// 80, 64K or 64KiB (of 1024), 64kB (of 1000).
std::optional<std::uint64_t> parse_bytes(std::string_view text);
std::optional<TimeMs> parse_duration(std::string_view text);  // 250ms, 10s, 5m, 1h, 2d, 1w
// Reads a duration, or a number of milliseconds without a unit.
std::optional<TimeMs> parse_duration_ms(std::string_view text);

}  // namespace semel::inline core_internal
