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

// From the bottom to the top: a folder may include only folders that stand above it here. A file
// belongs to the innermost folder that holds it.
const std::vector<Layer> kLayers = {
    {"semel/core", {}},
    {"semel/hash", {"semel/core"}},
    {"semel/bits", {"semel/core"}},
    {"semel/filter", {"semel/core", "semel/hash", "semel/bits"}},
    {"semel/crdt", {"semel/core", "semel/hash", "semel/bits", "semel/filter"}},
    // A window without an end is a series of one site.
    {"semel/window", {"semel/core", "semel/hash", "semel/bits", "semel/filter", "semel/crdt"}},
    {"semel/sift",
     {"semel/core", "semel/hash", "semel/bits", "semel/filter", "semel/crdt", "semel/window"}},
    {"semel/slices",
     {"semel/core", "semel/hash", "semel/bits", "semel/filter", "semel/crdt", "semel/window",
      "semel/sift"}},
    {"semel/store", {"semel/core", "semel/hash"}},
    {"semel/index", {"semel/core", "semel/hash", "semel/store"}},
    {"semel/sync", {"semel/core", "semel/hash", "semel/store", "semel/index"}},
    {"semel/tally/counters", {"semel/core", "semel/hash", "semel/bits", "semel/crdt"}},
    {"semel/tally",
     {"semel/core", "semel/hash", "semel/bits", "semel/window", "semel/crdt", "semel/index",
      "semel/tally/counters"}},
    {"semel/tally/store",
     {"semel/core", "semel/hash", "semel/bits", "semel/window", "semel/crdt", "semel/index",
      "semel/store", "semel/tally"}},
    // It also sees the internals of all rooms. Only bench and tests see it (kHidden).
    {"semel/papers",
     {"semel/core", "semel/hash", "semel/bits", "semel/filter", "semel/window", "semel/crdt",
      "semel/sift", "semel/slices", "semel/store", "semel/index", "semel/sync", "semel/tally"}},
    {"client", {"semel"}},
    {"module/host", {"semel/core", "semel/hash"}},
    {"module/types", {"semel", "module/host"}},
    {"module", {"semel", "module/host", "module/types"}},  // commands
    {"cli", {"semel", "client"}},
};

// Files that may include more than their folder.
struct Exception {
  std::string_view file;
  std::string_view may_include;
};
constexpr std::array kExceptions = {
    Exception{"semel/tally/store/tally_store_test.cc", "semel/sync"},
    Exception{"cli/sift_state.cc", "semel/store/internal/new_file.h"},
    Exception{"semel/sync/replica.cc", "semel/store/internal/responsible_store.h"},
};

// Headers or folders of ours that only one folder may include.
struct Hidden {
  std::string_view header;
  std::string_view seen_in;
};
constexpr std::array kHidden = {
    Hidden{"module/host/api.h", "module/host"},
    Hidden{"semel/papers", "semel/papers"},
};

