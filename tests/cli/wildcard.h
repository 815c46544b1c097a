// Patterns for output that is only partly known beforehand: `[...]` stands for any text.
#pragma once

#include <string_view>

namespace semel {

inline bool matches_wildcard(std::string_view pattern, std::string_view text) {
  constexpr std::string_view kAny = "[...]";
  std::size_t any = pattern.find(kAny);
  if (any == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, any))) return false;
  text.remove_prefix(any);
  pattern.remove_prefix(any + kAny.size());
  // Each further piece is best found as early as possible; the last one must end the text.
  while ((any = pattern.find(kAny)) != std::string_view::npos) {
    const std::size_t found = text.find(pattern.substr(0, any));
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + any);
    pattern.remove_prefix(any + kAny.size());
  }
  return text.ends_with(pattern);
}

}  // namespace semel
