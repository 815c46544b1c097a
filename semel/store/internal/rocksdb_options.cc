#include "semel/store/internal/rocksdb_options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "semel/store/internal/new_file.h"

namespace semel::store_internal {
namespace {

namespace fs = std::filesystem;

// A section with its heading, up to the next one.
struct Section {
  std::string heading;  // "[CFOptions "default"]"; empty before the first
  std::string text;

  // Returns the name of the column family that the section describes; empty if it describes none.
  std::string family() const {
    const std::size_t first = heading.find('"');
    const std::size_t last = heading.rfind('"');
    return first == last ? "" : heading.substr(first + 1, last - first - 1);
  }
};

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

std::vector<Section> sections_of(std::string_view text) {
  std::vector<Section> sections(1);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end == std::string_view::npos ? end : end + 1);
    text.remove_prefix(line.size());
    if (trimmed(line).starts_with('[')) sections.push_back({std::string(trimmed(line)), ""});
    sections.back().text += line;
  }
  return sections;
}

std::string option_in(const Section& section, std::string_view name) {
  std::string_view rest = section.text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string_view option = trimmed(line);
    if (!option.starts_with(name) || !option.substr(name.size()).starts_with('=')) continue;
    const std::string_view value = option.substr(name.size() + 1);
    return value == "nullptr" ? std::string() : std::string(value);
  }
  return {};
}

std::string option_under(std::string_view text, std::string_view heading, std::string_view name) {
  for (const Section& section : sections_of(text)) {
    if (section.heading == heading) return option_in(section, name);
  }
  return {};
}

std::string heading_of(std::string_view family) {
  return "[CFOptions \"" + std::string(family) + "\"]";
}

}  // namespace

std::string newest_options_file(const std::string& directory) {
  constexpr std::string_view kPrefix = "OPTIONS-";
  std::pair<unsigned long long, std::string> newest;
  std::error_code ignored;
  for (fs::directory_iterator entry(directory, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::string name = entry->path().filename();
    if (!name.starts_with(kPrefix)) continue;
    char* rest = nullptr;
    const unsigned long long number = std::strtoull(name.c_str() + kPrefix.size(), &rest, 10);
    if (rest != name.c_str() + kPrefix.size() && *rest == '\0' && number >= newest.first) {
      newest = {number, std::move(name)};
    }
  }
  return newest.second;
}

RocksOptionsText RocksOptionsText::of_directory(const std::string& directory) {
  const std::string name = newest_options_file(directory);
  if (name.empty()) return {};
  return RocksOptionsText(content_of(directory + "/" + name).value_or(""));
}

std::string RocksOptionsText::db_option(std::string_view name) const {
  return option_under(text_, "[DBOptions]", name);
}

std::string RocksOptionsText::family_option(std::string_view family, std::string_view name) const {
  return option_under(text_, heading_of(family), name);
}

RocksOptionsText RocksOptionsText::with_families_of(const RocksOptionsText& other,
                                                    const std::set<std::string>& replaced) const {
  std::string joined;
  std::set<std::string> kept;
  for (const Section& section : sections_of(text_)) {
    if (replaced.contains(section.family())) continue;
    kept.insert(section.family());
    joined += section.text;
  }
  for (const Section& section : sections_of(other.text_)) {
    const std::string family = section.family();
    if (family.empty() || kept.contains(family)) continue;
    if (!joined.empty() && !joined.ends_with('\n')) joined += '\n';
    joined += section.text;
  }
  return RocksOptionsText(std::move(joined));
}

}  // namespace semel::store_internal
