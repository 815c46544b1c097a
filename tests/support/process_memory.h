// The memory of a process, as the system tells it in /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace semel {

// Returns a field of /proc/PID/status in bytes: "VmSize" is the address space now, "VmPeak" the
// most it was. Returns 0 if there is no such field.
inline std::uint64_t status_bytes(pid_t pid, std::string_view field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  while (status >> word && word != std::string(field) + ':') {
  }
  std::uint64_t kilobytes = 0;
  status >> kilobytes;
  return kilobytes << 10;
}

}  // namespace semel
