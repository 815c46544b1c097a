// LogContents: the records in the write-ahead logs of a directory that only its owner can apply.
//
// Contract  Changes nothing. Some records of the logs may be in tables already. So this may find
//           more records than an opening would replay, but never fewer.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace semel::store_internal {

struct LogContents {
  bool complete = true;            // false: a log is compressed or recycled, or could not be read
  std::set<std::uint32_t> merged;  // column families with merges
  std::set<std::string> prepared;  // transactions that are neither committed nor rolled back

  // `logs` are paths, the oldest first.
  static LogContents of(const std::vector<std::string>& logs);
};

}  // namespace semel::store_internal
