// RocksDatabase: a RocksDB directory from its opening to its closing.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <vector>

#include "semel/core/result.h"
#include "semel/store/internal/rocksdb_listener.h"
#include "semel/store/internal/rocksdb_plan.h"
#include "semel/store/rocksdb_store.h"

namespace semel::store_internal {

class RocksDatabase {
 public:
  RocksDatabase(std::string directory, const RocksStore::Settings& settings);
  ~RocksDatabase();
  RocksDatabase(const RocksDatabase&) = delete;
  RocksDatabase& operator=(const RocksDatabase&) = delete;

  Result<void> open();
  Result<void> close();

  bool writable() const { return settings.mode == RocksStore::Mode::read_write; }
  bool has_blob_files() const;
  std::string checkpoint_path() const;

  const std::string directory;
  const RocksStore::Settings settings;
  RocksPlan plan;
  std::unique_ptr<rocksdb::DB> db;                // null before open() and after close()
  rocksdb::ColumnFamilyHandle* family = nullptr;  // the one that was asked for
  std::shared_ptr<RocksListener> listener;

 private:
  void listen();
  rocksdb::Status probe() const;
  rocksdb::Status open_as_planned();

  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::string secondary_directory_;
};

}  // namespace semel::store_internal
