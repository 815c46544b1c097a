// LogContents: what the write-ahead logs of a directory hold that only its owner can finish.
//
// Contract  Looks, and changes nothing. What the logs hold may be in tables already: this is more
//           than an opening would replay, never less.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace semel {

struct LogContents {
  bool complete = true;            // false: a log is compressed or recycled, or could not be read
  std::set<std::uint32_t> merged;  // column families with merges
  std::set<std::string> prepared;  // transactions that are neither committed nor rolled back

  // `logs` are paths, the oldest first.
  static LogContents of(const std::vector<std::string>& logs);
};

}  // namespace semel
