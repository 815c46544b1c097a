// RocksPlan: decides how to open a directory, and owns everything that must live while it is open.
//
// Contract  A directory is opened with the options of its OPTIONS file, with these exceptions.
//           Paths outside of the directory are used only if the caller gives them. No messages or
//           statistics of the owner are written. Other column families are neither compacted nor
//           reordered. Records that need an order or a merge operator of the owner are refused
//           before anything is opened for writing.
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

namespace semel::store_internal {

class RocksPlan {
 public:
  using Families = std::vector<rocksdb::ColumnFamilyDescriptor>;

  RocksPlan(std::string directory, const RocksStore::Settings& settings);
  ~RocksPlan();

  // Reads the directory and decides.
  Result<void> make();
  // Refuses records waiting in the log, and merges, that only the owner can apply. Call it with a
  // database that is open for reading. For writing, make() does it.
  Result<void> judge_stand_ins(rocksdb::DB& opened,
                               const std::vector<rocksdb::ColumnFamilyHandle*>& handles) const;

  const std::string& log_directory() const;
  // Returns the rule for the prefix that every key must have; nullptr if keys need none. A key
  // without a prefix would end the owner's process.
  const rocksdb::SliceTransform* prefix() const { return prefix_.get(); }
  // Returns the requested column family. REQUIRES: make() has succeeded.
  rocksdb::ColumnFamilyDescriptor& asked();

  rocksdb::DBOptions db;
  Families families;
  RocksFiles files;

 private:
  // The name of something that only the owner has.
  struct StandIn {
    std::string family;
    std::string name;
    bool order = false;  // an order; otherwise a merge operator
  };

  bool writable() const { return settings_.mode == RocksStore::Mode::read_write; }
  bool is_asked(const std::string& family) const { return family == settings_.column_family; }
  Result<void> make_new();
  Result<void> read_directory();
  rocksdb::Status read_options();
  Result<void> settle_places();
  Result<void> settle_log();
  Result<void> settle_tables();
  Result<void> use_place(const std::string& path, const std::string& what);
  Result<void> check_logs_of(const DirectoryCheck& checked);
  Result<void> find_asked();
  Result<void> settle_order(rocksdb::ColumnFamilyDescriptor& one);
  Result<void> settle_merger(rocksdb::ColumnFamilyDescriptor& one);
  void settle_memory(rocksdb::ColumnFamilyDescriptor& one);
  Result<void> refuse_values();
  void settle_the_rest();
  Result<void> refuse_prepared() const;
  Result<void> look() const;
  Result<void> judge(const StandIn& one, rocksdb::DB& opened,
                     rocksdb::ColumnFamilyHandle* handle) const;

  const std::string directory_;
  const RocksStore::Settings& settings_;
  RocksOptionsText own_;
  bool existed_ = false;
  bool asked_is_new_ = false;  // the column family will be created
  bool merger_is_new_ = false;
  std::string log_directory_;
  std::vector<PlaceLock> locks_;
  std::shared_ptr<const rocksdb::SliceTransform> prefix_;
  std::vector<StandIn> stand_ins_;
  std::vector<std::unique_ptr<rocksdb::Comparator>> orders_;
};

}  // namespace semel::store_internal
