#include "cli/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "cli/commands.h"
#include "cli/escaped.h"
#include "cli/files.h"
#include "cli/sift_report.h"
#include "semel/store/rocksdb_store.h"
#include "semel/tally/store/counter_merger.h"

namespace semel::cli {
namespace {

Error cannot_open(const std::string& path, const std::string& why) {
  return {Errc::io, "cannot open " + quoted(path) + ": " + why};
}

Result<void> check_kind(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return cannot_open(path, last_error().message());
  if (!S_ISDIR(status.st_mode)) return cannot_open(path, "it is not a directory");
  if (::stat((path + "/CURRENT").c_str(), &status) != 0) {
    return cannot_open(path, "it is not a directory of RocksDB");
  }
  return {};
}

std::string scrub_text(const std::string& path, const IndexedStore::Scrubbed& scrubbed) {
  std::string text = "the index of " + quoted(path) + " was wrong in " +
                     grouped(scrubbed.stretches) +
                     (scrubbed.stretches == 1 ? " stretch of keys, " : " stretches of keys, ") +
                     "with " + grouped(scrubbed.in_question) + " records:";
  for (const KeyRange& keys : scrubbed.first) {
    text += " from '" + escaped(keys.first) + '\'';
    if (keys.end) text += " to before '" + escaped(*keys.end) + '\'';
    text += ';';
  }
  if (scrubbed.stretches > scrubbed.first.size()) text += " and others;";
  return text + " records there have changed on the disk, or the index is of another directory";
}

// Returns true if a writer has locked the directory. Readers do not lock, but files may vanish
// below them. REQUIRES: this process does not have the directory open, because that lock would be
// lost.
bool locked(const std::string& path) {
  std::error_code error;
  const File file = File::open_to_read(path + "/LOCK", error);
  if (error) return false;
  struct flock lock {};
  lock.l_type = F_RDLCK;
  return ::fcntl(file.fd(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

RocksStore::Settings settings_of(Access access, const std::string& column_family,
                                 const DirectoryPlaces& places) {
  RocksStore::Settings settings;
  settings.mode = access == Access::read         ? RocksStore::Mode::read_only
                  : access == Access::read_along ? RocksStore::Mode::secondary
                                                 : RocksStore::Mode::read_write;
  settings.create = access == Access::create;
  settings.column_family = column_family;
  settings.wal_dir = places.wal_dir;
  for (const DirectoryPlaces::Tables& tables : places.db_paths) {
    settings.db_paths.push_back({tables.path, tables.target_bytes.value_or(UINT64_MAX)});
  }
  return settings;
}

std::string reason(const Error& error, const DirectoryPlaces& places) {
  if (error.code == Errc::busy) return "it is in use by another process";
  if (error.code == Errc::outside) {
    return error.message() + "; allowed: --wal-dir" + places.suffix +
           " with the place of its log (for a copy " +
           "that contains its log: the directory itself), --db-path" + places.suffix +
           " with each place of its tables";
  }
  return error.message();
}

std::optional<Secret> secret_of(std::string_view text) {
  std::array<std::uint8_t, Secret::kSize> bytes{};
  if (text.size() == bytes.size()) {
    std::copy(text.begin(), text.end(), bytes.begin());
    return Secret(bytes);
  }
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [rest, error] = std::from_chars(digits, digits + 2, bytes[i], 16);
    if (error != std::errc{} || rest != digits + 2) return std::nullopt;
  }
  return Secret(bytes);
}

}  // namespace

Directory::Directory(std::string path) : path_(std::move(path)) {}
Directory::~Directory() = default;
OrderedStore& Directory::store() const { return *store_; }

Result<std::unique_ptr<Directory>> Directory::open(const std::string& path, Access access,
                                                   const std::string& column_family,
                                                   const DirectoryPlaces& places) {
  if (access != Access::create) SEMEL_TRY(check_kind(path));
  if (access == Access::read && locked(path)) {
    return cannot_open(path, "it is in use by another process; allowed: --secondary");
  }
  RocksStore::Settings settings = settings_of(access, column_family, places);
  const Merger& counters = tally::counter_merger();
  if (RocksStore::merge_operator(path, column_family) == counters.name()) {
    // A table may be read. Only a program that knows what its records mean may write to it.
    if (settings.mode == RocksStore::Mode::read_write) {
      return cannot_open(path, "it is a table of counters; allowed: semel tally");
    }
    settings.merger = &counters;
  }
  auto store = RocksStore::open(path, settings);
  if (!store) return cannot_open(path, reason(store.error(), places));
  std::unique_ptr<Directory> directory(new Directory(path));
  directory->store_ = std::move(*store);
  return directory;
}

Result<void> Directory::build_index(const Secret& secret, std::uint32_t burst_bytes) {
  auto index = IndexedStore::open(*store_, secret, {.burst_bytes = burst_bytes});
  if (!index) return index.error().about("cannot index " + quoted(path_));
  index_ = std::move(*index);
  return {};
}

Result<void> Directory::scrub_index(const std::string& name, bool quiet) {
  const Result<IndexedStore::Scrubbed> scrubbed = index_->scrub();
  if (!scrubbed) return scrubbed.error().about("cannot scrub " + quoted(path_));
  rotten_ = scrubbed->stretches > 0;
  if (rotten_) {
    complain(name, scrub_text(path_, *scrubbed));
  } else if (!quiet) {
    complain(name, "scrubbed " + quoted(path_) + ": " + grouped(scrubbed->records) + " records, " +
                       (scrubbed->compared ? "the index is right" : "there was no index"));
  }
  return {};
}

Result<void> Directory::save_index() {
  const Result<void> saved = index_->checkpoint();
  return saved ? saved : saved.error().about("cannot save the index of " + quoted(path_));
}

Result<void> Directory::close() {
  index_.reset();
  const Result<void> closed = store_->close();
  return closed ? closed : closed.error().about("cannot write " + quoted(path_));
}

Result<void> Directory::health() const {
  const Result<void> store = store_->health();
  return store ? store : store.error().about("cannot use " + quoted(path_));
}

bool same_directory(const std::string& a, const std::string& b) {
  struct stat of_a {};
  struct stat of_b {};
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

Result<Secret> read_secret(const std::optional<std::string>& path) {
  if (!path) return Secret(std::array<std::uint8_t, Secret::kSize>{});
  const std::string text = SEMEL_TRY(read_file(*path));
  if (const std::optional<Secret> secret = secret_of(text)) return *secret;
  return Error{Errc::invalid,
               quoted(*path) + " is not a key; allowed: 32 bytes, or 64 hexadecimal digits"};
}

}  // namespace semel::cli
