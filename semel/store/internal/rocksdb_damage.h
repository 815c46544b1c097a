// Damage of a RocksDB directory that RocksDB itself would not tell, or would not survive.
//
// Contract  These look, and change nothing. A damage is a text for people, which says what to do;
//           empty: there is none. A directory that its owner writes to meanwhile has none.
// Coverage  A directory that we have closed, and nobody else has opened since: CURRENT, MANIFEST
//           and OPTIONS are as they were, and there is nothing in its write-ahead log. Table files
//           have checksums, which RocksDB checks.
//           Any other directory: MANIFEST and log are sound up to their ends, and may end within a
//           record, as a kill leaves them. An end that was cut off is not missed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace semel {

struct DirectoryCheck {
  std::string damage;
  bool closed = false;          // by us
  std::uint64_t least_log = 0;  // this log or a later one is there; 0: that is not known
};

// Looks at all files that are read before the log. REQUIRES: CURRENT is there.
DirectoryCheck check_directory(const std::string& directory);

struct LogsCheck {
  std::string damage;
  bool torn = false;  // the last log ends within a record
};

// Looks at the write-ahead logs.
LogsCheck check_logs(const std::string& directory, const DirectoryCheck& checked);

// Returns the paths of the write-ahead logs, the oldest first.
std::vector<std::string> logs_of(const std::string& directory);

// Looks at a directory without CURRENT: it has lost it if there are records.
std::string check_empty(const std::string& directory);

std::string seal_path(const std::string& directory);
// Seals the directory, whose owner we are; at its end if `closed`. False if that failed.
bool seal_directory(const std::string& directory, const std::string& log_directory, bool closed);

}  // namespace semel
