#include "semel/store/internal/rocksdb_damage.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "semel/store/internal/new_file.h"
#include "semel/store/internal/rocksdb_log.h"
#include "semel/store/internal/rocksdb_options.h"
#include "semel/store/internal/rocksdb_seal.h"

namespace semel::store_internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = "MANIFEST-";
constexpr std::string_view kOptions = "OPTIONS-";
constexpr std::string_view kLog = ".log";
constexpr const char* kRestore = "; restore the directory from a copy or a replica";

// Returns the number in the name of a file; nullopt if the name is not of this kind.
std::optional<std::uint64_t> number_in(std::string_view name, std::string_view prefix,
                                       std::string_view suffix = "") {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) ||
      !name.ends_with(suffix)) {
    return std::nullopt;
  }
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || rest != name.data() + name.size()) return std::nullopt;
  return number;
}

// Returns the files of one kind by number.
std::map<std::uint64_t, std::string> files_of_kind(const std::string& directory,
                                                   std::string_view prefix,
                                                   std::string_view suffix = "") {
  std::map<std::uint64_t, std::string> files;
  std::error_code ignored;
  for (fs::directory_iterator entry(directory, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::string name = entry->path().filename();
    if (const auto number = number_in(name, prefix, suffix)) files[*number] = std::move(name);
  }
  return files;
}

// Returns the name of the MANIFEST in use; empty if CURRENT names none.
std::string manifest_of(const std::string& directory) {
  std::string name = content_of(directory + "/CURRENT").value_or("");
  if (!name.ends_with('\n')) return "";
  name.pop_back();
  return number_in(name, kManifest) ? name : "";
}

std::string damaged(std::string_view name) {
  return "its " + std::string(name) + " is damaged" + kRestore;
}

// An encrypted file begins with an extra page. An unencrypted CURRENT is shorter than that.
bool encrypted(const std::string& directory) {
  constexpr std::size_t kPageBytes = 4096;
  return content_of(directory + "/CURRENT").value_or("").size() >= kPageBytes;
}
constexpr const char* kEncrypted =
    "its files are encrypted, which is not supported, or its CURRENT is damaged";

// Returns the number of the oldest log that a column family needs, if this record of a MANIFEST has
// it. It is among the first fields of the record, each of which has a tag.
std::optional<std::uint64_t> log_number_in(ByteView record) {
  constexpr std::uint64_t kComparator = 1;
  constexpr std::uint64_t kLogNumber = 2;
  Reader r(record);
  std::uint64_t tag = r.varint();
  if (tag == kComparator) {
    r.text();
    tag = r.varint();
  }
  const std::uint64_t number = r.varint();
  return r.ok() && tag == kLogNumber ? std::optional(number) : std::nullopt;
}

// Returns the damage of the newest OPTIONS file. An older seal cannot judge it.
std::string check_options(const std::string& directory, const SealedFile& sealed) {
  const auto sealed_number = number_in(sealed.name, kOptions);
  const std::string name = newest_options_file(directory);
  const auto number = number_in(name, kOptions);
  if (!sealed_number || (number && *number > *sealed_number)) return "";
  if (number != sealed_number) return "its " + sealed.name + " is missing" + kRestore;
  return SealedFile::of(directory, name) == sealed ? "" : damaged(name);
}

// Compares the directory with its seal. The seal was read before CURRENT, because a new MANIFEST is
// made before it is sealed.
std::string check_seal(const std::string& directory, const std::string& manifest,
                       const RocksSeal& seal, DirectoryCheck& check) {
  std::string wrong = check_options(directory, seal.options);
  if (!wrong.empty()) return wrong;
  const auto sealed = number_in(seal.manifest.name, kManifest);
  const auto number = number_in(manifest, kManifest);
  if (number < sealed) {
    return "its CURRENT names " + manifest + " and not " + seal.manifest.name + kRestore;
  }
  if (number > sealed) return "";
  check.closed = seal.closed;
  return seal.closed && SealedFile::of(directory, manifest) != seal.manifest ? damaged(manifest)
                                                                             : "";
}

}  // namespace

