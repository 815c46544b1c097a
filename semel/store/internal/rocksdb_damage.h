// Finds damage of a RocksDB directory that RocksDB would not report, or would not survive.
//
// Contract  These functions change nothing. Damage is a text for people, which says what to do; an
//           empty text means no damage. Concurrent writes of the owner are no damage.
//           If we closed the directory and nobody has opened it since, these find any change of
//           CURRENT, MANIFEST and OPTIONS, and anything in the write-ahead log. RocksDB checks the
//           checksums of table files.
//           For any other directory, these find damage of MANIFEST and log before their ends. The
//           files may end within a record, as after a kill. An end that was cut off is not missed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace semel::store_internal {

struct DirectoryCheck {
  std::string damage;
  bool closed = false;          // we closed it
  std::uint64_t least_log = 0;  // this log or a later one must be there; 0: unknown
};

// Checks all files that are read before the log. REQUIRES: CURRENT is there.
DirectoryCheck check_directory(const std::string& directory);

struct LogsCheck {
  std::string damage;
  bool torn = false;  // the last log ends within a record
};

// Checks the write-ahead logs.
LogsCheck check_logs(const std::string& directory, const DirectoryCheck& checked);

// Returns the paths of the write-ahead logs, the oldest first.
std::vector<std::string> logs_of(const std::string& directory);

// Checks a directory without CURRENT. If there are records, CURRENT was lost. Returns the damage.
std::string check_empty(const std::string& directory);

std::string seal_path(const std::string& directory);
// Seals our directory; `closed` says that it is closed now. Returns false on failure.
bool seal_directory(const std::string& directory, const std::string& log_directory, bool closed);

}  // namespace semel::store_internal
