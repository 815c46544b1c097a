#include "semel/sync/resolver.h"

#include <algorithm>

namespace semel {

std::string Resolver::greater(std::string_view /*key*/, std::string_view a, std::string_view b) {
  return std::string(std::max(a, b));
}

std::uint64_t Resolver::leading_time(std::string_view /*key*/, std::string_view value) {
  if (value.size() < 8) return 0;
  std::uint64_t time = 0;
  for (const char byte : value.substr(0, 8)) time = time << 8 | static_cast<std::uint8_t>(byte);
  return time;
}

std::string Resolver::merged(std::string_view key, std::string_view a, std::string_view b) const {
  if (rule == SyncRule::join) return join(key, a, b);
  const std::uint64_t time_a = time_of(key, a);
  const std::uint64_t time_b = time_of(key, b);
  if (time_a != time_b) return std::string(time_a > time_b ? a : b);
  return std::string(std::max(a, b));
}

}  // namespace semel
