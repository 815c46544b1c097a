#include "semel/store/internal/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace semel::store_internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".semel-";
constexpr std::string_view kRandom = "XXXXXX";  // the pattern that mkostemp() requires

std::error_code last_error() { return {errno, std::generic_category()}; }

// Repeats a call that a signal has interrupted.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

std::error_code sync(int fd) {
  return uninterrupted([fd] { return ::fsync(fd); }) == 0 ? std::error_code{} : last_error();
}

fs::path directory_of(const std::string& path) {
  const fs::path directory = fs::path(path).parent_path();
  return directory.empty() ? fs::path(".") : directory;
}

// Returns the prefix of the names of temporary files: hidden, and unique to this path.
std::string prefix_of(const std::string& path) {
  return '.' + fs::path(path).filename().string() + std::string(kMark);
}

}  // namespace

NewFile NewFile::beside(std::string path, std::error_code& error) {
  NewFile file(std::move(path));
  std::string name = directory_of(file.path_) / (prefix_of(file.path_) + std::string(kRandom));
  file.fd_ = uninterrupted([&name] {
    name.replace(name.size() - kRandom.size(), kRandom.size(), kRandom);
    return ::mkostemp(name.data(), O_CLOEXEC);
  });
  error = file.fd_ < 0 ? last_error() : std::error_code{};
  if (!error) file.temporary_ = std::move(name);
  return file;
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::error_code NewFile::write(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = uninterrupted([&] { return ::write(fd_, bytes.data(), bytes.size()); });
    if (wrote < 0) return last_error();
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

std::error_code NewFile::permit_like(int fd) {
  constexpr mode_t kOfGroup = S_IRWXG;
  struct stat old {};
  struct stat ours {};
  if (::fstat(fd, &old) != 0 || ::fstat(fd_, &ours) != 0) return last_error();
  mode_t mode = old.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  // Permissions of one group must not go to another.
  const bool same_group =
      old.st_gid == ours.st_gid || ::fchown(fd_, static_cast<uid_t>(-1), old.st_gid) == 0;
  if (!same_group) mode &= ~kOfGroup;
  // Only root may change a file's owner; otherwise the file belongs to whoever replaces it.
  if (old.st_uid != ours.st_uid) (void)!::fchown(fd_, old.st_uid, static_cast<gid_t>(-1));
  return ::fchmod(fd_, mode) == 0 ? std::error_code{} : last_error();
}

std::error_code NewFile::replace() {
  if (const std::error_code error = sync(fd_)) return error;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return last_error();
  temporary_.clear();
  return sync_directory_of(path_);
}

void remove_leftovers(const std::string& path) {
  const std::string prefix = prefix_of(path);
  std::error_code ignored;
  for (fs::directory_iterator entry(directory_of(path), ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    const bool ours = name.size() == prefix.size() + kRandom.size() && name.starts_with(prefix);
    std::error_code unknown;
    if (ours && fs::is_regular_file(entry->symlink_status(unknown))) {
      ::unlink(entry->path().c_str());
    }
  }
}

std::optional<std::string> content_of(const std::string& path) {
  const int fd = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return std::nullopt;
  constexpr std::size_t kPiece = 1 << 16;
  std::string content;
  ssize_t got = 0;
  do {
    const std::size_t size = content.size();
    content.resize(size + kPiece);
    got = uninterrupted([&] { return ::read(fd, content.data() + size, kPiece); });
    content.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  } while (got > 0);
  ::close(fd);
  return got == 0 ? std::optional(std::move(content)) : std::nullopt;
}

std::error_code replace_file(const std::string& path, ByteView bytes) {
  std::error_code error;
  NewFile file = NewFile::beside(path, error);
  if (!error) error = file.write(bytes);
  if (!error) error = file.replace();
  return error;
}

std::error_code sync_directory_of(const std::string& path) {
  const std::string directory = directory_of(path);
  const int fd =
      uninterrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return last_error();
  const std::error_code error = sync(fd);
  ::close(fd);
  return error;
}

}  // namespace semel::store_internal
