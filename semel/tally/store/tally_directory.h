// TallyDirectory: a TallyStore in a RocksDB directory, with the time of the system.
//
// Contract  As in tally_store.h. A thread calls tick() and, when RocksDB has flushed, checkpoint().
//           read_only sees the state at the opening, also of a directory that another process has
//           open; read_write is for one process at a time.
// Error     Errc::busy, Errc::invalid, Errc::unsupported as in store/rocksdb_store.h; Errc::mismatch
//           for a table of another shape; Errc::invalid for a directory that holds no table.
// Threads   Any number of threads may call at once.
#pragma once

#include <memory>
#include <string>

#include "semel/core/result.h"
#include "semel/tally/store/tally_store.h"

namespace semel {
class RocksStore;
}

namespace semel::tally {

class TallyDirectory {
 public:
  // Made if there is none, and settings.recogniser is given. `why`, if given, takes RocksDB's words.
  static Result<std::unique_ptr<TallyDirectory>> open(const std::string& directory,
                                                      const TallyStore::Settings& settings,
                                                      std::string* why = nullptr);
  // Closes the directory, with all that was counted on disk. The destructor does the same, and
  // keeps errors to itself. REQUIRES: no other call comes after it.
  Result<void> close();
  ~TallyDirectory();

  TallyStore& table();
  RocksStore& store();
  TimeMs now_ms() const;

 private:
  class Body;
  explicit TallyDirectory(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace semel::tally
