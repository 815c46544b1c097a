// semel load: writes lines of key and value into a RocksDB directory.
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

// Writes lines as records, a batch at a time.
class Loader {
 public:
  Loader(const Directory& directory, bool remove) : directory_(directory), remove_(remove) {}

  Result<void> take(std::string_view line) {
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
    return bytes_ < kBatchBytes ? Result<void>() : write();
  }

  Result<void> write() {
    std::vector<RecordWrite> writes;
    writes.reserve(records_.size());
    for (const auto& [key, value] : records_) {
      writes.push_back({key, remove_ ? std::nullopt : std::optional<std::string_view>(value)});
    }
    const Result<void> written = directory_.store().write(writes);
    if (!written) return written.error().about("cannot write " + quoted(directory_.path()));
    records_.clear();
    bytes_ = 0;
    return {};
  }

 private:
  // Writes the lines before this one first, because the message says that they are done.
  Error bad_line(const std::string& what) {
    SEMEL_TRY(write());
    return {Errc::invalid, "standard input line " + std::to_string(line_) + ": " + what +
                               "; the lines before it are done"};
  }

  const Directory& directory_;
  bool remove_;
  std::uint64_t line_ = 0;
  std::vector<std::pair<std::string, std::string>> records_;
  std::size_t bytes_ = 0;
};

// Loads standard input.
Result<void> load_all(Loader& loader, const std::string& directory) {
  std::string text;
  bool beginning_seen = false;
  const auto piece = std::make_unique<std::array<char, kBatchBytes>>();
  for (std::size_t got = 1; got > 0;) {
    if (const std::error_code error = read_some(STDIN_FILENO, piece->data(), piece->size(), got)) {
      return Error{Errc::io, cannot("read", "standard input", error)};
    }
    text.append(piece->data(), got);
    if (!beginning_seen) {
      if (got > 0 && may_become_compressed(text)) continue;
      beginning_seen = true;
      if (const Compression compression = compression_of(text)) {
        return Error{Errc::unsupported,
                     refused_compression(compression, "-", kName + (' ' + directory))};
      }
    }
    if (got == 0 && !text.empty()) text += '\n';  // a last line may lack it
    std::size_t start = 0;
    for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos;
         start = end + 1) {
      SEMEL_TRY(loader.take(std::string_view(text).substr(start, end - start)));
    }
    text.erase(0, start);
  }
  return loader.write();
}

Result<void> load_into(const Settings& settings) {
  const std::unique_ptr<Directory> directory = SEMEL_TRY(
      Directory::open(settings.directory, Access::create, settings.column_family, settings.places));
  Loader loader(*directory, settings.remove);
  Result<void> loaded = load_all(loader, settings.directory);
  if (const Result<void> closed = directory->close(); loaded) loaded = closed;
  return loaded;
}

Exit load(const Settings& settings) {
  const Result<void> loaded = load_into(settings);
  if (loaded) return Exit::success;
  complain(kName, loaded.error().message());
  return Exit::failure;
}

}  // namespace

Command load_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{"semel load",
                "Writes records into a RocksDB directory, and creates it if there is none",
                "Reads standard input. A line is KEY, a tab and VALUE; \\xNN "
                "stands for a byte and \\\\ for a backslash. A key that is there gets the new "
                "value.",
                {{"remove", 'r', flag_value(settings->remove),
                  "each line is only a key, whose record is removed"},
                 column_family_option(settings->column_family)}};
  append(syntax.options, options_of(settings->places));
  syntax.operands = {directory_value("DIRECTORY", settings->directory), 1, 1};
  syntax.examples = {{"printf 'a\\t1\\nb\\t2\\n' | semel load DIR", "two records"},
                     {"semel dump A | semel load B", "all of A into B"}};
  return {"load", std::move(syntax), [settings] { return load(*settings); }};
}

}  // namespace semel::cli
