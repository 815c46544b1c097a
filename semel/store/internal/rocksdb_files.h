// RocksFiles: the files that RocksDB may change, and no others.
//
// Why       RocksDB deletes what it does not know, wherever its options send it: in the log
//           directory of another database too. OPTIONS files are copied with a directory, and name
//           paths of the original. Every change of a file goes through here and is refused outside
//           of the places that we have the right to.
// Contract  Reading is not limited. A change outside of the places is an error, which names the file
//           and changes nothing. Links are followed before a place is judged. A directory that
//           RocksDB makes, as for a checkpoint, becomes such a place.
//           The OPTIONS files of a directory that was there stay as they are (keep_options()).
// Threads   RocksDB calls from any thread. keep_options() comes before the opening.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "semel/store/internal/rocksdb_options.h"

namespace rocksdb {
class Env;
}

namespace semel {

class RocksFiles {
 public:
  RocksFiles();
  ~RocksFiles();
  RocksFiles(const RocksFiles&) = delete;
  RocksFiles& operator=(const RocksFiles&) = delete;

  // Allows changes in this directory and below it.
  void allow(const std::string& place);
  // No OPTIONS file is removed. A new one is made only if `own` lacks a column family that RocksDB
  // describes, or for those in `replaced`; it is `own` with their sections then.
  void keep_options(const std::string& directory, RocksOptionsText own,
                    std::set<std::string> replaced);

  rocksdb::Env* env() const { return env_.get(); }  // outlived by this

 private:
  class Guard;
  std::shared_ptr<Guard> guard_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace semel
