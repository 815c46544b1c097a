// semel load: lines of key and value into a RocksDB directory.
#include <unistd.h>

#include <array>
#include <memory>

#include "cli/commands.h"
#include "cli/compression.h"
#include "cli/directory.h"
#include "cli/escaped.h"
#include "cli/files.h"
#include "cli/store_options.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel load";
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;  // of one write, and of one read

struct Settings {
  std::string directory;
  std::string column_family = kDefaultColumnFamily;
  DirectoryPlaces places;
  bool remove = false;
};

// Lines into records, some at a time.
class Loader {
 public:
  Loader(const Directory& directory, bool remove) : directory_(directory), remove_(remove) {}

  // A problem, or nothing.
  std::string take(std::string_view line) {
    ++line_;
    const std::size_t tab = line.find('\t');
    if (remove_ == (tab != std::string_view::npos)) {
      return bad_line(remove_ ? "there is a tab; allowed: a key alone"
                              : "there is no tab; allowed: KEY, a tab, VALUE");
    }
    auto key = unescaped(line.substr(0, tab));
    auto value = remove_ ? std::string() : unescaped(line.substr(tab + 1));
    if (!key || !value) return bad_line("a backslash; allowed: \\\\ and \\xNN");
    bytes_ += key->size() + value->size();
    records_.emplace_back(std::move(*key), std::move(*value));
    return bytes_ < kBatchBytes ? "" : write();
  }

  std::string write() {
    std::vector<Write> writes;
    writes.reserve(records_.size());
    for (const auto& [key, value] : records_) {
      writes.push_back({key, remove_ ? std::nullopt : std::optional<std::string_view>(value)});
    }
    const Result<void> written = directory_.store().write(writes);
    if (!written) {
      return "cannot write " + quoted(directory_.path()) + ": " + directory_.why(written.error());
    }
    records_.clear();
    bytes_ = 0;
    return "";
  }

 private:
  std::string bad_line(const std::string& what) {
    // What came before is as good as loaded: say so truly.
    const std::string problem = write();
    if (!problem.empty()) return problem;
    return "standard input line " + std::to_string(line_) + ": " + what +
           "; the lines before it are done";
  }

  const Directory& directory_;
  bool remove_;
  std::uint64_t line_ = 0;
  std::vector<std::pair<std::string, std::string>> records_;
  std::size_t bytes_ = 0;
};

// Standard input. A problem, or nothing.
std::string load_all(Loader& loader, const std::string& directory) {
  std::string text;
  bool beginning_seen = false;
  const auto piece = std::make_unique<std::array<char, kBatchBytes>>();
  for (std::size_t got = 1; got > 0;) {
    if (const std::error_code error = read_some(STDIN_FILENO, piece->data(), piece->size(), got)) {
      return cannot("read", "standard input", error);
    }
    text.append(piece->data(), got);
    if (!beginning_seen) {
      if (got > 0 && may_become_compressed(text)) continue;
      beginning_seen = true;
      if (const Compression compression = compression_of(text)) {
        return refused_compression(compression, "-", kName + (' ' + directory));
      }
    }
    if (got == 0 && !text.empty()) text += '\n';  // that a last line may lack
    std::size_t start = 0;
    for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos;
         start = end + 1) {
      std::string problem = loader.take(std::string_view(text).substr(start, end - start));
      if (!problem.empty()) return problem;
    }
    text.erase(0, start);
  }
  return loader.write();
}

Exit load(const Settings& settings) {
  std::string problem;
  const auto directory = Directory::open(settings.directory, Access::create, settings.column_family,
                                         settings.places, problem);
  if (directory) {
    Loader loader(*directory, settings.remove);
    problem = load_all(loader, settings.directory);
    if (std::string unclosed = directory->close(); problem.empty()) problem = std::move(unclosed);
  }
  if (problem.empty()) return Exit::success;
  complain(kName, problem);
  return Exit::failure;
}

}  // namespace

Command load_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{"semel load",
                "Writes records into a RocksDB directory, which is made if it is not there",
                "Reads standard input. A line is KEY, a tab and VALUE; \\xNN "
                "stands for a byte and \\\\ for a backslash. A key that is there gets the new "
                "value.",
                {{"remove", 'r', flag_value(settings->remove),
                  "lines are keys alone, whose records are removed"},
                 column_family_option(settings->column_family)}};
  append(syntax.options, options_of(settings->places));
  syntax.operands = {directory_value("DIRECTORY", settings->directory), 1, 1};
  syntax.examples = {{"printf 'a\\t1\\nb\\t2\\n' | semel load DIR", "two records"},
                     {"semel dump A | semel load B", "all of A into B"}};
  return {"load", std::move(syntax), [settings] { return load(*settings); }};
}

}  // namespace semel::cli