// Rooms and files that may include the internals of another room. Those of core, hash and bits are
// the tools of the whole house. Tests may include all internals.
struct Friend {
  std::string_view file;
  std::string_view internals;
};
constexpr std::array kFriends = {
    Friend{"semel", "semel/core/internal"},
    Friend{"client", "semel/core/internal"},
    Friend{"module", "semel/core/internal"},
    Friend{"cli", "semel/core/internal"},
    Friend{"semel", "semel/hash/internal"},
    Friend{"module", "semel/hash/internal"},
    Friend{"cli", "semel/hash/internal"},
    Friend{"semel", "semel/bits/internal"},
    Friend{"module", "semel/bits/internal"},
    // Lanes of a window use the probes of Bloom filters.
    Friend{"semel/window", "semel/filter/internal"},
    // Filters of crdt consist of cuckoo tables and Bloom filters; the module moves them in pieces.
    Friend{"semel/crdt", "semel/filter/internal"},
    Friend{"module/types", "semel/crdt/internal"},
    Friend{"semel/sift/sifter.cc", "semel/window/internal"},  // the codec of a goal
    Friend{"semel/tally/internal/recogniser.cc", "semel/window/internal"},
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
    Library{"absl", "semel/store/memory_store.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_changes.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_checksum.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_database.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_database.h"},
    Library{"rocksdb", "semel/store/internal/rocksdb_files.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_listener.cc"},
    Library{"rocksdb", "semel/store/internal/rocksdb_listener.h"},
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

// POSIX, Linux and processor headers: allowed everywhere except in core.
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

// Returns true if `path` is `place`, or lies in it if that is a folder.
bool within(std::string_view path, std::string_view place) {
  return path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/');
}

template <class Places>
bool within_any(std::string_view path, const Places& places) {
  return std::any_of(std::begin(places), std::end(places),
                     [&](std::string_view place) { return within(path, place); });
}

// Returns the innermost folder of the table that holds `path`.
const Layer* layer_of(std::string_view path) {
  const Layer* innermost = nullptr;
  for (const Layer& layer : kLayers) {
    if (!within(path, layer.folder)) continue;
    if (innermost == nullptr || layer.folder.size() > innermost->folder.size()) innermost = &layer;
  }
  return innermost;
}

// Returns the room whose internal/ folder holds `header`: two folders deep, so that a room and the
// rooms inside it share their internals. Returns an empty name if the header is not internal.
std::string_view room_of_internal(std::string_view header) {
  if (header.find("/internal/") == std::string_view::npos) return {};
  return header.substr(0, header.find('/', header.find('/') + 1));
}

bool is_test(std::string_view file) { return file.ends_with("_test.cc"); }

bool is_exception(std::string_view file, std::string_view header) {
  return std::any_of(kExceptions.begin(), kExceptions.end(), [&](const Exception& exception) {
    return file == exception.file && within(header, exception.may_include);
  });
}

// Returns true if `header` is internal to a room whose internals `file` may not see.
bool is_foreign_internal(std::string_view file, std::string_view header) {
  const std::string_view room = room_of_internal(header);
  if (room.empty() || within(file, room) || within(file, "semel/papers") || is_test(file)) {
    return false;
  }
  return !is_exception(file, header) &&
         std::none_of(kFriends.begin(), kFriends.end(), [&](const Friend& other) {
           return within(file, other.file) && within(header, other.internals);
         });
}

bool is_ours(std::string_view path) {
  constexpr std::array<std::string_view, 7> kRoots = {"semel", "client", "module", "cli",
                                                      "tests", "bench",  "fuzz"};
  return within_any(path, kRoots);
}

// Returns the file that this file tests; the file itself if it is no test.
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
    if (within(header, hidden.header) && !within(file, hidden.seen_in)) {
      return std::string(header) + " may be included only in " + std::string(hidden.seen_in);
    }
  }
  if (is_exception(file, header)) return std::nullopt;
  if (is_foreign_internal(file, header)) {
    return "internal to " + std::string(room_of_internal(header));
  }
  if (layer_of(header) == &layer || within_any(header, layer.may_include)) return std::nullopt;
  if (is_test(file) && within(header, "tests")) return std::nullopt;
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

namespace {

struct Include {
  std::size_t line;
  std::string header;  // empty if the line does not name it
};

std::vector<Include> includes_of(std::string_view text) {
  static const std::regex kInclude(
      R"(\s*#\s*(?:include|include_next|import)\b\s*(?:["<]([^">]+)[">])?)");
  std::vector<Include> includes;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find('#') == std::string::npos) continue;
    std::smatch found;
    if (!std::regex_search(line, found, kInclude, std::regex_constants::match_continuous)) continue;
    includes.push_back({number, found[1]});
  }
  return includes;
}

// The includes among the headers of a tree.
class Graph {
 public:
  explicit Graph(const Tree& tree) {
    for (const auto& [file, text] : tree) includes_[file] = includes_of(text);
  }

  // Calls visit(place, include) for every include that `file` sees: its own, and those of our
  // headers that it includes. `place` is the file that has the include. Does not look into headers
  // for which enters(header) is false.
  template <class Visit, class Enters>
  void for_each_seen(const std::string& file, Visit visit, Enters enters) const {
    std::set<std::string> seen{file};
    std::vector<std::string> left{file};
    while (!left.empty()) {
      const std::string at = left.back();
      left.pop_back();
      const auto found = includes_.find(at);
      if (found == includes_.end()) continue;
      for (const Include& include : found->second) {
        visit(at, include);
        if (enters(include.header) && seen.insert(include.header).second) {
          left.push_back(include.header);
        }
      }
    }
  }
  template <class Visit>
  void for_each_seen(const std::string& file, Visit visit) const {
    for_each_seen(file, visit, [](const std::string&) { return true; });
  }

 private:
  std::map<std::string, std::vector<Include>> includes_;
};

// Returns true if a header opens a namespace for internals, such as semel::window_internal.
bool names_a_room(const std::string& text) {
  static const std::regex kNamespace(R"((^|\n)namespace [\w: ]*internal\b)");
  return std::regex_search(text, kNamespace);
}

// Headers that a folder may not see, even through other headers.
constexpr std::array kHiddenThrough = {
    Hidden{"module/host/api.h", "module/host"},
};

}  // namespace

std::vector<Breach> breaches_in(std::string_view file, std::string_view text) {
  const Layer* const layer = layer_of(file);
  if (layer == nullptr) return {{std::string(file), 1, "a folder that the table does not name"}};

  std::vector<Breach> breaches;
  for (const auto& [line, header] : includes_of(text)) {
    if (header.empty()) {
      breaches.push_back({std::string(file), line, "an include that does not name its header"});
      continue;
    }
    const auto fault =
        is_ours(header) ? fault_of_ours(file, *layer, header) : fault_of_system(file, header);
    if (fault) breaches.push_back({std::string(file), line, header + ": " + *fault});
  }
  return breaches;
}