DirectoryCheck check_directory(const std::string& directory) {
  DirectoryCheck check;
  const std::optional<std::string> sealed = content_of(seal_path(directory));
  const std::string manifest = manifest_of(directory);
  if (manifest.empty()) {
    check.damage = encrypted(directory) ? kEncrypted : damaged("CURRENT");
    return check;
  }
  std::optional<std::uint64_t> sealed_log;  // if the seal is of this MANIFEST
  if (sealed) {
    const Result<RocksSeal> seal = RocksSeal::decode(bytes_of(*sealed));
    check.damage = seal
                       ? check_seal(directory, manifest, *seal, check)
                       : "its " + std::string(RocksSeal::kName) +
                             " is damaged; restore it from a copy, or remove it if the other files "
                             "are known to be sound";
    if (!check.damage.empty()) return check;
    if (seal->manifest.name == manifest) sealed_log = seal->log;
  }
  std::uint64_t newest_log = 0;
  const LogCheck log =
      check_log(directory + "/" + manifest, LogKind::manifest, [&](const LogPiece& piece) {
        if (!piece.begins) return;
        newest_log = std::max(newest_log, log_number_in(piece.bytes).value_or(0));
      });
  if (log.state == LogCheck::State::damaged) check.damage = damaged(manifest);
  if (log.state == LogCheck::State::unreadable) {
    check.damage = "its " + manifest + " cannot be read" + kRestore;
  }
  // A MANIFEST names a log once the earlier logs are no longer needed. A copy that RocksDB made has
  // no seal, and may have no log.
  if (sealed_log && !check.closed) check.least_log = std::max(newest_log, *sealed_log);
  return check;
}

LogsCheck check_logs(const std::string& directory, const DirectoryCheck& checked) {
  LogsCheck check;
  const auto logs = files_of_kind(directory, "", kLog);
  if (checked.least_log > 0 && (logs.empty() || logs.rbegin()->first < checked.least_log)) {
    check.damage = "its write-ahead log " + std::to_string(checked.least_log) + " is missing" +
                   std::string(kRestore);
    return check;
  }
  std::string torn;  // the log that ends within a record
  for (const auto& [number, name] : logs) {
    const std::string path = directory + "/" + name;
    const LogCheck log = check_log(path, LogKind::writes);
    if (log.state == LogCheck::State::unreadable && !fs::exists(path)) continue;  // not needed now
    if (log.state == LogCheck::State::unreadable) {
      check.damage = "its log " + name + " cannot be read" + kRestore;
    } else if (log.state == LogCheck::State::damaged) {
      check.damage = "its log " + name + " is damaged at byte " + std::to_string(log.sound_bytes) +
                     kRestore + ", or give up what was written later: truncate -s " +
                     std::to_string(log.sound_bytes) + " " + path;
    } else if (!torn.empty() && log.sound_bytes > 0) {
      check.damage = "its log " + torn + " ends within a record, and " + name + " goes on" +
                     kRestore + ", or give up what was written later: remove " + path;
    }
    if (!check.damage.empty()) return check;
    if (log.state == LogCheck::State::torn) torn = name;
  }
  check.torn = !torn.empty();
  return check;
}

std::vector<std::string> logs_of(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& [number, name] : files_of_kind(directory, "", kLog)) {
    paths.push_back(directory + "/" + name);
  }
  return paths;
}

std::string check_empty(const std::string& directory) {
  const bool records = !files_of_kind(directory, "", ".sst").empty() ||
                       !files_of_kind(directory, "", kLog).empty() ||
                       fs::exists(seal_path(directory));
  return records ? "its CURRENT is missing" + std::string(kRestore) : "";
}

std::string seal_path(const std::string& directory) { return directory + "/" + RocksSeal::kName; }

bool seal_directory(const std::string& directory, const std::string& log_directory, bool closed) {
  RocksSeal seal;
  seal.closed = closed;
  const auto logs = files_of_kind(log_directory, "", kLog);
  if (!logs.empty()) seal.log = logs.rbegin()->first;
  seal.manifest.name = manifest_of(directory);
  if (closed) {
    const auto manifest = SealedFile::of(directory, seal.manifest.name);
    if (!manifest) return false;
    seal.manifest = *manifest;
  }
  if (const std::string name = newest_options_file(directory); !name.empty()) {
    const auto options = SealedFile::of(directory, name);
    if (!options) return false;
    seal.options = *options;
  }
  Bytes bytes;
  seal.encode(bytes);
  return !replace_file(seal_path(directory), bytes);
}

}  // namespace semel::store_internal
