// The lines of some bytes, each with its newline; the last may have none.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace semel {

inline std::vector<std::string> lines_of(const std::string& bytes) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', start), bytes.size() - 1) + 1;
    lines.push_back(bytes.substr(start, end - start));
    start = end;
  }
  return lines;
}

}  // namespace semel
