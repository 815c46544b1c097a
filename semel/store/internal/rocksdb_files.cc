#include "semel/store/internal/rocksdb_files.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

namespace semel::store_internal {
namespace {

namespace fs = std::filesystem;
using rocksdb::FileLock;
using rocksdb::FileOptions;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

bool is_options_file(const std::string& path) {
  return fs::path(path).filename().string().starts_with("OPTIONS-");
}

// Returns the place of a name. A link of that name is not followed.
fs::path place_of_name(const std::string& path) {
  std::error_code ignored;
  fs::path absolute = fs::absolute(path, ignored).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return fs::weakly_canonical(absolute.parent_path(), ignored) / absolute.filename();
}

// Returns the place of the file that is written through a name.
fs::path place_of_file(const std::string& path) {
  std::error_code ignored;
  return fs::weakly_canonical(fs::absolute(path, ignored), ignored);
}

}  // namespace

class RocksFiles::Guard final : public rocksdb::FileSystemWrapper {
 public:
  Guard() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "semel.guarded"; }

  void allow(const std::string& place) {
    const std::lock_guard lock(mutex_);
    places_.push_back(place_of_file(place));
  }
  void keep_options(const std::string& directory, RocksOptionsText own,
                    std::set<std::string> replaced) {
    if (!own.empty()) own_file_ = directory + "/" + newest_options_file(directory);
    own_options_ = std::move(own);
    replaced_ = std::move(replaced);
  }

