// RocksPlan: how a directory is to be opened, and all that has to live as long as it is open.
//
// Contract  A directory is opened with the options of its OPTIONS file, but for these: paths outside
//           of the directory count only if they are given; nothing is written that the owner would
//           have to find (messages, statistics); column families that are not asked for are neither
//           compacted nor reordered. What would need an order or a merge operator that only the
//           owner has is refused before anything is opened for writing.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <memory>
#include <string>
#include <vector>

#include "semel/core/result.h"
#include "semel/store/internal/rocksdb_damage.h"
#include "semel/store/internal/rocksdb_files.h"
#include "semel/store/internal/rocksdb_places.h"
#include "semel/store/rocksdb_store.h"

namespace semel {

class RocksPlan {
 public:
  using Families = std::vector<rocksdb::ColumnFamilyDescriptor>;

  RocksPlan(std::string directory, const RocksStore::Settings& settings);
  ~RocksPlan();

  // Reads what is there, and decides. `why` takes more words of an error than it can hold itself.
  Result<void> make(std::string& why);
  // Refuses records that wait in the log, or merges, which only the owner can finish. To be called
  // with the opened database if it is open for reading. For writing make() has done it.
  Result<void> judge_stand_ins(rocksdb::DB& opened,
                               const std::vector<rocksdb::ColumnFamilyHandle*>& handles,
                               std::string& why) const;

  const std::string& log_directory() const;
  // What every key must have a prefix by, or the owner's process ends when it meets one without;
  // nullptr if there is nothing.
  const rocksdb::SliceTransform* prefix() const { return prefix_.get(); }
  // The column family that is asked for. REQUIRES: make() has succeeded.
  rocksdb::ColumnFamilyDescriptor& asked();

  rocksdb::DBOptions db;
  Families families;
  RocksFiles files;

 private:
  // A name that only the owner has something for.
  struct StandIn {
    std::string family;
    std::string name;
    bool order = false;  // or a merge operator
  };

  bool writable() const { return settings_.mode == RocksStore::Mode::read_write; }
  bool is_asked(const std::string& family) const { return family == settings_.column_family; }
  Result<void> make_new(std::string& why);
  Result<void> read_directory(std::string& why);
  rocksdb::Status read_options();
  Result<void> settle_places(std::string& why);
  Result<void> settle_log(std::string& why);
  Result<void> settle_tables(std::string& why);
  Result<void> use_place(const std::string& path, const std::string& what, std::string& why);
  Result<void> check_logs_of(const DirectoryCheck& checked, std::string& why);
  Result<void> find_asked(std::string& why);
  Result<void> settle_order(rocksdb::ColumnFamilyDescriptor& one, std::string& why);
  Result<void> settle_merger(rocksdb::ColumnFamilyDescriptor& one, std::string& why);
  void settle_memory(rocksdb::ColumnFamilyDescriptor& one);
  Result<void> refuse_values(std::string& why);
  void settle_the_rest();
  Result<void> refuse_prepared(std::string& why) const;
  Result<void> look(std::string& why) const;
  Result<void> judge(const StandIn& one, rocksdb::DB& opened, rocksdb::ColumnFamilyHandle* handle,
                     std::string& why) const;

  const std::string directory_;
  const RocksStore::Settings& settings_;
  RocksOptionsText own_;
  bool existed_ = false;
  bool asked_is_new_ = false;  // the column family is to be made
  bool merger_is_new_ = false;
  std::string log_directory_;
  std::vector<PlaceLock> locks_;
  std::shared_ptr<const rocksdb::SliceTransform> prefix_;
  std::vector<StandIn> stand_ins_;
  std::vector<std::unique_ptr<rocksdb::Comparator>> orders_;
};

}  // namespace semel
