// NewFile: a file that takes the place of another one as a whole, or not at all.
//
// Contract  The new bytes go to a temporary file in the same directory. It is made durable and then
//           renamed. A crash leaves the old file or the new one. An error leaves the old one, and
//           no other file.
//           The temporary file has a random name and is made by this process, so nobody can plant a
//           link, a FIFO or another file in its place. Only its owner can read it until
//           permit_like() says otherwise.
//           A process that is killed leaves its temporary file. remove_leftovers() finds it by its
//           name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "semel/core/codec.h"

namespace semel::store_internal {

class NewFile {
 public:
  // Creates the temporary file that will take the place of `path`.
  static NewFile beside(std::string path, std::error_code& error);
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        fd_(std::exchange(other.fd_, -1)) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int fd() const { return fd_; }
  std::error_code write(ByteView bytes);
  // Gives the file the permissions of an open file and, if allowed, its owner and group.
  std::error_code permit_like(int fd);
  // Makes the bytes durable and puts the file in its place. If the last step fails, which makes the
  // name durable, the new file is in place all the same.
  std::error_code replace();
  // Hands over the open file. REQUIRES: replace() was called.
  int release() { return std::exchange(fd_, -1); }

 private:
  explicit NewFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::string temporary_;  // empty: there is none
  int fd_ = -1;
};

// Removes files that killed processes left beside `path`. REQUIRES: no other process replaces the
// file at the same time.
void remove_leftovers(const std::string& path);

// Returns the bytes of a whole file; nullopt if it cannot be read to its end.
std::optional<std::string> content_of(const std::string& path);

// Replaces a whole file.
std::error_code replace_file(const std::string& path, ByteView bytes);

// Makes the names in the directory of `path` durable.
std::error_code sync_directory_of(const std::string& path);

}  // namespace semel::store_internal
