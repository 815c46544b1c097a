// The program that most people would write: it keeps all lines in a hash set, and writes new ones.
// Reads standard input and writes standard output, in large pieces.
#include <absl/container/flat_hash_set.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

int main() {
  absl::flat_hash_set<std::string> seen;
  std::vector<char> buffer(1 << 20);
  std::string out;
  std::size_t used = 0;
  for (;;) {
    const std::size_t got = std::fread(buffer.data() + used, 1, buffer.size() - used, stdin);
    used += got;
    std::size_t begin = 0;
    while (const void* newline = std::memchr(buffer.data() + begin, '\n', used - begin)) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(newline) - buffer.data());
      const std::string_view line(buffer.data() + begin, end - begin);
      if (seen.emplace(line).second) out.append(line).push_back('\n');
      begin = end + 1;
    }
    std::memmove(buffer.data(), buffer.data() + begin, used - begin);
    used -= begin;
    if (used == buffer.size()) buffer.resize(2 * buffer.size());
    if (out.size() >= 1 << 18 || got == 0) {
      if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size()) return 1;
      out.clear();
    }
    if (got == 0) break;
  }
  if (used > 0 && seen.emplace(buffer.data(), used).second) {
    return std::fwrite(buffer.data(), 1, used, stdout) == used ? 0 : 1;
  }
  return 0;
}
