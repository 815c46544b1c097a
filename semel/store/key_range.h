// KeyRange: the keys from `first` to before `end`, in the order of their bytes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace semel {

struct KeyRange {
  std::string first;               // the least key
  std::optional<std::string> end;  // the least key after the range; nullopt: the range has no end

  static KeyRange all() { return {}; }

  bool contains(std::string_view key) const { return key >= first && (!end || key < *end); }
  bool empty() const { return end && *end <= first; }
  bool covers(const KeyRange& other) const {
    return other.empty() || (other.first >= first && (!end || (other.end && *other.end <= *end)));
  }
  bool operator==(const KeyRange&) const = default;
};

// Returns the keys that are in both.
inline KeyRange intersection(const KeyRange& a, const KeyRange& b) {
  KeyRange both{std::max(a.first, b.first), a.end};
  if (b.end && (!both.end || *b.end < *both.end)) both.end = b.end;
  return both;
}

// Returns the least key greater than this one.
inline std::string successor(std::string_view key) {
  std::string next(key);
  next.push_back('\0');
  return next;
}

}  // namespace semel