  // Opens the OPTIONS file that RocksDB believes to be its own when it makes a checkpoint.
  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                             IODebugContext* debug) override {
    return target()->NewSequentialFile(present(path), options, file, debug);
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               IODebugContext* debug) override {
    return target()->NewRandomAccessFile(present(path), options, file, debug);
  }
  IOStatus FileExists(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    return target()->FileExists(present(path), options, debug);
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions& options, std::uint64_t* size,
                       IODebugContext* debug) override {
    if (own_options_ && !own_options_->empty() && is_options_file(path) &&
        path.ends_with(".dbtmp")) {  // RocksDB asks before it renames it
      RocksOptionsText next;
      IOStatus status = next_options(path, next);
      *size = next.text().size();
      return status;
    }
    return target()->GetFileSize(present(path), options, size, debug);
  }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file, IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_file(path)); !status.ok()) return status;
    return target()->NewWritableFile(path, options, file, debug);
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* file,
                              IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_file(path)); !status.ok()) return status;
    return target()->ReopenWritableFile(path, options, file, debug);
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old,
                             const FileOptions& options, std::unique_ptr<FSWritableFile>* file,
                             IODebugContext* debug) override {
    IOStatus status = judge(place_of_file(path));
    if (status.ok()) status = judge(place_of_file(old));
    return status.ok() ? target()->ReuseWritableFile(path, old, options, file, debug) : status;
  }
  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                           IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_file(path)); !status.ok()) return status;
    return target()->NewRandomRWFile(path, options, file, debug);
  }
  IOStatus NewMemoryMappedFileBuffer(
      const std::string& path, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* file) override {
    if (IOStatus status = judge(place_of_file(path)); !status.ok()) return status;
    return target()->NewMemoryMappedFileBuffer(path, file);
  }
  IOStatus Truncate(const std::string& path, std::size_t size, const IOOptions& options,
                    IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_file(path)); !status.ok()) return status;
    return target()->Truncate(path, size, options, debug);
  }
  IOStatus LockFile(const std::string& path, const IOOptions& options, FileLock** lock,
                    IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_file(path)); !status.ok()) return status;
    return target()->LockFile(path, options, lock, debug);
  }
  IOStatus NewLogger(const std::string& path, const IOOptions& options,
                     std::shared_ptr<rocksdb::Logger>* logger, IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_file(path)); !status.ok()) return status;
    return target()->NewLogger(path, options, logger, debug);
  }

  // A directory that did not exist is ours: a direct user of RocksDB makes a checkpoint.
  IOStatus CreateDir(const std::string& path, const IOOptions& options,
                     IODebugContext* debug) override {
    IOStatus status = target()->CreateDir(path, options, debug);
    if (status.ok()) allow(path);
    return status;
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                              IODebugContext* debug) override {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return IOStatus::OK();
    if (IOStatus status = judge(place_of_name(path)); !status.ok()) return status;
    return target()->CreateDirIfMissing(path, options, debug);
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions& options,
                     IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_name(path)); !status.ok()) return status;
    return target()->DeleteDir(path, options, debug);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options,
                      IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_name(path)); !status.ok()) return status;
    if (own_options_ && is_options_file(path)) return IOStatus::OK();
    return target()->DeleteFile(path, options, debug);
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_name(to)); !status.ok()) return status;
    return target()->LinkFile(present(from), to, options, debug);
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    if (IOStatus status = judge(place_of_name(from)); !status.ok()) return status;
    std::error_code ignored;
    if (fs::is_directory(from, ignored) && !fs::exists(to, ignored)) allow(to);
    if (IOStatus status = judge(place_of_name(to)); !status.ok()) return status;
    if (own_options_ && is_options_file(to)) return replace_options(from, to, options, debug);
    return target()->RenameFile(from, to, options, debug);
  }

 private:
  IOStatus judge(const fs::path& place) const {
    const std::lock_guard lock(mutex_);
    for (const fs::path& allowed : places_) {
      const auto [rest, unused] =
          std::mismatch(allowed.begin(), allowed.end(), place.begin(), place.end());
      if (rest == allowed.end()) return IOStatus::OK();
    }
    return IOStatus::IOError(place.string(), "it is not a part of this database; not touched");
  }

  // Decides on the options that RocksDB wrote to a temporary file and wants to make the newest
  // OPTIONS.
  IOStatus replace_options(const std::string& from, const std::string& to, const IOOptions& options,
                           IODebugContext* debug) {
    if (own_options_->empty()) {
      if (replaced_.empty()) return target()->DeleteFile(from, options, debug);
      return target()->RenameFile(from, to, options, debug);
    }
    RocksOptionsText next;
    IOStatus status = next_options(from, next);
    if (!status.ok()) return status;
    if (next == *own_options_) {
      const std::lock_guard lock(mutex_);
      not_made_.insert(to);
      return target()->DeleteFile(from, options, debug);
    }
    status = rocksdb::WriteStringToFile(target(), next.text(), from, true);
    return status.ok() ? target()->RenameFile(from, to, options, debug) : status;
  }

  // Returns the text of the next OPTIONS file, given the text that RocksDB has written.
  IOStatus next_options(const std::string& written_to, RocksOptionsText& next) const {
    std::string written;
    IOStatus status = rocksdb::ReadFileToString(target(), written_to, &written);
    if (status.ok()) {
      next = own_options_->with_families_of(RocksOptionsText(std::move(written)), replaced_);
    }
    return status;
  }

  // Returns the file to read in place of one that was not made.
  std::string present(const std::string& path) const {
    if (!own_options_ || !is_options_file(path)) return path;
    const std::lock_guard lock(mutex_);
    return not_made_.contains(path) ? own_file_ : path;
  }

  std::vector<fs::path> places_;
  std::optional<RocksOptionsText> own_options_;
  std::set<std::string> replaced_;
  std::string own_file_;
  mutable std::mutex mutex_;
  std::set<std::string> not_made_;  // OPTIONS files that RocksDB believes it made
};

RocksFiles::RocksFiles()
    : guard_(std::make_shared<Guard>()), env_(rocksdb::NewCompositeEnv(guard_)) {}
RocksFiles::~RocksFiles() = default;

void RocksFiles::allow(const std::string& place) { guard_->allow(place); }

void RocksFiles::keep_options(const std::string& directory, RocksOptionsText own,
                              std::set<std::string> replaced) {
  guard_->keep_options(directory, std::move(own), std::move(replaced));
}

}  // namespace semel::store_internal
