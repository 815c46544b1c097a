#include "semel/store/internal/rocksdb_places.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <thread>

namespace semel::store_internal {
namespace {

namespace fs = std::filesystem;

fs::path canonical(const std::string& path) {
  std::error_code ignored;
  const fs::path place = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  return place.has_filename() ? place : place.parent_path();  // without the slash at its end
}

// The kernel refuses a lease if the file is open. We give a lease back at once, so that nobody
// waits for it.
bool is_open(const std::string& file, OpenFor use) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  // If another process opens the file meanwhile, we get a signal, whose default action would end
  // the process. Our handler ignores it.
  bool used = false;
  if (::fcntl(fd, F_SETSIG, SIGURG) == 0) {
    used = ::fcntl(fd, F_SETLEASE, use == OpenFor::writing ? F_RDLCK : F_WRLCK) != 0 &&
           (errno == EAGAIN || errno == EBUSY);
    if (!used) (void)::fcntl(fd, F_SETLEASE, F_UNLCK);
  }
  ::close(fd);
  return used;
}

// Until it executes another program, a forked process has all files of its parent open. So only a
// file that stays open is in use.
bool in_use(const std::string& file, OpenFor use) {
  constexpr int kLooks = 25;
  constexpr std::chrono::milliseconds kBetweenLooks{10};
  for (int look = 1; is_open(file, use); ++look) {
    if (look == kLooks) return true;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return false;
}

// Calls `look` with each name in the directory until it returns true; returns that name.
template <class Look>
std::string first_name(const std::string& path, Look look) {
  std::error_code ignored;
  for (fs::directory_iterator entry(path, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::string name = entry->path().filename();
    if (look(name)) return name;
  }
  return {};
}

}  // namespace

bool same_place(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored) || canonical(a) == canonical(b);
}

bool within(const std::string& directory, const std::string& path) {
  const fs::path outer = canonical(directory);
  const fs::path inner = canonical(path);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

std::string database_file_in(const std::string& path) {
  constexpr std::array<std::string_view, 3> kNames = {"CURRENT", "LOCK", "IDENTITY"};
  return first_name(path, [&](const std::string& name) {
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
           name.starts_with("MANIFEST-") || name.starts_with("OPTIONS-");
  });
}

std::string file_in_use(const std::string& path, const std::vector<std::string>& endings,
                        OpenFor use) {
  return first_name(path, [&](const std::string& name) {
    const bool kind = std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) {
      return name.ends_with(ending);
    });
    return kind && in_use(path + "/" + name, use);
  });
}

std::optional<PlaceLock> PlaceLock::locked(int fd, short kind) {
  if (fd < 0) return std::nullopt;
  PlaceLock lock(fd);
  struct flock range {
  };  // of the open file, not of the process: two stores in one process exclude each other
  range.l_type = kind;
  if (::fcntl(fd, F_OFD_SETLK, &range) != 0) return std::nullopt;
  return lock;
}

std::optional<PlaceLock> PlaceLock::take(const std::string& place) {
  constexpr mode_t kMode = 0644;
  const std::string path = place + "/" + kName;
  return locked(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode), F_WRLCK);
}

std::optional<PlaceLock> PlaceLock::share(const std::string& place) {
  const std::string path = place + "/" + kName;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return PlaceLock(-1);
  return locked(fd, F_RDLCK);
}

PlaceLock::~PlaceLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace semel::store_internal
