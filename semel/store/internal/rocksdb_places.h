// Finds out who else uses directories of a RocksDB database outside of its own.
//
// Contract  RocksDB locks only the directory of a database. A log directory or a path of table
//           files may belong to the running original of our copy. Nothing here changes a file,
//           except that PlaceLock::take() makes the file SEMEL-LOCK. On a file system without
//           leases (NFS, FUSE) nobody can know whether a file is open, so it counts as closed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace semel::store_internal {

// Returns true if both paths lead to one directory. Paths that do not exist are compared by name.
bool same_place(const std::string& a, const std::string& b);
// Returns true if `path` is `directory` or below it, after all links are followed.
bool within(const std::string& directory, const std::string& path);
// Returns the name of a file that a database has in its own directory; empty if there is none.
std::string database_file_in(const std::string& path);
// Returns the name of a file with one of these endings that another program has open, for writing
// if so asked; empty if there is none.
enum class OpenFor { writing, anything };
std::string file_in_use(const std::string& path, const std::vector<std::string>& endings,
                        OpenFor use);

// Keeps other processes of Semel, and other stores of this process, out of a place.
class PlaceLock {
 public:
  static constexpr const char* kName = "SEMEL-LOCK";

  // Takes the place for one writer. Returns nullopt if it is taken, or cannot be written.
  static std::optional<PlaceLock> take(const std::string& place);
  // Shares the place with other readers. Returns nullopt if a writer has it. Readers write nothing,
  // so a place without a lock file gets none.
  static std::optional<PlaceLock> share(const std::string& place);

  PlaceLock(PlaceLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  PlaceLock& operator=(PlaceLock&&) = delete;
  ~PlaceLock();

 private:
  explicit PlaceLock(int fd) : fd_(fd) {}
  static std::optional<PlaceLock> locked(int fd, short kind);
  int fd_;
};

}  // namespace semel::store_internal
