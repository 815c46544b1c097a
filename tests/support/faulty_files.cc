// A library to be preloaded: one call of a program for a file fails, as on a full or broken disk.
//
// SEMEL_FAULT_UNDER  the files concerned: those whose path begins with this
// SEMEL_FAULT_CALL   open (to write), write, sync, truncate, rename or close
// SEMEL_FAULT_AT     the number of the call that fails, from 1 on
// SEMEL_FAULT_ERRNO  the error; 0: a write takes half of its bytes, and does not fail
// SEMEL_FAULT_ON     if set, all later calls of the kind fail too
// SEMEL_FAULT_MARK   a file that is made when a call fails
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string_view>

namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool concerns(std::string_view path) {
  const std::string_view under = environment("SEMEL_FAULT_UNDER");
  return !under.empty() && path.starts_with(under);
}

bool concerns(int fd) {
  std::array<char, 4096> path{};
  std::array<char, 32> link{"/proc/self/fd/"};
  std::size_t end = std::string_view(link.data()).size();
  std::array<char, 12> digits{};
  std::size_t count = 0;
  for (int rest = fd; count == 0 || rest > 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  while (count > 0) link[end++] = digits[--count];
  const ssize_t size = ::readlink(link.data(), path.data(), path.size());
  return size > 0 && concerns(std::string_view(path.data(), static_cast<std::size_t>(size)));
}

void mark() {
  const char* const path = std::getenv("SEMEL_FAULT_MARK");
  if (path == nullptr) return;
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) ::syscall(SYS_close, fd);
}

// Returns true if this call on one of the files has to fail; errno says how.
bool fails(std::string_view call) {
  static std::atomic<long> calls = 0;
  if (call != environment("SEMEL_FAULT_CALL")) return false;
  const long at = std::strtol(environment("SEMEL_FAULT_AT").data(), nullptr, 10);
  const long now = ++calls;
  if (now != at && (now < at || environment("SEMEL_FAULT_ON").empty())) return false;
  mark();
  errno = static_cast<int>(std::strtol(environment("SEMEL_FAULT_ERRNO").data(), nullptr, 10));
  return true;
}

bool creates(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  if (creates(flags) && concerns(std::string_view(path)) && fails("open")) return -1;
  return real<int (*)(const char*, int, ...)>("open")(path, flags, mode);
}

int mkostemp(char* path, int flags) {
  if (concerns(std::string_view(path)) && fails("open")) return -1;
  return real<int (*)(char*, int)>("mkostemp")(path, flags);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  const auto write = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (!concerns(fd) || !fails("write")) return write(fd, bytes, size);
  return errno == 0 ? write(fd, bytes, (size + 1) / 2) : -1;
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  const auto write = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  if (!concerns(fd) || !fails("write")) return write(fd, bytes, size, at);
  return errno == 0 ? write(fd, bytes, (size + 1) / 2, at) : -1;
}

int fsync(int fd) { return concerns(fd) && fails("sync") ? -1 : real<int (*)(int)>("fsync")(fd); }

int fdatasync(int fd) {
  return concerns(fd) && fails("sync") ? -1 : real<int (*)(int)>("fdatasync")(fd);
}

int ftruncate(int fd, off_t size) noexcept {
  if (concerns(fd) && fails("truncate")) return -1;
  return real<int (*)(int, off_t)>("ftruncate")(fd, size);
}

int rename(const char* from, const char* to) noexcept {
  if (concerns(std::string_view(to)) && fails("rename")) return -1;
  return real<int (*)(const char*, const char*)>("rename")(from, to);
}

// Closes the descriptor even if the call fails, as Linux does.
int close(int fd) {
  const bool failed = concerns(fd) && fails("close");
  const int error = errno;
  const int closed = real<int (*)(int)>("close")(fd);
  if (!failed) return closed;
  errno = error;
  return -1;
}

}  // extern "C"
