#include "tests/layering/layering.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>

namespace semel::layering {
namespace {

struct Layer {
  std::string_view folder;
  std::vector<std::string_view> may_include;  // besides itself
};

// From the bottom to the top: a folder may include only folders that stand above it here. A file
// belongs to the innermost folder that holds it.
const std::vector<Layer> kLayers = {
    {"semel/core", {}},
    {"semel/hash", {"semel/core"}},
    {"semel/bits", {"semel/core"}},
    {"semel/filter", {"semel/core", "semel/hash", "semel/bits"}},
    {"semel/window", {"semel/core", "semel/hash", "semel/bits", "semel/filter"}},
    {"semel/crdt", {"semel/core", "semel/hash", "semel/bits", "semel/filter"}},
    {"semel/sift", {"semel/core", "semel/hash", "semel/bits", "semel/filter", "semel/window"}},
    {"semel/slices",
     {"semel/core", "semel/hash", "semel/bits", "semel/filter", "semel/window", "semel/sift"}},
    {"semel/store", {"semel/core"}},
    {"semel/index", {"semel/core", "semel/hash", "semel/store"}},
    {"semel/sync", {"semel/core", "semel/hash", "semel/store", "semel/index"}},
    {"semel/tally/counters", {"semel/core", "semel/hash", "semel/bits", "semel/crdt"}},
    {"semel/tally",
     {"semel/core", "semel/hash", "semel/bits", "semel/window", "semel/crdt", "semel/index",
      "semel/tally/counters"}},
    {"semel/tally/store",
     {"semel/core", "semel/hash", "semel/bits", "semel/window", "semel/crdt", "semel/index",
      "semel/store", "semel/tally"}},
    {"client", {"semel"}},
    {"module/host", {"semel/core", "semel/hash"}},
    {"module/types", {"semel", "module/host"}},
    {"module", {"semel", "module/host", "module/types"}},  // commands
    {"cli", {"semel", "client"}},
};

// What one file may include beyond its folder.
struct Exception {
  std::string_view file;
  std::string_view may_include;
};
constexpr std::array kExceptions = {
    Exception{"semel/tally/store/tally_store_test.cc", "semel/sync"},
};

// A header of ours that only its own folder may include.
struct Hidden {
  std::string_view header;
  std::string_view seen_in;
};
constexpr std::array kHidden = {
    Hidden{"module/host/api.h", "module/host"},
};

// A library is named by the path of its headers, and seen in one place only.
struct Library {
  std::string_view headers;
  std::string_view seen_in;  // a folder or a file
};
constexpr std::array kLibraries = {
    Library{"xxhash.h", "semel/hash"},
    Library{"sodium.h", "semel/hash"},
    Library{"sodium", "semel/hash"},
    Library{"simdjson.h", "cli/json.cc"},
    Library{"zstd.h", "semel/crdt/zstd_frame.cc"},
    Library{"absl", "semel/store/memory_store.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_checksum.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_files.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_log_contents.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_merge.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_plan.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_plan.h"},
    Library{"rocksdb", "semel/store/internal/rocksdb_stand_in.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_status.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_status.h"},
    Library{"rocksdb", "semel/store/rocksdb_store.cc"},
    Library{"hiredis", "client"},
};
constexpr std::array<std::string_view, 3> kTestLibraries = {"gtest", "gmock", "rapidcheck"};

// POSIX, Linux and the processor: everywhere but in core.
const std::set<std::string_view> kPlatform = {
    "arpa",    "dirent.h", "endian.h", "fcntl.h",   "getopt.h", "immintrin.h",
    "linux",   "net",      "netdb.h",  "netinet",   "poll.h",   "pthread.h",
    "sched.h", "signal.h", "sys",      "termios.h", "unistd.h",
};

const std::set<std::string_view> kStandard = {
    "algorithm",
    "any",
    "array",
    "atomic",
    "barrier",
    "bit",
    "bitset",
    "charconv",
    "chrono",
    "compare",
    "complex",
    "concepts",
    "condition_variable",
    "coroutine",
    "deque",
    "exception",
    "execution",
    "filesystem",
    "format",
    "forward_list",
    "fstream",
    "functional",
    "future",
    "initializer_list",
    "iomanip",
    "ios",
    "iosfwd",
    "iostream",
    "istream",
    "iterator",
    "latch",
    "limits",
    "list",
    "locale",
    "map",
    "memory",
    "memory_resource",
    "mutex",
    "new",
    "numbers",
    "numeric",
    "optional",
    "ostream",
    "queue",
    "random",
    "ranges",
    "ratio",
    "regex",
    "scoped_allocator",
    "semaphore",
    "set",
    "shared_mutex",
    "source_location",
    "span",
    "sstream",
    "stack",
    "stdexcept",
    "stop_token",
    "streambuf",
    "string",
    "string_view",
    "strstream",
    "syncstream",
    "system_error",
    "thread",
    "tuple",
    "type_traits",
    "typeindex",
    "typeinfo",
    "unordered_map",
    "unordered_set",
    "utility",
    "valarray",
    "variant",
    "vector",
    "version",
    "cassert",
    "cctype",
    "cerrno",
    "cfenv",
    "cfloat",
    "cinttypes",
    "climits",
    "clocale",
    "cmath",
    "csetjmp",
    "csignal",
    "cstdarg",
    "cstddef",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "ctime",
    "cuchar",
    "cwchar",
    "cwctype",
};

// True if `path` is `place`, or lies in it where that is a folder.
bool within(std::string_view path, std::string_view place) {
  return path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/');
}

template <class Places>
bool within_any(std::string_view path, const Places& places) {
  return std::any_of(std::begin(places), std::end(places),
                     [&](std::string_view place) { return within(path, place); });
}

// The innermost folder of the table that holds `path`.
const Layer* layer_of(std::string_view path) {
  const Layer* innermost = nullptr;
  for (const Layer& layer : kLayers) {
    if (!within(path, layer.folder)) continue;
    if (innermost == nullptr || layer.folder.size() > innermost->folder.size()) innermost = &layer;
  }
  return innermost;
}

// The room whose internal/ folder holds `header`: two folders deep, so that a room and the rooms
// inside it share their internals. Empty if the header is public.
std::string_view room_of_internal(std::string_view header) {
  if (header.find("/internal/") == std::string_view::npos) return {};
  return header.substr(0, header.find('/', header.find('/') + 1));
}

bool is_ours(std::string_view path) {
  constexpr std::array<std::string_view, 7> kRoots = {"semel", "client", "module", "cli",
                                                      "tests", "bench",  "fuzz"};
  return within_any(path, kRoots);
}

bool is_test(std::string_view file) { return file.ends_with("_test.cc"); }

// What a file is the test of; the file itself if it is none.
std::string source_of(std::string_view file) {
  constexpr std::string_view kTest = "_test.cc";
  if (!is_test(file)) return std::string(file);
  return std::string(file.substr(0, file.size() - kTest.size())) + ".cc";
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string list;
  for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
  return list.empty() ? "nothing but itself" : list;
}

std::optional<std::string> fault_of_ours(std::string_view file, const Layer& layer,
                                         std::string_view header) {
  for (const Hidden& hidden : kHidden) {
    if (header == hidden.header && !within(file, hidden.seen_in)) {
      return std::string(header) + " may be included only in " + std::string(hidden.seen_in);
    }
  }
  if (const std::string_view room = room_of_internal(header);
      !room.empty() && !within(file, room)) {
    return "internal to " + std::string(room);
  }
  if (layer_of(header) == &layer || within_any(header, layer.may_include)) return std::nullopt;
  if (is_test(file) && within(header, "tests")) return std::nullopt;
  for (const Exception& exception : kExceptions) {
    if (file == exception.file && within(header, exception.may_include)) return std::nullopt;
  }
  return std::string(layer.folder) + " may include " + listed(layer.may_include);
}

std::optional<std::string> fault_of_system(std::string_view file, std::string_view header) {
  if (kStandard.contains(header)) return std::nullopt;
  if (is_test(file) && within_any(header, kTestLibraries)) return std::nullopt;
  if (within(file, "semel/core")) return "semel/core may include the standard library only";
  if (within_any(header, kPlatform)) return std::nullopt;
  std::string_view headers;
  std::vector<std::string_view> seen_in;
  for (const Library& library : kLibraries) {
    if (!within(header, library.headers)) continue;
    if (within(file, library.seen_in) || source_of(file) == library.seen_in) return std::nullopt;
    headers = library.headers;
    seen_in.push_back(library.seen_in);
  }
  if (!seen_in.empty()) {
    return std::string(headers) + " may be included only in " + listed(seen_in);
  }
  return "neither a path from the root of the repository, nor a header in the tables of "
         "tests/layering/layering.cc";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Breach& breach) {
  return out << breach.file << ':' << breach.line << ": " << breach.what;
}

std::vector<Breach> breaches_in(std::string_view file, std::string_view text) {
  static const std::regex kInclude(
      R"(\s*#\s*(?:include|include_next|import)\b\s*(?:["<]([^">]+)[">])?)");
  const Layer* const layer = layer_of(file);
  if (layer == nullptr) return {{std::string(file), 1, "a folder that the table does not name"}};

