// File: reads and writes file descriptors.
//
// Contract  A call that a signal interrupts is made again. A descriptor that another process has
//           set to non-blocking is waited for. Errors keep the system's own words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace semel::cli {

// Holds a file descriptor, and closes it in the end if it was opened here.
class File {
 public:
  File() = default;
  // REQUIRES: fd stays open longer than this.
  static File borrow(int fd) { return File(fd, false); }
  static File open_to_read(const std::string& path, std::error_code& error);
  // Creates the file if it is not there, and keeps its contents.
  static File open_to_write(const std::string& path, std::error_code& error);
  // Opens a file that only the caller should use, to read and to write. Follows no symbolic link
  // (std::errc::too_many_symbolic_link_levels), and does not wait for the other end of a FIFO.
  static File open_own(const std::string& path, std::error_code& error);
  // Takes over a descriptor.
  static File own(int fd) { return File(fd, true); }

  File(File&& other) noexcept { *this = std::move(other); }
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~File();

  int fd() const { return fd_; }
  // Closes the file, even a borrowed one. Reports what the system could not write until now.
  std::error_code close();

 private:
  static File open(const std::string& path, int flags, std::error_code& error);
  File(int fd, bool owned) : fd_(fd), owned_(owned) {}

  int fd_ = -1;
  bool owned_ = false;
};

std::error_code last_error();  // errno

// Reads at most `size` bytes, after waiting for some. Reads none only at the end.
std::error_code read_some(int fd, char* to, std::size_t size, std::size_t& got);
// Reads all until the end.
std::error_code read_all(int fd, std::string& to);
std::error_code write_all(int fd, std::string_view bytes);

// Identifies a regular file. Other things, such as a pipe or a terminal, have no id.
struct FileId {
  std::uint64_t device;
  std::uint64_t number;
  bool operator==(const FileId&) const = default;
};
std::optional<FileId> file_id(int fd);
std::optional<FileId> file_id(const std::string& path);
// Returns true if both paths lead to one file, or would if it were made.
bool name_one_file(const std::string& a, const std::string& b);

// Empties a regular file. Does nothing to anything else.
std::error_code empty(int fd);

}  // namespace semel::cli
