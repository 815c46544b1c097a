// Directory: a RocksDB directory that a subcommand was given, with its index.
//
// Contract  A directory that does not exist is an error. A directory that another process has open
//           is not touched. Errors are whole messages for people, which name the directory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/core/result.h"
#include "semel/hash/keyed_digest.h"
#include "semel/index/indexed_store.h"
#include "semel/store/ordered_store.h"

namespace semel {
class RocksStore;
}

namespace semel::cli {

enum class Access : std::uint8_t {
  create,      // read and write; creates the directory if there is none
  write,       // read and write, while no other process does
  read,        // read, while nobody writes
  read_along,  // read, while another process may write (a secondary of RocksDB)
};

// Places of parts of a directory that the user keeps elsewhere.
struct DirectoryPlaces {
  struct Tables {
    std::string path;
    std::optional<std::uint64_t> target_bytes;
  };
  std::string suffix = {};  // of the names of these options: "" or "-b"
  std::optional<std::string> wal_dir = {};
  std::vector<Tables> db_paths = {};
};

class Directory {
 public:
  static Result<std::unique_ptr<Directory>> open(const std::string& path, Access access,
                                                 const std::string& column_family,
                                                 const DirectoryPlaces& places);

  ~Directory();

  const std::string& path() const { return path_; }
  OrderedStore& store() const;

  // Reads what has changed since the last checkpoint, or everything.
  Result<void> build_index(const Secret& secret, std::uint32_t burst_bytes);
  IndexedStore& index() const { return *index_; }  // REQUIRES: it was built
  // Reads every record and compares it with the index. Reports on standard error, in the name of a
  // subcommand, what is wrong. Unless `quiet`, also reports that nothing is wrong.
  Result<void> scrub_index(const std::string& name, bool quiet);
  bool rotten() const { return rotten_; }  // true if scrub_index() found the index wrong
  Result<void> save_index();
  // Closes the directory. Everything written is on disk then. REQUIRES: no other call comes after
  // it.
  Result<void> close();
  // Returns the last error of the store below, if there was one.
  Result<void> health() const;

 private:
  explicit Directory(std::string path);

  std::string path_;
  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<IndexedStore> index_;
  bool rotten_ = false;
};

// Returns true if both are names of one directory.
bool same_directory(const std::string& a, const std::string& b);

// Reads a key of 32 bytes, or of 64 hexadecimal digits. Without a file the key is 32 zeros.
Result<Secret> read_secret(const std::optional<std::string>& path);

}  // namespace semel::cli
