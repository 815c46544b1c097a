#include "module/host/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string_view>

namespace semel::host {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

// The number in a file. kNone if there is no file, or it says `max`.
std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : kNone;
}

// The least limit of a group and of all above it, up to the one that is mounted at `folder`. A
// container sees its own group there, and may be told a path that is not below it.
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
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers(1, ',');
    controllers.append(line, first + 1, second - first - 1).append(1, ',');
    const std::string group = line.substr(second + 1);
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