std::vector<Breach> breaches_through(const Tree& tree,
                                     const std::set<std::string>& public_headers) {
  const Graph graph(tree);
  std::vector<Breach> breaches;
  const auto report = [&](const std::string& at, std::size_t line, std::string what) {
    const auto same = [&](const Breach& breach) {
      return breach.file == at && breach.line == line;
    };
    if (std::none_of(breaches.begin(), breaches.end(), same)) {
      breaches.push_back({at, line, std::move(what)});
    }
  };
  for (const auto& [file, text] : tree) {
    for (const Hidden& hidden : kHiddenThrough) {
      // The module itself joins host and commands.
      if (within(file, hidden.seen_in) || !file.starts_with("module/") || is_test(file) ||
          file.find('/') == file.rfind('/')) {
        continue;
      }
      graph.for_each_seen(file, [&](const std::string& at, const Include& include) {
        if (include.header == hidden.header) {
          report(at, include.line, std::string(hidden.header) + ": " + file + " sees it too");
        }
      });
    }
  }
  // Who may see an internal header may see what it includes.
  const auto is_not_internal = [](const std::string& header) {
    return room_of_internal(header).empty();
  };
  for (const auto& [file, text] : tree) {
    graph.for_each_seen(
        file,
        [&](const std::string& at, const Include& include) {
          if (at == file || !is_foreign_internal(file, include.header)) return;
          report(at, include.line, include.header + ": " + file + " sees it too");
        },
        is_not_internal);
  }
  for (const auto& [file, text] : tree) {
    if (!file.ends_with(".h") || !within(file, "semel") || within(file, "semel/papers")) continue;
    if (!room_of_internal(file).empty()) {
      if (!names_a_room(text)) report(file, 1, "internal, but not in the namespace of its room");
    } else if (!public_headers.contains(file)) {
      report(file, 1, "neither a public header nor in internal/");
    }
  }
  for (const std::string& header : public_headers) {
    if (!room_of_internal(header).empty()) report(header, 1, "a public header in internal/");
    if (!tree.contains(header)) report(header, 1, "a public header that is not there");
    graph.for_each_seen(header, [&](const std::string& at, const Include& include) {
      if (is_ours(include.header) ? !public_headers.contains(include.header)
                                  : !kStandard.contains(include.header)) {
        report(at, include.line, include.header + ": not public, but " + header + " is");
      }
    });
  }
  return breaches;
}

Tree read_tree(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  Tree tree;
  for (const char* const top : {"semel", "client", "module", "cli"}) {
    if (!fs::exists(root / top)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      std::ifstream in(entry.path());
      tree.emplace(entry.path().lexically_relative(root).generic_string(),
                   std::string{std::istreambuf_iterator<char>(in), {}});
    }
  }
  return tree;
}

std::set<std::string> read_headers(const std::filesystem::path& root) {
  std::set<std::string> headers;
  std::ifstream in(root / "cmake/SemelHeaders.cmake");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("  ")) headers.insert(line.substr(2));
  }
  return headers;
}

Report check_tree(const std::filesystem::path& root) {
  const Tree tree = read_tree(root);
  Report report;
  report.files = tree.size();
  for (const auto& [file, text] : tree) {
    const auto found = breaches_in(file, text);
    report.breaches.insert(report.breaches.end(), found.begin(), found.end());
  }
  return report;
}

const std::vector<Layer>& layers() { return kLayers; }

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

std::vector<Breach> breaches_of_contract(const Tree& tree,
                                         const std::set<std::string>& public_headers) {
  static const std::regex header(R"([A-Za-z_][A-Za-z0-9_/]*\.(h|cc)\b)");
  static const std::regex hidden_function(R"(^\s*SEMEL_LOCAL )");
  static const std::regex included(R"(^\s*#\s*include)");
  const auto is_public = [&](const std::string& name) {
    return std::any_of(public_headers.begin(), public_headers.end(), [&](const std::string& path) {
      return path == name || path.ends_with("/" + name);
    });
  };
  std::vector<Breach> breaches;
  for (const std::string& file : public_headers) {
    const auto found = tree.find(file);
    if (found == tree.end()) continue;
    std::istringstream in(found->second);
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
      if (std::regex_search(line, included)) continue;
      if (std::regex_search(line, hidden_function)) {
        breaches.push_back({file, number, "a function that the shared library does not export"});
      }
      for (std::sregex_iterator it(line.begin(), line.end(), header), end; it != end; ++it) {
        const std::string name = it->str();
        if (!is_public(name)) breaches.push_back({file, number, name + ": not installed"});
      }
    }
  }
  return breaches;
}

}  // namespace semel::layering
