// Directory: a RocksDB directory that a subcommand was given, with its index.
//
// Contract  A directory that is not there is an error, and one that another process has open is not
//           touched. Problems are texts for people, which name the directory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/hash/keyed_digest.h"
#include "semel/index/indexed_store.h"
#include "semel/store/ordered_store.h"

namespace semel {
class RocksStore;
}

namespace semel::cli {

enum class Access : std::uint8_t {
  create,      // to write; made if it is not there
  write,       // to read and write, alone
  read,        // to read, while nobody writes
  read_along,  // to read, while another process may write (a secondary of RocksDB)
};

// Where the parts of a directory are that are not in it, as its user says.
struct DirectoryPlaces {
  struct Tables {
    std::string path;
    std::optional<std::uint64_t> target_bytes;
  };
  std::string suffix = {};  // of the options that say so: "" or "-b"
  std::optional<std::string> wal_dir = {};
  std::vector<Tables> db_paths = {};
};

class Directory {
 public:
  // nullptr and a problem if it cannot be opened.
  static std::unique_ptr<Directory> open(const std::string& path, Access access,
                                         const std::string& column_family,
                                         const DirectoryPlaces& places, std::string& problem);

  ~Directory();

  const std::string& path() const { return path_; }
  OrderedStore& store() const;

  // Reads what has changed since the last checkpoint, or everything. A problem, or nothing.
  std::string build_index(const Secret& secret, std::uint32_t burst_bytes);
  IndexedStore& index() const { return *index_; }  // REQUIRES: it was built
  // Reads every record and compares it with the index. What is wrong is told on standard error in
  // the name of a subcommand; what is right too, unless `quiet`. A problem, or nothing.
  std::string scrub_index(const std::string& name, bool quiet);
  bool rotten() const { return rotten_; }  // scrub_index() found the index wrong
  // What is behind an error of its store or index.
  std::string why(const Error& error) const;
  // A problem, or nothing.
  std::string save_index();
  // Closes it, with all that was written on disk. A problem, or nothing. REQUIRES: nothing is asked
  // of it afterwards.
  std::string close();

 private:
  explicit Directory(std::string path);

  std::string path_;
  std::unique_ptr<RocksStore> store_;
  std::unique_ptr<IndexedStore> index_;
  bool rotten_ = false;
};

// True if both are names of one directory.
bool same_directory(const std::string& a, const std::string& b);

// 32 bytes, or 64 hexadecimal digits; without a file 32 zeros. nullopt and a problem otherwise.
std::optional<Secret> read_secret(const std::optional<std::string>& path, std::string& problem);

}  // namespace semel::cli
