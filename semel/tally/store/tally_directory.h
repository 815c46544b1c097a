// TallyDirectory: a TallyStore in a RocksDB directory, with a clock and a thread of its own.
//
//   auto directory = TallyDirectory::open("counts", settings);
//   auto answer = (*directory)->table().add({"sold", 5, id}, (*directory)->now_ms());
//
// Contract  As in tally_store.h. A thread calls tick() and, when RocksDB has flushed, checkpoint().
//           With read_only the table shows the state at opening, even if another process has the
//           directory open. Only one process at a time can open a directory to write.
// Error     Errc::busy, Errc::invalid and Errc::unsupported as in store/rocksdb_store.h, with
//           RocksDB's message; Errc::mismatch for a table of another shape; Errc::invalid for a
//           directory that holds no table.
// Threads   Any number of threads may call at once.
#pragma once

#include <memory>
#include <string>

#include "semel/core/api.h"
#include "semel/core/result.h"
#include "semel/tally/store/tally_store.h"

namespace semel {
class RocksStore;
}

namespace semel::tally {

class SEMEL_API TallyDirectory {
 public:
  // Opens the table, or makes one if there is none and settings.recognition is given. Without
  // settings.clock, the system clock is used.
  static Result<std::unique_ptr<TallyDirectory>> open(const std::string& directory,
                                                      const TallyStore::Settings& settings);
  // Closes the directory, after writing all counts to disk. The destructor does the same and
  // ignores errors. REQUIRES: no other call comes after it.
  Result<void> close();
  ~TallyDirectory();

  TallyStore& table();
  RocksStore& store();
  TimeMs now_ms() const;

 private:
  class SEMEL_LOCAL Body;
  explicit TallyDirectory(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel::tally
