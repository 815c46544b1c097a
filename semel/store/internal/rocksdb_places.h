// Places of a RocksDB database beside its directory, and who else uses them.
//
// Why       RocksDB locks the directory of a database and no other. A log directory or a path of
//           table files may belong to the running original of the copy that we were given.
// Contract  Nothing here changes a file, but PlaceLock::take() makes the file SEMEL-LOCK.
// Limit     A file system without leases (NFS, FUSE) does not tell whether a file is open. Then it
//           counts as closed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace semel {

// True if both name one directory, in whatever spelling. A path that does not exist is compared by
// its name.
bool same_place(const std::string& a, const std::string& b);
// True if `path` is `directory` or below it, after all links are followed.
bool within(const std::string& directory, const std::string& path);
// Returns the name of a file that a database has in its own directory; empty if there is none.
std::string database_file_in(const std::string& path);
// Returns the name of a file with this ending that another program has open to write it, or has open
// at all; empty if there is none.
enum class OpenFor { writing, anything };
std::string file_in_use(const std::string& path, const std::vector<std::string>& endings,
                        OpenFor use);

// Keeps other processes of ours, and other stores of this process, out of a place.
class PlaceLock {
 public:
  static constexpr const char* kName = "SEMEL-LOCK";

  // Takes the place for one writer. nullopt if somebody has it, or it cannot be written.
  static std::optional<PlaceLock> take(const std::string& place);
  // Shares the place with other readers. nullopt if a writer has it. A place that nobody has locked
  // yet stays without a lock: readers write nothing.
  static std::optional<PlaceLock> share(const std::string& place);

  PlaceLock(PlaceLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  PlaceLock& operator=(PlaceLock&&) = delete;
  ~PlaceLock();

 private:
  explicit PlaceLock(int fd) : fd_(fd) {}
  static std::optional<PlaceLock> locked(int fd, short kind);
  int fd_;
};

}  // namespace semel
