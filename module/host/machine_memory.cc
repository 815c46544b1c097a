#include "module/host/machine_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>

namespace semel::host {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

// The beginning of a small file of the system. No stream reads it: streams allocate inside the C++
// library, whose memory is not the server's in builds with sanitizers.
class SmallFile {
 public:
  explicit SmallFile(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    for (ssize_t got = 1; got > 0 && size_ < bytes_.size();) {
      got = ::read(fd, bytes_.data() + size_, bytes_.size() - size_);
      if (got > 0) size_ += static_cast<std::size_t>(got);
    }
    ::close(fd);
  }
  std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 16 << 10> bytes_;
  std::size_t size_ = 0;
};

// Returns the number in a file, or kNone if there is no file or it says `max`.
std::uint64_t number_in(const std::string& path) {
  const SmallFile file(path);
  const std::string_view text = file.text();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : kNone;
}

// Returns the least limit of a group and of all groups above it, up to the one that is mounted at
// `folder`. A container sees its own group there, and may get a path that is not below it.
std::uint64_t least_limit(const std::string& folder, std::string group, const char* file) {
  std::uint64_t least = kNone;
  while (true) {
    least = std::min(least, number_in(folder + group + file));
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos) return least;
    group.resize(slash);
  }
}

// Lines of /proc/self/cgroup are ID:CONTROLLERS:PATH; version 2 has no controllers.
std::uint64_t group_memory(const std::string& root) {
  const std::string groups = root + "/sys/fs/cgroup";
  std::uint64_t least = std::min(least_limit(groups, "", "/memory.max"),
                                 least_limit(groups + "/memory", "", "/memory.limit_in_bytes"));
  const SmallFile file(root + "/proc/self/cgroup");
  for (std::string_view rest = file.text(); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    std::string controllers(1, ',');
    controllers.append(line.substr(first + 1, second - first - 1)).append(1, ',');
    const std::string group(line.substr(second + 1));
    if (controllers == ",,") least = std::min(least, least_limit(groups, group, "/memory.max"));
    if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, least_limit(groups + "/memory", group, "/memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace

std::uint64_t machine_memory(const std::string& root) {
  const auto all = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(all, group_memory(root));
}

}  // namespace semel::host