  std::vector<Breach> breaches;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::smatch include;
    if (!std::regex_search(line, include, kInclude, std::regex_constants::match_continuous))
      continue;
    if (!include[1].matched) {
      breaches.push_back({std::string(file), number, "an include that does not name its header"});
      continue;
    }
    const std::string header = include[1];
    const auto fault =
        is_ours(header) ? fault_of_ours(file, *layer, header) : fault_of_system(file, header);
    if (fault) breaches.push_back({std::string(file), number, header + ": " + *fault});
  }
  return breaches;
}

Report check_tree(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  std::set<fs::path> files;
  for (const char* const top : {"semel", "client", "module", "cli"}) {
    if (!fs::exists(root / top)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top)) {
      const fs::path extension = entry.path().extension();
      if (extension == ".h" || extension == ".cc") files.insert(entry.path());
    }
  }
  Report report;
  for (const fs::path& path : files) {
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto found = breaches_in(path.lexically_relative(root).generic_string(), text);
    report.breaches.insert(report.breaches.end(), found.begin(), found.end());
    ++report.files;
  }
  return report;
}

std::string upward_dependency() {
  for (auto layer = kLayers.begin(); layer != kLayers.end(); ++layer) {
    for (const std::string_view below : layer->may_include) {
      const bool stands_above = std::any_of(
          kLayers.begin(), layer, [&](const Layer& other) { return within(other.folder, below); });
      const bool stands_below =
          std::any_of(std::next(layer), kLayers.end(),
                      [&](const Layer& other) { return within(other.folder, below); });
      if (!stands_above || stands_below) return std::string(layer->folder);
    }
  }
  return {};
}

}  // namespace semel::layering
