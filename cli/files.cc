#include "cli/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace semel::cli {
namespace {

// Returns the error of the last call if a retry is pointless. Otherwise waits until it makes sense.
std::error_code unless_transient(int fd, short wanted) {
  const std::error_code error = last_error();
  if (error == std::errc::interrupted) return {};
  if (error != std::errc::resource_unavailable_try_again) return error;
  pollfd poll_fd{fd, wanted, 0};
  (void)::poll(&poll_fd, 1, -1);
  return {};
}

std::optional<FileId> identify(bool known, const struct stat& status) {
  if (!known || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

}  // namespace

std::error_code last_error() { return {errno, std::generic_category()}; }

File File::open(const std::string& path, int flags, std::error_code& error) {
  int fd = -1;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (fd < 0 && errno == EINTR);
  error = fd < 0 ? last_error() : std::error_code{};
  return File(fd, true);
}

File File::open_to_read(const std::string& path, std::error_code& error) {
  return open(path, O_RDONLY, error);
}

File File::open_to_write(const std::string& path, std::error_code& error) {
  return open(path, O_WRONLY | O_CREAT, error);
}

File File::open_own(const std::string& path, std::error_code& error) {
  return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, error);
}

File::~File() {
  if (owned_) (void)close();
}

std::error_code File::close() {
  if (fd_ < 0) return {};
  const int closed = ::close(std::exchange(fd_, -1));
  return closed == 0 ? std::error_code{} : last_error();
}

std::error_code read_some(int fd, char* to, std::size_t size, std::size_t& got) {
  for (;;) {
    const ssize_t n = ::read(fd, to, size);
    got = n < 0 ? 0 : static_cast<std::size_t>(n);
    if (n >= 0) return {};
    if (const std::error_code error = unless_transient(fd, POLLIN)) return error;
  }
}

std::error_code read_all(int fd, std::string& to) {
  std::array<char, 4096> piece{};
  for (std::size_t got = 0;;) {
    if (const std::error_code error = read_some(fd, piece.data(), piece.size(), got)) return error;
    if (got == 0) return {};
    to.append(piece.data(), got);
  }
}

std::error_code write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (const std::error_code error = unless_transient(fd, POLLOUT)) {
      return error;
    }
  }
  return {};
}

std::optional<FileId> file_id(int fd) {
  struct stat status {};
  return identify(::fstat(fd, &status) == 0, status);
}

std::optional<FileId> file_id(const std::string& path) {
  struct stat status {};
  return identify(::stat(path.c_str(), &status) == 0, status);
}

bool name_one_file(const std::string& a, const std::string& b) {
  const auto of_a = file_id(a), of_b = file_id(b);
  if (of_a || of_b) return of_a == of_b;
  namespace fs = std::filesystem;
  std::error_code unknown;
  return fs::weakly_canonical(fs::absolute(a), unknown) ==
         fs::weakly_canonical(fs::absolute(b), unknown);
}

std::error_code empty(int fd) {
  return !file_id(fd) || ::ftruncate(fd, 0) == 0 ? std::error_code{} : last_error();
}

}  // namespace semel::cli
