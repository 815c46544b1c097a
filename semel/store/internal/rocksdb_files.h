// RocksFiles: limits the files that RocksDB may change.
//
// Contract  RocksDB deletes files that it does not know, wherever its options point, even in the
//           log directory of another database. A copied OPTIONS file names paths of the original.
//           So every change of a file goes through here, and a change outside of our places is
//           refused: it changes nothing, and the error names the file. Reading is not limited.
//           Links are followed before a place is judged. A directory that RocksDB makes, for
//           example for a checkpoint, becomes one of our places. The OPTIONS files of an existing
//           directory stay as they are (keep_options()).
// Threads   RocksDB calls from any thread. Call keep_options() before the database is opened.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "semel/store/internal/rocksdb_options.h"

namespace rocksdb {
class Env;
}

namespace semel::store_internal {

class RocksFiles {
 public:
  RocksFiles();
  ~RocksFiles();
  RocksFiles(const RocksFiles&) = delete;
  RocksFiles& operator=(const RocksFiles&) = delete;

  // Allows changes in this directory and below it.
  void allow(const std::string& place);
  // Keeps all OPTIONS files. A new one is made only if `own` lacks a column family that RocksDB
  // describes, or if it is in `replaced`. The new file is `own` with the sections of these
  // families.
  void keep_options(const std::string& directory, RocksOptionsText own,
                    std::set<std::string> replaced);

  rocksdb::Env* env() const { return env_.get(); }  // this object outlives it

 private:
  class Guard;
  std::shared_ptr<Guard> guard_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace semel::store_internal
