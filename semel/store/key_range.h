// KeyRange: the keys from `first` to before `end`, in the order of their bytes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "semel/core/codec.h"

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

inline void write(Writer& w, const KeyRange& range) {
  w.text(range.first);
  w.boolean(range.end.has_value());
  if (range.end) w.text(*range.end);
}
inline KeyRange read_key_range(Reader& r) {
  KeyRange range{std::string(r.text()), std::nullopt};
  if (r.boolean()) range.end = std::string(r.text());
  return range;
}

}  // namespace semel
