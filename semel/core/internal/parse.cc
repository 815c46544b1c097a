#include "semel/core/internal/parse.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace semel::inline core_internal {
namespace {

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Reads digits and a unit.
std::optional<std::uint64_t> parse_units(std::string_view text, std::span<const Unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_whole<std::uint64_t>(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const Unit& unit : units) {
    if (text.substr(digits) != unit.name) continue;
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(*number, unit.factor, &product)) return std::nullopt;
    return product;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> number = parse_whole<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  static constexpr Unit kUnits[] = {
      {"", 1}, {"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}, {"T", 1'000'000'000'000}};
  return parse_units(text, kUnits);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::uint64_t kOne = 1;
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"B", 1},
                                    {"K", kOne << 10},
                                    {"M", kOne << 20},
                                    {"G", kOne << 30},
                                    {"T", kOne << 40},
                                    {"KiB", kOne << 10},
                                    {"MiB", kOne << 20},
                                    {"GiB", kOne << 30},
                                    {"TiB", kOne << 40},
                                    {"kB", 1'000},
                                    {"MB", 1'000'000},
                                    {"GB", 1'000'000'000},
                                    {"TB", 1'000'000'000'000}};
  return parse_units(text, kUnits);
}

std::optional<TimeMs> parse_duration(std::string_view text) {
  static constexpr Unit kUnits[] = {{"ms", 1},        {"s", 1'000},      {"m", 60'000},
                                    {"h", 3'600'000}, {"d", 86'400'000}, {"w", 604'800'000}};
  const std::optional<std::uint64_t> ms = parse_units(text, kUnits);
  if (!ms || *ms > std::uint64_t{std::numeric_limits<TimeMs>::max()}) return std::nullopt;
  return static_cast<TimeMs>(*ms);
}

std::optional<TimeMs> parse_duration_ms(std::string_view text) {
  if (text.starts_with('-')) return std::nullopt;
  const std::optional<TimeMs> ms = parse_integer(text);
  return ms ? ms : parse_duration(text);
}

}  // namespace semel::inline core_internal
